"""Spark on HDFS, by path and by catalog: Spark's own scan and encoder give the rows of Python workers."""

import itertools

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import paimon_spark
from paimon_core import Table
from paimon_core.fileio.fileio import FileIO
from paimon_spark.options import write_request
from paimon_spark.sql.writes.native_writes import native_results

pytestmark = [pytest.mark.places, pytest.mark.spark]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def spark():
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def lake(spark, root):
    """Return the name of a catalog on HDFS with the database d."""
    name = f"lake{next(NUMBERS)}"
    paimon_spark.catalog(spark, name, warehouse=root)
    spark.sql(f"CREATE DATABASE {name}.d")
    return name


def writers_of_files(io, directory):
    """Return the programs that wrote the Parquet files below a directory."""
    found = set()
    for status in io.list(directory):
        if status.is_directory:
            found |= writers_of_files(io, status.path)
        elif status.name.endswith(".parquet"):
            found.add(pq.read_metadata(io.open(status.path)).created_by.split()[0])
    return found


def test_encoder_and_workers_write_the_same_rows(spark, root, lake):
    rows = spark.range(0, 12000, 1, 3).selectExpr("id a", "cast(id % 3 AS string) d", "if(id % 7 = 0, NULL, id / 3) v")
    for name, native in (("fast", "true"), ("slow", "false")):
        spark.sql(f"CREATE TABLE {lake}.d.{name} (a BIGINT, d STRING, v DOUBLE) PARTITIONED BY (d)")
        spark.conf.set("spark.paimon.write.native", native)
        rows.write.mode("append").saveAsTable(f"{lake}.d.{name}")
        rows.write.format("paimon").mode("append").save(f"{root}/d.db/{name}")
    spark.conf.unset("spark.paimon.write.native")
    io = FileIO.of(root)
    assert writers_of_files(io, f"{root}/d.db/fast") == {"parquet-mr"}
    assert writers_of_files(io, f"{root}/d.db/slow") == {"parquet-cpp-arrow"}
    fast, slow = (spark.table(f"{lake}.d.{name}").orderBy("a", "d").collect() for name in ("fast", "slow"))
    assert fast == slow
    assert len(fast) == 24000
    assert sorted(Table.open(f"{root}/d.db/fast").to_arrow()["a"].to_pylist()) == [row["a"] for row in fast]
    plan = spark.sql(f"EXPLAIN SELECT * FROM {lake}.d.fast WHERE a > 10").collect()[0][0]
    assert "native: " in plan
    assert f"{root}/d.db/fast" in plan


def test_tables_with_options_of_their_own_are_written_by_workers(spark, root, lake):
    """The JVM does not know the options, so its files would have other owners, copies or permissions."""
    spark.sql(f"CREATE TABLE {lake}.d.t (a BIGINT)")
    path = f"{root}/d.db/t"
    spark.range(12000).selectExpr("id a").write.format("paimon").option("dfs.replication", "1").mode("append").save(
        path
    )
    assert writers_of_files(FileIO.of(root), path) == {"parquet-cpp-arrow"}
    assert spark.read.format("paimon").load(path).count() == 12000


def test_changes_of_rows(spark, root, lake):
    spark.sql(f"CREATE TABLE {lake}.d.k (k BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key'='k', 'bucket'='2')")
    spark.sql(f"INSERT INTO {lake}.d.k SELECT id, 'old' FROM range(100)")
    spark.sql(f"UPDATE {lake}.d.k SET v = 'new' WHERE k < 10")
    spark.sql(f"DELETE FROM {lake}.d.k WHERE k >= 50")
    found = {row["k"]: row["v"] for row in spark.table(f"{lake}.d.k").collect()}
    assert found == {k: "new" if k < 10 else "old" for k in range(50)}
    masked = "'deletion-vectors.enabled'='true'"
    spark.sql(f"CREATE TABLE {lake}.d.m (a BIGINT) TBLPROPERTIES ({masked})")
    spark.sql(f"INSERT INTO {lake}.d.m SELECT id FROM range(1000)")
    spark.sql(f"DELETE FROM {lake}.d.m WHERE a % 10 = 0")
    assert spark.sql(f"SELECT count(*), sum(a) FROM {lake}.d.m").collect()[0][:] == (900, 450000)


def test_dropped_table_is_not_created_again_by_the_encoder(spark, root, lake):
    spark.sql(f"CREATE TABLE {lake}.d.t (a BIGINT, d STRING) PARTITIONED BY (d)")
    frame = spark.range(10).selectExpr("id a", "cast(id AS string) d")
    table = Table.open(f"{root}/d.db/t")
    request = write_request({"path": f"{root}/d.db/t"}, frame.columns)
    assert native_results(frame, table, request) is not None
    spark.sql(f"DROP TABLE {lake}.d.t")
    assert native_results(frame, table, request) is None
    assert not FileIO.of(root).exists(f"{root}/d.db/t")
