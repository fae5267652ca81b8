"""Bucket modes through Spark: every task sends a key to the key's one bucket."""

import pytest

import paimon_spark
from paimon_core.options import Options
from paimon_core.schema.table_schema import TableSchema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_spark.bucket_shuffle import task_column
from paimon_spark.partitioner import BucketPartitioner
from tests.support.compaction import levels_of
from tests.support.hash_indexes import check_indexes, indexes_of
from tests.support.tables import files_below

pytestmark = pytest.mark.spark
everywhere = pytest.mark.everywhere


@pytest.fixture
def path(warehouse):
    return f"{warehouse}/db.db/orders"


def save(frame, path, mode="append", **options):
    frame.write.format("paimon").mode(mode).options(**{k.replace("_", "-"): v for k, v in options.items()}).save(path)


def changes(spark, text, *, first=0, keys=300, tasks=3):
    """Return rows of `keys` keys; the last ten keys of a task are the first ten of the next task."""
    per_task = keys // tasks
    numbers = spark.range(0, (per_task + 10) * tasks, numPartitions=tasks)
    key = f"{first} + (id div {per_task + 10}) * {per_task} + id % {per_task + 10}"
    return numbers.selectExpr(f"({key}) % {first + keys} AS id", "'p' || (id % 1) AS dt", f"'{text}' AS v")


DYNAMIC = {
    "primary_key": "id",
    "bucket": "-1",
    "dynamic-bucket.target-row-num": "20",
    "dynamic-bucket.initial-buckets": "3",
}


@everywhere
@pytest.mark.more
def test_all_tasks_give_key_same_bucket(spark, path):
    save(changes(spark, "a"), path, **DYNAMIC)
    assert len(check_indexes(Table.open(path))) == 3
    save(changes(spark, "b", first=200), path)
    table = Table.open(path)
    sizes = check_indexes(table)
    assert sum(sizes.values()) == 500
    assert len(sizes) == 6, "buckets that were full took no new keys"
    rows = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert table.to_arrow().num_rows == len(rows) == 500
    assert {v for k, v in rows.items() if k >= 200} == {"b"}
    save(changes(spark, "c", keys=60), path, mode="overwrite")
    assert sum(check_indexes(Table.open(path)).values()) == 60


@pytest.mark.parametrize("bucket", ["2", pytest.param("-1", marks=pytest.mark.more)])
def test_columns_with_name_of_shuffle_column_are_written(spark, path, bucket):
    names = ["__paimon_task", "__paimon_TASK_of_8", "__paimon_task_of_3_by_3"]
    frame = spark.range(9).selectExpr("id", *(f"id + {n} AS `{name}`" for n, name in enumerate(names)))
    save(frame.limit(0), path, primary_key="id", bucket=bucket)
    save(frame.transform(paimon_spark.clustered(path, tasks=3)), path)
    save(frame.where("id > 4"), path)
    actual = sorted(tuple(row.values()) for row in Table.open(path).to_arrow().to_pylist())
    assert actual == [(k, k, k + 1, k + 2) for k in range(9)]


@pytest.mark.more
def test_clustered_gives_each_bucket_to_one_task(spark, path):
    def clustered(frame):
        return frame.transform(paimon_spark.clustered(path))

    save(
        changes(spark, "a", keys=3),
        path,
        primary_key="dt,id",
        partition="dt",
        bucket="-1",
        **{"dynamic-bucket.initial-buckets": "2"},
    )
    for text in "bcd":
        save(clustered(changes(spark, text)), path, **{"num-sorted-run.compaction-trigger": "2"})
    table = Table.open(path)
    assert sum(check_indexes(table).values()) == 300
    assert {row["v"] for row in table.to_arrow().to_pylist()} == {"d"}
    inline = [s for s in table.snapshots() if s.commit_kind == "COMPACT"]
    assert inline, "tasks that own their buckets compact them"
    assert all(len(levels.runs) <= 2 for levels in levels_of(table).values())


@pytest.mark.parametrize(
    ("partition", "key", "is_expression"),
    [
        pytest.param((), ("b", "s", "d", "x", "day", "flag"), True, marks=everywhere),
        (("day",), ("day", "s"), True),
        (("s", "x"), ("s", "x", "b"), True),
        ((), ("at",), False),
        (("flag",), ("flag", "f"), False),
    ],
)
def test_task_of_row_in_spark_agrees_with_engine(spark, partition, key, is_expression):
    rows = spark.range(200).selectExpr(
        "id AS `B`",  # names of a DataFrame may differ in case
        "IF(id % 5 = 0, NULL, repeat('é', int(id % 9))) AS s",
        "CAST((id - 100) / 7 AS DECIMAL(9, 2)) AS d",
        "IF(id % 6 = 0, NULL, CAST(id - 100 AS INT)) AS x",
        "date_add(DATE '1969-12-20', int(id)) AS day",
        "id % 2 = 0 AS flag",
        "TIMESTAMP_NTZ '2020-01-01' + make_interval(0, 0, 0, int(id)) AS at",
        "CAST(id AS FLOAT) AS f",
    )
    types = ("BIGINT", "STRING", "DECIMAL(9, 2)", "INT", "DATE", "BOOLEAN", "TIMESTAMP(6)", "FLOAT")
    names = ("b", "s", "d", "x", "day", "flag", "at", "f")
    fields = tuple(
        DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(zip(names, types, strict=True))
    )
    options = {"bucket": "7", "bucket-key": ",".join(name for name in key if name not in partition)}
    schema = TableSchema(0, fields, 7, partition, (), Options(options))
    partitioner = BucketPartitioner.of(schema, 5)
    column = task_column(partitioner, rows)
    assert ("task_of" not in str(column)) == is_expression
    found = rows.select("*", column.alias("task")).toArrow()
    own = {name.lower(): name for name in found.column_names}
    columns = [found.column(own[field.name]).combine_chunks() for field in partitioner.fields]
    tasks = found.column("task").to_pylist()
    assert tasks == partitioner.task_of(*columns).to_pylist()
    assert set(tasks) == set(range(5))


DAILY = {"primary_key": "dt,id", "partition": "dt", "bucket": "-1", "write-only": "true"}


def daily(spark, first, count):
    """Return `count` rows over ten days, from two tasks that both have rows of every day."""
    return spark.range(first, first + count, numPartitions=2).selectExpr("id", "'d' || id % 10 AS dt", "id AS v")


def files_of(path):
    return [len(split.files) for split in Table.open(path).scan().plan().splits]


def test_small_partitions_get_one_bucket_each(spark, path, writes_by_tasks):
    save(daily(spark, 0, 400), path, **DAILY)
    assert files_of(path) == [2] * 10, "a file of each task in the one bucket of each day"
    save(daily(spark, 300, 200), path, **DAILY)
    assert files_of(path) == [4] * 10
    table = Table.open(path)
    assert check_indexes(table) == {0: 500}
    assert table.to_arrow().num_rows == 500


@pytest.mark.more
def test_clustered_fills_buckets_to_their_target(spark, path):
    target = {"dynamic-bucket.target-row-num": "30"}
    save(daily(spark, 0, 20), path, **DAILY, **target)
    for first in (10, 400):  # the first shuffle has one slot a day, the second as many as a day has buckets
        frame = daily(spark, first, 400)
        save(frame.transform(paimon_spark.clustered(path)), path, **DAILY)
    table = Table.open(path)
    check_indexes(table)
    assert max(len(hashes) for hashes in indexes_of(table).values()) <= 30
    assert table.to_arrow().num_rows == 800
    assert len(indexes_of(table)) < 10 * (80 / 30 + 2), "no day has more than one bucket with room in each slot"
    with pytest.raises(Exception, match=r"sent to other tasks.*write directly after"):
        save(daily(spark, 0, 40).transform(paimon_spark.clustered(path)).coalesce(1), path)


MOVING = {"primary_key": "id", "partition": "dt", "bucket": "-1", "dynamic-bucket.target-row-num": "30"}


def moving(spark, text, *, first, days, tasks=4):
    """Return a hundred keys, each in two rows of different tasks; one of the two has no value."""
    rows = spark.range(0, 200, numPartitions=tasks)
    return rows.selectExpr(
        f"{first} + id % 100 AS id",
        f"'d' || ((id % 100) % {days}) AS dt",
        f"CASE WHEN id < 100 THEN '{text}' END AS v",
    )


@pytest.mark.parametrize("how", ["plain", "clustered"])
@pytest.mark.cases(1)
def test_keys_that_move_between_partitions(spark, path, how):
    save(moving(spark, "a", first=0, days=3), path, **MOVING, merge_engine="partial-update")
    frame = moving(spark, "b", first=50, days=5)
    save(frame if how == "plain" else frame.transform(paimon_spark.clustered(path, tasks=3)), path)
    actual = {row["id"]: (row["dt"], row["v"]) for row in Table.open(path).to_arrow().to_pylist()}
    assert Table.open(path).to_arrow().num_rows == len(actual) == 150
    assert actual == {k: (f"d{k % 3}" if k < 100 else f"d{(k - 50) % 5}", "a" if k < 50 else "b") for k in range(150)}
    assert not any("postpone" in name for name in files_below(path))


@everywhere
@pytest.mark.more
def test_row_moves_to_partition_it_was_written_to_last(spark, path):
    save(spark.range(60).selectExpr("id", "'old' AS dt", "0 AS v"), path, **MOVING)
    some = spark.range(20, 80, numPartitions=3).selectExpr("id", "'new' AS dt", "1 AS v")
    save(some.transform(paimon_spark.clustered(path)), path)
    save(spark.range(70, 90, numPartitions=2).selectExpr("id", "'newest' AS dt", "2 AS v"), path)
    actual = {row["id"]: row["dt"] for row in Table.open(path).to_arrow().to_pylist()}
    assert Table.open(path).to_arrow().num_rows == 90
    assert actual == {k: "old" if k < 20 else "new" if k < 70 else "newest" for k in range(90)}
    save(spark.range(5).selectExpr("id", "'x' AS dt", "3 AS v"), path, mode="overwrite")
    assert Table.open(path).to_arrow().num_rows == 5


@pytest.mark.more
def test_rows_moved_after_they_were_clustered_are_refused(spark, path):
    save(spark.range(9).selectExpr("id", "'d' AS dt"), path, **MOVING)
    moved = spark.range(9).selectExpr("id", "'e' AS dt").transform(paimon_spark.clustered(path, tasks=3)).coalesce(1)
    with pytest.raises(Exception, match=r"sent to other tasks.*write directly after"):
        save(moved, path)
    assert {row["dt"] for row in Table.open(path).to_arrow().to_pylist()} == {"d"}


def test_postponed_rows_go_to_real_buckets_or_wait(spark, path):
    options = {"primary_key": "id", "bucket": "-2", "postpone.default-bucket-num": "3"}
    save(changes(spark, "a"), path, **options)
    save(changes(spark, "b").transform(paimon_spark.clustered(path)), path)
    assert Table.open(path).to_arrow(filter="v = 'b'").num_rows == 300
    save(changes(spark, "c", keys=30), path, **{"postpone.batch-write-fixed-bucket": "false"})
    assert Table.open(path).to_arrow(filter="v = 'c'").num_rows == 0
    paimon_spark.PaimonTable.forPath(spark, path).compact(progress=False)
    assert Table.open(path).to_arrow(filter="v = 'c'").num_rows == 30
    assert Table.open(path).to_arrow().num_rows == 300
