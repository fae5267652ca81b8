"""Bucket modes through Spark: whichever task meets a key, it goes to the bucket it lives in."""

import pytest

import paimon_spark
from paimon_core.table import Table
from tests.support.compaction import levels_of
from tests.support.hash_indexes import check_indexes

pytestmark = pytest.mark.spark
everywhere = pytest.mark.everywhere


@pytest.fixture
def path(warehouse):
    return f"{warehouse}/db.db/orders"


def save(frame, path, mode="append", **options):
    frame.write.format("paimon").mode(mode).options(**{k.replace("_", "-"): v for k, v in options.items()}).save(path)


def changes(spark, text, *, first=0, keys=300, tasks=3):
    """Rows of so many keys; the last ten of each task are those that the next one begins with."""
    per_task = keys // tasks
    numbers = spark.range(0, (per_task + 10) * tasks, numPartitions=tasks)
    key = f"{first} + (id div {per_task + 10}) * {per_task} + id % {per_task + 10}"
    return numbers.selectExpr(f"({key}) % {first + keys} AS id", "'p' || (id % 1) AS dt", f"'{text}' AS v")


DYNAMIC = {"primary_key": "id", "bucket": "-1", "dynamic-bucket.target-row-num": "20"}


@everywhere
def test_tasks_that_meet_a_key_give_it_one_bucket(spark, path):
    save(changes(spark, "a"), path, **DYNAMIC)
    assert len(check_indexes(Table.open(path))) == 8
    save(changes(spark, "b", first=200), path)
    table = Table.open(path)
    sizes = check_indexes(table)
    assert sum(sizes.values()) == 500
    assert len(sizes) == 16, "buckets that were full took no new keys"
    rows = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert table.to_arrow().num_rows == len(rows) == 500
    assert {v for k, v in rows.items() if k >= 200} == {"b"}
    save(changes(spark, "c", keys=60), path, mode="overwrite")
    assert sum(check_indexes(Table.open(path)).values()) == 60


def test_clustered_gives_each_bucket_to_one_task(spark, path):
    def clustered(frame):
        return frame.transform(paimon_spark.clustered(path))

    save(changes(spark, "a", keys=3), path, primary_key="dt,id", partition="dt", bucket="-1")
    for text in "bcdef":
        save(clustered(changes(spark, text)), path, **{"num-sorted-run.compaction-trigger": "2"})
    table = Table.open(path)
    assert sum(check_indexes(table).values()) == 300
    assert {row["v"] for row in table.to_arrow().to_pylist()} == {"f"}
    inline = [s for s in table.snapshots() if s.commit_kind == "COMPACT"]
    assert inline, "tasks that own their buckets compact them"
    assert all(len(levels.runs) <= 2 for levels in levels_of(table).values())
