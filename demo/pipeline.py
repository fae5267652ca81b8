"""Flights arrive by day, corrections days later; delays by month and carrier follow them, exactly (`make demo`).

    files of a day -> stream -> flights, a primary-key table with a changelog
                                  -> stream of changes -> delays, an aggregation table

A correction changes a flight that was counted before: the changelog of flights contains the row before and after, and
the sums retract the first and add the second. Halfway both queries are stopped and restarted from their checkpoints.
"""

import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from flights import KEY, flights_of_2013, main, same
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

from paimon_core import Schema, Table

DAYS_A_BATCH, QUARTER = 46, 92
FLIGHTS = pa.schema(
    [
        pa.field("month", pa.int64(), nullable=False),
        pa.field("day", pa.int64(), nullable=False),
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("flight", pa.int64(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("arr_delay", pa.int64()),
        pa.field("told", pa.int64()),
    ]
)
DELAYS = pa.schema(
    [
        pa.field("month", pa.int64(), nullable=False),
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("flights", pa.int64()),
        pa.field("minutes", pa.int64()),
    ]
)


def arrivals(rows: pa.Table) -> list[pa.Table]:
    """Return the input of each day: flights as first reported, and corrections of flights three days earlier.

    All flights are first reported as on time. Three days later follows the delay, or kind -D for a flight that never
    arrived. Later reports have a larger `told`.
    """
    day = pc.add(pc.multiply(rows["month"], 31), rows["day"])
    days = sorted(pc.unique(day).to_pylist())
    late = pc.fill_null(pc.not_equal(rows["arr_delay"], 0), True)
    first = rows.drop_columns(["arr_delay"]).append_column("arr_delay", pa.repeat(pa.scalar(0, pa.int64()), len(rows)))
    kinds = pc.if_else(pc.is_null(rows["arr_delay"]), "-D", "+U")
    news = []
    for number in range(len(days) + 3):
        parts = []
        if number < len(days):
            new = first.filter(pc.equal(day, days[number]))
            parts.append(_told(new, number, pa.repeat("+I", len(new))))
        if number >= 3:
            corrected = pc.and_(pc.equal(day, days[number - 3]), late)
            parts.append(_told(rows.filter(corrected), number, kinds.filter(corrected)))
        news.append(pa.concat_tables(parts))
    return news


def _told(rows: pa.Table, number: int, kinds: pa.Array) -> pa.Table:
    return rows.append_column("told", pa.repeat(pa.scalar(number, pa.int64()), len(rows))).append_column("kind", kinds)


class Pipeline:
    """Two queries in one warehouse, each with a checkpoint."""

    def __init__(self, spark: SparkSession, warehouse: str, arriving: StructType) -> None:
        self._spark, self._warehouse, self._arriving = spark, warehouse, arriving
        self._inbox = Path(warehouse, "inbox")
        self._inbox.mkdir(parents=True)
        self.flights, self.delays = f"{warehouse}/demo.db/flights_live", f"{warehouse}/demo.db/delays"
        options = {"bucket": "2", "changelog-producer": "lookup", "sequence.field": "told"}
        Table.create(self.flights, Schema(FLIGHTS, primary_keys=KEY, options=options))
        sums = {f"fields.{name}.aggregate-function": "sum" for name in ("flights", "minutes")}
        options = {"bucket": "1", "merge-engine": "aggregation", **sums}
        Table.create(self.delays, Schema(DELAYS, primary_keys=["month", "carrier"], options=options))

    def start(self) -> list[StreamingQuery]:
        """Both queries, from where they were."""
        files = self._spark.readStream.schema(self._arriving).option("maxFilesPerTrigger", str(DAYS_A_BATCH))
        changes = self._spark.readStream.format("paimon").option("read.changelog", "true").load(self.flights)
        added = changes.selectExpr("month", "carrier", "1L AS flights", "arr_delay AS minutes", "rowkind")
        return [
            self._into(self.flights, files.parquet(str(self._inbox)), "kind"),
            self._into(self.delays, added, "rowkind"),
        ]

    def _into(self, table: str, rows: DataFrame, kind: str) -> StreamingQuery:
        sink = rows.writeStream.format("paimon").option("row-kind-column", kind)
        return sink.option("checkpointLocation", f"{self._warehouse}/checkpoints/{Path(table).name}").start(table)

    def arrive(self, number: int, news: pa.Table) -> None:
        """A file that is there at once or not at all."""
        hidden = self._inbox / f".{number:03}.parquet"
        pq.write_table(news, hidden)
        hidden.rename(self._inbox / f"{number:03}.parquet")

    def in_batch(self) -> DataFrame:
        """Return the expected delays, computed in one batch from all input files."""
        news = self._spark.read.schema(self._arriving).parquet(str(self._inbox))
        newest = news.groupBy(*KEY).agg(F.max_by(F.struct("arr_delay", "kind"), "told").alias("last"))
        left = newest.where("last.kind <> '-D'").groupBy("month", "carrier")
        return left.agg(F.count("*").alias("flights"), F.sum("last.arr_delay").alias("minutes"))


def stop(queries: list[StreamingQuery]) -> None:
    """Stop all queries."""
    for query in queries:
        query.stop()


def run(spark: SparkSession, warehouse: str) -> None:
    """The whole pipeline in one warehouse directory."""
    days = arrivals(flights_of_2013().select([*KEY, "arr_delay"]))
    pipeline = Pipeline(spark, warehouse, spark.createDataFrame(days[0]).schema)
    print(f"\nStreaming {sum(map(len, days)):,} flights and corrections of {len(days)} days through two tables")
    begun, rows, queries = time.perf_counter(), 0, pipeline.start()
    for number, news in enumerate(days, 1):
        pipeline.arrive(number, news)
        rows += len(news)
        if number % QUARTER and number < len(days):
            continue
        for query in queries:
            query.processAllAvailable()
        totals = spark.read.format("paimon").load(pipeline.delays).agg(F.sum("flights"), F.sum("minutes")).first()
        told = f"{totals[0]:>8,} flights, {totals[1]:>10,} minutes late" if totals else "nothing"
        print(f"  day {number:3}, {rows:>8,} rows, {time.perf_counter() - begun:6.2f} s: {told}", flush=True)
        if number == 2 * QUARTER:
            print("  both queries stopped, and started again from their checkpoints")
            stop(queries)
            queries = pipeline.start()
    stop(queries)
    delays = spark.read.format("paimon").load(pipeline.delays).where("flights > 0").cache()
    print("\nMean delay by month and carrier, the worst")
    delays.withColumn("mean", F.round(F.expr("minutes / flights"), 1)).orderBy(F.desc("mean")).show(5)
    if not same(delays, pipeline.in_batch()):
        sys.exit("FAILED: the sums that followed the stream differ from those computed at once")
    print("Every sum equals the one computed at once from all that came in.")


if __name__ == "__main__":
    main("pipeline", run)
