"""Defaults of columns in statements that change rows: only new rows get them."""

import pytest

from paimon_spark.sql.writes import few_rows

KINDS = {
    "append": "",
    "marked": "'deletion-vectors.enabled' = 'true'",
    "tracked": "'row-tracking.enabled' = 'true'",
    "evolved": "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'",
    "keyed": "'primary-key' = 'id', 'bucket' = '2'",
    "partial-update": "'primary-key' = 'id', 'merge-engine' = 'partial-update'",
    "dynamic": "'primary-key' = 'id', 'bucket' = '-1'",
}


@pytest.fixture(params=["driver", "tasks"])
def way(request, monkeypatch):
    """Few changed rows are written by the driver, others by tasks."""
    if request.param == "tasks":
        monkeypatch.setattr(few_rows, "MOST_CHANGES", -1)


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", KINDS)
def test_stored_nulls_and_values_stay(sql, way, kind):
    options = f" TBLPROPERTIES ({KINDS[kind]})" if KINDS[kind] else ""
    not_null = " NOT NULL" * ("primary-key" in options)
    sql(f"CREATE TABLE t (id INT{not_null}, c STRING, d INT){options}")
    sql("INSERT INTO t VALUES (1, NULL, 1), (2, NULL, 2), (3, 'x', 3)")
    sql("ALTER TABLE t ALTER COLUMN c SET DEFAULT 'new'")
    sql("UPDATE t SET d = 10 WHERE id IN (1, 3)")
    assert rows(sql) == [(1, None, 10), (2, None, 2), (3, "x", 10)]
    sql(
        "MERGE INTO t USING (SELECT * FROM VALUES (2, 20), (4, 40) AS v(id, d)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET d = s.d WHEN NOT MATCHED THEN INSERT (id, d) VALUES (s.id, s.d)"
    )
    assert rows(sql) == [(1, None, 10), (2, None, 20), (3, "x", 10), (4, "new", 40)]
    sql("UPDATE t SET c = DEFAULT WHERE id = 1")
    assert rows(sql)[0] == (1, "new", 10)


def rows(sql):
    return sorted(sql("SELECT * FROM t"))
