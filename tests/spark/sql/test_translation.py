"""Conditions that Spark fails to translate for a scan: NULLs and casts to BOOLEAN inside of AND, OR and NOT."""

import pytest

from paimon_spark import PaimonTable

AGGREGATES = [
    "SELECT count_if(tiny > 1000) FROM {t}",
    "SELECT count_if(NOT (tiny > 1000)), count(*) FROM {t}",
    "SELECT max(tiny > 1000 OR id = 1), min(id) FROM {t}",
    "SELECT count_if(CAST(text AS BOOLEAN) AND id > 0) FROM {t}",
    "SELECT count_if(CAST(text AS BOOLEAN)) FROM {t}",
    "SELECT NOT CAST(text AS BOOLEAN) AS g, max(id) FROM {t} GROUP BY g",
    "SELECT count(*) FILTER (WHERE tiny > 1000 AND b) FROM {t}",
    "SELECT count(DISTINCT NOT (tiny > 1000)) FROM {t}",
    "SELECT sum(CASE WHEN NOT CAST(text AS BOOLEAN) THEN 1 ELSE 0 END) FROM {t}",
    "SELECT max(b), bool_or(NOT b), CAST(NULL AS BOOLEAN) FROM {t}",
    "SELECT id FROM {t} WHERE id IN (SELECT max(id) FROM {t} HAVING count_if(tiny > 1000) = 0)",
]
ORDERS = [
    "SELECT id FROM {t} ORDER BY NOT CAST(text AS BOOLEAN), id LIMIT 2",
    "SELECT id FROM {t} ORDER BY (tiny > 1000) IS NULL, id LIMIT 2",
    "SELECT id FROM {t} ORDER BY CASE WHEN NOT CAST(text AS BOOLEAN) THEN 1 ELSE 2 END, id LIMIT 2",
]
FILTERS = [
    "SELECT id FROM {t} WHERE CAST(text AS BOOLEAN) OR id = 3",
    "SELECT id FROM {t} WHERE NOT CAST(text AS BOOLEAN)",
    "SELECT id FROM {t} WHERE (tiny > 1000) IS NULL",
    "SELECT id FROM {t} WHERE (tiny > 1000 AND b) IS NULL",
    "SELECT id FROM {t} WHERE coalesce(tiny > 1000, true)",
    "SELECT id FROM {t} WHERE CASE WHEN tiny > 1000 THEN b ELSE NOT b END",
    "SELECT id FROM {t} WHERE (b AND CAST(text AS BOOLEAN)) <=> NULL",
]
ROWS = "(1, 1, 'true', true), (2, NULL, 'false', NULL), (3, 100, NULL, false), (4, -5, 'true', true)"


@pytest.fixture
def tables(sql):
    sql("CREATE TABLE t (id INT, tiny TINYINT, text STRING, b BOOLEAN)")
    sql(f"INSERT INTO t VALUES {ROWS}")
    sql(f"CREATE OR REPLACE TEMPORARY VIEW expected AS SELECT id, CAST(tiny AS TINYINT) AS tiny, text, b "
        f"FROM VALUES {ROWS} AS v (id, tiny, text, b)")  # fmt: skip


@pytest.mark.versions
@pytest.mark.more
def test_queries_with_conditions_that_spark_cannot_translate(sql, tables):
    for query in [*AGGREGATES, *ORDERS, *FILTERS]:
        rows, expected = (sorted(map(repr, sql(query.format(t=name)))) for name in ("t", "expected"))
        assert rows == expected, query


def test_other_aggregates_still_come_from_metadata(sql, tables):
    plan = sql("EXPLAIN SELECT count(*), max(id) FROM t")[0][0]
    assert "LocalTableScan" in plan
    assert "BatchScan" not in plan


def test_statements_with_conditions_that_spark_cannot_translate(sql, tables):
    assert sql("DELETE FROM t WHERE (tiny > 1000 AND b) IS NULL") == [(1,)]
    assert sql("UPDATE t SET id = 9 WHERE CAST(text AS BOOLEAN) OR id = 77") == [(2,)]
    assert sorted(sql("SELECT id FROM t")) == [(3,), (9,), (9,)]


def test_table_by_path_in_session_without_catalog(sql, tables):
    path = sql.spark.sql("DESCRIBE EXTENDED t").where("col_name = 'Location'").first()["data_type"]
    frame = PaimonTable.forPath(sql.spark.newSession(), path.removeprefix("file:")).toDF()
    assert frame.selectExpr("count_if(tiny > 1000)").first() == (0,)


@pytest.mark.versions
def test_null_of_binary_in_conditions(sql):
    sql("CREATE TABLE t (id INT, b BINARY, s STRUCT<b: BINARY>)")
    sql("INSERT INTO t VALUES (1, X'01', named_struct('b', X'01')), (2, NULL, NULL), (3, X'', named_struct('b', NULL))")
    found = {"b IN (X'01', NULL) OR id = 2": 2, "b NOT IN (X'01', NULL) OR id = 3": 1, "s.b IN (X'01', NULL)": 1}
    for condition, rows in found.items():
        assert len(sql(f"SELECT id FROM t WHERE {condition}")) == rows, condition
        assert sql(f"SELECT count(*), max(b IN (X'01', NULL)) FROM t WHERE {condition}")[0][0] == rows
    assert sql("SELECT id FROM t ORDER BY b IN (X'01', NULL), id LIMIT 1") == [(2,)]
    assert sql("UPDATE t SET id = 5 WHERE b IN (X'01', NULL) OR id = 2") == [(2,)]
    assert sql("DELETE FROM t WHERE b IN (X'01', NULL)") == [(1,)]
