"""Reads of small local files by Spark's own scan, and their rewrites by the driver."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from paimon_spark.distribute import SparkRunner
from paimon_spark.row_level import write as row_level_write
from paimon_spark.sql.reads import driver_rows

FILES = 40


@contextmanager
def settings(sql, **values):
    """Change settings of the session for a while."""
    for name, value in values.items():
        sql(f"SET spark.sql.files.{name} = {value}")
    try:
        yield
    finally:
        for name in values:
            sql(f"RESET spark.sql.files.{name}")


@pytest.fixture
def many(sql, monkeypatch):
    """A table with small files, one for each task of Spark's own choice. The driver reads no rows."""
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    sql("CREATE TABLE t (id BIGINT, day DATE, s STRUCT<x: BIGINT>, p BIGINT) PARTITIONED BY (p)")
    sql(f"INSERT INTO t SELECT id, DATE'2000-01-01', named_struct('x', id), id % {FILES} FROM range(400)")
    with settings(sql, maxPartitionBytes="4MB"):
        yield sql


def tasks(sql, query):
    return sql.spark.sql(query).rdd.getNumPartitions()


def test_tasks_of_local_files_have_several_small_files(many):
    cores = many.spark.sparkContext.defaultParallelism
    assert 4 * cores <= tasks(many, "SELECT id FROM t") < FILES / 2
    assert many("SELECT count(id), sum(id), count(DISTINCT day) FROM t") == [(400, 79800, 1)]
    assert sorted(many("SELECT id FROM t WHERE id > 390")) == [(n,) for n in range(391, 400)]
    with settings(many, maxPartitionBytes="1MB"):
        assert tasks(many, "SELECT id FROM t") > FILES / 4  # a file counts as 256 KB


def test_settings_and_nested_columns_keep_tasks_of_spark(many):
    assert tasks(many, "SELECT s FROM t") == FILES
    with settings(many, openCostInBytes="4MB"):
        assert tasks(many, "SELECT id FROM t") == FILES
    with settings(many, minPartitionNum=FILES):
        assert tasks(many, "SELECT id FROM t") == FILES


def test_changes_read_local_files_without_checksums(sql):
    sql("CREATE TABLE changed (k BIGINT, v STRING) TBLPROPERTIES ('deletion-vectors.enabled' = 'true')")
    sql("INSERT INTO changed SELECT id, 'a' FROM range(200)")
    for (path,) in sql("SELECT file_path FROM `changed$files`"):
        file = Path(path)
        file.with_name(f".{file.name}.crc").write_bytes(b"crc\0\0\0\2\0of another file")
    sql("DELETE FROM changed WHERE k % 100 = 7")
    assert sql("SELECT count(*) FROM changed") == [(198,)]


def test_driver_rewrites_small_files(sql, monkeypatch):
    jobs, results = [], SparkRunner.results
    monkeypatch.setattr(SparkRunner, "results", lambda *arguments: jobs.append(1) or results(*arguments))
    sql("CREATE TABLE t (k BIGINT)")
    sql("INSERT INTO t SELECT id FROM range(10)")
    assert sql("DELETE FROM t WHERE k = 3") == [(1,)]
    assert not jobs
    monkeypatch.setattr(row_level_write, "DRIVER_BYTES", 1)
    assert sql("DELETE FROM t WHERE k = 4") == [(1,)]
    assert jobs
    assert sql("SELECT sum(k) FROM t") == [(45 - 3 - 4,)]
