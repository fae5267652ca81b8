"""Power cuts: the files of a commit that returned survive, although every unsynced byte is lost."""

import errno
import os
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import SetOption
from paimon_core.store.file_store import FileStore
from tests.support.faulty_io import Crash, FaultyIO
from tests.support.power import Disk, remade, watched
from tests.support.tables import files_below

ROWS = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())]
)
TABLES: dict[str, tuple[list[str], dict[str, str]]] = {
    "append": ([], {}),
    "append, marked": ([], {"deletion-vectors.enabled": "true"}),
    "append, with indexes": ([], {"file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b"}),
    "keys": (["p", "id"], {"bucket": "2", "num-sorted-run.compaction-trigger": "2"}),
    "keys, changelog": (["p", "id"], {"bucket": "1", "changelog-producer": "lookup"}),
    "keys, marked": (["p", "id"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "keys, dynamic": (["p", "id"], {}),
    "keys across partitions": (["id"], {}),
    "keys, postponed": (["p", "id"], {"bucket": "-2"}),
}


def made(home: Path, name: str, **options: str) -> Table:
    keys, settings = TABLES[name]
    catalog = FileSystemCatalog(str(home / "warehouse"))
    catalog.create_database("db")
    wish = Schema(ROWS, primary_keys=keys, partition_keys=["p"], options={**settings, **options})
    return catalog.create_table("db.t", wish)


def rows(start: int, v: str = "x") -> pa.Table:
    ids = list(range(start, start + 6))
    return pa.table({"p": [i % 2 for i in ids], "id": ids, "v": [v] * 6}, schema=ROWS)


def ordered(table: Table) -> list[dict]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: (row["id"], row["v"]))


def after(disk: Disk, home: Path) -> Table:
    """The table as it is found when the power is back."""
    found = remade(disk, home, home.parent / "found")
    return Table.open(str(found / "warehouse" / "db.db" / "t"))


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", TABLES)
def test_committed_rows_survive_a_power_cut(tmp_path, name):
    home = tmp_path / "home"
    home.mkdir()
    with watched() as disk:
        table = made(home, name)
        steps = [
            lambda: table.write(rows(0)),
            lambda: table.write(rows(3, "y")),
            lambda: table.delete("id in (1, 4)"),
            lambda: table.compact(full=True),
            lambda: table.overwrite(rows(20)),
            lambda: table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**62),
            lambda: table.write(rows(22)),
        ]
        for step in steps:
            step()
            there = after(disk, home)
            assert ordered(there) == ordered(table)
            assert [s.id for s in there.snapshots()] == [s.id for s in table.snapshots()]
            for snapshot in there.snapshots():
                there.to_arrow(snapshot_id=snapshot.id)
        there.write(rows(50))
        assert there.to_arrow().num_rows == table.to_arrow().num_rows + 6


def test_indexes_that_old_files_were_given_survive_power_cut(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with watched() as disk:
        table = made(home, "append")
        table.write(rows(0))
        options = TABLES["append, with indexes"][1]
        table = table.alter([SetOption(key, value) for key, value in options.items()])
        table.maintenance.rewrite_file_index()
        there = after(disk, home)
    assert [len(e.file.extra_files) for e in live_entries(there.store, there.snapshot()).live] == [1, 1]
    assert there.to_arrow(filter="v = 'x'").num_rows == 6


@pytest.mark.parametrize("name", ["append", pytest.param("keys, changelog", marks=pytest.mark.slow)])
def test_power_cut_at_any_call_keeps_published_snapshots(tmp_path, name):
    home, landed = tmp_path / "home", set()
    home.mkdir()
    with watched() as disk:
        table = made(home, name)
        table.write(rows(0))
        for at in range(1000):
            io, before = FaultyIO(FileIO.of(table.path), at, "crash"), table.snapshot()
            try:
                Table(FileStore(io, table.path, table.schema)).write(rows(3, f"at {at}"))
            except Crash:
                assert ordered(after(disk, home)) == ordered(table)
                landed.add(table.snapshot() != before)
                continue
            break
    assert landed == {False, True}


@pytest.mark.parametrize("name", ["append", "keys"])
def test_without_sync_a_power_cut_loses_rows(tmp_path, name):
    """The option does what it says, and the disk of these tests forgets."""
    home = tmp_path / "home"
    home.mkdir()
    with watched() as disk:
        table = made(home, name, **{"commit.sync": "false"})
        table.write(rows(0))
        with pytest.raises(PaimonError):
            after(disk, home).to_arrow()


def test_every_file_is_synced_once(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with watched() as disk:
        table = made(home, "keys")
        for start in range(3):
            table.write(rows(start))
        assert "COMPACT" in {s.commit_kind for s in table.snapshots()}
        hints = {"LATEST", "EARLIEST"}
        written = [Path(table.path, name) for name in files_below(table.path) if Path(name).name not in hints]
        counts = {path.relative_to(table.path): disk.synced[path.stat().st_ino] for path in written}
    assert set(counts.values()) == {1}, counts


@pytest.mark.parametrize(("number", "fails"), [(errno.EIO, True), (errno.ENOSPC, True), (errno.EINVAL, False)])
def test_error_of_sync_fails_commit(tmp_path, number, fails):
    table = made(tmp_path, "append")
    before = files_below(tmp_path)
    real = os.fsync

    def fsync(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").endswith(".parquet"):
            raise OSError(number, "injected")
        real(handle)

    with mock.patch("os.fsync", fsync):
        if not fails:
            table.write(rows(0))
            return
        with pytest.raises(OSError, match="injected"):
            table.write(rows(0))
    assert table.snapshot() is None
    assert files_below(tmp_path) == before


def test_snapshots_are_deleted_durably_before_their_files(tmp_path):
    table = made(tmp_path, "append")
    for start in range(3):
        table.overwrite(rows(start))
    io = FaultyIO(FileIO.of(table.path))
    expiring = Table(FileStore(io, table.path, table.schema))
    expiring.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**62)
    last_snapshot = max(i for i, (verb, path) in enumerate(io.log) if verb == "delete" and "/snapshot/" in path)
    first_file = min(i for i, (verb, path) in enumerate(io.log) if verb == "delete" and "/snapshot/" not in path)
    assert "sync" in [verb for verb, _ in io.log[last_snapshot:first_file]]
