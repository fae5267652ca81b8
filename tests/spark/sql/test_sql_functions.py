"""SQL functions of a catalog in SQL, in a REST catalog; in other catalogs they are refused by name."""

import pytest

import paimon_spark
from paimon_core import CatalogFunction, DataField, open_catalog
from paimon_core.types.parse import parse_type
from tests.spark.sql.conftest import current_database
from tests.support.rest_server import catalog_server

pytestmark = pytest.mark.spark
SECRET = "very-secret-token"


@pytest.fixture(scope="module")
def run(spark, catalog_name, tmp_path_factory):
    """A function that runs a statement with the catalog ``fns`` and returns its rows as tuples."""
    with catalog_server(tmp_path_factory.mktemp("functions")) as server:
        paimon_spark.catalog(spark, "fns", options={**server.options, "token": SECRET})
        for statement in (
            "CREATE DATABASE fns.db",
            "CREATE DATABASE fns.other",
            "CREATE TABLE fns.db.t (id INT, name STRING)",
            "INSERT INTO fns.db.t VALUES (1, 'a'), (2, 'b'), (NULL, 'c')",
            "CREATE TABLE fns.other.t (id INT, name STRING)",
        ):
            spark.sql(statement)

        def run(text):
            return [tuple(row) for row in spark.sql(text).collect()]

        run.catalog = open_catalog(options=server.options)
        yield run


@pytest.fixture
def used(spark, run):
    """Make ``fns.db`` current, and the former catalog and database afterwards."""
    with current_database(spark, "fns.db"):
        yield run


def test_function_is_created_and_called(run, used, spark):
    run(
        "CREATE FUNCTION area(id INT COMMENT 'a side', h DOUBLE DEFAULT 1.5 + 0.5) RETURNS DOUBLE "
        "COMMENT 'an area' RETURN id * h"
    )
    assert run("SELECT area(2, 3), fns.db.area(2), db.area(NULL, 1)") == [(6.0, 4.0, None)]
    assert run("SELECT id, area(id, id) FROM t ORDER BY id NULLS LAST") == [(1, 1.0), (2, 4.0), (None, None)]
    assert run("SELECT max(area(id)) FROM t WHERE area(id) > 1 GROUP BY area(id) HAVING max(area(id)) > 2") == [(4.0,)]
    assert run("SELECT area('3', '2')") == [(6.0,)]  # arguments are cast to the declared types
    for call in ("area()", "area(1, 2, 3)"):
        with pytest.raises(Exception, match="WRONG_NUM_ARGS"):
            run(f"SELECT {call}")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        run("SELECT area('x')")
    assert ("fns.db.area",) in run("SHOW USER FUNCTIONS IN fns.db")
    assert [row[0].split()[:2] for row in run("DESCRIBE FUNCTION area")] == [
        ["Function:", "fns.db.area"],
        ["Type:", "SCALAR"],
        ["Input:", "id"],
        ["h", "DOUBLE"],
        ["Returns:", "DOUBLE"],
    ]
    extended = "\n".join(row[0] for row in run("DESC FUNCTION EXTENDED fns.db.area"))
    for part in ("id * h", "DEFAULT 1.5 + 0.5", "'a side'", "an area", "Deterministic: true", "CONTAINS SQL"):
        assert part in extended
    assert SECRET not in extended
    stored = run.catalog.function("db.area")
    assert stored.definitions == {"spark": {"type": "sql", "definition": "id * h"}}
    assert [(f.name, str(f.type), f.description, f.default) for f in stored.parameters] == [
        ("id", "INT", "a side", None),
        ("h", "DOUBLE", None, "1.5 + 0.5"),
    ]
    assert ([str(f.type) for f in stored.results], stored.comment, stored.deterministic) == (
        ["DOUBLE"],
        "an area",
        True,
    )
    assert stored.options["spark.sql-function.is-query"] == "false"
    assert SECRET not in str(stored.to_json())
    with pytest.raises(Exception, match="exists already"):
        run("CREATE FUNCTION area(x INT) RETURNS INT RETURN x")
    run("CREATE FUNCTION IF NOT EXISTS area(x INT) RETURNS INT RETURN -x")
    assert run("SELECT area(2, 3)") == [(6.0,)]
    run("CREATE OR REPLACE FUNCTION fns.db.area(x INT) RETURN -x")
    assert run("SELECT area(2)") == [(-2,)]
    plan = "\n".join(row[0] for row in spark.sql("EXPLAIN CREATE FUNCTION q(x INT) RETURN x").collect())
    assert "CREATE FUNCTION q" in plan
    run("DROP FUNCTION area")
    run("DROP FUNCTION IF EXISTS db.area")
    with pytest.raises(Exception, match=r"no function 'db\.area'"):
        run("DROP FUNCTION fns.db.area")
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        run("SELECT area(2)")


@pytest.mark.more
def test_names_in_body_are_where_it_was_created(run, used, spark):
    run("CREATE FUNCTION total(d INT) RETURNS BIGINT RETURN SELECT sum(id) FROM t WHERE id <= d")
    run("CREATE FUNCTION twice(x INT) RETURNS BIGINT RETURN 2 * total(x) + abs(-x)")
    run(
        "CREATE FUNCTION common(x INT DEFAULT 1) RETURNS INT "
        "RETURN WITH t AS (SELECT id + 10 AS id FROM `t`), u AS (SELECT id FROM t) "
        "SELECT max(u.id) FROM u WHERE u.id > x"
    )
    try:
        assert run("SELECT total(2), twice(2), common()") == [(3, 8, 12)]
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT 100 AS id")
        spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION total(x INT) RETURNS BIGINT RETURN 1000")
        run("USE fns.other")
        assert run("SELECT fns.db.twice(2), db.total(1), db.common()") == [(8, 1, 12)]
        run("USE spark_catalog.default")
        assert run("SELECT fns.db.twice(id) FROM fns.db.t ORDER BY 1 NULLS LAST LIMIT 1") == [(3,)]
        for body, message in (("total(1)", "total"), ("SELECT max(id) FROM t", "t")):
            with pytest.raises(Exception, match=rf"INVALID_TEMP_OBJ_REFERENCE|uses {message}, which exists"):
                run(f"CREATE FUNCTION fns.db.f() RETURNS BIGINT RETURN {body}")
    finally:
        spark.sql("DROP TEMPORARY FUNCTION IF EXISTS total")
        spark.catalog.dropTempView("t")
        for name in ("total", "twice", "common"):
            run(f"DROP FUNCTION IF EXISTS fns.db.{name}")


def test_settings_of_definition(run, used, spark):
    """The body keeps the settings that were in effect when the function was created."""
    try:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        run("CREATE FUNCTION safe(x INT) RETURNS DOUBLE RETURN 1 / x")
        spark.conf.set("spark.sql.ansi.enabled", "true")
        assert run("SELECT safe(0)") == [(None,)]
        spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
        run(r"CREATE FUNCTION slashed(x STRING) RETURNS STRING RETURN concat(x, 'a\n')")
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
        assert run("SELECT slashed('x')") == [("xa\\n",)]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
        for name in ("safe", "slashed"):
            run(f"DROP FUNCTION IF EXISTS {name}")


@pytest.mark.more
def test_calls_without_end_are_refused(run, used):
    with pytest.raises(Exception, match=r"UNRESOLVED_ROUTINE|calls itself"):
        run("CREATE FUNCTION f(x INT) RETURNS INT RETURN f(x - 1)")
    run("CREATE FUNCTION f(x INT) RETURNS INT RETURN x")
    run("CREATE FUNCTION g(x INT) RETURNS INT RETURN f(x)")
    for body in ("fns.db.f(x)", "g(x)"):
        with pytest.raises(Exception, match=r"function fns\.db\.f calls itself"):
            run(f"CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN {body}")
    assert run("SELECT g(4)") == [(4,)]
    parameter = DataField(0, "x", parse_type("INT"))
    definition = {"spark": {"type": "sql", "definition": "g(x)"}}  # as another engine may store it
    run.catalog.create_function("db.f", CatalogFunction([parameter], [parameter], definition), replace=True)
    with pytest.raises(Exception, match="in a circle"):
        run("SELECT g(1)")
    for name in ("f", "g"):
        run(f"DROP FUNCTION {name}")


@pytest.mark.more
def test_other_functions_are_refused(run, used, spark, request):
    for statement, message in (
        ("CREATE FUNCTION f() RETURNS TABLE (a INT) RETURN SELECT 1", "returns a table is not supported"),
        ("CREATE FUNCTION f AS 'com.example.F' USING JAR '/f.jar'", "only SQL functions can"),
        ("CREATE FUNCTION f(x INT, x INT) RETURNS INT RETURN x", "(?i)duplicate"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN sum(x)", "CANNOT_CONTAIN_COMPLEX_FUNCTIONS"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN y", "UNRESOLVED_COLUMN"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN SELECT id FROM no_such_table", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN", "PARSE_SYNTAX_ERROR"),
        ("CREATE FUNCTION f(x INTERVAL DAY) RETURNS INT RETURN 1", "Paimon has no type"),
        ("CREATE FUNCTION nope.f(x INT) RETURNS INT RETURN 1", "no database 'nope'"),
        (
            "CREATE FUNCTION fns.db.abs(x INT) RETURNS INT RETURN 1",
            "non-SQL function abs|Spark has a function of this name",
        ),
        ("CREATE FUNCTION f(x INT DEFAULT fns.db.g(1)) RETURNS INT RETURN x", "fns"),
    ):
        with pytest.raises(Exception, match=message):
            run(statement)
    assert run.catalog.list_functions("db") == []
    assert "abs" in run("DESCRIBE FUNCTION abs")[0][0]
    run("CREATE TEMPORARY FUNCTION tmp(x INT) RETURNS INT RETURN x + 1")
    assert run("SELECT tmp(1)") == [(2,)]
    run("DROP TEMPORARY FUNCTION tmp")
    other = request.getfixturevalue("catalog_name")
    message = "a catalog with the option 'metastore' = 'filesystem' stores no functions, as in Java"
    with pytest.raises(Exception, match=message):
        run(f"CREATE FUNCTION {other}.default.f(x INT) RETURNS INT RETURN x")


@pytest.mark.more
def test_rows_changed_by_functions(run, used):
    run("CREATE TABLE u (id INT, v INT)")
    run("INSERT INTO u VALUES (1, 1), (2, 2)")
    run("CREATE FUNCTION inc(x INT) RETURNS INT RETURN x + 1")
    run("INSERT INTO u SELECT inc(v), inc(inc(id)) FROM u")
    assert sorted(run("SELECT * FROM u")) == [(1, 1), (2, 2), (2, 3), (3, 4)]
    for statement in ("UPDATE u SET v = inc(v) WHERE inc(id) = 2", "DELETE FROM u WHERE inc(id) = 4"):
        run(statement)
    assert sorted(run("SELECT * FROM u")) == [(1, 2), (2, 2), (2, 3)]
    run("DROP TABLE u")
    run("DROP FUNCTION inc")
