"""A chain of streaming queries in a process of its own, from numbers through one table after the other.

`python -m tests.stream.chain WAREHOUSE log,orders,mirror,sums` runs until it is killed. With `drain` behind, one more
batch of numbers comes in, and every query, one after the other, works off what there is.

* log: an append table; every number once, with the change it stands for
* orders: the newest change of each key, by `sequence.field`; its changelog is looked up as its writer compacts
* mirror: the changes of orders, in their order; no sequence field puts right what comes out of order
* sums: changes added up and taken off again: a batch that lands twice, or never, shows for ever
"""

import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from paimon_core.schema.schema import Schema
from paimon_core.table import Table

KEYS, GROUPS, DELETED_OF = 211, 7, 11
UP, DRAINED = "chain: up", "chain: drained"
_KEPT = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "30"}
TABLES = {
    "log": Schema(pa.schema([("v", pa.int64()), ("k", pa.int64()), ("kind", pa.string())]), options=_KEPT),
    "orders": Schema(
        pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())]),
        primary_keys=["k"],
        options={**_KEPT, "bucket": "2", "sequence.field": "v", "changelog-producer": "lookup"},
    ),
    "mirror": Schema(
        pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())]),
        primary_keys=["k"],
        options={**_KEPT, "bucket": "2", "changelog-producer": "input"},
    ),
    "sums": Schema(
        pa.schema([pa.field("g", pa.int64(), nullable=False), ("n", pa.int64()), ("total", pa.int64())]),
        primary_keys=["g"],
        options={
            **_KEPT,
            "bucket": "1",
            "merge-engine": "aggregation",
            "fields.n.aggregate-function": "sum",
            "fields.total.aggregate-function": "sum",
        },
    ),
}


def place(warehouse: str, table: str) -> str:
    """Return the path of a table of the chain."""
    return f"{warehouse}/db.db/{table}"


def make(warehouse: str, chain: Sequence[str]) -> dict[str, Table]:
    """The tables, empty."""
    return {name: Table.create(place(warehouse, name), TABLES[name]) for name in chain}


def numbers(spark: SparkSession) -> DataFrame:
    """0, 1, 2 ...: the same ones in a batch that comes again."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "200").option("numPartitions", "2")
    kind = f"CASE WHEN value % {DELETED_OF} = 5 THEN '-D' ELSE '+U' END AS kind"
    return source.load().selectExpr("value AS v", f"value * 7919 % {KEYS} AS k", kind)


def numbers_sent(checkpoint: str) -> int:
    """Return how many numbers a query has received according to its checkpoint, without reading tables."""
    offsets = Path(checkpoint, "offsets")
    newest = max(int(path.name) for path in offsets.iterdir() if path.name.isdecimal())
    return int(json.loads((offsets / str(newest)).read_text().splitlines()[-1])["offset"])


def follow(spark: SparkSession, warehouse: str, table: str, **options: str) -> DataFrame:
    """Return the changes of a table, six files per batch; a consumer protects them while the query is stopped."""
    source = spark.readStream.format("paimon").options(**{"consumer-id": "next", "maxFilesPerTrigger": "6"}, **options)
    return source.load(place(warehouse, table))


def start(spark: SparkSession, warehouse: str, feed: str | None, table: str, **trigger: object) -> StreamingQuery:
    """The query that fills a table from the one before it, or with numbers."""
    kind = {"log": None, "orders": "kind"}.get(table, "rowkind")
    if feed is None:
        rows = numbers(spark)
    else:
        rows = follow(spark, warehouse, feed, **({"read.changelog": "true"} if kind == "rowkind" else {}))
    if table == "sums":
        rows = rows.selectExpr(f"k % {GROUPS} AS g", "1L AS n", "v AS total", "rowkind")
    sink = rows.writeStream.format("paimon").queryName(table).trigger(**trigger)
    sink = sink.option("checkpointLocation", f"{warehouse}/checkpoints/{table}")
    return (sink if kind is None else sink.option("row-kind-column", kind)).start(place(warehouse, table))


def drain(spark: SparkSession, warehouse: str, chain: Sequence[str]) -> None:
    """One more batch of numbers, then everything through the whole chain."""
    start(spark, warehouse, None, chain[0], availableNow=True).awaitTermination()
    for feed, table in pairwise(chain):
        query = start(spark, warehouse, feed, table, processingTime="0 seconds")
        query.processAllAvailable()
        query.stop()


def main(warehouse: str, names: str, *what: str) -> None:
    """Run the chain, or drain it."""
    chain = names.split(",")
    builder = SparkSession.builder.master("local[2,2]").appName("chain").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "WARN")
    # it does not live long enough for optimising compilers to pay
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    builder = builder.config("spark.sql.warehouse.dir", f"{warehouse}/spark").config("spark.driver.memory", "700m")
    spark = builder.config("spark.local.dir", str(Path(warehouse).parent)).getOrCreate()
    if "drain" in what:
        drain(spark, warehouse, chain)
        print(DRAINED, flush=True)
        spark.stop()
        return
    for feed, table in pairwise([None, *chain]):
        start(spark, warehouse, feed, table, processingTime="0 seconds")
    print(UP, flush=True)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
