"""The subcommand doctor: what it finds on a storage, and that it leaves nothing there."""

import json
from pathlib import Path

import pytest

from paimon_command import probes
from paimon_core import FileSystemCatalog, Schema
from paimon_core.fileio.local import LocalStorage
from tests.support.command import answer, run
from tests.support.s3_server import s3_server
from tests.support.tables import ORDERS, append_table, files_below, orders


def test_doctor_leaves_nothing(table, tmp_path):
    before = files_below(table.path)
    told = answer("doctor", table.path)
    assert [row["check"] for row in told][-1] == "table"
    assert all(row["fine"] for row in told)
    assert files_below(table.path) == before
    told = run("doctor", tmp_path / "new")
    assert (told.exit_code, told.stdout.splitlines()[0]) == (0, "note the directory does not exist yet")
    assert not (tmp_path / "new").exists()


def test_doctor_without_argument_checks_warehouse(warehouse):
    result = run("doctor", PAIMON_WAREHOUSE=warehouse)
    assert (result.exit_code, "ok   list: 2 entries" in result.stdout) == (0, True)
    assert run("doctor").exit_code == 2


def test_doctor_finds_store_that_replaces_files(monkeypatch, tmp_path):
    def replacing(self, path, data):
        self.write(path, data)
        return True

    monkeypatch.setattr(LocalStorage, "create_exclusive", replacing)
    told = {row["check"]: row for row in answer("doctor", tmp_path, code=1)}
    assert not told["put-if-absent"]["fine"]
    assert not told["put-if-absent, 8 at once"]["fine"]
    assert "conditional puts" in told["put-if-absent"]["advice"]
    assert told["ranged read"]["fine"]


def test_doctor_finds_table_that_cannot_be_written(tmp_path):
    table = append_table(tmp_path / "t")
    path = Path(table.path) / "schema" / "schema-0"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "options": {**stored["options"], "type": "format-table"}}))
    told = answer("doctor", table.path, code=1)
    assert (told[-1]["check"], told[-1]["fine"], "format-table" in told[-1]["found"]) == ("table", False, True)


def test_doctor_finds_clock_that_is_wrong(monkeypatch, tmp_path):
    monkeypatch.setattr(probes.time, "time", lambda: 1000.0)
    told = {row["check"]: row for row in answer("doctor", tmp_path, code=1)}
    assert "NTP" in told["clock"]["advice"]


def test_doctor_reports_store_without_commits():
    told = answer("doctor", "memory://warehouse/x", code=1)
    assert [(row["check"], row["fine"]) for row in told] == [("directory", True), ("list", True), ("commit", False)]
    assert "memory://" in told[-1]["found"]


def s3_options(options):
    return [part for key, value in options.items() for part in ("--option", f"{key}={value}")]


@pytest.mark.more
def test_table_on_s3():
    """Keys come from the environment, so that no list of processes shows them."""
    with s3_server() as (root, options):
        given = {key: value for key, value in options.items() if not key.endswith("-key")}
        keys = {"AWS_ACCESS_KEY_ID": options["s3.access-key"], "AWS_SECRET_ACCESS_KEY": options["s3.secret-key"]}
        catalog = FileSystemCatalog(f"{root}/w", options)
        catalog.create_database("db")
        table = catalog.create_table("db.t", Schema(ORDERS, primary_keys=["id"], options={"bucket": "1"}))
        table.write(orders((1, "a", 1)))
        for arguments in (["doctor", f"{root}/w"], ["doctor", table.path], ["read", "db.t", "-w", f"{root}/w"]):
            result = run(*arguments, *s3_options(given), "--json", **keys)
            assert result.exit_code == 0, result.output
        assert not [name for name in table.store.io.list(f"{root}/w") if "doctor" in name.name]


@pytest.mark.more
def test_doctor_finds_store_that_overlooks_conditions():
    with s3_server(ignore_conditions=True) as (root, options):
        result = run("doctor", f"{root}/w", *s3_options(options), "--json")
        told = {row["check"]: row for row in json.loads(result.stdout)}
    assert result.exit_code == 1
    assert {name for name, row in told.items() if not row["fine"]} == {"put-if-absent", "put-if-absent, 8 at once"}
