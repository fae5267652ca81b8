"""SELECT on tables of a catalog: metadata columns, and the filters that reach the engine."""

import pytest

COLUMNS = "id BIGINT, p STRING, `a.b` INT, d DATE, ts TIMESTAMP_NTZ, lt TIMESTAMP, dec DECIMAL(10, 2)"
VALUES = """
(1, 'a', 10, DATE'2020-01-01', TIMESTAMP_NTZ'2020-01-01 10:00:00', TIMESTAMP'2020-01-01 10:00:00', 1.5),
(2, 'b', 20, DATE'2021-01-01', TIMESTAMP_NTZ'2021-01-01 10:00:00', TIMESTAMP'2021-01-01 10:00:00', 2.5),
(3, NULL, NULL, NULL, NULL, NULL, NULL)
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
    found = table(
        "SELECT id, __paimon_file_path, __paimon_partition.p, __paimon_bucket, __paimon_row_index FROM t "
        "WHERE __paimon_row_index = 0 AND id < 3 ORDER BY id"
    )
    assert [(row[0], *row[2:]) for row in found] == [(1, "a", 0, 0), (2, "b", 0, 0)]
    assert all(f"/t/p={row[2]}/bucket-0/data-" in row[1] for row in found)
    assert table("SELECT __paimon_bucket FROM t") == [(0,)] * 3
    assert len(table("SELECT * FROM t")[0]) == 7


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
}


def test_filters_return_the_rows_that_match(table):
    parts = (f"SELECT {n} AS n, id FROM t WHERE {condition}" for n, condition in enumerate(FILTERS))
    found = table(" UNION ALL ".join(parts))
    for n, (condition, ids) in enumerate(FILTERS.items()):
        assert sorted(id_ for number, id_ in found if number == n) == ids, condition


@pytest.mark.versions
def test_spark_leaves_conditions_on_partitions_to_the_table(table):
    assert "Filter" not in plan(table, "SELECT id FROM t WHERE p = 'a' OR p IS NULL")
    assert "Filter" in plan(table, "SELECT id FROM t WHERE p = 'a' AND id > 0")
    assert table("SELECT id FROM t WHERE p = 'a' OR p IS NULL ORDER BY id") == [(1,), (3,)]
