"""Views of a catalog in SQL, in a JDBC catalog; before Spark 4.3, they can only be queried."""

import json

import pytest

import paimon_spark
from paimon_core import DataField, View, open_catalog
from paimon_core.types.parse import parse_type
from paimon_spark.sql.bridge.jvm import Jvm
from tests.spark.sql.conftest import current_database

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def run(spark, catalog_name, tmp_path_factory):
    """A function that runs a statement with the catalog ``views`` and returns its rows as tuples."""
    path = tmp_path_factory.mktemp("views")
    options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{path}/c.db", "warehouse": str(path / "w")}
    paimon_spark.catalog(spark, "views", options=options)
    for statement in ("CREATE DATABASE views.db", "CREATE DATABASE views.other"):
        spark.sql(statement)
    spark.sql("CREATE TABLE views.db.t (id INT, name STRING)")
    spark.sql("INSERT INTO views.db.t VALUES (1, 'a'), (2, 'b')")

    def run(text):
        return [tuple(row) for row in spark.sql(text).collect()]

    run.catalog = open_catalog(options=options)
    return run


@pytest.fixture
def needs_views(spark, catalog_name):
    """Skip the test before Spark 4.3."""
    if not Jvm(spark).has_views:
        pytest.skip("this Spark has no views in catalogs other than its own")


@pytest.fixture
def used(spark, run):
    """Make ``views.db`` current, and the former catalog and database afterwards."""
    with current_database(spark, "views.db"):
        yield run


def test_view_of_spark(run, needs_views, used):
    run(
        "CREATE VIEW v (k COMMENT 'the key', n) COMMENT 'c' TBLPROPERTIES ('a' = 'b') "
        "AS SELECT id, upper(name) AS u FROM t"
    )
    assert run("SELECT n, k FROM v ORDER BY k") == [("A", 1), ("B", 2)]
    run("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS x")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        run("CREATE VIEW v AS SELECT 1 AS x")
    assert run("DESCRIBE v") == [("k", "int", "the key"), ("n", "string", None)]
    assert run("SHOW VIEWS") == [("db", "v", False)]
    assert ("a", "b") in run("SHOW TBLPROPERTIES v")
    assert not [key for key, _ in run("SHOW TBLPROPERTIES v") if key.startswith("spark.view.")]
    ((text,),) = run("SHOW CREATE TABLE v")
    assert "COMMENT 'the key'" in text
    assert text.rstrip().endswith("AS SELECT id, upper(name) AS u FROM t")
    run("CREATE VIEW other.nested AS SELECT k FROM v WHERE k = 2")
    run("USE spark_catalog.default")
    assert run("SELECT * FROM views.other.nested") == [(2,)]  # t and v are found where the views were created
    stored = run.catalog.view("db.v")
    assert (stored.query, stored.comment) == ("SELECT id, upper(name) AS u FROM t", "c")
    assert stored.query_in("spark") == stored.query
    assert "spark.view.catalog" not in stored.options  # the catalog may have another name elsewhere
    run("CREATE OR REPLACE VIEW views.db.v AS SELECT 5 AS k, 'x' AS n")
    assert run("SELECT * FROM views.db.v") == [(5, "x")]
    run("ALTER VIEW views.db.v AS SELECT 6 AS k, 'y' AS n")
    assert run("SELECT * FROM views.db.v") == [(6, "y")]
    run("ALTER VIEW views.db.v SET TBLPROPERTIES ('c' = 'd')")
    assert run.catalog.view("db.v").options["c"] == "d"
    run("ALTER VIEW views.db.v RENAME TO db.w")
    assert run.catalog.list_views("db") == ["w"]
    run("DROP VIEW views.db.w")
    run("DROP VIEW IF EXISTS views.db.w")
    with pytest.raises(Exception, match="NOT_FOUND"):
        run("SELECT * FROM views.other.nested")
    run("DROP VIEW views.other.nested")


def test_view_is_no_table(run, spark, needs_views):
    run("CREATE VIEW views.db.x AS SELECT id FROM views.db.t")
    spark.createDataFrame([(1,)], "a INT").createOrReplaceTempView("temporary_rows")
    for statement, message in (
        ("INSERT INTO views.db.x VALUES (1)", "x"),
        ("DELETE FROM views.db.x WHERE id = 1", "view"),
        ("DROP TABLE views.db.x", "view"),
        ("DROP VIEW views.db.t", "requires a VIEW"),
        ("CREATE TABLE views.db.x (a INT)", "ALREADY_EXISTS|already exists"),
        ("CREATE VIEW views.db.t AS SELECT 1 AS a", "ALREADY_EXISTS"),
        ("CREATE OR REPLACE VIEW views.db.t AS SELECT 1 AS a", "ALREADY_EXISTS|table"),
        ("SELECT * FROM views.db.x VERSION AS OF 1", "view"),
        ("CREATE VIEW views.db.y AS SELECT * FROM temporary_rows", "INVALID_TEMP_OBJ_REFERENCE"),
        ("CREATE VIEW views.db.y AS SELECT INTERVAL '1' DAY AS d", "Paimon has no type"),
        ("CREATE VIEW views.db.y AS SELECT 'a' COLLATE UNICODE AS d", "compares strings by their bytes"),
        ("CREATE VIEW views.db.y TBLPROPERTIES ('spark.view.catalog' = 'z') AS SELECT 1 AS d", "cannot be set"),
        ("CREATE OR REPLACE VIEW views.db.x AS SELECT * FROM views.db.x", "RECURSIVE_VIEW"),
        ("DROP DATABASE views.db", "SCHEMA_NOT_EMPTY|not empty"),
    ):
        with pytest.raises(Exception, match=message):
            run(statement)
    assert run.catalog.list_views("db") == ["x"]
    assert run("SELECT count(*) FROM views.db.t") == [(2,)]
    run("DROP VIEW views.db.x")


def test_view_of_java(run, needs_views):
    fields = (DataField(0, "k", parse_type("BIGINT"), "from Java"), DataField(1, "n", parse_type("VARCHAR(5)")))
    query = "SELECT id, name FROM t -- the table of its own database"
    run.catalog.create_view("db.java", View(fields, "SELECT of_flink()", {"spark": query}, None, {"a": "b"}))
    assert run("SELECT * FROM views.db.java ORDER BY k") == [(1, "a"), (2, "b")]
    assert run("DESCRIBE views.db.java") == [("k", "bigint", "from Java"), ("n", "string", None)]
    run("ALTER VIEW views.db.java SET TBLPROPERTIES ('a' = 'c')")
    changed = run.catalog.view("db.java")
    assert (changed.query, dict(changed.dialects), dict(changed.options)) == (
        "SELECT of_flink()",
        {"spark": query},
        {"a": "c"},
    )
    run.catalog.create_view("db.wide", View(fields[:1], "SELECT 1 AS a, 2 AS b"))
    with pytest.raises(Exception, match=r"(?i)columns"):
        run("SELECT * FROM views.db.wide")
    for name in ("java", "wide"):
        run(f"DROP VIEW views.db.{name}")


@pytest.mark.more
def test_schema_of_table_changes(run, needs_views):
    run("CREATE TABLE views.db.changing (id INT, name STRING)")
    run("INSERT INTO views.db.changing VALUES (1, 'a')")
    run("CREATE VIEW views.db.star AS SELECT * FROM views.db.changing")
    run("ALTER TABLE views.db.changing ADD COLUMN z INT FIRST")
    assert run("SELECT * FROM views.db.star") == [(1, "a")]
    run("ALTER TABLE views.db.changing DROP COLUMN name")
    with pytest.raises(Exception, match="INCOMPATIBLE_VIEW_SCHEMA_CHANGE"):
        run("SELECT * FROM views.db.star")
    run("DROP VIEW views.db.star")


@pytest.fixture(params=["interface", pytest.param("rule", marks=pytest.mark.more)])
def stored(request, spark, catalog_name, tmp_path, monkeypatch):
    """A catalog ``stored`` that reads views through Spark's interface, or by the rule for older versions of Spark."""
    by_rule = request.param == "rule"
    if not by_rule and not Jvm(spark).has_views:
        pytest.skip("this Spark has no views in catalogs other than its own")
    options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/c.db", "warehouse": str(tmp_path / "w")}
    if by_rule:
        monkeypatch.setattr(Jvm, "has_views", False)
    paimon_spark.catalog(spark, "stored", options=options)
    for statement in (
        "CREATE DATABASE stored.db",
        "CREATE DATABASE stored.other",
        "CREATE TABLE stored.db.t (id INT, name STRING)",
        "CREATE TABLE stored.other.t (id INT, name STRING)",
        "INSERT INTO stored.db.t VALUES (3, 'c'), (1, 'a'), (2, 'b')",
    ):
        spark.sql(statement)
    yield open_catalog(options=options)
    spark.sql("DROP DATABASE stored.db CASCADE")


def view_of(query, columns, names=None, **options):
    """Return a view as Spark 4.3 stores it, created with ``stored.db`` current."""
    fields = [DataField(i, name, parse_type(kind)) for i, (name, kind) in enumerate(columns.items())]
    context = {"spark.view.namespace": '["db"]', "spark.view.query-columns": json.dumps(names or list(columns))}
    return View(fields, query, {"spark": query}, None, {**context, **options})


@pytest.mark.more
def test_queries_of_stored_views(stored, spark):
    def run(text):
        return [tuple(row) for row in spark.sql(text).collect()]

    for name, view in {
        "renamed": view_of("SELECT id, upper(name) AS u FROM t", {"k": "BIGINT", "n": "STRING"}, ["id", "u"]),
        "star": view_of("SELECT * FROM t", {"id": "INT", "name": "STRING"}),
        "ordinal": view_of("SELECT id FROM t ORDER BY 1 DESC LIMIT 2", {"id": "INT"}),
        "common": view_of("WITH t AS (SELECT id + 10 AS i FROM t) SELECT i FROM t", {"i": "INT"}),
        "nested": view_of("SELECT k FROM renamed WHERE k IN (SELECT id FROM ordinal)", {"k": "BIGINT"}),
        "circle": view_of("SELECT k FROM circle", {"k": "INT"}),
        "there": view_of("SELECT k + 1 AS k FROM back", {"k": "INT"}),
        "back": view_of("SELECT k FROM there WHERE k > 0", {"k": "INT"}),
        "unsafe": view_of(
            "SELECT 1 / 0 AS x",
            {"x": "DOUBLE"},
            None,
            **{"spark.view.sql-configs": '{"spark.sql.ansi.enabled": "false"}'},
        ),
    }.items():
        stored.create_view(f"db.{name}", view)
    stored.create_view("db.java", View((DataField(0, "k", parse_type("BIGINT")),), "SELECT id FROM t"))
    stored.create_view("db.wide", View((DataField(0, "k", parse_type("INT")),), "SELECT 1 AS a, 2 AS b"))
    assert sorted(run("SELECT n, k FROM stored.db.renamed")) == [("A", 1), ("B", 2), ("C", 3)]
    assert spark.table("stored.db.renamed").schema.simpleString() == "struct<k:bigint,n:string>"
    assert sorted(run("SELECT * FROM stored.db.ordinal")) == [(2,), (3,)]
    assert sorted(run("SELECT * FROM stored.db.common")) == [(11,), (12,), (13,)]
    assert sorted(run("SELECT stored.db.java.k FROM stored.db.java")) == [(1,), (2,), (3,)]
    assert run("SELECT x FROM stored.db.unsafe") == [(None,)]  # with the settings of the view
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT 100 AS id, 'x' AS name")
    try:
        assert sorted(run("SELECT * FROM stored.db.nested")) == [(2,), (3,)]
        assert run(
            "SELECT count(*) FROM stored.db.nested a JOIN stored.db.renamed b USING (k) JOIN stored.db.t ON id = k"
        ) == [(2,)]
        assert run("WITH v AS (SELECT * FROM stored.db.nested) SELECT max(k) FROM v") == [(3,)]
        assert run("SELECT (SELECT max(k) FROM stored.db.renamed) + 1") == [(4,)]
    finally:
        spark.catalog.dropTempView("t")
    run("CREATE TABLE stored.db.copied AS SELECT * FROM stored.db.renamed")
    assert run("SELECT sum(k) FROM stored.db.copied") == [(6,)]
    run("ALTER TABLE stored.db.t ADD COLUMN z INT FIRST")
    assert ("a", 1) in [(name, id) for id, name in run("SELECT * FROM stored.db.star")]
    for statement, message in (
        ("SELECT * FROM stored.db.circle", "RECURSIVE_VIEW.*circle"),
        ("SELECT * FROM stored.db.there", "RECURSIVE_VIEW.*(back.*there|there.*back)"),
        ("SELECT * FROM stored.db.wide", "(?i)columns"),
        ("INSERT INTO stored.db.star VALUES (1, 'a')", "(?i)star|view"),
        ("DELETE FROM stored.db.star WHERE id = 1", "(?i)view"),
        ("SELECT * FROM stored.db.star VERSION AS OF 1", "(?i)view"),
    ):
        with pytest.raises(Exception, match=message):
            run(statement)
    assert run("SELECT count(*) FROM stored.db.t") == [(3,)]


def test_views_before_spark_4_3(run, spark):
    if Jvm(spark).has_views:
        pytest.skip("this Spark has views in catalogs")
    run.catalog.create_view("db.old", View((DataField(0, "k", parse_type("INT")),), "SELECT 1 AS k"))
    assert run("SELECT * FROM views.db.old") == [(1,)]
    with pytest.raises(Exception, match="MISSING_CATALOG_ABILITY"):
        run("CREATE VIEW views.db.v AS SELECT 1 AS x")
    with pytest.raises(Exception, match=r"views\.db\.old is a view, which Spark .* can only read"):
        run("DESCRIBE views.db.old")
