"""One side of the Spark benchmarks: reads JSON commands, answers seconds. The same code for both sides.

``python spark_worker.py ours WAREHOUSE`` uses ``format("paimon")`` of this project, ``java`` the Java connector.
"""

import json
import sys
import time

from pyspark.sql import SparkSession


def session(side, warehouse, jar):
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if side == "java":
        settings |= {
            "spark.jars": jar,
            "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.paimon.warehouse": warehouse,
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Side:
    """What one side does with a command."""

    def __init__(self, side, warehouse, jar):
        self.java, self.warehouse = side == "java", warehouse
        self.spark = session(side, warehouse, jar)
        self.spark.sparkContext.setLogLevel("ERROR")
        self.inputs = {}
        if not self.java:
            import paimon_spark  # noqa: PLC0415 - of the other side there is no such package
            from benchmarks.bare_source import BareSource  # noqa: PLC0415 - unknown to pyspark 3.5

            self.paimon = paimon_spark
            self.spark.dataSource.register(BareSource)

    def path(self, table):
        """Where a table lies."""
        return f"{self.warehouse}/default.db/{table}"

    def input(self, path, limit):
        """The rows to write, in Spark's memory already, in two partitions."""
        if (path, limit) not in self.inputs:
            frame = self.spark.read.parquet(path)
            frame = (frame.limit(limit).coalesce(1) if limit else frame.repartition(2)).cache()
            self.inputs[path, limit] = frame, frame.count()
        return self.inputs[path, limit]

    def write(self, command):
        """Append rows, or upsert them."""
        frame, rows = self.input(command["input"], command.get("limit"))
        start = time.perf_counter()
        if self.java:
            frame.write.insertInto(f"paimon.default.{command['table']}")
        else:
            frame.write.format("paimon").mode("append").save(self.path(command["table"]))
        return rows, time.perf_counter() - start

    def compact(self, command):
        """Everything to the highest level."""
        start = time.perf_counter()
        if self.java:
            self.spark.sql(f"CALL paimon.sys.compact(table => 'default.{command['table']}')").collect()
        else:
            self.paimon.PaimonTable.forPath(self.spark, self.path(command["table"])).compact(full=True)
        return 0, time.perf_counter() - start

    def source(self, command):
        """A table by its place, or, given ``bare`` options, rows that come from nowhere."""
        source = self.spark.read.format("bare" if "bare" in command else "paimon").options(**command.get("bare", {}))
        if command.get("columns"):
            source = source.option("columns", ",".join(command["columns"]))
        return source.load() if "bare" in command else source.load(self.path(command["table"]))

    def read(self, command):
        """Read into nothing."""
        start = time.perf_counter()
        if self.java:
            frame = self.spark.read.table(f"paimon.default.{command['table']}")
        else:
            frame = self.source(command)
        if command.get("columns"):
            frame = frame.select(*command["columns"])
        frame.write.format("noop").mode("overwrite").save()
        return 0, time.perf_counter() - start

    def count(self, command):
        """Read into one row."""
        start = time.perf_counter()
        if self.java:
            frame = self.spark.read.table(f"paimon.default.{command['table']}")
        else:
            frame = self.source(command)
        rows = frame.selectExpr("sum(a)", "count(*)").first()[1]
        return rows, time.perf_counter() - start


def main(side, warehouse, jar=""):
    """Answer until the input ends."""
    here = Side(side, warehouse, jar)
    print("\n@" + json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            rows, seconds = getattr(here, command["do"])(command)
            print("\n@" + json.dumps({"rows": rows, "wall": seconds}), flush=True)
        except Exception as error:
            print("\n@" + json.dumps({"error": f"{type(error).__name__}: {error}"[:1500]}), flush=True)
    here.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
