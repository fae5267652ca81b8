"""The repr of a table and of results: rows, files and snapshot in one line, even if the store fails."""

import shutil
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.fileio.fileio import FileIO
from paimon_core.inspect.advice.report import TableHealth
from paimon_core.inspect.html import repr_text as summary_module
from paimon_core.inspect.verify.repair import RepairReport
from paimon_core.inspect.verify.verify_report import Fault, VerifyReport
from paimon_core.operations.history.expire_snapshots import Expired
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.table.reading import TableReading
from tests.support.faulty_io import FaultyIO


@pytest.fixture
def table(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(pa.schema([("id", pa.int64())]), options={"write-only": "true"}))
    for _ in range(2):
        table.write(pa.table({"id": range(700)}))
    return table


def test_repr_of_table_has_snapshot_rows_and_files(table):
    assert repr(table) == f"Table({table.path!r}, snapshot 2, 1,400 rows stored in 2 files, schema 0)"
    assert repr(table.read_optimized()) == repr(table).replace(table.path, table.path + "$ro")
    past = table.with_options({"scan.snapshot-id": "1"})
    assert repr(past) == f"Table({table.path!r}, snapshot 1, 700 rows stored in 1 file, schema 0)"
    table.branches.create("b")
    branch = Table.open(table.path + "$branch_b")
    assert repr(branch) == f"Table({table.path + '$branch_b'!r}, no snapshot, schema 0)"
    table.truncate()
    assert "snapshot 3, 0 rows stored in 0 files" in repr(table)
    assert repr(table.system_table("files")) == f"SystemTable({table.path + '$files'!r})"


def test_repr_of_removed_table_has_reason(table):
    shutil.rmtree(table.path)
    assert f"Table({table.path!r}, NotFoundError: there is no table at {table.path} any more" in repr(table)


def test_every_failure_of_store_is_text(table):
    def failing_at(at):
        io = FaultyIO(FileIO.of(table.path), at)
        store = table.store
        return Table(type(store)(io, store.root, store.schema, store.branch)), io

    whole, counted = failing_at(-1)
    assert "snapshot 2" in repr(whole)
    calls = counted.calls
    assert 2 <= calls <= 8
    for at in range(calls):
        failed, _ = failing_at(at)
        assert repr(failed).startswith(f"Table({table.path!r}, ")


def test_store_that_does_not_answer_is_not_waited_for(table, monkeypatch):
    answer = threading.Event()
    monkeypatch.setattr(summary_module, "_SECONDS", 0.05)
    monkeypatch.setattr(TableReading, "resolve", lambda self: answer.wait(30))
    assert repr(table) == f"Table({table.path!r}, the store has not answered in 0.05 seconds)"
    answer.set()


def test_error_in_repr_is_one_line_without_passwords(table, monkeypatch):
    def refused(self):
        raise ConnectionError("no way to\ns3://me:secret@host/t " + "x" * 1000)

    monkeypatch.setattr(TableReading, "resolve", refused)
    assert "ConnectionError: no way to\\ns3://" in repr(table)
    assert "secret" not in repr(table)
    assert len(repr(table)) < len(table.path) + 300


def test_repr_of_snapshot_has_its_kind_and_rows(table):
    first = table.snapshot(snapshot_id=1)
    assert first is not None
    assert repr(first).startswith("Snapshot(1, APPEND, 20")
    assert repr(first).endswith(" UTC, 700 rows stored (+700), schema 0)")
    assert "Snapshot(" in repr(table.tags.create("v"))


def test_repr_of_results_has_numbers(table, tmp_path):
    fault = Fault("missing-manifest", "p", "m")
    expired = table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than="2999-01-01 00:00:00")
    assert repr(expired) == f"Expired(snapshots: 1, changelogs: 0, files: 2, bytes: {expired.bytes})"
    assert repr(Expired(tuple(range(5000)))) == "Expired(snapshots: 5000, changelogs: 0, files: 0, bytes: 0)"
    assert repr(table.maintenance.remove_orphan_files()) == "OrphanFiles(files: 0, bytes: 0)"
    assert repr(table.verify()).startswith("VerifyReport(sound, branches: 1, snapshots: 1, files: ")
    assert repr(VerifyReport((fault, fault), 1, 2, 3)) == (
        "VerifyReport(faults: 2 (missing-manifest), branches: 1, snapshots: 2, files: 3, rows read: 0)"
    )
    assert repr(RepairReport((fault,), (), True)) == "RepairReport(repaired: 1, left: 0, dry run)"
    assert repr(table.health()).startswith("TableHealth(snapshot 2, buckets: 1, advice: ")
    assert repr(TableHealth(None, pa.table({"a": []}), ())) == "TableHealth(no snapshot, buckets: 0, advice: none)"
    pq.write_table(pa.table({"id": [1]}), tmp_path / "one.parquet")
    assert repr(table.add_files(str(tmp_path / "one.parquet"))).startswith("AddedFiles(snapshot=Snapshot(3, APPEND, ")
