"""Fault points of a micro-batch: its rows are in the table once, after a fault or a death at any FileIO call.

The writer of the streaming sink is run without Spark, its tasks and its commit on one faulty FileIO, as one process
that can die. Then the query starts again: the same batch is written with new files, and the next one after it.
"""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from paimon_core.errors import PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_spark.options import stream_write_request
from paimon_spark.stream_writer import PaimonStreamWriter
from paimon_spark.types import spark_schema
from tests.support.draws import points
from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO, Mode
from tests.support.tables import ORDERS, orders, rows_of

ROOT = "memory://w/t"
QUERY = "6c7bd95f-9d1c-4f0c-9a2b-5d4e0a1c7b11"
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "file.format": "avro"}
KINDS: dict[str, tuple[dict[str, object], bool]] = {
    "append": ({"options": {"file.format": "avro"}}, False),
    "sums": ({"primary_keys": ["id"], "options": {"bucket": "2", **SUMS}}, False),
    "sums, compacted": (
        {"primary_keys": ["id"], "options": {"bucket": "1", "num-sorted-run.compaction-trigger": "2", **SUMS}},
        False,
    ),
    "changes told": (
        {"primary_keys": ["id"], "options": {"bucket": "1", "changelog-producer": "lookup", "file.format": "avro"}},
        False,
    ),
    "dynamic buckets": ({"primary_keys": ["id"], "options": {"bucket": "-1", **SUMS}}, False),
    "across partitions": (
        {"primary_keys": ["id"], "partition_keys": ["n"], "options": {"bucket": "-1", "file.format": "avro"}},
        False,
    ),
    "complete": ({"options": {"file.format": "avro"}}, True),
}
QUICK = ("append", "sums, compacted", "complete")
CASES = [(kind, mode) for kind in KINDS for mode in MODES]


def _table(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def _run(io: FileIO, number: int, complete: bool) -> None:
    """One micro-batch of two tasks: every batch brings key 1 again, and keys of its own."""
    table = _table(io)
    schema = spark_schema(table.schema.fields)
    request = stream_write_request({"path": ROOT, "checkpointLocation": "/c"}, schema.names)
    tasks = [orders((1, f"b{number}", 1), (10 + number, "x", number)), orders((20 + number, "y", 1))]
    written = []
    for rows in tasks:
        writer = PaimonStreamWriter(table, request, schema, complete)
        written.append(replace(writer.write(iter(rows.to_batches())), query=QUERY))
    PaimonStreamWriter(_table(io), request, schema, complete).commit(list(written), number)


@cache
def _base(kind: str) -> MemoryIO:
    """The table after two batches."""
    settings, complete = KINDS[kind]
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, **settings))
    for number in range(2):
        _run(io, number, complete)
    return io


def _rows(io: FileIO) -> list[dict]:
    return rows_of(_table(io).to_arrow(), ("id", "v", "n"))


def _landed(io: FileIO) -> Counter[int]:
    """Return the number of snapshots with the rows of each batch."""
    ours = [s for s in _table(io).snapshots() if s.commit_user == QUERY and s.commit_kind != CommitKind.COMPACT]
    return Counter(s.commit_identifier for s in ours)


def _nameless(io: MemoryIO) -> set[str]:
    """Files of rows that no snapshot ever named."""
    table = _table(io)
    named = {e.file.file_name for s in table.snapshots() for e in live_entries(table.store, s).live}
    for s in table.snapshots():
        lists = [s.delta_manifest_list, s.changelog_manifest_list]
        for meta in (m for name in lists if name for m in table.store.manifests.read_list(name)):
            named |= {e.file.file_name for e in table.store.manifests.read(meta.file_name)}
    return {path for path in io.files if "/bucket-" in path and path.rsplit("/", 1)[1] not in named}


def _points(dry: FaultyIO, mode: Mode) -> list[int]:
    """Calls to fail at. What changes nothing has no answer to lose and no half, and dying there is dying later."""
    reads = {"read", "open", "exists", "list"}
    same_as_others = {"before": set(), "torn": {*reads, "create", "delete"}}.get(mode, reads)
    return [at for at, (verb, _) in enumerate(dry.log) if verb not in same_as_others]


def _quick(kind: str, mode: Mode) -> bool:
    """Most calls are reads, and reads fail in one mode only: that takes as long as all others together."""
    return kind in QUICK and (mode != "before" or kind == "append")


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("kind", "mode"), [case if _quick(*case) else pytest.param(*case, marks=pytest.mark.slow) for case in CASES]
)
def test_micro_batch_survives_fault_at_every_call(kind: str, mode: Mode):
    base, complete = _base(kind), KINDS[kind][1]
    done = base.copy()
    dry = FaultyIO(done)
    _run(dry, 2, complete)
    rows = _rows(done)
    _run(done, 3, complete)
    after = _rows(done)
    assert _landed(done) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert dry.calls >= 30
    for at in points(_points(dry, mode)):
        io = base.copy()
        succeeded = _attempt(FaultyIO(io, at, mode), complete)
        assert _landed(io)[2] == 1 or not succeeded
        left = _nameless(io)
        _run(io, 2, complete)
        assert (_rows(io), _landed(io)) == (rows, {0: 1, 1: 1, 2: 1}), (at, dry.log[at])
        assert _nameless(io) <= left, (at, dry.log[at])
        _run(io, 3, complete)
        assert (_rows(io), _landed(io)) == (after, {0: 1, 1: 1, 2: 1, 3: 1}), (at, dry.log[at])


def _attempt(io: FileIO, complete: bool) -> bool:
    try:
        _run(io, 2, complete)
    except (OSError, PaimonError, Crash):
        return False
    return True
