"""writeStream.format("paimon"): each batch is committed once; so with upsert_batch and txnVersion."""

import os
import signal
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from paimon_core.errors import InvalidInputError
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.table import Table
from paimon_spark import clustered, upsert_batch
from paimon_spark.options import stream_write_request, write_request
from tests.support.compaction import levels_of
from tests.support.tables import files_below

pytestmark = [pytest.mark.spark, pytest.mark.versions]
everywhere = pytest.mark.everywhere
ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
TIMED = pa.schema([*ROWS, ("at", pa.timestamp("us", tz="UTC"))])
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
"""A table with these options shows a batch that is committed twice."""


@pytest.fixture
def stream(spark):
    """Ten numbers a batch, the same ones whenever the batch comes again."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "10").option("numPartitions", "2")
    return source.load().selectExpr("value AS id", "1L AS n")


def run(frame, warehouse, times=1, path="t", checkpoint="c", mode="append", **options):
    """Run `times` batches, each as a query of its own, and return the last query."""
    for _ in range(times):
        writing = frame.writeStream.format("paimon").outputMode(mode).options(**options)
        writing = writing.option("checkpointLocation", f"{warehouse}/{checkpoint}").trigger(availableNow=True)
        query = writing.start(f"{warehouse}/{path}")
        query.awaitTermination()
    return query


def forget(warehouse, number, checkpoint="c"):
    """The batch was committed, but the query died before it wrote that down."""
    commits = Path(warehouse, checkpoint, "commits")
    for name in (f"{number}", f".{number}.crc"):
        (commits / name).unlink(missing_ok=True)


def make(warehouse, schema=ROWS, path="t", **settings):
    return Table.create(f"{warehouse}/{path}", Schema(schema, **settings))


def rows(warehouse, path="t"):
    found = Table.open(f"{warehouse}/{path}").to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def commits_of_batches(warehouse, path="t"):
    """The number of snapshots with the rows of each batch."""
    snapshots = [s for s in Table.open(f"{warehouse}/{path}").snapshots() if s.commit_kind != CommitKind.COMPACT]
    return Counter(s.commit_identifier for s in snapshots)


def message(raised):
    return str(raised.value)


@everywhere
def test_batches_are_upserted_once_by_id_of_query(stream, warehouse):
    table, frame = f"{warehouse}/t", stream.selectExpr("id % 7 AS id", "n")
    query = run(frame, warehouse, times=2, **{"primary-key": "id", "bucket": "2", "write-only": "true", **SUMS})
    assert rows(warehouse) == sums(20, 7)
    assert commits_of_batches(warehouse) == {0: 1, 1: 1}
    assert {s.commit_user for s in Table.open(table).snapshots() if s.commit_identifier < 2} == {query.id}
    before = files_below(table)
    forget(warehouse, 1)
    run(frame, warehouse)  # the last one again, and one more
    assert rows(warehouse) == sums(30, 7)
    assert commits_of_batches(warehouse) == {0: 1, 1: 1, 2: 1}
    new = {name for name in files_below(table) - before if "bucket-" in name}
    assert len(new) <= 4, "files of two tasks in two buckets: those of the batch done again are gone"


def sums(count, keys):
    """Rows of `count` numbers modulo `keys`."""
    return sorted(Counter(v % keys for v in range(count)).items())


@everywhere
@pytest.mark.parametrize("kind", ["append", "dynamic", "across", "postponed"])
@pytest.mark.cases(2)
def test_tables_of_every_kind_take_batch_once(stream, warehouse, kind):
    options, keys, partitions = {
        "append": ({}, [], []),
        "dynamic": ({"bucket": "-1", "dynamic-bucket.target-row-num": "3", **SUMS}, ["id"], []),
        "across": ({"bucket": "-1"}, ["id"], ["n"]),
        "postponed": ({"bucket": "-2", "postpone.default-bucket-num": "2", **SUMS}, ["id"], []),
    }[kind]
    make(warehouse, primary_keys=keys, partition_keys=partitions, options=options)
    frame = stream.selectExpr("id % 6 AS id", "id div 6 AS n" if kind == "across" else "n")
    run(frame, warehouse)
    forget(warehouse, 0)
    run(frame, warehouse)
    assert commits_of_batches(warehouse) == {0: 1, 1: 1}
    expected = {"append": sorted((v % 6, 1) for v in range(20)), "across": [(k, 3 if k < 2 else 2) for k in range(6)]}
    assert rows(warehouse) == expected.get(kind, sums(20, 6))


@pytest.mark.parametrize("kind", ["append", "across", "foreachBatch", "complete"])
@pytest.mark.cases(2)
def test_snapshots_carry_watermark_of_stream(spark, warehouse, kind):
    across = {"primary_keys": ["id"], "partition_keys": ["n"], "options": {"bucket": "-1"}} if kind == "across" else {}
    make(warehouse, TIMED, **across)
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "10").option("numPartitions", "2")
    timed = source.option("advanceMillisPerBatch", "60000").option("startTimestamp", "600000").load()
    frame = timed.withWatermark("timestamp", "90 seconds").selectExpr("value AS id", "1L AS n", "timestamp AS at")
    if kind == "complete":
        frame = frame.groupBy("at").agg(F.max("id").alias("id"), F.max("n").alias("n"))
    for _ in range(2):
        if kind == "foreachBatch":
            writing = frame.writeStream.foreachBatch(upsert_batch(f"{warehouse}/t", "timed"))
            writing = writing.option("checkpointLocation", f"{warehouse}/c").trigger(availableNow=True)
            writing.start().awaitTermination()
        else:
            run(frame, warehouse, mode="complete" if kind == "complete" else "append")
    newest = {t["at"] for t in Table.open(f"{warehouse}/t").to_arrow().to_pylist()}
    assert len(newest) == 2
    marks = [s.watermark for s in Table.open(f"{warehouse}/t").snapshots()]
    assert marks == sorted(marks)
    assert set(marks) == {int(at.timestamp() * 1000) - 90_000 for at in newest}


def test_rows_carry_their_kind(stream, warehouse):
    make(warehouse, primary_keys=["id"], options={"bucket": "1"})
    frame = stream.selectExpr("id % 10 AS id", "id AS n", "CASE WHEN id >= 15 THEN '-D' ELSE '+I' END AS kind")
    run(frame, warehouse, times=2, **{"row-kind-column": "kind"})
    assert rows(warehouse) == [(k, k + 10) for k in range(5)]


def test_complete_mode_replaces_table(stream, warehouse):
    make(warehouse, pa.schema([("k", pa.int64()), ("c", pa.int64())]))
    frame = stream.groupBy((F.col("id") % 3).alias("k")).agg(F.count("*").alias("c"))
    run(frame, warehouse, mode="complete")
    assert rows(warehouse) == sums(10, 3)
    forget(warehouse, 0)
    run(frame, warehouse, mode="complete")
    assert rows(warehouse) == sums(20, 3)
    assert commits_of_batches(warehouse) == {0: 1, 1: 1}


@pytest.mark.more
def test_clustered_stream_compacts_as_it_writes(stream, warehouse):
    table = make(warehouse, primary_keys=["id"], options={"bucket": "2", "changelog-producer": "lookup"})
    run(stream.selectExpr("id % 10 AS id", "id AS n").transform(clustered(table.path)), warehouse, times=2)
    assert rows(warehouse) == [(k, k + 10) for k in range(10)]
    assert {f.level for levels in levels_of(table).values() for f in levels.all_files}.isdisjoint({0})
    assert table.changes(0).num_rows == 10 + 20, "of each key one change in the second batch: -U and +U"


@pytest.mark.more
def test_full_compaction_is_due_by_number_of_batch(stream, warehouse):
    options = {"bucket": "1", "full-compaction.delta-commits": "2", "changelog-producer": "full-compaction"}
    table = make(warehouse, primary_keys=["id"], options=options)
    frame = stream.selectExpr("id % 10 AS id", "id AS n")
    counts = []
    for _ in range(4):
        run(frame, warehouse)
        counts.append(table.changes(0).num_rows)
    assert counts == [10, 10, 30, 30]


def test_checkpoint_of_another_table_is_refused(stream, warehouse):
    run(stream, warehouse, times=2)
    with pytest.raises(StreamingQueryException, match="has no batch of it") as raised:
        run(stream, warehouse, path="other")
    assert "Start the query with a new checkpointLocation" in message(raised)
    assert rows(warehouse, "other") == []
    run(stream, warehouse, path="other", **{"write.stream.on-doubt": "commit"})
    assert rows(warehouse, "other") == [(k, 1) for k in range(20, 40)]


def test_two_queries_write_to_one_table(stream, warehouse):
    run(stream, warehouse)
    run(stream, warehouse, checkpoint="d")
    assert rows(warehouse) == sorted([(k, 1) for k in range(10)] * 2)


def test_update_mode_is_refused_by_name(stream, warehouse):
    make(warehouse, pa.schema([("k", pa.int64()), ("c", pa.int64())]))
    counts = stream.groupBy((F.col("id") % 3).alias("k")).agg(F.count("*").alias("c"))
    with pytest.raises(Exception, match="does not support Update mode"):
        run(counts, warehouse, mode="update")


@everywhere
def test_upsert_batch_writes_each_batch_of_update_mode_once(stream, warehouse):
    path = f"{warehouse}/t"
    make(warehouse, pa.schema([pa.field("k", pa.int64(), nullable=False), ("c", pa.int64())]), primary_keys=["k"])
    counts = stream.groupBy((F.col("id") % 3).alias("k")).agg(F.count("*").alias("c"))

    def batches(checkpoint="c"):
        writing = counts.writeStream.foreachBatch(upsert_batch(path, "counts")).outputMode("update")
        writing = writing.option("checkpointLocation", f"{warehouse}/{checkpoint}").trigger(availableNow=True)
        writing.start().awaitTermination()

    batches()
    assert rows(warehouse) == sums(10, 3)
    assert {s.commit_user for s in Table.open(path).snapshots()} >= {"counts"}
    forget(warehouse, 0)
    batches()
    assert rows(warehouse) == sums(20, 3)
    assert commits_of_batches(warehouse) == {0: 1, 1: 1}
    with pytest.raises(StreamingQueryException, match="use another app_id"):
        batches(checkpoint="d")


def test_upsert_batch_refuses_first_batch_of_another_checkpoint(stream, warehouse):
    """Both are batch 0 of the same application: skipping the second would lose its rows."""
    make(warehouse)
    for checkpoint in "cd":
        writing = stream.selectExpr("id", "id AS n").writeStream.foreachBatch(upsert_batch(f"{warehouse}/t", "app"))
        writing = writing.option("checkpointLocation", f"{warehouse}/{checkpoint}").trigger(availableNow=True).start()
        if checkpoint == "c":
            writing.awaitTermination()
    with pytest.raises(StreamingQueryException, match="not a repetition"):
        writing.awaitTermination()


@everywhere
@pytest.mark.more
def test_version_is_written_once(spark, warehouse):
    path = f"{warehouse}/t"
    make(warehouse)

    def write(version, value, mode="append"):
        frame = spark.range(3).selectExpr("id", f"{value}L AS n")
        options = {"txnAppId": "loader", "txnVersion": str(version)}
        frame.write.format("paimon").options(**options).mode(mode).save(path)

    for version in (4, 4, 9, 7):
        write(version, version)
    assert rows(warehouse) == sorted((k, v) for k in range(3) for v in (4, 9))
    write(10, 10, "overwrite")
    write(10, 11, "overwrite")
    assert rows(warehouse) == [(k, 10) for k in range(3)]
    assert [(s.commit_user, s.commit_identifier) for s in Table.open(path).snapshots()] == [
        ("loader", 4),
        ("loader", 9),
        ("loader", 10),
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"txnAppId": "a"}, "go together"),
        ({"txnVersion": "1"}, "go together"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "whole number"),
        ({"txnAppId": "a", "txnVersion": "1", "commit.user": "b"}, "disagree"),
        ({"txnAppId": "", "txnVersion": "1"}, "is empty"),
        ({"write.stream.on-doubt": "maybe"}, "one of fail, commit, skip"),
    ],
)
def test_contradicting_options_are_refused(options, why):
    with pytest.raises(InvalidInputError, match=why):
        write_request({"path": "/w/t", **options}, ())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"commit.user": "me"}, "commits under the query id in its checkpoint"),
        ({"txnAppId": "a", "txnVersion": "1"}, "commits under the query id"),
        ({"partitionOverwriteMode": "dynamic"}, "replaces the table"),
        ({"checkpoint": "/c"}, "unknown option 'checkpoint'"),
    ],
)
def test_options_of_batches_are_refused_for_streams(options, why):
    with pytest.raises(InvalidInputError, match=why):
        stream_write_request({"path": "/w/t", "checkpointLocation": "/c", "queryName": "q", **options}, ())


@everywhere
def test_worker_that_is_killed_in_mid_write_leaves_batch_once(stream, warehouse):
    mark = f"{warehouse}/killed"

    def once(rows):
        for batch in rows:
            yield batch
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    run(stream.mapInArrow(once, "id long, n long"), warehouse, times=2)
    assert Path(mark).exists()
    assert rows(warehouse) == [(k, 1) for k in range(20)]
    assert commits_of_batches(warehouse) == {0: 1, 1: 1}
