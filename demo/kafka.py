"""Records and change records from Kafka follow into Paimon tables, each exactly once.

    topic events, JSON                  -> stream           -> events, an append table
    topic orders, changes of Debezium   -> stream           -> orders, a table with a primary key
                                        -> MERGE of batches -> merged, the same rows

Run it with the address of a broker: ``python demo/kafka.py localhost:9092 /tmp/kafka-demo``. Spark finds its Kafka
connector on Maven Central; a third argument names its jars instead, with commas between them.
"""

import json
import sys
import time

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import paimon_spark

EVENT = "id BIGINT, device STRING, value DOUBLE"
ORDER = "id BIGINT, customer STRING, amount DECIMAL(10, 2)"
WITH_NOTE = f"{ORDER}, note STRING"
"""The columns of an order after the source table got a column."""
KINDS = (
    "CASE WHEN op IN ('c', 'r', 'u') THEN '+U' WHEN op = 'd' THEN '-D' "
    "ELSE raise_error(concat('change record with an unknown op: ', coalesce(op, 'NULL'))) END"
)
MERGE = """
MERGE INTO lake.shop.merged AS t USING newest AS s ON t.id = s.id
WHEN MATCHED AND s.lsn > t.lsn AND s.kind = '-D' THEN DELETE
WHEN MATCHED AND s.lsn > t.lsn THEN UPDATE SET {assignments}
WHEN NOT MATCHED AND s.kind <> '-D' THEN INSERT ({columns}) VALUES ({values})
"""


def make_tables(spark: SparkSession, warehouse: str) -> None:
    """Create the tables that do not exist, in the catalog `lake`."""
    paimon_spark.catalog(spark, "lake", warehouse=warehouse)
    spark.sql("CREATE DATABASE IF NOT EXISTS lake.shop")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.shop.events ({EVENT}, `partition` INT, `offset` BIGINT)")
    properties = "'primary-key' = 'id', 'bucket' = '2'"
    ordered = f"{properties}, 'sequence.field' = 'lsn'"
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.shop.orders ({ORDER}, lsn BIGINT) TBLPROPERTIES ({ordered})")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.shop.merged ({ORDER}, lsn BIGINT) TBLPROPERTIES ({properties})")


def add_note(spark: SparkSession) -> None:
    """Add the column `note` to the tables of orders that lack it."""
    for name in ("orders", "merged"):
        if "note" not in spark.table(f"lake.shop.{name}").columns:
            spark.sql(f"ALTER TABLE lake.shop.{name} ADD COLUMN note STRING")


def records(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """Return the records of a topic as a stream, from its first one."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    return source.option("subscribe", topic).option("startingOffsets", "earliest").load()


def events(spark: SparkSession, servers: str) -> DataFrame:
    """Return the JSON records of the topic `events`; a malformed one stops the query."""
    value = F.from_json(F.col("value").cast("string"), EVENT, {"mode": "FAILFAST"})
    return records(spark, servers, "events").select(value.alias("event"), "partition", "offset").select(
        "event.*", "partition", "offset"
    )  # fmt: skip


def changes(spark: SparkSession, servers: str, columns: str) -> DataFrame:
    """Return the changes of orders with their row kinds; `columns`: of an order."""
    envelope = f"op STRING, before STRUCT<{columns}>, after STRUCT<{columns}>, source STRUCT<lsn: BIGINT>"
    found = records(spark, servers, "orders").where("value IS NOT NULL")  # a tombstone follows each delete
    found = found.select(F.from_json(F.col("value").cast("string"), envelope, {"mode": "FAILFAST"}).alias("c"))
    found = found.select("c.*").withColumn("kind", F.expr(KINDS))
    row = F.when(F.col("op") == "d", F.col("before")).otherwise(F.col("after"))
    return found.select("kind", row.alias("row"), F.col("source.lsn").alias("lsn")).select("kind", "row.*", "lsn")


def merge(batch: DataFrame, number: int) -> None:
    """Apply the newest change of each order of a batch; a batch that comes again changes nothing."""
    names = [name for name in batch.columns if name != "kind"]
    newest = batch.groupBy("id").agg(F.max_by(F.struct(*batch.columns), "lsn").alias("row")).select("row.*")
    newest.createOrReplaceTempView("newest")
    assignments = ", ".join(f"t.{name} = s.{name}" for name in names)
    values = ", ".join(f"s.{name}" for name in names)
    text = MERGE.format(assignments=assignments, columns=", ".join(names), values=values)
    batch.sparkSession.sql(text)


def follow(
    spark: SparkSession, servers: str, warehouse: str, columns: str = ORDER, **trigger: object
) -> list[StreamingQuery]:
    """Start the three queries, or continue them from their checkpoints; `trigger`: of each."""

    def writer(rows: DataFrame, name: str) -> object:
        sink = rows.writeStream.queryName(name).trigger(**trigger)
        return sink.option("checkpointLocation", f"{warehouse}/checkpoints/{name}")

    shop = f"{warehouse}/shop.db"
    rows = changes(spark, servers, columns)
    return [
        writer(events(spark, servers), "events").format("paimon").start(f"{shop}/events"),
        writer(rows, "orders").format("paimon").option("row-kind-column", "kind").start(f"{shop}/orders"),
        writer(rows, "merged").foreachBatch(merge).start(),
    ]


def send(spark: SparkSession, servers: str, topic: str, sent: list[tuple[object, object]]) -> None:
    """Send (key, value) records; a value of `None` is a tombstone."""
    rows = [(json.dumps(key), None if value is None else json.dumps(value)) for key, value in sent]
    frame = spark.createDataFrame(rows, "key STRING, value STRING").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def change(lsn: int, op: str, before: dict | None, after: dict | None) -> tuple[dict, dict]:
    """Return the key and the value of a change record as Debezium sends it without schemas."""
    return {"id": (after or before)["id"]}, {"before": before, "after": after, "op": op, "source": {"lsn": lsn}}


def run(spark: SparkSession, servers: str, warehouse: str) -> None:
    """Send records in three rounds, and show the tables after each."""
    make_tables(spark, warehouse)
    first = [{"id": n, "customer": "c" * (n % 3 + 1), "amount": n / 4} for n in range(4)]
    later = {**first[1], "amount": 99.5}
    noted = {"id": 9, "customer": "d", "amount": 1.0, "note": "new column"}
    rounds = [
        [change(n, "r", None, row) for n, row in enumerate(first)],
        [change(10, "u", first[1], later), change(11, "d", first[2], None), ({"id": 2}, None)],
        [change(20, "c", None, noted)],
    ]
    for number, sent in enumerate(rounds):
        if number == len(rounds) - 1:
            add_note(spark)
        send(spark, servers, "orders", sent)
        send(spark, servers, "events", [(n, {"id": n, "device": "d", "value": n / 2}) for n in range(5)])
        columns = WITH_NOTE if number == len(rounds) - 1 else ORDER
        begun = time.perf_counter()
        for query in follow(spark, servers, warehouse, columns, availableNow=True):
            query.awaitTermination()
        print(f"round {number + 1}: {time.perf_counter() - begun:.1f} s", flush=True)
        spark.table("lake.shop.orders").orderBy("id").show()
    orders, merged = (spark.table(f"lake.shop.{name}") for name in ("orders", "merged"))
    twice = spark.table("lake.shop.events").groupBy("partition", "offset").count().where("count > 1").count()
    if orders.exceptAll(merged.select(*orders.columns)).count() or orders.count() != merged.count() or twice:
        sys.exit("FAILED: the tables differ, or an event is there twice")
    print("Both tables of orders have the same rows, and every event is there once.")


def main() -> None:
    """Run the demo: arguments are the address of a broker, a warehouse and, optionally, jars with commas between."""
    servers, warehouse, *jars = sys.argv[1:]
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    connector = {"spark.jars": jars[0]} if jars else {"spark.jars.packages": package}
    builder = SparkSession.builder.config(map=connector).config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR").getOrCreate()
    run(spark, servers, warehouse)
    spark.stop()


if __name__ == "__main__":
    main()
