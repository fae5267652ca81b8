"""A stream that meets commits, compactions and expiry: it returns the history from its start, up to where it stops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import OutOfRangeError
from paimon_core.fileio.fileio import FileIO
from paimon_core.scan.batch_limits import Limits
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.schedule import interleave
from tests.support.tables import ORDERS, orders

ROOT = "memory://w/t"
OPTIONS = {"bucket": "1", "file.format": "avro", "commit.min-retry-wait": "0 ms", "commit.max-retry-wait": "0 ms"}
FROM_1 = {"scan.snapshot-id": "1"}


def open_table(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def history(io: FileIO, start: dict) -> list[tuple]:
    """Return the changes of a stream from a checkpoint on, up to its first error."""
    told = []
    try:
        stream = open_table(io).stream(changelog=True)
        stream.restore(start)
        while (before := stream.checkpoint()) is not None:
            for batch in stream.to_batches(Limits(files=2)):
                told += [tuple(row.values()) for row in batch.to_pylist()]
            if stream.checkpoint() == before:
                return told
    except OutOfRangeError:
        told.append("stopped")
    return told


def write(io: FileIO) -> None:
    open_table(io).write(orders((2, "late", 9)))


def compact(io: FileIO) -> None:
    open_table(io).compact(full=True)


def expire(io: FileIO) -> None:
    open_table(io).maintenance.expire_snapshots(retain_max=2, retain_min=1)


@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
@draws(5)
@given(
    drawn=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12)), max_size=30),
    other=st.sampled_from([write, compact]),
)
def test_two_streams_skip_no_row(producer, drawn, other):
    base = MemoryIO()
    options = {**OPTIONS, "changelog-producer": producer}
    create_table(base, ROOT, Schema(ORDERS, primary_keys=["id"], options=options))
    start = open_table(base).with_options(FROM_1).stream().checkpoint()
    for n in range(4):
        open_table(base).write(orders((n, "new", n), (n + 1, "old", n)))
    expected = history(base, start)
    told, *others = interleave(base, [lambda io: history(io, start), expire, other], drawn)
    assert not [o for o in others if isinstance(o, Exception)], others
    assert isinstance(told, list), told
    stopped = told[-1:] == ["stopped"]
    rows = told[:-1] if stopped else told
    assert rows[: len(expected)] == expected[: len(rows)]
    assert stopped or len(rows) >= len(expected)
