"""Batch writes of `format("paimon")` in a classic session: the driver commits them, as the Python data source does."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Observation
from pyspark.sql import functions as F

import paimon_spark
from paimon_core.schema.change import AddColumn
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from paimon_spark import frame_write
from paimon_spark.sql.session_options import NATIVE_WRITES
from paimon_spark.sql.writes import format_writes
from tests.spark.conftest import MODE

pytestmark = [pytest.mark.spark, pytest.mark.skipif(MODE == "connect", reason="Connect has no JVM to call")]
KEYED = {"primary-key": "id,p", "partition": "p", "bucket": "2"}


@pytest.fixture(params=["driver", *(pytest.param(name, marks=pytest.mark.more) for name in ("tasks", "source"))])
def path(request, spark, warehouse):
    """The path of a new table, which the driver, tasks of this process's job, or the data source writes."""
    if request.param == "tasks":
        request.getfixturevalue("writes_by_tasks")
    if request.param == "source":
        request.getfixturevalue("python_writes")
    return f"{warehouse}/db.db/t"


def rows(spark, start, end, *more):
    return spark.range(start, end).selectExpr("CAST(id AS INT) AS id", "id % 2 AS p", *more)


def save(frame, path, mode="append", **options):
    frame.write.format("paimon").mode(mode).options(**options).save(path)


def ids(path):
    return sorted(Table.open(path).to_arrow()["id"].to_pylist())


def message(write):
    """Return the engine's error of a write, without the frames after it."""
    with pytest.raises(Exception) as caught:
        write()
    return re.search(r"paimon_core\.errors\.(\w+: [^\n]*)", str(caught.value))[1]


@pytest.mark.versions
@pytest.mark.parametrize("keys", [{"partition": "p"}, pytest.param(KEYED, marks=pytest.mark.more)])
def test_append_and_overwrites(spark, path, keys):
    save(rows(spark, 0, 4), path, **keys)
    save(rows(spark, 4, 6), path, **{"snapshot-property.run": "two"})
    assert Table.open(path).snapshot().properties == {"run": "two"}
    assert ids(path) == [0, 1, 2, 3, 4, 5]
    save(rows(spark, 8, 9), path, "overwrite", partitionOverwriteMode="dynamic")
    assert ids(path) == [1, 3, 5, 8]
    save(rows(spark, 9, 10), path, "overwrite", **{"overwrite-partition": "p=1"})
    assert ids(path) == [8, 9]
    save(rows(spark, 0, 1, "'x' AS added"), path, **{"write.merge-schema": "true"})
    assert Table.open(path).schema.names == ("id", "p", "added")
    save(rows(spark, 7, 8), path, "overwrite")
    assert ids(path) == [7]
    assert Table.open(path).snapshot().id == 6


def test_write_is_committed_once(spark, path):
    for _ in range(2):
        save(rows(spark, 0, 3), path, txnAppId="job", txnVersion="1")
    assert ids(path) == [0, 1, 2]


def test_errors_are_those_of_the_data_source(spark, path):
    save(rows(spark, 0, 2), path)
    for frame, options, expected in (
        (rows(spark, 0, 1), {"bukcet": "1"}, "InvalidInputError: unknown option 'bukcet'"),
        (rows(spark, 0, 1), {"primary-key": "id"}, "InvalidInputError: option 'primary-key' = 'id', but"),
        (rows(spark, 0, 1, "1 AS other"), {}, "InvalidInputError: the data has columns ['other']"),
        (spark.range(1).selectExpr("'x' AS id"), {}, "InvalidInputError: column 'id': string cannot be stored"),
        (rows(spark, 0, 1), {"write.unchanged-since": "9"}, "CommitConflictError: commit to "),
        (rows(spark, 0, 1), {"overwrite-partition": "p=1"}, "InvalidInputError: option 'overwrite-partition' is for"),
    ):
        assert message(lambda frame=frame, options=options: save(frame, path, **options)).startswith(expected)
    assert ids(path) == [0, 1]


def test_setting_is_true_or_false(spark, tmp_path):
    spark.conf.set(NATIVE_WRITES, "maybe")
    try:
        with pytest.raises(IllegalArgumentException, match=r"'spark.paimon.write.native' is 'maybe': it must be true"):
            save(rows(spark, 0, 1), str(tmp_path / "t"))
    finally:
        spark.conf.unset(NATIVE_WRITES)
    assert not os.path.exists(tmp_path / "t")


def test_driver_writes_few_rows_and_keeps_the_tasks_of_others(spark, warehouse):
    path = f"{warehouse}/db.db/t"
    save(rows(spark, 0, 100).repartition(4), path)
    assert len(Table.open(path).scan().plan().splits[0].files) == 1
    save(rows(spark, 0, frame_write.FEW_ROWS + 1).repartition(3), path)
    assert sum(len(split.files) for split in Table.open(path).scan().plan().splits) == 1 + 3


def test_metrics_of_observe_count_every_row(spark, warehouse):
    observation = Observation("counted")
    frame = spark.range(0, 4 * frame_write.FEW_ROWS, numPartitions=2).observe(observation, F.count("id").alias("rows"))
    save(frame, f"{warehouse}/db.db/t")
    assert observation.get == {"rows": 4 * frame_write.FEW_ROWS}


def test_clustered_rows_of_dynamic_buckets_go_to_their_tasks(spark, warehouse):
    path = f"{warehouse}/db.db/t"
    save(rows(spark, 0, 10), path, **{"primary-key": "id"})
    save(rows(spark, 5, 15).transform(paimon_spark.clustered(path, 3)), path)
    assert ids(path) == list(range(15))


def test_table_that_changes_between_writes(spark, path):
    save(rows(spark, 0, 1), path)
    Table.open(path).alter([AddColumn("n", parse_type("INT"))])
    save(rows(spark, 1, 2), path)
    save(rows(spark, 2, 3, "3 AS n"), path)
    assert sorted(Table.open(path).to_arrow()["n"].to_pylist(), key=str) == [3, None, None]


@pytest.mark.versions
def test_driver_writes_for_other_threads(spark, warehouse, monkeypatch):
    """A new thread has no active session in the JVM."""
    tables = []
    write = format_writes.write_table
    monkeypatch.setattr(format_writes, "write_table", lambda *a, **b: tables.append(a[1].path) or write(*a, **b))
    path = f"{warehouse}/db.db/t"
    with ThreadPoolExecutor(1) as pool:
        pool.submit(save, rows(spark, 0, 3), path).result()
    assert (tables, ids(path)) == ([path], [0, 1, 2])


def test_driver_writes_rows_of_a_list(spark, warehouse, monkeypatch):
    def fail(*_):
        raise AssertionError("tasks write")

    path = f"{warehouse}/db.db/t"
    monkeypatch.setattr(frame_write, "run_tasks", fail)
    monkeypatch.setattr(format_writes, "native_results", fail)
    frame = spark.createDataFrame([(i, f"name {i}") for i in range(1000)], "id int, name string")
    save(frame, path)
    save(frame.where("id < 3").select("id"), path)
    assert ids(path) == sorted([*range(1000), 0, 1, 2])
    for other in (spark.createDataFrame([("x" * 100_000,)], "name string"), frame.repartition(2), frame.union(frame)):
        with pytest.raises(Exception, match="tasks write"):
            save(other, path)


@pytest.mark.more
@pytest.mark.parametrize("keys", [{"partition": "p"}, KEYED])
def test_replace_where_replaces_matching_rows(spark, warehouse, keys):
    path = f"{warehouse}/db.db/t"
    save(rows(spark, 0, 6), path, **keys)
    save(rows(spark, 10, 16).where("p = 1"), path, "overwrite", replaceWhere="p = 1")
    assert ids(path) == [0, 2, 4, 11, 13, 15]
    save(rows(spark, 2, 5).where("p = 0"), path, "overwrite", replaceWhere="id BETWEEN 2 AND 12")
    assert ids(path) == [0, 2, 4, 13, 15]


@pytest.mark.more
def test_wrong_replace_where_is_refused(spark, warehouse):
    path = f"{warehouse}/db.db/t"
    save(rows(spark, 0, 2), path, partition="p")
    for condition, frame, wrong in (
        ("p = 1", rows(spark, 0, 2), "leave them out"),
        ("id > 5", rows(spark, 0, 1), "does not match"),
        ("upper(p) = 'A'", rows(spark, 0, 1), "functions cannot be evaluated"),
        ("nope = 1", rows(spark, 0, 1), "nope"),
    ):
        assert wrong in message(lambda c=condition, f=frame: save(f, path, "overwrite", replaceWhere=c))
    assert "is for mode('overwrite')" in message(lambda: save(rows(spark, 0, 1), path, replaceWhere="p = 1"))
    both = {"replaceWhere": "p = 1", "partitionOverwriteMode": "dynamic"}
    assert "mutually exclusive" in message(lambda: save(rows(spark, 0, 1), path, "overwrite", **both))
    assert ids(path) == [0, 1]


def test_arrays_and_maps_of_blobs_are_written_and_read_back(spark, path):
    values = [(0, [b"x", None, b""], {"p": b"1", "q": None}), (1, None, {}), (2, [], None)]
    frame = spark.createDataFrame(values, "k int, a array<binary>, m map<string, binary>")
    save(frame, path, **{"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "a,m"})
    assert [str(f.type) for f in Table.open(path).schema.fields[1:]] == ["ARRAY<BLOB>", "MAP<STRING, BLOB>"]
    assert sorted((r.k, r.a, r.m) for r in spark.read.format("paimon").load(path).collect()) == values
