"""The command: its JSON, dry runs, exit codes, errors, and what it imports."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from unittest.mock import ANY

import pyarrow as pa
import pytest

from paimon_command.command_registry import COMMANDS
from paimon_core import Schema, Table
from paimon_core.errors import MissingDependencyError
from paimon_core.fileio.local import LocalStorage
from paimon_core.options import ALL_OPTIONS
from paimon_core.procedures.procedure_registry import PROCEDURES
from tests.support.command import ROOT, SERVERS, answer, process, run
from tests.support.pages import without_times
from tests.support.tables import append_table, files_below, keyed_table, orders

# ---- one call of each, as JSON

CALLS = {
    "advice": ["{t}"],
    "alter": ["{t}", "--add", "more INT"],
    "branch": ["{t}", "c"],
    "branches": ["{t}"],
    "call": [],
    "compact": ["{t}", "--full"],
    "completion": ["zsh"],
    "help": [],
    "consumers": ["{t}"],
    "create": ["made", "-w", "{w}"],
    "delete": ["{t}", "--where", "id = 9"],
    "doctor": ["{t}"],
    "drop": ["empty", "-w", "{w}", "--yes"],
    "expire": ["{t}", "--retain-max", "1"],
    "explain": ["{t}"],
    "files": ["{t}"],
    "get": ["{t}", "id=9"],
    "import": ["db.t", "{w}/db.db/t/bucket-0", "-w", "{w}"],
    "ls": ["{w}"],
    "options": [],
    "orphans": ["{t}"],
    "partitions": ["{t}"],
    "read": ["{t}"],
    "repair": ["{t}", "--deep"],
    "rename": ["db.t", "db.u", "-w", "{w}"],
    "rescale": ["{t}", "2"],
    "rollback": ["{t}", "2"],
    "schema": ["{t}"],
    "show": ["{t}"],
    "snapshots": ["{t}"],
    "tag": ["{t}", "now"],
    "tags": ["{t}"],
    "verify": ["{t}", "--deep"],
}
LINES = {"tail": ["{t}", "--from", "1", "--once"]}
"""Commands that print an object on each line."""
CATALOG_CHANGES = {"alter", "create", "drop", "import", "rename"}
"""Commands whose dry runs are tested in tests/command/test_changes.py."""
CHANGES = ("branch", "compact", "consumers", "delete", "expire", "orphans", "repair", "rescale", "rollback", "tag")


def test_every_command_is_tried():
    assert COMMANDS.keys() == CALLS.keys() | LINES.keys() | SERVERS
    loaded = {name: one.load() for name, one in COMMANDS.items()}
    assert {name for name, one in loaded.items() if "dry_run" in {p.name for p in one.params}} == {
        *CHANGES,
        *CATALOG_CHANGES,
    }


@pytest.mark.parametrize("name", CALLS)
def test_every_command_prints_one_json_document(table, warehouse, name):
    assert answer(name, *(one.format(t=table.path, w=warehouse) for one in CALLS[name])) is not None


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", CALLS)
def test_every_command_has_a_text_and_a_help(table, warehouse, name):
    result = run(name, *(one.format(t=table.path, w=warehouse) for one in CALLS[name]))
    assert (result.exit_code, bool(result.stdout.strip())) == (0, True), result.output
    assert "Usage: " in run(name, "--help").stdout


DRY = {**CALLS, "consumers": ["{t}", "--reset", "one", "--to", "2"]}


@pytest.mark.parametrize("name", CHANGES)
def test_dry_run_changes_nothing(table, name):
    arguments = [one.format(t=table.path) for one in DRY[name]]
    before = files_below(table.path)
    told = answer(name, *arguments, "--dry-run")
    assert name == "orphans" or told["dry_run"] is True
    assert files_below(table.path) == before


@pytest.mark.parametrize(
    "arguments",
    [
        *(["branch", "b", flag, *more] for flag, *more in (["--delete"], ["--rename", "x"], ["--fast-forward"])),
        *(["tag", "v2", flag, *more] for flag, *more in (["--delete"], ["--rename", "x"], ["--replace"])),
        ["consumers", "--clear", ".*"],
    ],
    ids=" ".join,
)
def test_dry_run_of_subcommand_changes_nothing(table, arguments):
    table.consumers.reset("one", 2)
    before = {name: (Path(table.path) / name).read_bytes() for name in files_below(table.path)}
    answer(arguments[0], table.path, *arguments[1:], "--dry-run")
    assert {name: (Path(table.path) / name).read_bytes() for name in files_below(table.path)} == before


# ---- what they say and do


def test_ls_lists_databases_and_tables(warehouse):
    assert answer("ls", warehouse) == [{"database": "db", "table": "t"}, {"database": "empty", "table": None}]
    assert answer("ls", "db", "--warehouse", warehouse) == [{"database": "db", "table": "t"}]
    result = run("ls", PAIMON_WAREHOUSE=warehouse)
    assert result.stdout.splitlines() == ["database  table", "db        t", "empty     (no tables)"]


def test_ls_reports_missing_directory_and_directory_without_database(tmp_path):
    missing = run("ls", tmp_path / "typo")
    assert (missing.exit_code, missing.stderr) == (1, f"Error: there is no directory {tmp_path / 'typo'}\n")
    assert not (tmp_path / "typo").exists()
    assert (run("ls", tmp_path).exit_code, answer("ls", tmp_path)) == (0, [])
    (tmp_path / "notes.txt").write_text("x")
    other = run("ls", tmp_path)
    expected = "no database here; a warehouse holds directories such as shop.db\n"
    assert (other.exit_code, other.stdout) == (1, expected)
    assert answer("ls", tmp_path, code=1) == []


def test_ls_hides_password_of_missing_directory():
    result = run("ls", "file://user:secret@host/typo")
    assert (result.exit_code, "secret" in result.output) == (1, False)


def test_get_names_missing_key_columns(tmp_path):
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("dt", pa.string(), nullable=False)])
    schema = Schema(columns, primary_keys=["dt", "id"], partition_keys=["dt"], options={"bucket": "1"})
    path = Table.create(str(tmp_path / "my orders"), schema).path
    result = run("get", path, "ID=2")
    assert (result.exit_code, result.stderr) == (1, f"Error: the key also needs dt: get '{path}' dt=... id=2\n")


def test_table_by_name_and_its_branch_and_system_table(warehouse):
    given = ("--warehouse", warehouse)
    assert answer("read", "db.t", *given) == [{"a": 1}]
    assert answer("read", "db.t$snapshots", *given)[0]["snapshot_id"] == 1
    assert answer("branch", "db.t", "x", *given) == {"branch": "x"}
    assert answer("read", "db.t$branch_x", *given) == []


def test_show_hides_secrets_and_counts(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    told = answer("show", table.path, "--option", "file.compression=zstd")
    assert (told["snapshot"], told["stored_rows"], told["files"], told["primary_keys"]) == (1, 1, 1, ["id"])
    assert told["options"]["file.compression"] == "zstd"
    empty = keyed_table(tmp_path / "empty")
    assert answer("show", empty.path)["snapshot"] is None


def test_show_draws_page_of_table(table, tmp_path):
    file = tmp_path / "page.html"
    assert answer("show", table.path, "--html", file) == {"file": str(file), "bytes": file.stat().st_size}
    text = file.read_text()
    assert text.startswith("<!doctype html>")
    assert "snapshot <b>3</b>" in text
    assert without_times(run("show", table.path, "--html").stdout) == without_times(text) + "\n"
    for manifest in Path(table.path, "manifest").glob("manifest-list*"):
        manifest.write_bytes(b"broken")
    assert answer("show", table.path, "--html", file, code=1)["errors"]
    assert 'role="alert"' in file.read_text()
    result = run("show", table.path, "--html")
    assert (result.exit_code, result.stdout.startswith("<!doctype html>")) == (1, True)
    assert "CorruptedError" in result.stderr


def test_missing_jinja_names_package_to_install(table, monkeypatch):
    def missing():
        raise MissingDependencyError("a page in HTML needs jinja2: pip install 'pyspark-paimon[notebook]'")

    monkeypatch.setattr("paimon_core.inspect.html.render._environment", missing)
    result = run("show", table.path, "--html")
    assert (result.exit_code, "pyspark-paimon[notebook]" in result.stderr) == (1, True)


def test_schema_of_older_version(table):
    told = answer("schema", table.path, "--id", "0")
    assert [field["name"] for field in told["fields"]] == ["id", "v", "n"]
    assert "BIGINT NOT NULL" in run("schema", table.path).stdout


def test_rows_of_moment_some_columns_and_limit(table):
    assert answer("read", table.path, "--tag", "v2", "--columns", "id", "--filter", "id < 9") == [{"id": 0}, {"id": 1}]
    assert len(answer("read", table.path, "--limit", "2")) == 2
    assert answer("read", table.path, "--snapshot-id", "1", "--limit", "0") == []


def test_twenty_rows_are_shown_and_all_are_printed_as_json(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders(*((number, "v", number) for number in range(30))))
    result = run("read", table.path)
    assert (len(result.stdout.splitlines()), "--limit" in result.stderr) == (21, True)
    assert len(answer("read", table.path)) == 30
    assert len(run("read", table.path, "--limit", "25").stdout.splitlines()) == 26


def test_values_of_every_kind_are_json(tmp_path):
    columns = {
        "f": pa.array([float("nan"), float("-inf")]),
        "d": pa.array([Decimal("1.50"), None]),
        "b": pa.array([b"\x00\xff", None]),
        "t": pa.array([1, None], pa.timestamp("ns")),
        "u": pa.array([datetime(2026, 1, 31), None], pa.timestamp("us")),
        "l": pa.array([[1], None], pa.list_(pa.timestamp("ns"))),
        "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        "s": pa.array([{"x": "a\x1b[31m"}, None], pa.struct([("x", pa.string())])),
    }
    data = pa.table(columns)
    table = Table.create(str(tmp_path / "t"), Schema(data.schema))
    table.write(data)
    first, second = answer("read", table.path)
    assert first == {
        "f": "NaN",
        "d": "1.50",
        "b": "00ff",
        "t": "1970-01-01 00:00:00.000000001",
        "u": "2026-01-31 00:00:00.000000",
        "l": ["1970-01-01 00:00:00.000000001"],
        "m": [["a", 1]],
        "s": {"x": "a\x1b[31m"},
    }
    assert second == {**dict.fromkeys(columns), "f": "-Infinity"}
    assert "\x1b" not in run("read", table.path).stdout


def test_key_is_looked_up_by_types_of_its_columns(table):
    assert answer("get", table.path, "ID=9") == {"id": 9, "v": "w", "n": 2}
    assert answer("get", table.path, "id=77", code=1) is None
    assert run("get", table.path, "id=77").exit_code == 1


def test_tail_follows_commits(table):
    code = "from paimon_command.main import main; main()"
    command_line = [sys.executable, "-c", code, "tail", table.path, "--from", "3", "--limit", "3", "--interval", "0.05"]
    with subprocess.Popen(command_line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        first = [child.stdout.readline(), child.stdout.readline()]
        assert all('"n": 2' in line for line in first), first
        table.write(orders((5, "new", 5)))
        assert child.stdout.readline() == '+I {"id": 5, "v": "new", "n": 5}\n'
        assert child.wait(30) == 0


def test_tail_ends_quietly_with_ctrl_c(table):
    command_line = [sys.executable, "-m", "paimon_command", "tail", table.path, "--from", "all", "--json"]
    with subprocess.Popen(command_line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert json.loads(child.stdout.readline())["rowkind"] == "+I"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
    assert (child.returncode, errors) == (0, "")


def test_subcommands_return_result_of_their_dry_run(table):
    planned = answer("compact", table.path, "--full", "--dry-run")
    assert planned["tasks"] == 1
    compacted = answer("compact", table.path, "--full")
    assert (compacted["snapshot"], compacted["files_before"], compacted["bytes_before"]) == (4, 3, planned["bytes"])
    assert (compacted["files_after"], compacted["rows_before"], compacted["rows_after"]) == (1, 6, 4)
    again = answer("compact", table.path, "--full")
    assert (again["snapshot"], again["files_before"], again["files_after"]) == (None, 0, 0)
    expiry = ("expire", table.path, "--retain-max", "1", "--retain-min", "1")
    planned = answer(*expiry, "--dry-run")
    done = answer(*expiry)
    assert done.pop("milliseconds") >= 0
    assert planned == {"dry_run": True, **done}
    assert done["bytes"] > compacted["bytes_before"]
    assert done["snapshots"] == [1, 2, 3]
    assert answer("delete", table.path, "--where", "id >= 2", "--dry-run")["rows"] == 2
    deleted = answer("delete", table.path, "--where", "id >= 2")
    assert (deleted["snapshot"], deleted["rows"]) == (5, 2)
    assert {row["id"] for row in answer("read", table.path)} == {0, 1}
    again = answer("delete", table.path, "--where", "id >= 2")
    assert (again["snapshot"], again["rows"]) == (None, 0)
    planned = answer("rollback", table.path, "v2", "--dry-run")
    assert planned == {"dry_run": True, **answer("rollback", table.path, "v2")}
    assert planned["lost_snapshots"] == [4, 5]


def test_results_for_people_have_sizes_counts_and_time(table):
    size, time = r"\d[\d.,]* (B|KiB)", r"\d+\.\d s"
    compacted = run("compact", table.path, "--full").stdout
    assert re.fullmatch(rf"compacted in snapshot 4: 3 files of {size} became 1 of {size}, in {time}\n", compacted)
    assert run("compact", table.path, "--full").stdout == "nothing to compact\n"
    deleted = run("delete", table.path, "--where", "id = 2").stdout
    assert re.fullmatch(rf"deleted 1 row in snapshot 5, in {time}\n", deleted)
    expiry = ("expire", table.path, "--retain-max", "1", "--retain-min", "1")
    counts = rf"4 snapshots, 0 changelogs and \d+ files of {size}"
    assert re.fullmatch(rf"{counts} would be removed\n", run(*expiry, "--dry-run").stdout)
    assert re.fullmatch(rf"{counts} removed, in {time}\n", run(*expiry).stdout)
    assert run("orphans", table.path).stdout == "0 files of 0 B that nothing refers to\n"
    assert re.fullmatch(rf"0 files of 0 B deleted, in {time}\n", run("orphans", table.path, "--yes").stdout)


def test_rescale_rewrites_partitions_with_other_number_of_buckets(table):
    planned = answer("rescale", table.path, "2", "--dry-run")
    assert (planned["partitions"], planned["files"]) == (1, 3)
    assert "1 partition of 3 files of" in run("rescale", table.path, "2", "--dry-run").stdout
    done = answer("rescale", table.path, "2")
    assert (done["files_before"], done["bytes_before"]) == (3, planned["bytes"])
    assert (done["files_after"], done["rows_after"]) == (2, 4)
    assert answer("rescale", table.path)["snapshot"] is None
    assert run("rescale", table.path).stdout == "nothing to rescale\n"
    assert run("rescale", table.path, "0").exit_code == 2


def test_old_state_is_restored_and_no_snapshot_is_lost(table):
    back = ("rollback", table.path, "1", "--keep-history")
    assert answer(*back, "--dry-run") == {"dry_run": True, "restored": 1, "snapshot": None}
    assert table.snapshot().id == 3
    assert answer(*back) == {"restored": 1, "snapshot": 4}
    assert {row["id"] for row in answer("read", table.path)} == {0, 9}
    assert answer("tag", table.path, "late", "--timestamp", str(table.snapshot().time_millis))["snapshot"] == 4


def test_tags_branches_and_consumers_are_made_renamed_and_deleted(table):
    path = table.path
    assert answer("tag", path, "first", "--snapshot", "1")["snapshot"] == 1
    assert answer("tag", path, "first", "--replace", "--snapshot", "3", "--retained", "7 d")["expires"] is not None
    assert answer("tag", path, "first", "--rename", "second")["tag"] == "second"
    assert answer("tag", path, "second", "--delete")["snapshot"] == 3
    assert [row["tag_name"] for row in answer("tags", path)] == ["v2"]
    assert answer("branch", path, "c", "--snapshot", "1") == {"branch": "c"}
    assert answer("branch", path, "c", "--rename", "d") == {"branch": "d"}
    assert answer("branch", path, "d", "--delete") == {"branch": "d"}
    assert answer("branch", path, "b", "--fast-forward") == {"branch": "b"}
    assert table.snapshot().id == 2
    assert answer("consumers", path, "--reset", "one", "--to", "2")["next_snapshot"] == 2
    assert answer("consumers", path, "--clear", "o.*") == {"deleted": ["one"]}
    assert answer("consumers", path) == []


def test_orphans_are_deleted_with_yes_only(table):
    stray = Path(table.path) / "bucket-0" / "data-stray-0.parquet"
    stray.write_bytes(b"12345")
    os.utime(stray, (1, 1))
    told = answer("orphans", table.path)
    assert (told["deleted"], told["files"], told["bytes"], stray.exists()) == (False, [str(stray)], 5, True)
    assert answer("orphans", table.path, "--yes")["deleted"] is True
    assert not stray.exists()


def test_verify_exits_with_1_for_fault(table):
    assert answer("verify", table.path)["sound"] is True
    next(Path(table.path).glob("bucket-0/*.parquet")).unlink()
    told = answer("verify", table.path, code=1)
    assert {fault["kind"] for fault in told["faults"]} == {"missing-data-file"}
    assert run("verify", table.path).exit_code == 1


def test_options_agree_with_page():
    told = {row["option"]: row for row in answer("options")}
    assert told.keys() == ALL_OPTIONS.keys()
    assert answer("options", "bucket")["default"] == "-1"
    containing = {row["option"] for row in answer("options", "Compact")}
    assert containing == {key for key in ALL_OPTIONS if "compact" in key}
    assert answer("options", "scan", "--kind", "refused") == [
        row for row in answer("options", "--kind", "refused") if "scan" in row["option"]
    ]
    assert {row["kind"] for row in answer("options", "--kind", "refused")} == {"refused"}


def test_procedures_have_their_arguments_types_and_rows(table, warehouse):
    path = f"table={table.path}"
    assert {row["procedure"].partition("(")[0] for row in answer("call")} == PROCEDURES.keys()
    assert answer("call", "create_tag", path, "tag=x", "snapshot=1") == [{"result": True}]
    assert answer("call", "delete_tag", path, "tag=x") == [{"result": True}]
    done = answer("call", "rollback", path, "version=v2")
    assert done == [{"previous_snapshot_id": 3, "current_snapshot_id": 2}]
    actual = answer("call", "remove_orphan_files", "table=db.*", "dry_run=true", "older_than=1", "-w", warehouse)
    assert actual == [{"deletedFileCount": 0, "deletedFileTotalLenInBytes": 0, "milliseconds": ANY}]
    told = answer("call", "compact_database", "including_databases=db", "-w", warehouse)
    assert told == [{"result": "Compact database finished. Success: 1, Failed: 0"}]
    assert answer("call", "purge_files", path) == [{"result": "Success"}]


def test_branch_is_merged(tmp_path):
    table = append_table(tmp_path / "t")
    table.branches.create("b")
    Table.open(table.path, branch="b").write(orders((1, "v", 1)))
    planned = answer("branch", table.path, "b", "--merge", "--dry-run")
    assert planned == {"dry_run": True, **answer("branch", table.path, "b", "--merge")}
    assert [row["id"] for row in answer("read", table.path)] == [1]


# ---- wrong names and wrong usage

WRONG = [
    (["show", "{t}x"], 1, "no table at .*tx"),
    (["read", "db.t", "-w", "{w}x"], 1, "no database 'db'"),
    (["ls", "dbb", "-w", "{w}"], 1, "no database 'dbb' in .*db, empty"),
    (["read", "db.u", "-w", "{w}"], 1, "no table 'db.u' in .*has: t"),
    (["read", "{t}$fils"], 1, r"did you mean '\$files'"),
    (["read", "{t}", "--columns", "idd"], 1, "'idd' does not exist .*id, v, n"),
    (["read", "{t}", "--filter", "idd = 1"], 1, "idd"),
    (["read", "{t}", "--tag", "nope"], 1, "tag 'nope'.*v2"),
    (["read", "{t}", "--tag", "v2", "--snapshot-id", "1"], 1, "only one of"),
    (["files", "{t}", "--columns", "levl"], 1, "levl"),
    (["get", "{t}", "idd=1"], 1, "'idd' does not exist"),
    (["get", "{t}", "id=abc"], 1, "'abc' is not a value of column 'id'"),
    (["get", "{t}", "9"], 2, "not COLUMN=VALUE"),
    (["delete", "{t}", "--where", "nope = 1"], 1, "nope"),
    (["delete", "{t}"], 2, "--where"),
    (["delete", "{t}$files", "--where", "level = 0"], 1, "can only be read"),
    (["compact", "{t}", "--partition", "p=1"], 1, "names 'p', but the partition columns of .* are"),
    (["compact", "{t}", "--partition", "p"], 2, "column=value"),
    (["compact", "{t}", "--order-by", "id", "--dry-run"], 2, "use only one of them"),
    (["rollback", "{t}", "9"], 1, "snapshot 9 .* does not exist; available: 1 to 3"),
    (["rollback", "{t}", "nope"], 1, "nope"),
    (["rollback", "{t}"], 2, "rollback needs a target"),
    (["rollback", "{t}", "1", "--watermark", "1"], 2, "are mutually exclusive"),
    (["tag", "{t}", "v2", "--snapshot", "1"], 1, "already exists"),
    (["tag", "{t}", "nope", "--delete"], 1, "nope.*v2"),
    (["tag", "{t}", "v2", "--delete", "--replace"], 2, "are mutually exclusive"),
    (["tag", "{t}", "v2", "--delete", "--snapshot", "1"], 2, "does not go with"),
    (["branch", "{t}", "nope", "--delete"], 1, "nope"),
    (["branch", "{t}", "c", "--tag", "nope"], 1, "tag 'nope'"),
    (["consumers", "{t}", "--reset", "nope"], 1, "no consumer 'nope'"),
    (["consumers", "{t}", "--to", "1"], 2, "--reset"),
    (["expire", "{t}", "--older-than", "yesterday"], 1, "'yesterday' is neither"),
    (["orphans", "{t}", "--yes", "--dry-run"], 2, "leave one out"),
    (["orphans", "{t}", "--yes", "--older-than", "2999-01-01"], 1, "a time before these writes"),
    (["tail", "{t}", "--from", "soon"], 1, "not 'soon'"),
    (["options", "bukcet"], 1, "did you mean 'bucket'"),
    (["call", "expire_tag", "table={t}"], 1, "did you mean 'expire_tags'"),
    (["call", "alter_function"], 1, "it needs a REST catalog"),
    (["call", "create_tag", "table={t}"], 1, "argument 'tag' is missing: create_tag"),
    (["call", "create_tag", "table={t}", "tgg=x"], 1, "did you mean 'tag'"),
    (["call", "create_tag", "table={t}", "tag=x", "snapshot=one"], 2, "'one' is no BIGINT"),
    (["call", "create_tag", "table=db.t", "tag=x"], 2, "the warehouse is not set"),
    (["call", "create_tag", "{t}"], 2, "not NAME=VALUE"),
    (["call", "expire_tags", "table={t}", "older_than=soon"], 1, "'soon' is neither"),
    (["show", "{t}", "--option", "file.compresion=x"], 1, "did you mean 'file.compression'"),
    (["show", "{t}", "--option", "a"], 2, "not 'key=value'"),
    (["show", "t"], 2, "names need --warehouse"),
    (["show", "{t}", "--html", "--json"], 2, "give --html a file"),
    (["show", "{t}$files", "--html"], 1, "system table"),
    (["show", "{t}", "--html", "/no/such/directory/t.html"], 1, "FileNotFoundError.*/no/such/directory"),
    (["ls"], 2, "the warehouse is not set"),
    (["snapshot", "{t}"], 2, "did you mean 'snapshots'"),
    (["show", "{t}", "--jsn"], 2, "--json"),
    (["show"], 2, "TABLE"),
]


@pytest.mark.cases(24)
@pytest.mark.parametrize(("arguments", "code", "message"), WRONG, ids=lambda value: str(value)[:50])
def test_wrong_input_is_an_error_and_changes_nothing(table, warehouse, arguments, code, message):
    before = files_below(table.path)
    result = run(*(one.format(t=table.path, w=warehouse) for one in arguments))
    assert result.exit_code == code, result.output
    assert re.search(message, result.stderr, re.DOTALL), result.stderr
    assert "Traceback" not in result.output
    assert files_below(table.path) == before


def test_storage_error_is_message_without_traceback(table, monkeypatch):
    def failing(self, path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(LocalStorage, "read", failing)
    result = run("show", table.path)
    assert (result.exit_code, "Permission denied" in result.stderr) == (1, True)


# ---- as a process


def test_it_starts_without_spark(table):
    code = (
        "import sys; from paimon_command.main import command; command(sys.argv[1:], standalone_mode=False); "
        "print(sorted(m for m in ('pyspark', 'paimon_spark', 'py4j') if m in sys.modules), file=sys.stderr)"
    )
    result = process("snapshots", table.path, "--json", code=code)
    assert len(json.loads(result.stdout)) == 3
    assert result.stderr.strip() == "[]"


def test_exit_codes_of_process_and_closed_pipe(table):
    assert process("verify", table.path).returncode == 0
    missing = process("show", table.path + "x")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith("Error: no table at")
    assert process("shw").returncode == 2
    line = f"{sys.executable} -m paimon_command read {table.path} --json | head -n 1"
    piped = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (piped.stdout, piped.stderr) == ("[\n", "")


KILLED = """
import os, signal, sys
from paimon_core.fileio.local import LocalStorage
from paimon_command.main import main
calls, at, delete = 0, int(sys.argv.pop(1)), LocalStorage.delete
def killing(self, path):
    global calls
    calls += 1
    if calls > at:
        os.kill(os.getpid(), signal.SIGKILL)
    delete(self, path)
LocalStorage.delete = killing
main()
"""


@pytest.mark.parametrize("at", [0, 2, pytest.param(5, marks=pytest.mark.more)])
def test_expiry_that_is_killed_ends_same_when_run_again(tmp_path, at):
    def made(name):
        table = keyed_table(tmp_path / name, bucket="1", **{"snapshot.expire.limit": "1"})
        for number in range(6):
            table.write(orders((number, "v", number)))
            table.compact(full=True)
        return table

    table, other = made("killed"), made("other")
    arguments = ("--retain-max", "1", "--retain-min", "1")
    killed = process(at, "expire", table.path, *arguments, code=KILLED)
    assert killed.returncode == -signal.SIGKILL
    for one in (table, other):
        answer("expire", one.path, *arguments)
        answer("orphans", one.path, "--yes", "--older-than", str(int(time.time() * 1000)))
    assert answer("read", table.path) == answer("read", other.path)
    assert answer("verify", table.path, "--deep")["sound"] is True
    counts = [len([name for name in files_below(one.path) if name.endswith(".parquet")]) for one in (table, other)]
    assert counts[0] == counts[1] == 1
    assert len(answer("snapshots", table.path)) == 1


# ---- with Spark


@pytest.mark.spark
@pytest.mark.more
def test_work_is_spread_over_spark(table):
    given = ("--spark", "local[2]", "--json")
    compacted = process("compact", table.path, "--full", *given)
    told = json.loads(compacted.stdout)
    assert (told["snapshot"], told["files_before"], told["files_after"]) == (4, 3, 1), compacted.stderr
    wrong = process("orphans", table.path, "--spark", "nonsense://x")
    assert (wrong.returncode, "Spark does not start with master 'nonsense://x'" in wrong.stderr) == (1, True)


def test_missing_pyspark_names_package_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    result = run("compact", table.path, "--spark", "local[2]")
    assert (result.exit_code, "pip install" in result.stderr) == (1, True)
