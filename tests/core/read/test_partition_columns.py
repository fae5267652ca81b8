"""Reads of partition columns only: batches of bounded size for any number of rows in the metadata."""

import dataclasses

import pyarrow as pa
import pytest

from paimon_core.datafile.reader import BATCH_ROWS
from paimon_core.memory import MemoryShares
from paimon_core.schema.schema import Schema
from paimon_core.table import Table

BATCH_BYTES = MemoryShares().batches
SCHEMA = pa.schema([("p", pa.string()), ("k", pa.int64())])


def made_up(path: str, value: str, rows: int) -> Table:
    """Return a table with one file, whose metadata claim this number of rows."""
    table = Table.create(path, Schema(SCHEMA, partition_keys=["p"]))
    with table.writer() as writer:
        writer.write(pa.table({"p": [value], "k": [1]}, schema=SCHEMA))
        (message,) = writer.prepare_commit()
    files = tuple(dataclasses.replace(f, row_count=rows) for f in message.new_files)
    table.committer().commit([dataclasses.replace(message, new_files=files)])
    return table


@pytest.mark.parametrize(
    ("value", "rows"), [("one", 300_000_000), ("a long value of a partition " * 6, 2_000_000)], ids=["300 M", "long"]
)
def test_batches_of_partition_columns_are_bounded(tmp_path, value, rows):
    table = made_up(f"{tmp_path}/t", value, rows)
    seen = most = largest = 0
    before = pa.total_allocated_bytes()
    for batch in table.to_batches(columns=["p"]):
        seen += batch.num_rows
        largest = max(largest, batch.num_rows)
        most = max(most, pa.total_allocated_bytes() - before)
    assert seen == rows
    assert most <= 3 * BATCH_BYTES
    assert largest <= BATCH_ROWS
    assert batch["p"][0].as_py() == value


def test_read_batch_size_limits_constant_columns(tmp_path):
    table = made_up(f"{tmp_path}/t", "p", 1000).with_options({"read.batch-size": "300"})
    assert [b.num_rows for b in table.to_batches(columns=["p"])] == [300, 300, 300, 100]


def test_long_constants_bound_batches_of_stored_columns(tmp_path):
    table = Table.create(f"{tmp_path}/t", Schema(SCHEMA, partition_keys=["p"]))
    value = "x" * 200
    table.write(pa.table({"p": pa.array([value]).take(pa.array([0] * 300_000)), "k": range(300_000)}, schema=SCHEMA))
    for columns in (["p", "k"], ["p"]):
        batches = list(table.to_batches(columns=columns))
        assert sum(b.num_rows for b in batches) == 300_000
        assert max(b.nbytes for b in batches) <= 2 * BATCH_BYTES
    small = table.with_options({"read.batch-size": "500000"})
    assert max(b.nbytes for b in small.to_batches()) <= 2 * BATCH_BYTES
