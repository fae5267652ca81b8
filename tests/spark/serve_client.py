"""A client of Spark Connect without this package: ``python serve_client.py URL``. Prints a JSON document."""

import json
import os
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

MERGE = """
    MERGE INTO shop.orders t USING (SELECT 2L AS id, 'x' AS item UNION ALL SELECT 3L, 'new') s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
"""


def answers(spark):
    """Run statements of every kind; yield a name and the answer of each."""
    spark.sql("USE served")
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    spark.sql("CREATE TABLE shop.orders (id BIGINT, item STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    spark.sql("INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b')")
    yield "merged", spark.sql(MERGE)
    yield "rows", spark.sql("SELECT * FROM shop.orders ORDER BY id")
    yield "past", spark.sql("SELECT * FROM shop.orders VERSION AS OF 1 ORDER BY id")
    yield "updated", spark.sql("UPDATE shop.orders SET item = upper(item) WHERE id = 1")
    yield "deleted", spark.sql("DELETE FROM shop.orders WHERE id = 2")
    yield "compacted", spark.sql("CALL sys.compact('shop.orders')").select("result")
    spark.sql("ALTER TABLE shop.orders ADD COLUMNS (pieces INT)")
    spark.range(9, 10).selectExpr("id", "'q' AS item", "5 AS pieces").writeTo("shop.orders").append()
    yield "snapshots", spark.sql("SELECT count(*) > 4 FROM shop.`orders$snapshots`")
    yield "named", spark.table("shop.orders").orderBy("id")


def isolated(spark, url):
    """Return what another session of this client sees of the current catalog, a temporary view and a setting."""
    spark.sql("USE shop")
    spark.range(1).createOrReplaceTempView("mine")
    spark.conf.set("spark.sql.shuffle.partitions", "17")
    other = SparkSession.builder.remote(url).create()
    return {
        "catalog": other.sql("SELECT current_catalog()").first()[0],
        "view": other.catalog.tableExists("mine"),
        "setting": other.conf.get("spark.sql.shuffle.partitions"),
    }


def main(url):
    """Print the answers as JSON."""
    spark = SparkSession.builder.remote(url).getOrCreate()
    printed = {name: [list(row) for row in frame.collect()] for name, frame in answers(spark)}
    try:
        spark.sql("SELECT * FROM shop.nothing").collect()
    except PySparkException as error:
        printed["condition"] = error.getCondition()
    printed["other session"] = isolated(spark, url)
    printed["package"] = "paimon_spark" in sys.modules
    print("\n" + json.dumps(printed), flush=True)
    os._exit(0)  # PySpark 4.3 waits forever for the channel of a second session at the end of a process


if __name__ == "__main__":
    main(sys.argv[1])
