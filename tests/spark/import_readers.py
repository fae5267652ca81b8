"""Import tables that the real readers of Delta and Iceberg have written: run by `test_import_readers.py`."""

import sys

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import paimon_spark
from paimon_core.errors import UnsupportedError
from paimon_spark import PaimonTable

ROWS = 1_000


def session(root: str, jars: str) -> SparkSession:
    """A session that reads and writes Delta, Iceberg and Paimon tables."""
    extensions = (
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": ",".join(extensions),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": f"{root}/ice",
        "spark.sql.warehouse.dir": f"{root}/spark",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    paimon_spark.catalog(spark, "pm", warehouse=f"{root}/paimon")
    spark.sql("CREATE DATABASE pm.db")
    return spark


def same(spark: SparkSession, target: str, expected: list[tuple]) -> None:
    """Raise AssertionError unless a table has exactly these rows."""
    actual = sorted(map(tuple, spark.table(target).collect()))
    assert actual == sorted(expected), (target, len(actual), len(expected))


def delta(spark: SparkSession, root: str) -> None:
    """A table with partitions, changed by UPDATE and DELETE with deletion vectors, now and as it was."""
    path = f"{root}/delta"
    rows = spark.range(ROWS).select("id", (F.col("id") % 3).cast("int").alias("p"), F.lit("a").alias("v"))
    rows.write.format("delta").partitionBy("p").option("delta.enableDeletionVectors", "true").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 0")
    spark.sql(f"UPDATE delta.`{path}` SET v = 'b' WHERE id % 10 = 1")
    now = [(i, i % 3, "b" if i % 10 == 1 else "a") for i in range(ROWS) if i % 10]
    paimon_spark.import_table(spark, "delta", path, "pm.db.d", options={"primary-key": "p,id", "bucket": "2"})
    same(spark, "pm.db.d", now)
    assert PaimonTable.forName(spark, "pm.db.d").toDF().count() == len(now)
    assert spark.sql("SELECT DISTINCT partition FROM pm.db.`d$partitions`").count() == 3
    paimon_spark.import_table(spark, "delta", path, "pm.db.old", read_options={"versionAsOf": "0"})
    same(spark, "pm.db.old", [(i, i % 3, "a") for i in range(ROWS)])


def iceberg(spark: SparkSession, root: str) -> None:
    """A table with partitions, changed by deletes as deletion vectors; one whose partitions are a transform."""
    spark.sql("CREATE NAMESPACE ice.n")
    spark.sql(
        "CREATE TABLE ice.n.t (id BIGINT, p INT, v STRING) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO ice.n.t SELECT id, CAST(id % 3 AS INT), 'a' FROM range({ROWS})")
    spark.sql("DELETE FROM ice.n.t WHERE id % 10 = 0")
    rows = [(i, i % 3, "a") for i in range(ROWS) if i % 10]
    paimon_spark.import_table(spark, "iceberg", "ice.n.t", "pm.db.i")
    same(spark, "pm.db.i", rows)
    paimon_spark.import_table(spark, "iceberg", f"{root}/ice/n/t", "pm.db.path")
    same(spark, "pm.db.path", rows)
    assert spark.sql("SELECT DISTINCT partition FROM pm.db.`i$partitions`").count() == 3
    spark.sql("CREATE TABLE ice.n.b (id BIGINT) USING iceberg PARTITIONED BY (bucket(4, id))")
    spark.sql("INSERT INTO ice.n.b SELECT id FROM range(10)")
    with pytest.raises(UnsupportedError, match="partition_keys"):
        paimon_spark.import_table(spark, "iceberg", "ice.n.b", "pm.db.b")
    paimon_spark.import_table(spark, "iceberg", "ice.n.b", "pm.db.b", partition_keys=[])
    same(spark, "pm.db.b", [(i,) for i in range(10)])


def main() -> None:
    """Arguments: a directory, and the jars, joined by commas."""
    root, jars = sys.argv[1:]
    spark = session(root, jars)
    delta(spark, root)
    iceberg(spark, root)
    print("imported", spark.version)


if __name__ == "__main__":
    main()
