"""Filters for a few values: the driver reads the matching rows, and a query returns the rows of the general path."""

from pathlib import Path

import pyarrow as pa
import pytest

from paimon_spark.internals import java_rows
from paimon_spark.sql.reads import driver_rows
from paimon_spark.sql.session_options import NATIVE_READS
from tests.spark.sql.test_native import TYPES

ROWS = 4_000


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    monkeypatch.setattr(driver_rows, "LEAST_MATCH_BYTES", 1)


def fill(sql, name="t", rows=ROWS, options="", keys=""):
    """Create a partitioned table of unordered unique ids and texts in several row groups."""
    properties = f"'parquet.enable.dictionary' = 'false', 'file.block-size' = '16 kb'{options}{keys}"
    sql(f"CREATE TABLE {name} (id BIGINT, s STRING, f DOUBLE, p INT, st STRUCT<x: INT, y: STRING>) "
        f"PARTITIONED BY (p) TBLPROPERTIES ({properties})")  # fmt: skip
    sql.spark.range(0, rows, 1, 1).selectExpr(
        f"(id * 7919) % {rows} AS id", "concat('text ', id) AS s", "CAST(id AS DOUBLE) / 8 AS f",
        "CAST(id % 2 AS INT) AS p", "named_struct('x', CAST(id AS INT), 'y', 'z') AS st",
    ).writeTo(f"{name}").append()  # fmt: skip


def both(sql, query, matching=None):
    """Return the rows of a query, which are the same on the general path.

    ``matching``: the rows that the driver reads; `None`: the driver does not read them.
    """
    explained = sql(f"EXPLAIN {query}")[0][0]
    assert (f"in the driver: {matching} matching rows" in explained) == (matching is not None), explained
    rows = sql(query)
    sql(f"SET {NATIVE_READS} = false")
    try:
        assert sorted(map(repr, rows)) == sorted(map(repr, sql(query)))
    finally:
        sql(f"RESET {NATIVE_READS}")
    return rows


@pytest.mark.more
@pytest.mark.versions
def test_queries_for_few_values(sql):
    fill(sql)
    assert both(sql, "SELECT * FROM t WHERE id = 7", 1)[0][0] == 7
    assert len(both(sql, "SELECT st.x, s FROM t WHERE id IN (7, 8, 9, -1)", 3)) == 3
    assert both(sql, "SELECT upper(s) FROM t WHERE id = 7 AND p = 1", 1 if 7 % 2 else 0) is not None
    assert both(sql, "SELECT * FROM t WHERE id = 7 AND length(s) < 3", 1) == []  # Spark evaluates the second condition
    assert both(sql, "SELECT * FROM t WHERE s = 'text 12' AND f > 10", 0) == []
    assert both(sql, "SELECT count(*), max(st.y) FROM t WHERE id IN (1, 2)", 2) == [(2, "z")]
    assert len(both(sql, "SELECT s FROM t WHERE f = 1.5D", 1)) == 1
    assert both(sql, "SELECT a.s, b.s FROM t a JOIN t b ON a.id = b.id WHERE a.id = 5", 1)
    assert len(both(sql, "SELECT p, s FROM t WHERE id = 3 OR s = 'text 4'")) == 2  # no column has few values
    both(sql, "SELECT * FROM t WHERE id > 3990")
    both(sql, "SELECT s FROM t WHERE id = 7 LIMIT 1", 1)


@pytest.mark.more
def test_deleted_rows_do_not_match(sql):
    fill(sql, rows=30_000, options=", 'deletion-vectors.enabled' = 'true', 'bucket' = '1', 'bucket-key' = 'id'")
    sql("DELETE FROM t WHERE id % 10 = 7")
    assert both(sql, "SELECT * FROM t WHERE id = 7", 0) == []
    assert len(both(sql, "SELECT p, s FROM t WHERE id IN (7, 8, 9)", 2)) == 2
    assert both(sql, "SELECT count(*) FROM t WHERE s IN ('text 12', 'text 3')", 1) == [(1,)]


def test_plan_of_few_rows_has_no_scan(sql):
    fill(sql)
    plan = java_rows(sql.spark.table("t").where("id = 7").select("s")).queryExecution().executedPlan().toString()
    assert plan.startswith("LocalTableScan"), plan
    assert "Filter" not in plan


@pytest.mark.more
def test_values_of_every_type(sql):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    sql(f"CREATE TABLE t (id BIGINT, {columns}) TBLPROPERTIES ('parquet.enable.dictionary' = 'false')")
    sql(f"INSERT INTO t VALUES (1, {', '.join(value for _, value in TYPES.values())}), (2{', NULL' * len(TYPES)})")
    both(sql, "SELECT * FROM t WHERE id = 1", 1)
    both(sql, "SELECT * FROM t WHERE id = 2", 1)
    for condition in ("f8 = 0.0D", "ch = 'ab'", "ts = TIMESTAMP'1500-01-02 03:04:05.678901'", "d2 IS NULL", "i1 = -7Y"):
        for zone in ("UTC", "Asia/Kolkata"):
            sql(f"SET TIME ZONE '{zone}'")
            try:
                counted = sql(f"EXPLAIN SELECT id, ts, ntz FROM t WHERE {condition}")[0][0].count("matching rows")
                both(sql, f"SELECT id, ts, ntz FROM t WHERE {condition}", 1 if counted else None)
            finally:
                sql("RESET spark.sql.session.timeZone")


@pytest.mark.more
def test_join_on_partitions(sql):
    fill(sql)
    sql("CREATE TABLE d (p INT, name STRING)")
    sql("INSERT INTO d VALUES (1, 'odd'), (5, 'none')")
    query = "SELECT t.id, d.name FROM t JOIN d ON t.p = d.p WHERE d.name = 'odd' AND t.id IN (1, 2, 3, 4)"
    explained = sql(f"EXPLAIN {query}")[0][0]
    assert "4 matching rows" in explained, explained
    rows = sql(query)
    sql(f"SET {NATIVE_READS} = false")
    try:
        assert sorted(rows) == sorted(sql(query))
    finally:
        sql(f"RESET {NATIVE_READS}")


def test_each_query_sees_newest_snapshot(sql):
    fill(sql)
    assert len(both(sql, "SELECT s FROM t WHERE id = 7", 1)) == 1
    sql("INSERT INTO t VALUES (7, 'second', 1.0, 0, NULL)")
    assert len(both(sql, "SELECT s FROM t WHERE id = 7", 2)) == 2
    assert len(sql("SELECT s FROM t VERSION AS OF 1 WHERE id = 7")) == 1
    sql("ALTER TABLE t ADD COLUMN added INT")
    assert both(sql, "SELECT added FROM t WHERE id = 7 AND added IS NULL", 2) == [(None,), (None,)]
    sql("DROP TABLE t")
    fill(sql, rows=100)
    assert len(both(sql, "SELECT s FROM t WHERE id = 7", 1)) == 1


@pytest.mark.more
def test_values_that_repeat_are_for_spark(sql, monkeypatch):
    fill(sql)
    monkeypatch.setattr(driver_rows, "_MATCHES", driver_rows.MatchLimits(2, 16, 1 << 20, 1 << 20))
    both(sql, "SELECT s FROM t WHERE id IN (1, 2, 3)")
    both(sql, "SELECT s FROM t WHERE id IN (1, 2)", 2)
    monkeypatch.setattr(driver_rows, "_MATCHES", driver_rows.MatchLimits(2, 1, 1 << 20, 1 << 20))
    both(sql, "SELECT s FROM t WHERE id IN (1, 2)")  # two partitions have two files


def test_missing_file_is_an_error_of_spark(sql):
    fill(sql, rows=50)
    for (path,) in sql("SELECT file_path FROM `t$files`"):
        pa.fs.LocalFileSystem().delete_file(path)
    with pytest.raises(Exception, match=r"does not exist|missing"):
        sql("SELECT s FROM t WHERE id = 7")


@pytest.mark.cases(1)
@pytest.mark.parametrize("options", ["'bucket' = '-1'", "'bucket' = '1', 'bucket-key' = 'id'"])
def test_rows_of_many_small_files(sql, monkeypatch, options):
    monkeypatch.setattr(driver_rows, "MOST_FILES", 2)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    sql(f"CREATE TABLE t (id BIGINT, p STRING, {columns}) PARTITIONED BY (p) TBLPROPERTIES ({options})")
    insert = f"INSERT INTO t VALUES ({{}}, 'é', {', '.join(value for _, value in TYPES.values())}{{}})"
    sql(insert.format(1, ""))
    sql(f"INSERT INTO t VALUES (2, NULL{', NULL' * len(TYPES)})")
    sql("ALTER TABLE t ADD COLUMN added INT")
    sql(insert.format(3, ", 5"))
    queries = ["SELECT * FROM t", "SELECT added, count(*) FROM t GROUP BY added", "SELECT id FROM t WHERE f8 = 0.0D"]
    queries += ["SELECT a.id FROM t a JOIN t b ON a.p = b.p AND a.id <= b.id", "SELECT id FROM t VERSION AS OF 2"]
    assert "in the driver: 3 rows of 3 files" in sql(f"EXPLAIN {queries[0]}")[0][0]
    found = [sorted(map(repr, sql(query))) for query in queries]
    monkeypatch.setattr(driver_rows, "MOST_FILES", 3)
    assert "native: 3 of 3" in sql(f"EXPLAIN {queries[0]}")[0][0]
    assert [sorted(map(repr, sql(query))) for query in queries] == found
    sql(f"SET {NATIVE_READS} = false")
    try:
        assert [sorted(map(repr, sql(query))) for query in queries] == found
    finally:
        sql(f"RESET {NATIVE_READS}")


def test_damaged_small_file_is_named(sql, monkeypatch):
    monkeypatch.setattr(driver_rows, "MOST_FILES", 1)
    sql("CREATE TABLE t (id BIGINT)")
    for i in range(3):
        sql(f"INSERT INTO t VALUES ({i})")
    assert "3 rows of 3 files" in sql("EXPLAIN SELECT * FROM t")[0][0]
    damaged = Path(sql("SELECT file_path FROM `t$files`")[0][0])
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(Exception, match=damaged.name):
        sql("SELECT * FROM t")
