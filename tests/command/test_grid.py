"""Tables on a terminal: alignment, widths, sizes and times, and no colour where none is wanted."""

import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from decimal import Decimal
from fcntl import ioctl

import pytest

from paimon_command.grid import readable_size, render, short_path, without_fraction
from paimon_command.output import shown
from paimon_core.types.human_text import age, duration
from tests.support.command import ROOT, answer, run
from tests.support.tables import append_table, keyed_table, orders

ESCAPE = "\x1b"


def on_terminal(*arguments: str, columns: int = 80, **environment: str) -> str:
    """Return what the command prints on a terminal of a width."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    given = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "paimon_command", *arguments]
    given |= {"TERM": "xterm-256color", **environment}
    with subprocess.Popen(command, cwd=ROOT, stdout=follower, stderr=follower, env=given) as process:
        os.close(follower)
        output = b""
        while part := _read(leader):
            output += part
    os.close(leader)
    assert process.returncode == 0, output
    return output.decode().replace("\r\n", "\n")


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 4096)
    except OSError:  # the process has ended
        return b""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    table = keyed_table(tmp_path_factory.mktemp("grid") / "t", bucket="1")
    for number in range(3):
        table.write(orders((number, "v", number), (9, "w", number)))
    return table.path


@pytest.mark.parametrize("name", ["files", "snapshots"])
def test_system_tables_fit_80_columns_and_headers_are_whole(path, name):
    lines = on_terminal(name, path, NO_COLOR="1").splitlines()
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if re.search(r"\d", line)]) == 3, "a line for each row"
    words = {word for line in lines[: len(lines) - 3] for word in line.split()}
    parts = {part for column in answer(name, path)[0] for part in column.split("_")}
    assert {part for word in words for part in word.split("_")} - {""} <= parts


def test_pipe_has_whole_names_relative_to_table(path):
    exact = [row["file_path"] for row in answer("files", path)]
    lines = run("files", path).stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == [file.removeprefix(f"{path}/") for file in exact]
    wide = run("files", path, "--wide").stdout.splitlines()
    assert wide[0].split() == list(answer("files", path)[0])
    assert all(file in line for file, line in zip(exact, wide[1:], strict=True))
    row = answer("files", path)[0]
    assert str(row["file_size_in_bytes"]) in wide[1].split()


def test_bold_header_needs_terminal_without_no_color(path):
    assert ESCAPE in on_terminal("schema", path)
    assert ESCAPE not in on_terminal("schema", path, NO_COLOR="1")
    assert ESCAPE not in run("schema", path).stdout


def test_show_has_readable_time_and_size(path):
    exact, text = answer("show", path), run("show", path).stdout
    assert re.search(r"^committed +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \((\d+ \w+ ago|just now)\)$", text, re.MULTILINE)
    assert re.search(r"^size +[\d.]+ (B|KiB)$", text, re.MULTILINE)
    assert exact["bytes"] == sum(row["file_size_in_bytes"] for row in answer("files", path))
    assert "advice:" not in text
    assert not re.search("^comment", text, re.MULTILINE)


def test_show_ends_with_severe_advice(tmp_path):
    options = {"deletion-vectors.enabled": "true", "write-only": "true"}
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    table.write(orders((1, "v", 1)))
    severe = sum(row["severity"] == "severe" for row in answer("advice", table.path, code=1))
    last = run("show", table.path).stdout.splitlines()[-1]
    assert last == f"advice: {severe} severe, see paimon-spark advice {table.path}"


def test_numbers_are_right_and_texts_left():
    rows = [
        {"n": 5, "d": Decimal("1.50"), "b": True, "t": "x", "null": None},
        {**dict.fromkeys("ndb"), "t": "yy", "null": None},
    ]
    assert render(rows, shown, {}).splitlines() == [
        "   n     d  b     t   null",
        "   5  1.50  true  x   NULL",
        "NULL  NULL  NULL  yy  NULL",
    ]
    sizes = render([{"size": 5}, {"size": 3 << 20}], shown, {"size": readable_size})
    assert sizes.splitlines() == ["   size", "    5 B", "3.0 MiB"]


@pytest.mark.parametrize(
    ("path", "most", "text"),
    [
        ("bucket-0/data-1.parquet", 30, "bucket-0/data-1.parquet"),
        ("bucket-0/data-1.parquet", 22, "…/data-1.parquet"),
        ("bucket-0/data-12345678901234567890-0.parquet", 20, "…/data-1234567…rquet"),
        ("data-12345678901234567890-0.parquet", 20, "data-12345678…arquet"),
    ],
)
def test_paths_lose_directories_then_middle(path, most, text):
    assert short_path(path, most) == text
    assert len(text) <= most


def test_texts_of_times_and_spans():
    assert without_fraction("2026-11-25 15:09:45.394") == "2026-11-25 15:09:45"
    assert [duration(s) for s in (0.04, 3.44, 99.96, 125, 7260)] == [
        "0.0 s",
        "3.4 s",
        "1 min 40 s",
        "2 min 5 s",
        "2 h 1 min",
    ]
    assert [age(ms) for ms in (-1, 500, 1000, 360_000, 7_200_000, 90_000_000)] == [
        "in the future",
        "just now",
        "1 second ago",
        "6 minutes ago",
        "2 hours ago",
        "1 day ago",
    ]


def test_json_is_exact(path):
    told = json.loads(run("snapshots", path, "--json").stdout)
    assert re.fullmatch(r".*:\d\d\.\d{3,}", told[0]["commit_time"])


def test_counts_have_their_plural(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "v", 1)))
    assert run("verify", table.path).stdout == "0 faults in 1 branch, 1 snapshot, 1 file\n"
    table.write(orders((2, "v", 1)))
    told = run("rollback", table.path, "1", "--dry-run").stdout
    assert "without 1 newer snapshot and 0 tags" in told
