"""SQL on a REST catalog: every statement that commits asks the server, in every process."""

import warnings

import pytest

import paimon_spark
from paimon_core import CatalogFunction, DataField, open_catalog
from paimon_core.types.parse import parse_type
from paimon_spark.sql.bridge.jvm import Jvm
from tests.support.places.rest import TOKEN, rest_server, unavailable
from tests.support.rest_server import CatalogServer, catalog_server

pytestmark = pytest.mark.spark
SECRET = "very-secret-token"


JAVA = pytest.param("java", marks=pytest.mark.places)


@pytest.fixture(scope="module", params=["python", JAVA])
def rest(request, spark, catalog_name, tmp_path_factory):
    """Install the catalog ``rest``; return its server: a small one, or Paimon's own."""
    if request.param == "java" and (reason := unavailable()):
        pytest.skip(f"the REST server cannot be installed: {reason}")
    start = catalog_server if request.param == "python" else rest_server
    with start(tmp_path_factory.mktemp("rest")) as server:
        secret = {"token": SECRET} if request.param == "python" else {}
        prefix = "spark.sql.catalog.paimon"
        options = {f"{prefix}.{key}": value for key, value in {**server.options, **secret}.items()}
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "the warehouse")
            paimon_spark.catalog(spark, "rest", options={prefix: "org.apache.paimon.spark.SparkCatalog", **options})
        assert "default" not in open_catalog(options=server.options).list_databases()
        spark.sql("CREATE DATABASE rest.db")
        yield server


@pytest.fixture
def changes(spark, rest):
    """A function that runs a change of a table, and checks that the server made its snapshots."""
    catalog = open_catalog(options=rest.options)

    def committed(name):
        """Return the id of the newest snapshot that the server published."""
        if isinstance(rest, CatalogServer):
            return max(
                (body["snapshot"]["id"] for body in rest.commits if body["tableId"] == rest.tables[name]), default=0
            )
        newest = catalog.api.client.get(f"/v1/paimon/databases/db/tables/{name.partition('.')[2]}/snapshot")
        return newest["snapshot"]["snapshot"]["id"]

    def run(change, name="t", snapshots=1):
        ids = set(catalog.table(f"db.{name}").store.snapshots.ids()) if catalog.table_exists(f"db.{name}") else set()
        spark.sql(change).collect() if isinstance(change, str) else change()
        new = set(catalog.table(f"db.{name}").store.snapshots.ids()) - ids
        assert len(new) == snapshots, change
        assert not new or committed(f"db.{name}") == max(new), change

    return run


def test_statements_commit_by_server(spark, changes):
    create = "CREATE TABLE rest.db.t (id INT NOT NULL, v STRING, d INT) PARTITIONED BY (d) TBLPROPERTIES "
    changes(create + "('primary-key' = 'id,d', 'bucket' = '1')", snapshots=0)
    changes("INSERT INTO rest.db.t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    changes("UPDATE rest.db.t SET v = 'x' WHERE id = 1")
    changes("DELETE FROM rest.db.t WHERE id = 2")
    changes(
        "MERGE INTO rest.db.t USING (SELECT 9 AS id, 'z' AS v, 1 AS d) s ON t.id = s.id AND t.d = s.d "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    changes("ALTER TABLE rest.db.t ADD COLUMN w INT", snapshots=0)
    changes("CALL rest.sys.compact(table => 'db.t')")
    frame = spark.createDataFrame([(7, "q", 1, 1)], "id INT, v STRING, d INT, w INT")
    changes(lambda: frame.writeTo("rest.db.t").append())
    rows = spark.sql("SELECT id, v, d, w FROM rest.db.t ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, "x", 1, None), (3, "c", 2, None), (7, "q", 1, 1), (9, "z", 1, None)]
    assert spark.sql("SELECT * FROM rest.db.t VERSION AS OF 1").count() == 3


@pytest.mark.more
def test_views_and_functions_of_server(spark, rest):
    catalog = open_catalog(options=rest.options)
    parameter = DataField(0, "x", parse_type("INT"))
    sql = {"spark": {"type": "sql", "definition": "x + 1"}}
    catalog.create_function("db.inc", CatalogFunction([parameter], [parameter], sql))
    assert spark.sql("SELECT rest.db.inc(1)").collect()[0][0] == 2
    spark.sql("CREATE FUNCTION rest.db.twice(x INT, y INT DEFAULT 2) RETURNS INT RETURN y * rest.db.inc(x)")
    assert spark.sql("SELECT rest.db.twice(1), rest.db.twice(1, 3)").collect()[0][:] == (4, 6)
    spark.sql("DROP FUNCTION rest.db.twice")
    java = {"spark": {"type": "lambda", "definition": "x -> x", "language": "JAVA"}}
    catalog.create_function("db.inc", CatalogFunction([parameter], [parameter], java), replace=True)
    with pytest.raises(Exception, match=r"rest\.db\.inc is a lambda function.*x -> x"):
        spark.sql("SELECT rest.db.inc(1)")
    assert "x -> x" in str(spark.sql("DESCRIBE FUNCTION EXTENDED rest.db.inc").collect())
    catalog.drop_function("db.inc")
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        spark.sql("SELECT rest.db.inc(1)")
    if Jvm(spark).has_views:
        spark.sql("CREATE VIEW rest.db.v (k) AS SELECT id FROM range(3)")
        assert spark.sql("SELECT max(k) FROM rest.db.v").collect()[0][0] == 2
        assert dict(catalog.view("db.v").dialects) == {"spark": "SELECT id FROM range(3)"}
        spark.sql("DROP VIEW rest.db.v")


@pytest.mark.more
def test_append_tables_and_streams_commit_by_server(spark, changes, tmp_path):
    changes("CREATE TABLE rest.db.s AS SELECT id FROM range(3)", "s")
    changes("INSERT INTO rest.db.s SELECT id FROM range(5)", "s")
    changes("INSERT OVERWRITE rest.db.s SELECT id FROM range(4)", "s")

    def stream():
        rows = spark.readStream.table("rest.db.s")
        query = rows.writeStream.format("paimon").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        query.toTable("rest.db.copied").awaitTermination(60)

    changes(stream, "copied")
    assert spark.table("rest.db.copied").count() == 4
    with pytest.raises(Exception, match="cannot be replaced"):
        spark.sql("CREATE OR REPLACE TABLE rest.db.s AS SELECT 1 AS id")


@pytest.mark.more
def test_views_of_blobs_are_read_by_tasks(spark, rest):
    row_ids = "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'"
    spark.sql(f"CREATE TABLE rest.db.images (k INT, b BINARY COMMENT '__BLOB_FIELD') TBLPROPERTIES ({row_ids})")
    spark.sql(f"CREATE TABLE rest.db.album (k INT, v BINARY COMMENT '__BLOB_VIEW_FIELD') TBLPROPERTIES ({row_ids})")
    spark.sql("INSERT INTO rest.db.images VALUES (1, X'01'), (2, NULL), (3, X'0303')")
    spark.sql(
        "INSERT INTO rest.db.album SELECT k, rest.sys.blob_view('rest.db.images', 'b', _ROW_ID) FROM rest.db.images"
    )
    rows = spark.sql("SELECT * FROM rest.db.album ORDER BY k").collect()
    assert [tuple(row) for row in rows] == [(1, b"\1"), (2, None), (3, b"\3\3")]


def test_token_is_not_shown(spark, rest):
    spark.sql("CREATE TABLE rest.db.p (id INT)")
    for statement in (
        "EXPLAIN EXTENDED SELECT * FROM rest.db.p",
        "EXPLAIN INSERT INTO rest.db.p VALUES (1)",
        "DESCRIBE EXTENDED rest.db.p",
        "SHOW CREATE TABLE rest.db.p",
        "EXPLAIN EXTENDED SELECT * FROM rest.db.`p$snapshots`",
        "SELECT * FROM rest.sys.catalog_options",
    ):
        answer = str(spark.sql(statement).collect())
        assert SECRET not in answer, statement
        assert TOKEN not in answer, statement
