"""Fault points: a commit or an overwrite survives a fault at every FileIO call, in every way storage fails.

For the N-th call of the operation, N = 0, 1, 2 ... until all are done: every snapshot and every file it names stays
readable, the table is as before or as after (and as after when the operation said it succeeded), and doing the same
again, with the same identity, gives the table as after - never twice.
"""

import errno
from collections.abc import Callable

import pyarrow as pa
import pytest

from paimon_core.errors import CommitUnknownError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO, Mode
from tests.support.tables import ORDERS, orders, rows_of

ROOT = "memory://w/t"
USER, IDENTIFIER = "writer-1", 7
State = list[list[dict]]


def _open(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def _base(keyed: bool) -> MemoryIO:
    io = MemoryIO()
    schema = Schema(ORDERS, primary_keys=["id"] if keyed else [], options={"bucket": "2"} if keyed else {})
    create_table(io, ROOT, schema)
    table = _open(io)
    for i in range(3):
        table.write(orders((i, "old", i), (i + 1, "newer", i)))
    return io


def _commit(io: FileIO) -> None:
    table = _open(io)
    writer = table.writer()
    writer.write(orders((1, "mine", 1), (77, "mine", 2)))
    messages = writer.prepare_commit()
    table.committer(USER).commit(messages, IDENTIFIER, base_id=writer.base_id)


def _overwrite(io: FileIO) -> None:
    table = _open(io)
    writer = table.writer(overwrite=True)
    writer.write(orders((5, "only", 5)))
    table.committer(USER).overwrite(writer.prepare_commit(), None, IDENTIFIER)


def _compact(io: FileIO) -> None:
    _open(io).compact(full=True)


def _truncate(io: FileIO) -> None:
    _open(io).truncate()


def _first_commit_of_a_stream(io: FileIO) -> None:
    table = _open(io)
    table.committer(USER).commit([], IDENTIFIER)  # an empty identifier leaves its snapshot too


def _state(io: FileIO) -> State:
    """Every snapshot's rows: reading them opens every file they name."""
    table = _open(io)
    return [rows_of(table.to_arrow(snapshot_id=s.id), ("id", "v", "n")) for s in table.snapshots()]


CASES: list[tuple[str, bool, Callable[[FileIO], None]]] = [
    ("append", False, _commit),
    ("upsert", True, _commit),
    ("overwrite", True, _overwrite),
    ("truncate", True, _truncate),
    ("compact", True, _compact),
    ("compact append", False, _compact),
    ("empty", False, _first_commit_of_a_stream),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "keyed", "operation"), CASES, ids=[c[0] for c in CASES])
def test_survives_a_fault_at_every_call(name: str, keyed: bool, operation: Callable[[FileIO], None], mode: Mode):
    base = _base(keyed)
    before = _state(base)
    done = base.copy()
    dry = FaultyIO(done)
    operation(dry)
    after = _state(done)
    assert len(after) == len(before) + 1
    assert dry.calls > 10
    for at in range(dry.calls):
        io = base.copy()
        succeeded = _attempt(operation, FaultyIO(io, at, mode))
        there = _state(io)
        assert there == after if succeeded else there in (before, after), (at, dry.log[at])
        operation(io)
        again = _state(io)
        if name == "truncate":  # a batch commit has no identity to be known by: done again, it is one more snapshot
            assert again in (after, [*after, after[-1]])
        else:
            assert again == after, (at, dry.log[at])


@pytest.mark.parametrize("mode", MODES)
def test_rows_and_their_compaction_survive_a_fault_at_every_call(mode: Mode):
    """Two snapshots, and only the first one matters: the second may be missing, but holds the same rows."""
    base = MemoryIO()
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "3", "full-compaction.delta-commits": "7"}
    create_table(base, ROOT, Schema(ORDERS, primary_keys=["id"], options=options))
    for i in range(2):
        _open(base).with_options({"write-only": "true"}).write(orders((i, "old", i), (i + 1, "newer", i)))
    before = _state(base)
    done = base.copy()
    dry = FaultyIO(done)
    _commit(dry)
    after = _state(done)
    assert len(after) == len(before) + 2
    assert after[-1] == after[-2]
    for at in range(dry.calls):
        io = base.copy()
        succeeded = _attempt(_commit, FaultyIO(io, at, mode))
        there = _state(io)
        assert there in ((after[:-1], after) if succeeded else (before, after[:-1], after)), (at, dry.log[at])
        _commit(io)
        assert _state(io) in (after[:-1], after), (at, dry.log[at])


def _attempt(operation: Callable[[FileIO], None], io: FileIO) -> bool:
    try:
        operation(io)
    except (OSError, PaimonError, Crash):
        return False
    return True


@pytest.mark.parametrize("landed", [True, False])
def test_a_lost_answer_to_the_publication_is_looked_up(landed: bool):
    """The one call whose answer matters: whether or not it got through, the commit ends up in the table once."""
    io = _base(True)
    before = len(_state(io))
    dry = FaultyIO(io.copy())
    _commit(dry)
    at = next(i for i, (verb, path) in enumerate(dry.log) if verb == "create_exclusive" and "/snapshot/" in path)
    _commit(FaultyIO(io, at, "lost-answer" if landed else "before"))
    assert len(_state(io)) == before + 1


class _Mute(MemoryIO):
    """Never says what became of a snapshot."""

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if "/snapshot/" in path:
            raise OSError(errno.ETIMEDOUT, "no answer", path)
        return super().create_exclusive(path, data)


def test_doubt_to_the_end_keeps_every_file():
    io = _Mute(_base(True).files)
    table = _open(io).with_options({"commit.max-retries": "2", "commit.max-retry-wait": "1 ms"})
    with pytest.raises(CommitUnknownError, match="look for that user"):
        table.write(orders((1, "mine", 1)))
    assert any(name.endswith(".parquet") and name not in _base(True).files for name in io.files)


def test_a_commit_costs_the_same_however_large_the_table_is():
    """FileIO calls of a commit do not grow with the number of files or snapshots."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS))
    table = _open(io)
    counts = []
    for i in range(25):  # fewer than manifest.merge-min-count, whose merging is paid for once in a while
        faulty = FaultyIO(io)
        message = _open(faulty).writer()
        message.write(orders((i, "x", i)))
        messages = message.prepare_commit()
        start = faulty.calls
        _open(faulty).committer().commit(messages)
        counts.append(faulty.calls - start)
    assert len(set(counts[1:])) == 1, counts
    assert table.to_arrow().num_rows == 25
    assert isinstance(table.to_arrow(), pa.Table)
