"""Snapshots that expire while Spark's own scan reads them: a SELECT says so, and other statements start again."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException

from paimon_core.errors import NotFoundError, OutOfRangeError
from paimon_core.store.expired import expiry
from paimon_core.table import Table
from paimon_spark.internals import java_rows
from paimon_spark.sql.reads import native_rows
from paimon_spark.sql.reads.scan import ScanHandler
from paimon_spark.sql.session_options import NATIVE_READS

KINDS = {
    "append": "'bucket' = '-1', 'write-only' = 'true'",
    "keyed": "'primary-key' = 'id', 'bucket' = '1', 'write-only' = 'true'",
    "orc": "'bucket' = '-1', 'write-only' = 'true', 'file.format' = 'orc'",
}
LATER = dt.datetime(2100, 1, 1)


def table_of_three_commits(sql, kind="append"):
    """Make a table of three commits; return it as the engine's."""
    sql(f"CREATE TABLE t (id INT, v INT) TBLPROPERTIES ({KINDS[kind]})")
    for start in (0, 10, 20):
        sql(f"INSERT INTO t SELECT CAST(id AS INT), CAST(id AS INT) FROM range({start}, {start + 10})")
    if kind == "keyed":
        sql("CALL sys.compact(table => 't')")
    location = sql("DESCRIBE EXTENDED t")
    return Table.open(next(row[1] for row in location if row[0] == "Location").removeprefix("file:"))


def expire(table):
    """Write all files again, and expire every snapshot before."""
    if table.schema.primary_keys:
        table.write(pa.table({"id": [100], "v": [100]}, pa.schema([("id", pa.int32()), ("v", pa.int32())])))
    table.maintenance.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=LATER)


def planned(sql, query):
    """Return the DataFrame of a query that is planned already."""
    frame = sql.spark.sql(query)
    java_rows(frame).queryExecution().executedPlan()
    return frame


@pytest.mark.versions
@pytest.mark.parametrize("kind", ["append", pytest.param("keyed", marks=pytest.mark.more), "orc"])
def test_select_names_snapshot_that_expired(sql, kind):
    table = table_of_three_commits(sql, kind)
    frames = [planned(sql, query) for query in ("SELECT * FROM t WHERE id > 3", "SELECT count(DISTINCT v) FROM t")]
    number = table.snapshot().id
    expire(table)
    message = f"snapshot {number} of .* expired while it was read: read the table again.*FAILED_READ_FILE"
    for frame in frames:
        with pytest.raises(OutOfRangeError, match=message):
            frame.collect()
    with pytest.raises(OutOfRangeError, match=message):
        list(frames[0].toLocalIterator())
    assert len(sql("SELECT * FROM t WHERE id > 3 AND id < 50")) == 26


def test_select_of_dropped_table(sql):
    table_of_three_commits(sql)
    frame = planned(sql, "SELECT * FROM t")
    sql("DROP TABLE t PURGE")
    with pytest.raises(NotFoundError, match="was dropped while it was read"):
        frame.collect()


@pytest.mark.parametrize("native", [True, pytest.param(False, marks=pytest.mark.more)])
def test_dataframe_of_table_created_again_with_another_type(sql, native):
    sql("CREATE TABLE t (id BIGINT, v BIGINT)")
    sql("INSERT INTO t VALUES (1, 1), (2, 22)")
    rows = sql.spark.table("t")
    frames = {
        "all": rows,
        "filter": rows.where("v > 5").select("id"),
        "other filter": rows.where("id = 1").select("v"),
        "count": rows.groupBy().count(),
        "bounds": rows.selectExpr("min(v)", "max(v)"),
        "first": rows.orderBy("v").limit(1),
        "snapshot": sql.spark.read.option("versionAsOf", "1").table("t"),
        "join": rows.alias("a").join(sql.spark.range(3).alias("b"), "id"),
    }
    sql("DROP TABLE t PURGE")
    sql("CREATE TABLE t (id BIGINT, v STRING)")
    sql("INSERT INTO t VALUES (1, '1'), (2, '22')")
    sql.spark.conf.set(NATIVE_READS, str(native).lower())
    try:
        for name, frame in frames.items():
            with pytest.raises(
                IllegalArgumentException, match=r"was dropped or renamed after it was opened.*open it again"
            ):
                pytest.fail(f"{name}: {frame.collect()}")
        assert sql("SELECT * FROM t WHERE v > 5") == [(2, "22")]
    finally:
        sql.spark.conf.unset(NATIVE_READS)


def test_file_that_is_missing_otherwise_is_error_of_spark(sql):
    table = table_of_three_commits(sql)
    frame = planned(sql, "SELECT * FROM t")
    for path in Path(table.path).rglob("data-*"):
        path.unlink()
    with pytest.raises((Py4JJavaError, PySparkException), match="FAILED_READ_FILE"):
        frame.collect()


STATEMENTS = {
    "DELETE FROM t WHERE id % 2 = 0": lambda id: None if id % 2 == 0 else id,
    "UPDATE t SET v = v + 1000 WHERE id < 15": lambda id: id + 1000 if id < 15 else id,
    "MERGE INTO t USING (SELECT 7 AS k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = -1": lambda id: (
        -1 if id == 7 else id
    ),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda text: text.split()[0])
@pytest.mark.parametrize("kind", ["append", pytest.param("keyed", marks=pytest.mark.more)])
def test_statement_starts_again(sql, monkeypatch, kind, statement):
    table = table_of_three_commits(sql, kind)
    build, snapshots = native_rows.native_frame, []

    def build_and_expire(*arguments):
        frame = build(*arguments)
        snapshots.append(table.snapshot().id)
        if len(snapshots) == 1:
            expire(table)
        return frame

    monkeypatch.setattr(native_rows, "native_frame", build_and_expire)
    sql(statement)
    assert len(snapshots) == 2
    new = STATEMENTS[statement]
    expected = sorted((id, new(id)) for id in range(30) if new(id) is not None)
    assert sorted(row for row in sql("SELECT id, v FROM t") if row[0] < 50) == expected


@pytest.mark.more
def test_statement_starts_again_if_its_source_expires_while_spark_plans(sql, monkeypatch):
    table_of_three_commits(sql)
    sql("CREATE TABLE s (k INT)")
    sql("INSERT INTO s VALUES (7)")
    source, calls = ScanHandler._source, []

    def expires_once(scan, strategy, planned):
        calls.append(scan.shown)
        if len(calls) == 1:
            raise expiry(scan.planned.scan.store, 0, "a manifest is missing")
        return source(scan, strategy, planned)

    monkeypatch.setattr(ScanHandler, "_source", expires_once)
    sql("MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN DELETE")
    assert len(calls) > 1
    assert sql("SELECT count(*), count_if(id = 7) FROM t") == [(29, 0)]
