"""A fault at every storage call of add_files, migrate and clone loses no row, and the same call again ends the same."""

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError, NotFoundError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from tests.support.draws import every_other, points
from tests.support.faulty_io import MODES, SAVED, Crash, FaultyIO, MemoryIO, Mode
from tests.support.tables import ORDERS, orders, rows_of

HERE, THERE, SOURCE = "memory://w", "memory://x", "memory://in"
_READS = {"read", "open", "exists", "list"}
PARTITIONED = ORDERS.append(pa.field("p", pa.int32()))


def _put(store: MemoryIO, path: str, rows: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    store.write(path, sink.getvalue())


def _files(store: MemoryIO) -> MemoryIO:
    for p in range(3):
        _put(store, f"{SOURCE}/p={p}/part.parquet", orders(*((10 * p + i, "v", i) for i in range(2))))
    store.write(f"{SOURCE}/_SUCCESS", b"")
    return store


def _catalog(root: str = HERE) -> FileSystemCatalog:
    return FileSystemCatalog(root)


def _table_and_files(store: MemoryIO) -> MemoryIO:
    _catalog().create_database("db", properties=SAVED)
    _catalog().create_table("db.t", Schema(PARTITIONED, partition_keys=["p"]))
    return _files(store)


def _database_and_files(store: MemoryIO) -> MemoryIO:
    _catalog().create_database("db", properties=SAVED)
    return _files(store)


def _source(store: MemoryIO) -> MemoryIO:
    for root in (HERE, THERE):
        _catalog(root).create_database("db", properties=SAVED)
    options = {"bucket": "2", "deletion-vectors.enabled": "true", "file.format": "avro"}
    table = _catalog().create_table("db.t", Schema(ORDERS, primary_keys=["id"], options=options))
    for i in range(2):
        table.write(orders(*((k, f"v{i}", i) for k in range(i, i + 4))))
    return store


def _copied(store: MemoryIO) -> MemoryIO:
    _source(store)
    _clone()
    _catalog().table("db.t").write(orders((1, "new", 1), (50, "new", 1)))
    return store


def _add() -> None:
    _catalog().table("db.t").add_files(SOURCE)


def _move() -> None:
    _catalog().table("db.t").add_files(SOURCE, move=True)


def _migrate() -> None:
    _catalog().migrate(SOURCE, "db.t")


def _migrate_moving() -> None:
    _catalog().migrate(SOURCE, "db.t", move=True)


def _clone() -> None:
    _catalog().clone("db.t", _catalog(THERE), "db.copy")


Case = tuple[Callable[[MemoryIO], MemoryIO], Callable[[], None], str, str]
CASES: dict[str, Case] = {
    "add files": (_table_and_files, _add, HERE, "db.t"),
    "move files": (_table_and_files, _move, HERE, "db.t"),
    "migrate": (_database_and_files, _migrate, HERE, "db.t"),
    "migrate, moving": (_database_and_files, _migrate_moving, HERE, "db.t"),
    "clone": (_source, _clone, THERE, "db.copy"),
    "clone again": (_copied, _clone, THERE, "db.copy"),
}


@pytest.fixture
def use(monkeypatch):
    """Let every catalog and table use one FileIO."""

    def using(store: FileIO) -> FileIO:
        monkeypatch.setattr(FileIO, "of", staticmethod(lambda *_: store))
        return store

    return using


def _state(root: str, name: str) -> list[list[dict[str, Any]]]:
    """The rows of every snapshot; no table is like a table without snapshots."""
    if not _catalog(root).table_exists(name):
        return []
    try:
        table = _catalog(root).table(name)
    except NotFoundError:  # a copy whose rows are not there yet
        return []
    return [rows_of(table.to_arrow(snapshot_id=s.id), ("id", "v", "n")) for s in table.snapshots()]


def _originals(store: MemoryIO) -> list[int]:
    """The ids of the rows in the files of the source."""
    found = []
    for path in [path for path in store.files if path.endswith(".parquet") and path.startswith(SOURCE)]:
        found += pq.read_table(pa.BufferReader(store.read(path))).column("id").to_pylist()
    return found


def _attempt(operation: Callable[[], None]) -> bool:
    try:
        operation()
    except (OSError, PaimonError, Crash):
        return False
    return True


@pytest.mark.cases(6)
@pytest.mark.drawn
@pytest.mark.parametrize(("name", "mode"), every_other(CASES, MODES))
def test_no_row_is_lost_at_any_call(name: str, mode: Mode, use):
    make, operation, root, target = CASES[name]
    base = make(use(MemoryIO()))
    all_ids, before = set(_originals(base)), _state(root, target)
    done = base.copy()
    dry = use(FaultyIO(done))
    operation()
    after = _state(root, target)
    assert len(after) == len(before) + 1
    assert dry.calls > 10
    skipped = {"before": set(), "torn": {*_READS, "create", "delete"}}.get(mode, _READS)
    calls = [at for at, (verb, _) in enumerate(dry.log) if verb not in skipped]
    for at in points(calls):
        store = base.copy()
        use(FaultyIO(store, at, mode))
        succeeded = _attempt(operation)
        use(store)
        there = _state(root, target)
        assert there == after if succeeded else there in (before, after), (at, dry.log[at])
        kept = {row["id"] for row in there[-1]} if there and target == "db.t" else set()
        assert all_ids <= kept | set(_originals(store)), (at, dry.log[at])
        if "mov" in name and not _originals(store):  # all is done: there is nothing left to move
            with pytest.raises(InvalidInputError, match="no data files"):
                operation()
        else:
            operation()
        assert _state(root, target) == after, (at, dry.log[at])
        assert _catalog(root).table(target).verify(deep=True).sound
        if "mov" in name:
            assert not _originals(store)
