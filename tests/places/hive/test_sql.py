"""SQL on a catalog in a Hive metastore."""

import pytest
from pyspark.errors import AnalysisException, PySparkException

import paimon_spark
from tests.spark.conftest import spark  # noqa: F401  the session of the run
from tests.support.markdown import ROOT, fences

pytestmark = [pytest.mark.places, pytest.mark.spark]


@pytest.fixture
def sql(spark, hive_warehouse, options, database):  # noqa: F811
    """A function that runs a statement in a database of its own and returns its rows as tuples."""
    block = {f"spark.sql.catalog.hive.{key}": value for key, value in options.items()}
    block |= {"spark.sql.catalog.hive": "org.apache.paimon.spark.SparkCatalog"}
    paimon_spark.catalog(spark, "hive", warehouse=hive_warehouse, options=block)
    spark.catalog.setCurrentCatalog("hive")
    spark.sql(f"USE {database}")
    yield lambda text: [tuple(row) for row in spark.sql(text).collect()]
    spark.catalog.setCurrentCatalog("spark_catalog")


def test_statements(sql, catalog, database, java, tmp_path):
    sql("CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql("MERGE INTO t USING (SELECT 2 id, 'c' v UNION SELECT 3, 'd') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    sql("UPDATE t SET v = 'e' WHERE id = 3")
    sql("DELETE FROM t WHERE id = 1")
    assert sql("SELECT * FROM T ORDER BY id") == [(2, "c"), (3, "e")]
    assert java.tell("read", f"{database}.t") == "2=c,3=e"
    sql("ALTER TABLE t ADD COLUMN n BIGINT COMMENT 'a number'")
    assert [c.name for c in catalog._client.table(database, "t").sd.cols] == ["id", "v", "n"]
    sql("CREATE TABLE made AS SELECT 1 AS k, 'x' AS d")
    sql("CREATE OR REPLACE TABLE made AS SELECT 'y' AS other, 2 AS k")
    assert sql("SELECT * FROM made") == [("y", 2)]
    assert [c.name for c in catalog._client.table(database, "made").sd.cols] == ["other", "k"]
    sql("ALTER TABLE made RENAME TO renamed")
    assert {row[1] for row in sql("SHOW TABLES")} == {"t", "renamed"}
    sql("CALL sys.compact(table => 't')")
    sql(f"CREATE TABLE outside (k INT) LOCATION '{tmp_path / 'outside'}'")
    sql("INSERT INTO outside VALUES (7)")
    sql("DROP TABLE outside")
    assert (tmp_path / "outside" / "snapshot").exists()
    sql("DROP TABLE renamed")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM renamed")


def test_partitions_and_repair(sql, catalog, database):
    sql("CREATE TABLE p (k INT, d STRING) PARTITIONED BY (d) TBLPROPERTIES ('metastore.partitioned-table' = 'true')")
    sql("INSERT INTO p VALUES (1, 'x'), (2, 'y')")

    def registered():
        return sorted(p.values[0] for p in catalog._client.call("get_partitions", database, "p", 10))

    assert registered() == ["x", "y"]
    sql("ALTER TABLE p DROP PARTITION (d = 'x')")
    assert registered() == ["y"]
    catalog._client.drop_table(database, "p")
    assert sql("CALL sys.repair('db.p')".replace("db", database)) == [(True,)]
    assert sql("SELECT k FROM p") == [(2,)]
    assert registered() == ["y"]


def test_guide(spark, catalog, hive, hive_warehouse, capsys):  # noqa: F811
    """Run docs/guides/hive-metastore.md against the metastore."""
    page = ROOT / "docs" / "guides" / "hive-metastore.md"
    spark.catalog.setCurrentCatalog("spark_catalog")
    for block in fences(page):
        code = block.code.replace("thrift://metastore:9083", hive).replace("/warehouse", hive_warehouse)
        if block.info == "python fragment":
            capsys.readouterr()
            exec(code, {})
        elif block.info == "text":
            assert capsys.readouterr().out.strip() == block.code.strip()
        elif block.info == "sql":
            assert [row[0] for row in spark.sql(code.replace("sys.", "hive.sys.")).collect()] == [True]
    catalog.drop_database("shop", cascade=True)


def test_tables_of_others_are_named(sql, catalog, database):
    types = catalog._client.types
    storage = types.StorageDescriptor(
        cols=[types.FieldSchema(name="a", type="int")], inputFormat="x", outputFormat="x", serdeInfo=types.SerDeInfo()
    )
    other = types.Table(tableName="o", dbName=database, sd=storage, partitionKeys=[], tableType="MANAGED_TABLE")
    catalog._client.call("create_table", other)
    with pytest.raises(PySparkException, match="is a Hive table, not a Paimon table"):
        sql("SELECT * FROM o")
    assert sql("SHOW TABLES") == []
