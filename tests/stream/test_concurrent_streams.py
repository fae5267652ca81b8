"""Streams and batch writes on one table at the same time: nothing lost, nothing twice."""

import time

import pyarrow as pa
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.table import Table
from tests.stream.chain import numbers_sent

pytestmark = pytest.mark.spark
KEYS, STREAMS, BATCHES = 13, 2, 3
COUNTS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64()), ("total", pa.int64())])
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.total.aggregate-function": "sum"}
KINDS = {
    "append": Schema(COUNTS),
    "sums": Schema(COUNTS, primary_keys=["k"], options={**SUMS, "bucket": "2"}),
    "dynamic": Schema(COUNTS, primary_keys=["k"], options={**SUMS, "bucket": "-1"}),
}


def stream(spark, warehouse, path, name, **trigger):
    """0, 1, 2 ... in batches of 100, each number a row to count and to add up."""
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "100").option("numPartitions", "2")
    rows = numbers.load().selectExpr(f"value % {KEYS} AS k", "1L AS n", "value AS total")
    sink = rows.writeStream.format("paimon").trigger(**trigger)
    return sink.option("checkpointLocation", f"{warehouse}/checkpoints/{name}").start(path)


def write(spark, path):
    """A batch write of the numbers up to 100."""
    rows = spark.range(100).coalesce(1).selectExpr(f"id % {KEYS} AS k", "1L AS n", "id AS total")
    rows.write.format("paimon").mode("append").save(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.more
def test_two_streams_and_batch_writer_share_table(spark, warehouse, kind):
    path = f"{warehouse}/db.db/{kind}"
    table = Table.create(path, KINDS[kind])
    write(spark, path)  # from here on dynamic buckets know every key
    streams = [stream(spark, warehouse, path, f"{kind}-{i}", processingTime="0 seconds") for i in range(STREAMS)]
    try:
        for _ in range(BATCHES - 1):
            write(spark, path)
        while any(query.isActive and query.lastProgress is None for query in streams):
            time.sleep(0.1)
        assert [query.exception() for query in streams] == [None] * STREAMS
    finally:
        for query in streams:
            query.stop()
    for i in range(STREAMS):
        stream(spark, warehouse, path, f"{kind}-{i}", availableNow=True).awaitTermination()
    users: dict[str, list[int]] = {}
    for snapshot in table.snapshots():
        if snapshot.commit_kind == CommitKind.APPEND:
            users.setdefault(snapshot.commit_user, []).append(snapshot.commit_identifier)
    assert len(users) == STREAMS + BATCHES
    assert all(batches == sorted(set(batches)) for batches in users.values())
    expected = dict.fromkeys(range(KEYS), (0, 0))
    sent = [numbers_sent(f"{warehouse}/checkpoints/{kind}-{i}") for i in range(STREAMS)]
    for last in [*sent, *[100] * BATCHES]:
        for value in range(last):
            n, total = expected[value % KEYS]
            expected[value % KEYS] = n + 1, total + value
    actual = table.to_arrow().group_by("k").aggregate([("n", "sum"), ("total", "sum")]).to_pylist()
    assert {row["k"]: (row["n_sum"], row["total_sum"]) for row in actual} == expected
