"""Iceberg metadata after a fault at each call: the commit stands, and the next change leaves the metadata right.

Readers of Iceberg always find complete metadata of the newest snapshot or of an older one.
"""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import pytest

from paimon_core.errors import PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import points
from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO, Mode
from tests.support.iceberg_files import described
from tests.support.tables import ORDERS, orders

ROOT = "memory://w/t"
OPTIONS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.compaction.min.file-num": "2",
    "metadata.iceberg.compaction.max.file-num": "2",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "3",
}


def _open(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def _base(commits: int = 4) -> MemoryIO:
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, options=OPTIONS))
    for i in range(commits):
        _open(io).write(orders((i, "old", i)))
    return io


def _write(io: FileIO) -> None:
    _open(io).write(orders((9, "new", 9)))


def _overwrite(io: FileIO) -> None:
    _open(io).overwrite(orders((9, "new", 9)))


def _roll_back(io: FileIO) -> None:
    _open(io).rollback_to(3)


def _expire(io: FileIO) -> None:
    _open(io).maintenance.expire_snapshots(retain_max=1)


def _is_right(io: FileIO) -> bool:
    """The metadata describes the newest snapshot, by files that all exist."""
    table = _open(io)
    snapshot = table.snapshot()
    actual = described(io, f"{ROOT}/metadata")
    assert actual.document["current-snapshot-id"] == actual.version
    for number, files in actual.files.items():
        then = table.store.snapshots.find(number)
        if then is not None and then.id <= snapshot.id:
            live = {entry.file.file_name for entry in live_entries(table.store, then).live}
            rolled_back = then.fingerprint != _fingerprint(actual.document, number)
            assert rolled_back or set(files) == live, number
    return actual.version == snapshot.id and snapshot.fingerprint == _fingerprint(actual.document, snapshot.id)


def _fingerprint(document: dict, number: int) -> str:
    (record,) = (one for one in document["snapshots"] if one["snapshot-id"] == number)
    return record["summary"]["paimon-snapshot"]


def _calls(base: MemoryIO, operation: Callable[[FileIO], None]) -> range:
    counting = FaultyIO(base.copy())
    operation(counting)
    return range(counting.calls)


@pytest.mark.cases(4)
@pytest.mark.drawn
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", [_write, _overwrite, _roll_back, _expire])
def test_fault_at_any_call_is_repaired_by_next_commit(operation, mode: Mode):
    base = _base()
    stale = 0
    for at in points(_calls(base, operation)):
        io = base.copy()
        with suppress(Crash, OSError, PaimonError):
            operation(FaultyIO(io, at, mode))
        stale += not _is_right(io)
        _write(io)
        assert _is_right(io), f"after {operation.__name__} with {mode} at call {at}"
    assert stale or mode == "lost-answer" or operation is _expire  # some fault is between commit and metadata


def test_commits_at_same_time_leave_metadata_of_newest_snapshot():
    io = _base(0)

    def several(start: int) -> None:
        for i in range(5):
            _open(io).write(orders((start + i, "x", i)))

    for _ in range(2):
        threads = [Thread(target=several, args=(10 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _is_right(io)
    assert _open(io).snapshot().id == 40


def test_commit_makes_few_calls_for_its_metadata():
    """The number of calls does not grow with the number of snapshots and files."""
    counts = []
    for commits in (4, 12):
        base = _base(commits)
        counting = FaultyIO(base)
        _write(counting)
        counts.append(sum("/metadata/" in path or path.endswith("/metadata") for _, path in counting.log))
    assert counts[0] == counts[1] <= 24
