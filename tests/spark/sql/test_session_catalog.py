"""Paimon tables in Spark's own catalog, next to the tables that Spark stores there."""

import pytest
from pyspark.sql import SparkSession

import paimon_spark
from paimon_spark.sql.bridge.catalogs import _installed
from tests.spark.conftest import MODE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.versions,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]
DATABASE = "session_catalog"
EXISTS = "TABLE_OR_VIEW_ALREADY_EXISTS|already exists"


@pytest.fixture
def run(spark, tmp_path):
    """Run a statement in a session whose current database is in spark_catalog; return its rows."""
    setting = "spark.sql.catalog.spark_catalog"
    session = spark.newSession()
    session.sql(f"CREATE DATABASE {DATABASE} LOCATION '{tmp_path / 'spark'}'")
    paimon_spark.catalog(session, "spark_catalog", warehouse=str(tmp_path / "paimon"))
    session.sql(f"USE spark_catalog.{DATABASE}")

    def rows(text):
        return [tuple(row) for row in session.sql(text).collect()]

    rows.session = session
    try:
        yield rows
    finally:
        session.sql(f"DROP DATABASE {DATABASE} CASCADE")
        for one in (session, spark):
            one.conf.unset(setting)
        spark.sparkContext._jsc.sc().conf().remove(setting)  # later sessions inherit it
        spark._jvm.paimon.python.Bridge.HANDLERS.remove("spark_catalog")
        _installed.pop("spark_catalog", None)


def test_both_kinds_of_tables_have_names_in_one_catalog(run):
    run("CREATE TABLE p USING parquet AS SELECT 7 AS a")
    run("CREATE TABLE t (id INT NOT NULL, v STRING) USING paimon TBLPROPERTIES ('primary-key' = 'id')")
    run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    merged = "MERGE INTO t USING p ON t.id = p.a WHEN NOT MATCHED THEN INSERT (id, v) VALUES (p.a, 'm')"
    assert run(merged)[0][0] == 1
    run("UPDATE t SET v = 'u' WHERE id = 1")
    run("DELETE FROM t WHERE id = 2")
    assert run("SELECT t.*, p.a FROM t LEFT JOIN p ON t.id = p.a ORDER BY id") == [(1, "u", None), (7, "m", 7)]
    assert run("SELECT count(*) FROM t VERSION AS OF 1") == [(2,)]
    assert run("SELECT count(*) FROM `t$snapshots`") == [(4,)]
    assert sorted(row[1] for row in run("SHOW TABLES")) == ["p", "t"]
    run("ALTER TABLE t ADD COLUMN w INT")
    run("ALTER TABLE p ADD COLUMN w INT")
    assert [len(run(f"SELECT * FROM {name}")[0]) for name in "tp"] == [3, 2]
    assert run("CALL sys.compact(table => 't')")[0][0] is True
    for name, provider in (("t", "paimon"), ("p", "parquet")):
        assert f"USING {provider}" in run(f"SHOW CREATE TABLE {name}")[0][0]
        run(f"ANALYZE TABLE {name} COMPUTE STATISTICS")
    run.session.range(3).write.format("paimon").saveAsTable("s")
    run.session.range(3).write.saveAsTable("q")
    assert run("SELECT count(*) FROM s JOIN q USING (id)") == [(3,)]
    run("CREATE OR REPLACE TABLE s USING paimon AS SELECT 5 AS five")
    assert run(f"SELECT five FROM spark_catalog.{DATABASE}.s") == [(5,)]
    assert run("SELECT abs(-1)") == [(1,)]


def test_name_belongs_to_one_table(run):
    run("CREATE TABLE t (a INT) USING paimon")
    run("CREATE TABLE p (b INT) USING parquet")
    for statement in (
        "CREATE TABLE t (c INT) USING parquet",
        "CREATE TABLE t USING parquet AS SELECT 1 AS c",
        f"CREATE TABLE spark_catalog.{DATABASE}.t (c INT)",
        "CREATE TABLE p (c INT) USING paimon",
        "ALTER TABLE t RENAME TO p",
        "ALTER TABLE p RENAME TO t",
    ):
        with pytest.raises(Exception, match=EXISTS):
            run(statement)
    run("CREATE TABLE IF NOT EXISTS t (c INT) USING parquet")
    run("CREATE TABLE IF NOT EXISTS p (c INT) USING paimon")
    assert [run.session.table(name).columns for name in "tp"] == [["a"], ["b"]]
    run("ALTER TABLE t RENAME TO u")
    run("ALTER TABLE p RENAME TO t")
    assert [run.session.table(name).columns for name in "ut"] == [["a"], ["b"]]
    run("DROP TABLE u")
    run("DROP TABLE t")
    assert run("SHOW TABLES") == []
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("SELECT * FROM t")
    with pytest.raises(Exception, match="create the table, then insert"):
        run("CREATE OR REPLACE TABLE z USING noop AS SELECT 1 AS a")


@pytest.mark.more
def test_database_with_paimon_tables_is_dropped_with_cascade_only(run):
    run("CREATE DATABASE session_other")
    run("CREATE TABLE session_other.t USING paimon AS SELECT 1 AS a")
    with pytest.raises(Exception, match=r"SCHEMA_NOT_EMPTY|not empty"):
        run("DROP DATABASE session_other")
    assert run("SELECT * FROM session_other.t") == [(1,)]
    run("CREATE TABLE session_other.p USING parquet AS SELECT 1 AS a")
    with pytest.raises(Exception, match=r"SCHEMA_NOT_EMPTY|not empty"):
        run("DROP DATABASE session_other")
    assert len(run("SHOW TABLES IN session_other")) == 2
    run("DROP DATABASE session_other CASCADE")
    assert ("session_other",) not in run("SHOW DATABASES")
    with pytest.raises(Exception, match=r"SCHEMA_NOT_FOUND|cannot be found"):
        run("CREATE TABLE session_other.t (a INT) USING paimon")


@pytest.mark.more
def test_other_catalogs_are_unaffected(run, tmp_path):
    assert isinstance(run.session, SparkSession)
    paimon_spark.catalog(run.session, "other", warehouse=str(tmp_path / "other"))
    run("CREATE TABLE t (a INT) USING paimon")
    run("CREATE TABLE other.default.t (b INT)")
    assert run.session.table("other.default.t").columns == ["b"]
    assert run.session.table("t").columns == ["a"]
