"""Fault points: a commit, an overwrite, a compaction survives a fault at every FileIO call, in every way storage fails.

The N-th call of the operation fails, for every N. Every snapshot and every file that it names stays readable. The table
is as before or as after the operation, and as after if the operation returned. Repeating it with the same identity
gives the table as after, and never applies the change twice.
"""

import errno
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from paimon_core.errors import CommitUnknownError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import SetOption
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write.table_write import WriterRole
from tests.support.compaction import only_levels
from tests.support.draws import every_other, points
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


def _indexed(keyed: bool) -> MemoryIO:
    """Return a table whose data files have index files."""
    io = MemoryIO()
    options = {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "1 b"}
    keys = {"bucket": "1", "write-only": "true"} if keyed else {}
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"] if keyed else [], options={**options, **keys}))
    for i in range(2):
        _open(io).write(orders((i, "old", i), (i + 1, "newer", i)))
    return io


def _commit(io: FileIO) -> None:
    table = _open(io)
    writer = table.writer()
    writer.write(orders((1, "mine", 1), (77, "mine", 2)))
    messages = writer.prepare_commit()
    table.committer(USER).commit(messages, IDENTIFIER, started_from=writer.started_from)


def _overwrite(io: FileIO) -> None:
    table = _open(io)
    writer = table.writer(overwrite=True)
    writer.write(orders((5, "only", 5)))
    table.committer(USER).overwrite(writer.prepare_commit(), None, IDENTIFIER)


def _compact(io: FileIO) -> None:
    _open(io).compact(full=True)


def _compact_as_due(io: FileIO) -> None:
    _open(io).compact()


def _materialize(io: FileIO) -> None:
    _open(io).maintenance.materialize_deletion_vectors()


def _without_index() -> MemoryIO:
    """A table that asks for indexes since its files were written."""
    io = _base(False)
    _open(io).alter([SetOption("file-index.bitmap.columns", "v"), SetOption("file-index.in-manifest-threshold", "1 b")])
    return io


def _rewrite_index(io: FileIO) -> None:
    _open(io).maintenance.rewrite_file_index()


def _sort(io: FileIO) -> None:
    _open(io).compact(order_by=["n", "id"], order_strategy="zorder")


def _in_other_buckets() -> MemoryIO:
    """A table whose files are hashed into another number of buckets than it has now."""
    io = _base(True)
    _open(io).alter([SetOption("bucket", "3")])
    return io


def _rescale(io: FileIO) -> None:
    _open(io).maintenance.rescale()


def _keyed(*batches: list[tuple], full_after: int = 0, **options: str) -> MemoryIO:
    """Return a write-only table with one commit per batch, fully compacted after `full_after` commits."""
    io = MemoryIO()
    settings = {"bucket": "1", "write-only": "true", "file.format": "avro"} | {
        k.replace("_", "-"): v for k, v in options.items()
    }
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=settings))
    for i, batch in enumerate(batches, 1):
        _open(io).write(orders(*batch))
        if i == full_after:
            _open(io).compact(full=True)
    return io


_READS = {"read", "open", "exists", "list"}
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
"""What is merged twice, or not at all, shows."""
LEVELS = {"num-levels": "7", "num-sorted-run.compaction-trigger": "2",
          "compaction.max-size-amplification-percent": "10000000", "compaction.size-ratio": "0"}  # fmt: skip


def _sums_in_buckets() -> MemoryIO:
    return _keyed(*([(k, f"v{i}", 1) for k in range(i, i + 4)] for i in range(3)), **SUMS, bucket="2")


def _sums_in_levels() -> MemoryIO:
    """A lowest level so large that newer runs are put together above it."""
    large = [(k, f"{k * 2654435761 % 2**32:08x}", 1) for k in range(700)]
    return _keyed(large, *([(k, f"v{i}", 1) for k in range(3)] for i in range(3)), full_after=1, **SUMS, **LEVELS)


def _apart() -> MemoryIO:
    """Files without a key in common, each large enough to be moved as it is; one with a delete, one that overlaps."""
    io = _keyed(*([(10 * i, "v", i), (10 * i + 1, "w", i)] for i in range(3)), target_file_size="1 b")
    _open(io).write(orders((40, "gone", 1), (41, "stays", 1)), ["-D", "+I"])
    _open(io).write(orders((1, "new", 1)))
    return io


def _dynamic() -> MemoryIO:
    """Return a table with dynamic buckets; the next commit fills one bucket and opens another."""
    io = MemoryIO()
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "3", "dynamic-bucket.initial-buckets": "2"}
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=options))
    for i in range(2):
        _open(io).write(orders(*((k, f"v{i}", i) for k in range(i, i + 4))))
    return io


def _commit_of_two(io: FileIO) -> None:
    """Two tasks that add to the same buckets, committed at once."""
    table = _open(io)
    newest, messages = table.snapshot(), []
    assert newest is not None
    for task in range(2):
        with table.writer(role=WriterRole(task, 2), started_from=StartedFrom.of(newest)) as writer:
            writer.write(orders(*((k, "mine", task) for k in range(3 + task, 9, 2))))
            messages += writer.prepare_commit()
    table.committer(USER).commit(messages, IDENTIFIER, started_from=StartedFrom.of(newest))


def _postponed() -> MemoryIO:
    """Rows of two commits wait in bucket -2, to be summed up when they are dealt out."""
    io = MemoryIO()
    options = {"bucket": "-2", "postpone.default-bucket-num": "2", "postpone.batch-write-fixed-bucket": "false", **SUMS}
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=options))
    for i in range(2):
        _open(io).write(orders(*((k, f"v{i}", 1) for k in range(i, i + 4))))
    return io


def _deal_out(io: FileIO) -> None:
    _open(io).compact()


def _marked() -> MemoryIO:
    """Return a table with deleted rows in several files; one index file has all deletion vectors."""
    io = MemoryIO()
    options = {"deletion-vectors.enabled": "true", "file.format": "avro", "compaction.small-file-ratio": "0"}
    create_table(io, ROOT, Schema(ORDERS, options=options))
    for i in range(3):
        _open(io).write(orders(*((k, "old", i) for k in range(i, i + 4))))
    _open(io).delete("id = 2")
    return io


def _delete(io: FileIO) -> None:
    _open(io).delete("id = 1 or id = 3 and n = 2")


def _in_slices() -> MemoryIO:
    """Return a table with row ids whose columns are in several files; the rows of the second file are in one."""
    io = MemoryIO()
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "file.format": "avro"}
    create_table(io, ROOT, Schema(ORDERS, options=options))
    for i in range(2):
        _open(io).write(orders(*((k, "old", i) for k in range(4 * i, 4 * i + 4))))
    _open(io).update_columns(pa.table({"_ROW_ID": [1, 2], "v": ["new", "new"]}))
    return io


def _replace_columns(io: FileIO) -> None:
    _open(io).update_columns(pa.table({"_ROW_ID": [2, 5], "v": ["mine", "mine"]}))


def _with_blobs() -> MemoryIO:
    """Return a table with two blob files and one file for the other columns."""
    io = MemoryIO()
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "file.format": "avro",
               "blob-field": "v", "blob.target-file-size": "40 b"}  # fmt: skip
    schema = ORDERS.set(1, pa.field("v", pa.binary()))
    create_table(io, ROOT, Schema(schema, options=options))
    for i in range(2):
        _open(io).write(orders(*((k, f"value {k}", i) for k in range(3 * i, 3 * i + 3))).cast(schema))
    return io


def _add_blobs(io: FileIO) -> None:
    table = _open(io)
    with table.writer() as writer:
        writer.write(pa.table({"id": [7, 8, 9], "v": [b"mine", None, b"a long one" * 5], "n": [1, 2, 3]}))
        table.committer(USER).commit(writer.prepare_commit(), IDENTIFIER)


def _replace_blobs(io: FileIO) -> None:
    _open(io).update_columns(pa.table({"_ROW_ID": [2, 4], "v": [b"mine", b"mine"]}))


def _restore(io: FileIO) -> None:
    _open(io).restore(1)


def _truncate(io: FileIO) -> None:
    _open(io).truncate()


def _first_commit_of_a_stream(io: FileIO) -> None:
    table = _open(io)
    table.committer(USER).commit([], IDENTIFIER)  # an empty identifier leaves its snapshot too


def _state(io: FileIO) -> State:
    """Return the rows of every snapshot: reading them opens every data file and every index file."""
    table = _open(io)
    filters = [None, "v = 'newer'"] if "file-index.bitmap.columns" in table.schema.options else [None]
    return [
        rows_of(table.to_arrow(snapshot_id=s.id, filter=filter), ("id", "v", "n"))
        for s in table.snapshots()
        for filter in filters
    ]


CASES: dict[str, tuple[Callable[[], MemoryIO], Callable[[FileIO], None]]] = {
    "append": (partial(_base, False), _commit),
    "upsert": (partial(_base, True), _commit),
    "overwrite": (partial(_base, True), _overwrite),
    "dynamic buckets": (_dynamic, _commit),
    "dynamic buckets, two tasks": (_dynamic, _commit_of_two),
    "overwrite dynamic buckets": (_dynamic, _overwrite),
    "deal out postponed rows": (_postponed, _deal_out),
    "append, with indexes": (partial(_indexed, False), _commit),
    "compact, with indexes": (partial(_indexed, True), _compact),
    "replace columns": (_in_slices, _replace_columns),
    "compact, columns put together": (_in_slices, _compact),
    "append, with blobs": (_with_blobs, _add_blobs),
    "replace blobs": (_with_blobs, _replace_blobs),
    "compact beside blobs": (_with_blobs, _compact),
    "truncate": (partial(_base, True), _truncate),
    "restore": (partial(_base, True), _restore),
    "empty": (partial(_base, False), _first_commit_of_a_stream),
    "compact": (partial(_base, True), _compact),
    "compact buckets of sums": (_sums_in_buckets, _compact),
    "compact some levels": (_sums_in_levels, _compact_as_due),
    "compact, moving files": (_apart, _compact),
    "compact append": (partial(_base, False), _compact),
    "sort": (partial(_base, False), _sort),
    "rescale": (_in_other_buckets, _rescale),
    "delete, marking rows": (_marked, _delete),
    "delete, rewriting files": (partial(_base, False), _delete),
    "delete, of keys": (partial(_base, True), _delete),
    "compact, of marked rows": (_marked, _compact_as_due),
    "materialize vectors": (_marked, _materialize),
    "indexes for old files": (_without_index, _rewrite_index),
}
NOT_KNOWN_AGAIN = {
    "truncate",
    "restore",
    "sort",
    "replace columns",
    "replace blobs",
}  # done again, they make one more snapshot of the same rows


@pytest.mark.drawn
@pytest.mark.parametrize(("name", "mode"), every_other(CASES, MODES))
@pytest.mark.cases(14)
def test_survives_a_fault_at_every_call(name: str, mode: Mode):
    make, operation = CASES[name]
    base = make()
    before = _state(base)
    done = base.copy()
    dry = FaultyIO(done)
    operation(dry)
    after = _state(done)
    assert len(after) == len(before) + (2 if "indexes" in name else 1)
    maintenance = operation in (_compact, _compact_as_due, _materialize, _rewrite_index, _sort, _rescale)
    if maintenance:
        assert after[-1] == before[-1]
    if "indexes" in name:
        assert any(path.endswith(".index") for path in done.files.keys() - base.files.keys())
    assert dry.calls > 10
    for at in points(_points(dry, mode)):
        io = base.copy()
        succeeded = _attempt(operation, FaultyIO(io, at, mode))
        there = _state(io)
        assert there == after if succeeded else there in (before, after), (at, dry.log[at])
        if (maintenance or operation is _delete) and mode == "before" and dry.log[at][0] != "delete":
            assert not _unnamed(io), (at, dry.log[at])
        operation(io)
        again = _state(io)
        if name in NOT_KNOWN_AGAIN:
            assert again in (after, [*after, after[-1]])
        else:
            assert again == after, (at, dry.log[at])


def _points(dry: FaultyIO, mode: Mode) -> list[int]:
    """Calls to fail at. What changes nothing has no answer to lose and no half, and dying there is dying later."""
    same_as_others = {"before": set(), "torn": {*_READS, "create", "delete"}}.get(mode, _READS)
    return [at for at, (verb, _) in enumerate(dry.log) if verb not in same_as_others]


def _unnamed(io: MemoryIO) -> set[str]:
    """Data and index files that no snapshot names."""
    table = _open(io)
    files = [e.file for s in table.snapshots() for e in live_entries(table.store, s).live]
    named = {name for file in files for name in (file.file_name, *file.extra_files)}
    indexes = {s.index_manifest for s in table.snapshots()} - {None}
    named |= {e.file_name for name in indexes for e in table.store.manifests.read_index(name)}
    return {path for path in io.files if _stores_rows(path) and path.rsplit("/", 1)[1] not in named}


def _stores_rows(path: str) -> bool:
    return "/bucket-" in path or "/index/" in path


def test_case_tables_have_levels_of_their_names():
    io = _sums_in_levels()
    _compact_as_due(io)
    assert {run.level for run in only_levels(_open(io)).runs} == {5, 6}
    io = _apart()
    known = {e.file.file_name for e in live_entries(_open(io).store, _open(io).snapshot()).live}
    _compact(io)
    left = {e.file.file_name for e in live_entries(_open(io).store, _open(io).snapshot()).live}
    assert left & known
    assert left - known


INLINE = {
    "deduplicate": (["id"], {"num-sorted-run.compaction-trigger": "3", "full-compaction.delta-commits": "7"}),
    "sums": (["id"], {"num-sorted-run.compaction-trigger": "3", **SUMS}),
    "append": ([], {"bucket-key": "id", "compaction.min.file-num": "3"}),
}


@pytest.mark.drawn
@pytest.mark.parametrize(("name", "mode"), every_other(INLINE, MODES))
def test_rows_and_their_compaction_survive_a_fault_at_every_call(name: str, mode: Mode):
    """Two snapshots, and only the first one matters: the second may be missing, but holds the same rows."""
    keys, options = INLINE[name]
    base = MemoryIO()
    create_table(
        base, ROOT, Schema(ORDERS, primary_keys=keys, options={"bucket": "1", "file.format": "avro", **options})
    )
    for i in range(2):
        _open(base).with_options({"write-only": "true"}).write(orders((i, "old", i), (i + 1, "newer", i)))
    before = _state(base)
    done = base.copy()
    dry = FaultyIO(done)
    _commit(dry)
    after = _state(done)
    assert len(after) == len(before) + 2
    assert after[-1] == after[-2]
    for at in points(_points(dry, mode)):
        io = base.copy()
        succeeded = _attempt(_commit, FaultyIO(io, at, mode))
        there = _state(io)
        assert there in ((after[:-1], after) if succeeded else (before, after[:-1], after)), (at, dry.log[at])
        _commit(io)
        assert _state(io) in (after[:-1], after), (at, dry.log[at])
        assert only_levels(_open(io))  # nothing overlaps that must not


def _attempt(operation: Callable[[FileIO], None], io: FileIO) -> bool:
    try:
        operation(io)
    except (OSError, PaimonError, Crash):
        return False
    return True


@pytest.mark.parametrize("landed", [True, False])
def test_commit_finds_its_snapshot_if_answer_was_lost(landed: bool):
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


def test_unknown_outcome_keeps_every_file():
    io = _Mute(_base(True).files)
    table = _open(io).with_options({"commit.max-retries": "2", "commit.max-retry-wait": "1 ms"})
    with pytest.raises(CommitUnknownError, match="look for that user"):
        table.write(orders((1, "mine", 1)))
    assert any(name.endswith(".parquet") and name not in _base(True).files for name in io.files)


def test_cost_of_commit_does_not_grow_with_table():
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
