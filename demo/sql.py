"""The flights of 2013 in SQL, by names in a catalog: CREATE, INSERT, MERGE, time travel, CALL (`make demo`)."""

import sys

import pyarrow as pa
from flights import KEY, flights_of_2013, main, timed
from pyspark.sql import SparkSession

import paimon_spark

TABLE = """
CREATE TABLE flights (
  month INT NOT NULL, day INT NOT NULL, carrier STRING NOT NULL, flight INT NOT NULL, origin STRING NOT NULL,
  dest STRING, dep_delay DOUBLE, status STRING DEFAULT 'scheduled')
PARTITIONED BY (month)
TBLPROPERTIES ('primary-key' = 'month,day,carrier,flight,origin', 'bucket' = '1')
"""
MERGE = """
MERGE INTO flights t USING changes s
ON t.month = s.month AND t.day = s.day AND t.carrier = s.carrier AND t.flight = s.flight AND t.origin = s.origin
WHEN MATCHED AND s.tailnum IS NULL THEN DELETE
WHEN MATCHED AND s.dep_delay IS NULL THEN UPDATE SET status = 'cancelled'
"""
COUNTS = "SELECT count(*), count_if(status = 'cancelled'), round(avg(dep_delay), 4) FROM {}"


def run(spark: SparkSession, warehouse: str) -> None:
    """The SQL part of the demo in one warehouse directory."""
    rows: pa.Table = flights_of_2013()
    source = spark.createDataFrame(rows).repartition(2).cache()
    source.createOrReplaceTempView("source")
    changes = source.where("dep_delay IS NULL OR tailnum IS NULL").cache()
    changes.createOrReplaceTempView("changes")
    count = source.count()
    paimon_spark.catalog(spark, "paimon", warehouse=warehouse)
    for statement in ("CREATE DATABASE paimon.demo", "USE paimon.demo", TABLE):
        spark.sql(statement)

    print(f"\nSQL: {count:,} flights in the table paimon.demo.flights")
    columns = ", ".join([*KEY, "dest", "dep_delay"])
    with timed("INSERT INTO, all flights", count):
        spark.sql(f"INSERT INTO flights ({columns}) SELECT {columns} FROM source")
    with timed("MERGE INTO, cancelled and nameless ones", changes.count()):
        spark.sql(MERGE)
    with timed("CALL sys.compact", count):
        spark.sql("CALL sys.compact(table => 'demo.flights')")
    with timed("SELECT, a filter on one partition", count):
        march = spark.sql("SELECT count(*) FROM flights WHERE month = 3 AND status = 'cancelled'").first()

    now = spark.sql(COUNTS.format("flights")).first()
    before = spark.sql(COUNTS.format("flights VERSION AS OF 1")).first()
    status = "IF(dep_delay IS NULL, 'cancelled', 'scheduled') AS status"
    expected = spark.sql(COUNTS.format(f"(SELECT dep_delay, {status} FROM source WHERE tailnum IS NOT NULL)")).first()
    written = spark.sql(COUNTS.format("(SELECT dep_delay, 'scheduled' AS status FROM source)")).first()
    in_march = spark.sql(
        "SELECT count(*) FROM source WHERE month = 3 AND dep_delay IS NULL AND tailnum IS NOT NULL"
    ).first()
    print("\nFlights, cancelled ones and their mean delay: now, and as of snapshot 1")
    print(f"  {tuple(now or ())}\n  {tuple(before or ())}\n")
    history = paimon_spark.PaimonTable.forPath(spark, f"{warehouse}/demo.db/flights").history()
    history.select("snapshot_id", "commit_kind", "total_record_count").show()
    if not (now == expected and before == written and march == in_march):
        sys.exit("FAILED: a statement differs from what Spark computes on the input itself")
    print("Every statement equals what Spark computes on the input itself.")


if __name__ == "__main__":
    main("sql", run)
