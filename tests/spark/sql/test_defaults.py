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


@pytest.fixture
def legacy_dates(spark):
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "legacy")
    yield
    spark.conf.unset("spark.sql.legacy.timeParserPolicy")


@pytest.mark.versions
def test_default_dates_do_not_depend_on_the_format_of_dates(sql, legacy_dates):
    dates = ["1582-10-04", "1582-10-10", "1582-10-15", "0001-01-01", "2024-01-31", "9999-12-31"]
    columns = [f"d{n} DATE DEFAULT DATE'{date}'" for n, date in enumerate(dates)]
    columns += [
        "a ARRAY<DATE> DEFAULT array(DATE'1582-10-10', NULL)",
        "m MAP<DATE, DATE> DEFAULT map(DATE'1582-10-05', DATE'1582-10-14')",
        "n DATE DEFAULT CAST(NULL AS DATE)",
    ]
    sql(f"CREATE TABLE t (id INT, {', '.join(columns)})")
    sql("INSERT INTO t (id) VALUES (1)")
    for n, date in enumerate(dates):
        assert sql(f"SELECT d{n} = DATE'{date}' FROM t") == [(True,)], date
    assert sql("SELECT n IS NULL, a[0] = DATE'1582-10-10', a[1] IS NULL FROM t") == [(True, True, True)]
    assert sql("SELECT map_keys(m)[0] = DATE'1582-10-05', map_values(m)[0] = DATE'1582-10-14' FROM t") == [(True, True)]
    for date in ("-0044-03-15", "+12020-12-31"):
        with pytest.raises(Exception, match=f"'[+]?{date.lstrip('+')}' is not a value of DATE"):
            sql(f"CREATE TABLE u (id INT, d DATE DEFAULT DATE'{date}')")
    sql("ALTER TABLE t ALTER COLUMN d0 SET DEFAULT DATE'1582-10-05'")
    sql("INSERT INTO t (id) VALUES (2)")
    assert sql("SELECT d0 = DATE'1582-10-05' FROM t WHERE id = 2") == [(True,)]


@pytest.mark.more
def test_partitions_of_dates_do_not_depend_on_the_format_of_dates(sql, legacy_dates):
    sql("CREATE TABLE t (id INT, d DATE, q INT) PARTITIONED BY (d, q)")
    sql("INSERT INTO t VALUES (1, DATE'1582-10-10', 1), (2, DATE'1582-10-15', 1), (3, DATE'0045-01-03', 2)")
    sql("ALTER TABLE t DROP PARTITION (d = DATE'1582-10-10')")
    sql("ALTER TABLE t DROP IF EXISTS PARTITION (d = DATE'-0044-01-03')")
    assert sorted(sql("SELECT id FROM t")) == [(2,), (3,)]
    sql("ALTER TABLE t DROP IF EXISTS PARTITION (d = DATE'1582-10-10', q = 1)")
    assert sorted(sql("SELECT id FROM t")) == [(2,), (3,)]
    sql("ALTER TABLE t DROP PARTITION (d = DATE'1582-10-15', q = 1)")
    assert sql("SELECT id FROM t") == [(3,)]
