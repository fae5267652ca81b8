"""SELECT on tables of a catalog: metadata columns, and the filters that reach the engine."""

import datetime as dt
from decimal import Decimal

import pytest

from paimon_core import Table
from paimon_spark.sql.reads.scan import ScanHandler

COLUMNS = "id BIGINT, p STRING, `a.b` INT, d DATE, ts TIMESTAMP_NTZ, lt TIMESTAMP, dec DECIMAL(10, 2), b BINARY"
VALUES = """
(1, 'a', 10, DATE'2020-01-01', TIMESTAMP_NTZ'2020-01-01 10:00:00', TIMESTAMP'2020-01-01 10:00:00', 1.5, X'61ff'),
(2, 'b', 20, DATE'2021-01-01', TIMESTAMP_NTZ'2021-01-01 10:00:00', TIMESTAMP'2021-01-01 10:00:00', 2.5, X'7f'),
(3, NULL, NULL, NULL, NULL, NULL, NULL, X'')
"""


@pytest.fixture
def table(sql):
    """A partitioned table ``t`` of three rows."""
    sql(f"CREATE TABLE t ({COLUMNS}) PARTITIONED BY (p)")
    sql(f"INSERT INTO t VALUES {VALUES}")
    return sql


def plan(sql, statement):
    return str(sql.spark.sql(statement)._jdf.queryExecution().optimizedPlan())


@pytest.mark.versions
def test_metadata_columns_are_selected_by_name_only(table):
    rows = table(
        "SELECT id, __paimon_file_path, __paimon_partition.p, __paimon_bucket, __paimon_row_index FROM t "
        "WHERE __paimon_row_index = 0 AND id < 3 ORDER BY id"
    )
    assert [(row[0], *row[2:]) for row in rows] == [(1, "a", 0, 0), (2, "b", 0, 0)]
    assert all(f"/t/p={row[2]}/bucket-0/data-" in row[1] for row in rows)
    assert table("SELECT __paimon_bucket FROM t") == [(0,)] * 3
    assert len(table("SELECT * FROM t")[0]) == 8


FILTERS = {
    "p IS NULL": [3],
    "p IN ('a', 'b')": [1, 2],
    "p NOT IN ('a')": [2],
    "p LIKE 'a%'": [1],
    "p <=> NULL": [3],
    "p >= 'b' AND id > 0": [2],
    "NOT (p = 'a' OR id = 2)": [],
    "`a.b` = 20": [2],
    "d = DATE'2020-01-01'": [1],
    "d > '2020-06-01'": [2],
    "d IN (DATE'2020-01-01', DATE'2021-01-01')": [1, 2],
    "CAST(ts AS DATE) = '2021-01-01'": [2],
    "CAST(ts AS DATE) < '2021-01-01'": [1],
    "ts >= TIMESTAMP_NTZ'2021-01-01 10:00:00'": [2],
    "lt = TIMESTAMP'2020-01-01 10:00:00'": [1],
    "dec > 1.5": [2],
    "dec = 2.5 OR `a.b` = 10": [1, 2],
    "id = 2.0": [2],
    "CAST(id AS STRING) = '2'": [2],
    "b = X'61FF'": [1],
    "b > X'6200' OR b = X''": [2, 3],
    "b <= X'61FF'": [1, 3],
    "b NOT IN (X'7F', X'00')": [1, 3],
    "startswith(b, X'61')": [1],
}


def test_filters_return_rows_that_match(table):
    parts = (f"SELECT {n} AS n, id FROM t WHERE {condition}" for n, condition in enumerate(FILTERS))
    rows = table(" UNION ALL ".join(parts))
    for n, (condition, ids) in enumerate(FILTERS.items()):
        assert sorted(id_ for number, id_ in rows if number == n) == ids, condition


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["BINARY", "STRING", "DECIMAL(38, 10)"])
def test_key_of_any_type_chooses_its_bucket(sql, kind):
    options = "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '16')"
    sql(f"CREATE TABLE k (k {kind} NOT NULL, n INT) {options}")
    sql(f"INSERT INTO k SELECT CAST(CAST(id AS STRING) AS {kind}), id FROM range(100)")
    one = f"SELECT n FROM k WHERE k = CAST('42' AS {kind})"
    assert sql(one) == [(42,)]
    explained = "\n".join(row[0] for row in sql(f"EXPLAIN {one}"))
    assert "1 of 16" in explained, explained


@pytest.mark.versions
def test_spark_leaves_conditions_on_partitions_to_table(table):
    assert "Filter" not in plan(table, "SELECT id FROM t WHERE p = 'a' OR p IS NULL")
    assert "Filter" in plan(table, "SELECT id FROM t WHERE p = 'a' AND id > 0")
    assert table("SELECT id FROM t WHERE p = 'a' OR p IS NULL ORDER BY id") == [(1,), (3,)]


@pytest.mark.versions
def test_fields_of_structs_are_read_alone(sql):
    sql(
        "CREATE TABLE t (id BIGINT, s STRUCT<x: INT, y: STRUCT<z: STRING, w: INT>>, a ARRAY<STRUCT<u: INT, v: STRING>>)"
    )
    sql(
        "INSERT INTO t VALUES (1, (1, ('q', 5)), array((1, 'v1'), (2, 'v2'))), (2, (3, NULL), NULL), (3, NULL, array())"
    )
    assert sql("SELECT id, s.y.z, s.x FROM t ORDER BY id") == [(1, "q", 1), (2, None, 3), (3, None, None)]
    assert sql("SELECT id FROM t WHERE s.y.w = 5") == [(1,)]
    assert sql("SELECT a.v FROM t ORDER BY id") == [(["v1", "v2"],), (None,), ([],)]
    sql("CREATE TABLE k (id BIGINT, s STRUCT<x: INT, y: INT>) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO k VALUES (1, (1, 2))")
    sql("INSERT INTO k VALUES (1, (3, 4))")
    assert sql("SELECT s.y FROM k") == [(4,)]


@pytest.mark.versions
def test_aggregates_from_metadata(table):
    day = dt.date(2020, 1, 1)
    by_metadata = {
        "SELECT count(*), count(d), min(d), max(id), max(dec), max(p) FROM t": [(3, 2, day, 3, Decimal("2.50"), "b")],
        "SELECT p, count(*) FROM t GROUP BY p ORDER BY p": [(None, 1), ("a", 1), ("b", 1)],
        "SELECT count(*), max(id) FROM t WHERE p IN ('a', 'b')": [(2, 2)],
        "SELECT count(*) + 1 FROM t WHERE p = 'a' LIMIT 1": [(2,)],
    }
    by_rows = {
        "SELECT max(lt) FROM t": [(dt.datetime(2021, 1, 1, 10),)],
        "SELECT count(*) FROM t WHERE id > 1": [(2,)],
        "SELECT count(DISTINCT id) FROM t": [(3,)],
        "SELECT sum(id) FROM t": [(6,)],
        "SELECT count(*), max(__paimon_row_index) FROM t": [(3, 0)],
    }
    for statement, rows in {**by_metadata, **by_rows}.items():
        physical = str(table.spark.sql(statement)._jdf.queryExecution().sparkPlan())
        assert ("LocalTableScan" in physical) == (statement in by_metadata), physical
        assert table(statement) == rows


@pytest.mark.versions
def test_counts_follow_merges_and_moments(sql):
    sql("CREATE TABLE k (id BIGINT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO k VALUES (1, 1), (2, 2)")
    sql("INSERT INTO k VALUES (2, 3), (3, 4)")
    assert sql("SELECT count(*), max(v) FROM k") == [(3, 4)]
    assert sql("SELECT count(*), max(v) FROM k VERSION AS OF 1") == [(2, 2)]


@pytest.mark.versions
def test_order_with_limit_skips_files_by_statistics(sql):
    """Statistics leave out files; Spark sorts the rows of the others."""
    sql("CREATE TABLE t (id BIGINT, s STRING, p INT) PARTITIONED BY (p)")
    for p in range(3):
        sql(f"INSERT INTO t VALUES ({10 * p}, 'a{p}', {p}), ({10 * p + 5}, NULL, {p}), (NULL, 'c{p}', {p})")
    assert sql("SELECT id FROM t ORDER BY id DESC, s LIMIT 2") == [(25,), (20,)]
    for order, expected, files, condition in (
        ("id DESC LIMIT 2", [25, 20], 1, "id >= 20"),
        ("id NULLS LAST LIMIT 2", [0, 5], 1, "id <= 5"),
        ("id LIMIT 4", [None, None, None, 0], 3, "id IS NULL OR id <= 15"),
        ("p DESC, id DESC LIMIT 3", [25, 20, None], 1, "p >= 2"),
        ("s DESC NULLS LAST LIMIT 1", [None], 3, "s >= 'a2'"),
    ):
        statement = f"SELECT id FROM t ORDER BY {order}"
        assert [row[0] for row in sql(statement)] == expected, order
        assert f"filter: {condition}, native: {files} of " in sql(f"EXPLAIN {statement}")[0][0], order
    assert [row[0] for row in sql("SELECT id FROM t WHERE p < 2 ORDER BY id DESC LIMIT 1")] == [15]
    assert "AND id >= 10, native: 1 of " in sql("EXPLAIN SELECT id FROM t WHERE p < 2 ORDER BY id DESC LIMIT 1")[0][0]
    plan = sql("EXPLAIN SELECT id FROM t WHERE s LIKE 'a%' ORDER BY id DESC LIMIT 1")[0][0]
    assert "id >=" not in plan.split("paimon ")[-1]  # rows that do not match are not among those counted


@pytest.mark.versions
def test_join_leaves_out_partitions_while_it_runs(sql, monkeypatch):
    sql("CREATE TABLE f (id BIGINT, p INT) PARTITIONED BY (p)")
    sql("INSERT INTO f SELECT id, id % 4 FROM range(100)")
    sql("CREATE TABLE d (p INT, name STRING)")
    sql("INSERT INTO d VALUES (1, 'one'), (2, 'two')")
    calls = []
    source = ScanHandler.source

    def recorded(function, trees):
        calls.append((function.shown.rpartition("/")[2], trees))
        return source(function, trees)

    monkeypatch.setattr(ScanHandler, "source", recorded)
    joined = "SELECT count(*), min(f.id) FROM f JOIN d ON f.p = d.p WHERE d.name = 'two'"
    assert sql(joined) == [(25, 2)]
    assert any(table == "f" and '"IN"' in trees for table, trees in calls)
    groups = "(SELECT id, count(*) FROM f GROUP BY id)"
    twice = sql.spark.sql(f"SELECT count(*) FROM {groups} a JOIN {groups} b USING (id)")
    assert twice.collect() == [(100,)]
    assert "ReusedExchange" in str(twice._jdf.queryExecution().executedPlan())


@pytest.mark.versions
def test_statistics_of_scans(table):
    def size(statement):
        return int(str(table.spark.sql(statement)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert 0 < size("SELECT id FROM t WHERE p = 'a'") < size("SELECT * FROM t") / 3 < 100_000
    assert "BroadcastHashJoin" in str(
        table.spark.sql("SELECT * FROM t a JOIN t b ON a.id = b.id")._jdf.queryExecution().sparkPlan()
    )


def test_options_of_read_do_not_appear_in_plans(table):
    frame = table.spark.read.option("read.batch-size", "31").table("t")
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "read.batch-size" in text
    assert "31" not in text.partition("options")[2].partition("(")[0]
    assert frame.count() == 3


@pytest.mark.versions
def test_branches_and_moments_are_tables_of_their_own(sql):
    sql("CREATE TABLE t (id INT, p INT) PARTITIONED BY (p)")
    sql("INSERT INTO t VALUES (1, 0)")
    path = next(row[1] for row in sql("DESCRIBE EXTENDED t") if row[0] == "Location")
    table = Table.open(path)
    table.tags.create("v1", 1)
    table.branches.create("dev", tag="v1")
    sql("INSERT INTO t VALUES (2, 0)")
    sql("INSERT INTO `t$branch_dev` VALUES (3, 0), (4, 1)")
    groups = "(SELECT p, count(id) AS n FROM {} GROUP BY p)"
    branch, main = groups.format("`t$branch_dev`"), groups.format("t")
    assert sql(f"SELECT b.p, b.n, m.n FROM {branch} b LEFT JOIN {main} m USING (p) ORDER BY 1") == [
        (0, 2, 2),
        (1, 1, None),
    ]
    assert sql("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    assert sql("SELECT count(*), max(id) FROM `t$branch_dev`") == [(3, 4)]
    at = "SELECT id FROM t VERSION AS OF {}"
    assert sql(f"{at.format(2)} EXCEPT {at.format(repr('v1'))}") == [(2,)]
    assert sql("SELECT count(*) FROM t VERSION AS OF 'v1'") == [(1,)]
    assert sql("SELECT count(*) FROM t TIMESTAMP AS OF '2100-01-01 00:00:00'") == [(2,)]
    for version in ("VERSION AS OF 99", "VERSION AS OF 'nope'", "TIMESTAMP AS OF '2001-01-01'"):
        with pytest.raises(Exception, match=r"does not exist|no snapshot earlier"):
            sql(f"SELECT * FROM t {version}")


@pytest.mark.more
def test_options_of_session_choose_moment_of_read(sql):
    sql("CREATE TABLE t (id INT)")
    sql("INSERT INTO t VALUES (1)")
    sql("INSERT INTO t VALUES (2)")
    setting = f"spark.paimon.pm.{sql.database}.t.scan.snapshot-id"
    sql.spark.conf.set(setting, "1")
    try:
        assert sql("SELECT * FROM t") == [(1,)]
        assert sql("SELECT count(*) FROM t") == [(1,)]
        assert sql("SELECT count(*) FROM t VERSION AS OF 2") == [(2,)]
    finally:
        sql.spark.conf.unset(setting)
    assert sql("SELECT count(*) FROM t") == [(2,)]
