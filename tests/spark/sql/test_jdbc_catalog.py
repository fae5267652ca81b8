"""SQL on a JDBC catalog in SQLite: every statement that commits holds the lock of the table, in every process."""

import sqlite3

import pytest

import paimon_spark
from paimon_core import open_catalog

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def jdbc(spark, catalog_name, tmp_path_factory):
    """Install the catalog ``jdbc``, whose locks are logged; return the database, the warehouse and the options."""
    path = tmp_path_factory.mktemp("jdbc")
    database = path / "catalog.db"
    prefix = "spark.sql.catalog.paimon"
    options = {
        prefix: "org.apache.paimon.spark.SparkCatalog",
        f"{prefix}.metastore": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{database}",
        f"{prefix}.warehouse": str(path / "warehouse"),
        f"{prefix}.lock.enabled": "true",
        f"{prefix}.jdbc.password": "s3cret-of-jdbc",
    }
    paimon_spark.catalog(spark, "jdbc", options=options)
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE log (name TEXT)")
        connection.execute(
            "CREATE TRIGGER logged AFTER INSERT ON paimon_distributed_locks "
            "BEGIN INSERT INTO log VALUES (new.lock_id); END"
        )
    spark.sql("CREATE DATABASE jdbc.db COMMENT 'ours'")
    return database, options


@pytest.fixture
def changes(spark, jdbc, monkeypatch):
    """A function that runs a change of a table, and checks that each new snapshot and schema had the lock."""
    database, options = jdbc
    catalog = open_catalog(options=options)

    def versions(name):
        if not catalog.table_exists(f"db.{name}"):
            return 0
        store = catalog.table(f"db.{name}").store
        return len(store.snapshots.ids()) + len(store.schemas.ids())

    def locks(name):
        with sqlite3.connect(database) as connection:
            query = "SELECT count(*) FROM log WHERE name = ?"
            return connection.execute(query, [f"jdbc.db.{name}"]).fetchone()[0]

    def run(change, name="t", snapshots=1):
        before, locked = versions(name), locks(name)
        result = spark.sql(change).collect() if isinstance(change, str) else change()
        new = versions(name) - before
        assert new >= snapshots, change
        assert locks(name) - locked >= new, change
        return result

    return run


@pytest.mark.more
def test_statements_hold_lock(spark, jdbc, changes, tmp_path):
    changes(
        "CREATE TABLE jdbc.db.t (id INT NOT NULL, v STRING, d INT) PARTITIONED BY (d) "
        "TBLPROPERTIES ('primary-key' = 'id,d', 'bucket' = '1')"
    )
    changes("INSERT INTO jdbc.db.t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    spark.conf.set("spark.paimon.write.native", "false")
    try:
        changes("INSERT INTO jdbc.db.t VALUES (4, 'd', 1)")
        changes("INSERT OVERWRITE jdbc.db.t PARTITION (d = 2) VALUES (5, 'e')")
    finally:
        spark.conf.unset("spark.paimon.write.native")
    changes("UPDATE jdbc.db.t SET v = 'x' WHERE id = 1")
    changes("DELETE FROM jdbc.db.t WHERE id = 2")
    changes(
        "MERGE INTO jdbc.db.t USING (SELECT 9 AS id, 'z' AS v, 1 AS d) s ON t.id = s.id AND t.d = s.d "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    changes("CALL jdbc.sys.compact(table => 'db.t')", snapshots=1)
    changes("ALTER TABLE jdbc.db.t ADD COLUMN w INT")
    changes("ALTER TABLE jdbc.db.t DROP PARTITION (d = 2)")
    frame = spark.createDataFrame([(7, "q", 1, 1)], "id INT, v STRING, d INT, w INT")
    changes(lambda: frame.writeTo("jdbc.db.t").append())
    changes(lambda: frame.write.mode("append").saveAsTable("jdbc.db.t"))
    changes(lambda: spark.table("jdbc.db.t").where("id = 7").write.mode("append").insertInto("jdbc.db.t"))
    target = paimon_spark.PaimonTable.forName(spark, "jdbc.db.t")
    changes(lambda: target.delete("id = 7"))
    assert sorted(tuple(row) for row in spark.sql("SELECT id, v, d FROM jdbc.db.t").collect()) == [
        (1, "x", 1),
        (4, "d", 1),
        (9, "z", 1),
    ]
    changes("TRUNCATE TABLE jdbc.db.t")


@pytest.mark.more
def test_new_tables_and_streams_hold_lock(spark, jdbc, changes, tmp_path):
    changes("CREATE TABLE jdbc.db.s AS SELECT id FROM range(3)", "s", 2)
    changes("CREATE OR REPLACE TABLE jdbc.db.s AS SELECT id FROM range(5)", "s", 2)

    def stream():
        rows = spark.readStream.table("jdbc.db.s")
        query = rows.writeStream.format("paimon").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        query.toTable("jdbc.db.copied").awaitTermination(300)

    changes(stream, "copied", 2)
    assert spark.table("jdbc.db.copied").count() == 5
    changes("CALL jdbc.sys.copy(source_table => 'db.s', target_table => 'db.c')", "c", 2)
    spark.sql("ALTER TABLE jdbc.db.c RENAME TO db.renamed")
    tables = {row.tableName for row in spark.sql("SHOW TABLES IN jdbc.db").collect()}
    assert {"s", "copied", "renamed"} <= tables
    spark.sql("DROP TABLE jdbc.db.renamed")
    assert not spark.catalog.tableExists("jdbc.db.renamed")
    with pytest.raises(Exception, match="write 'upper'"):
        spark.sql("CREATE TABLE jdbc.db.Upper (id INT)")


@pytest.mark.more
def test_views_of_blobs_are_read_by_tasks(spark, jdbc):
    row_ids = "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'"
    spark.sql(f"CREATE TABLE jdbc.db.images (k INT, b BINARY COMMENT '__BLOB_FIELD') TBLPROPERTIES ({row_ids})")
    spark.sql(f"CREATE TABLE jdbc.db.album (k INT, v BINARY COMMENT '__BLOB_VIEW_FIELD') TBLPROPERTIES ({row_ids})")
    spark.sql("INSERT INTO jdbc.db.images VALUES (1, X'01'), (2, NULL), (3, X'0303')")
    spark.sql(
        "INSERT INTO jdbc.db.album SELECT k, jdbc.sys.blob_view('jdbc.db.images', 'b', _ROW_ID) FROM jdbc.db.images"
    )
    rows = spark.sql("SELECT * FROM jdbc.db.album ORDER BY k").collect()
    assert [tuple(row) for row in rows] == [(1, b"\1"), (2, None), (3, b"\3\3")]
    with pytest.raises(Exception, match="a view names a table of its own catalog: call jdbc"):
        spark.sql("SELECT pm.sys.blob_view('jdbc.db.images', 'b', 0)")


def test_password_is_not_shown(spark, jdbc):
    spark.sql("CREATE TABLE IF NOT EXISTS jdbc.db.p (id INT)")
    for statement in (
        "EXPLAIN EXTENDED SELECT * FROM jdbc.db.p",
        "EXPLAIN INSERT INTO jdbc.db.p VALUES (1)",
        "DESCRIBE EXTENDED jdbc.db.p",
        "SHOW CREATE TABLE jdbc.db.p",
        "EXPLAIN EXTENDED SELECT * FROM jdbc.db.`p$snapshots`",
        "SELECT * FROM jdbc.sys.catalog_options",
    ):
        assert "s3cret-of-jdbc" not in str(spark.sql(statement).collect()), statement
