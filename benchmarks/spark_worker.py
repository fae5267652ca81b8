"""One side of the Spark benchmarks: reads JSON commands, answers seconds. The same code for both sides.

``python spark_worker.py ours WAREHOUSE`` uses ``format("paimon")`` of this project, ``java`` the Java connector.
"""

import json
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ("spark.paimon.read.native", "spark.paimon.write.native")
"""The settings of Spark's own scan and encoder."""
GENERATED = (
    "id AS k",
    "hash(id) AS a",
    "xxhash64(id) AS b",
    "xxhash64(id, 1) / 7.0D AS c",
    "CAST(id % 100 AS INT) AS d",
    "concat('s', lpad(CAST(id % 100000 AS STRING), 5, '0')) AS s",
)
"""The columns of generated rows, as in `benchmarks.rows`."""


def session(side, warehouse, jar, master):
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if not master.startswith("local"):
        settings |= {"spark.executor.memory": "1536m", "spark.executorEnv.PYTHONPATH": str(ROOT)}
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
    """One side of the comparison: runs a command by its name."""

    def __init__(self, side, warehouse, spark):
        self.java, self.warehouse, self.spark = side == "java", warehouse, spark
        self.spark.sparkContext.setLogLevel("ERROR")
        self.inputs = {}
        self.others = {}
        if not self.java:
            import paimon_spark  # noqa: PLC0415 - of the other side there is no such package
            from benchmarks.bare_source import BareSource  # noqa: PLC0415 - unknown to pyspark 3.5

            self.paimon = paimon_spark
            self.paimon.register(self.spark)  # reads by path are native from the first row on
            self.spark.dataSource.register(BareSource)

    def use_native(self, native):
        """Let Spark's own scan and encoder, or Python workers, read and write."""
        for key in () if self.java else NATIVE:
            if self.spark.conf.get(key, "true") != str(native).lower():
                self.spark.conf.set(key, str(native).lower())

    def path(self, table):
        """Return the path of a table."""
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
        elif "plain" in command:
            plain = frame.write.mode("overwrite").option("compression", "zstd").partitionBy(command["partition"])
            plain.option("parquet.compression.codec.zstd.level", "1").parquet(command["plain"])
        else:
            target = frame.write.format("bare" if "bare" in command else "paimon")
            target.mode("append").save(self.path(command["table"]))
        return rows, time.perf_counter() - start

    def load(self, command):
        """Append rows of a file that are not needed again."""
        self.spark.read.parquet(command["input"]).write.insertInto(f"paimon.default.{command['table']}")
        return 0, 0.0

    def compact(self, command):
        """Everything to the highest level."""
        start = time.perf_counter()
        if self.java:
            self.spark.sql(f"CALL paimon.sys.compact(table => 'default.{command['table']}')").collect()
        else:
            self.paimon.PaimonTable.forPath(self.spark, self.path(command["table"])).compact(full=True)
        return 0, time.perf_counter() - start

    def source(self, command, **options):
        """Return a table by its path, read with options; with ``bare`` options, generated rows."""
        options |= command.get("bare", {})
        source = self.spark.read.format("bare" if "bare" in command else "paimon").options(**options)
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

    def by_path(self, command):
        """Read a table by its path or by its name, or ``files`` with Spark's own source.

        ``as``: into nothing, as rows, or as their number.
        """
        start = time.perf_counter()
        if "files" in command:
            frame = self.spark.read.parquet(*command["files"])
        elif command.get("by") == "name":
            frame = self.spark.sql(f"SELECT * FROM paimon.default.{command['table']}")
        else:
            frame = self.spark.read.format("paimon").load(self.path(command["table"]))
        if "where" in command:
            frame = frame.where(command["where"])
        if "columns" in command:
            frame = frame.select(*command["columns"])
        if "aggregate" in command:
            frame = frame.selectExpr(*command["aggregate"])
        rows = 0
        if command["as"] == "number":
            rows = frame.count()
        elif command["as"] == "rows":
            rows = len(frame.collect())
        else:
            frame.write.format("noop").mode("overwrite").save()
        return rows, time.perf_counter() - start

    def generate(self, command):
        """Write generated rows from tasks that each have rows of every partition ``p``."""
        frame = self.spark.range(0, command["rows"], 1, command["tasks"]).selectExpr(*GENERATED)
        frame = frame.withColumn("p", (frame.k % command["partitions"]).cast("int"))
        start = time.perf_counter()
        if "plain" in command:
            plain = frame.write.mode("overwrite").partitionBy("p").option("compression", "zstd")
            plain.option("parquet.compression.codec.zstd.level", "1").parquet(command["plain"])
        else:
            frame.write.format("paimon").mode("append").save(self.path(command["table"]))
        return command["rows"], time.perf_counter() - start

    def query(self, command):
        """Run a query on a table by its path or by its name, or on a directory of Parquet files."""
        start = time.perf_counter()
        if "plain" in command:
            source = f"parquet.`{command['plain']}`"
        elif command.get("by") == "name":
            source = f"paimon.default.{command['table']}"
        else:
            self.spark.read.format("paimon").load(self.path(command["table"])).createOrReplaceTempView("by_path")
            source = "by_path"
        found = self.spark.sql(command["text"].format(source)).collect()
        return len(found), time.perf_counter() - start

    def compact_files(self, command):
        """Compact small files, with ``CALL`` or through a table opened by its path; return the rows of the result."""
        table = self.paimon.PaimonTable.forPath(self.spark, self.path(command["table"]))
        start = time.perf_counter()
        if command.get("by") == "name":
            self.spark.sql(f"CALL paimon.sys.compact(table => 'default.{command['table']}')").collect()
        else:
            table.compact()
        seconds = time.perf_counter() - start
        return table.toDF().count(), seconds

    def rewrite(self, command):
        """Rewrite the rows of Parquet files, with one file in each partition."""
        frame = self.spark.read.parquet(command["plain"])
        start = time.perf_counter()
        moved = frame.repartition(command["tasks"], "p")
        moved.write.mode("overwrite").partitionBy("p").option("compression", "zstd").parquet(command["plain"] + "-new")
        seconds = time.perf_counter() - start
        return frame.count(), seconds

    def count(self, command):
        """Read into one row."""
        start = time.perf_counter()
        if self.java:
            frame = self.spark.read.table(f"paimon.default.{command['table']}")
        else:
            frame = self.source(command)
        rows = frame.selectExpr("sum(a)", "count(*)").first()[1]
        return rows, time.perf_counter() - start

    def range(self, command):
        """Sum up all columns of a range of keys, with the query's filter, or for ours with the option `filter`."""
        start = time.perf_counter()
        condition = f"k >= {command['low']} AND k < {command['high']}"
        if self.java:
            frame = self.spark.read.table(f"paimon.default.{command['table']}").where(condition)
        elif "bare" in command:
            frame = self.source(command)
        else:
            frame = self.source(command, filter=condition)
        found = frame.selectExpr("count(*)", "sum(a)", "sum(b % 1000)", "sum(c)", "sum(d)", "max(s)").first()
        return found[0], time.perf_counter() - start

    def catalog(self, command):
        """Install the catalog paimon; the Java connector has its catalog from its configuration."""
        if not self.java:
            self.paimon.catalog(self.spark, "paimon", warehouse=self.warehouse)
        return 0, 0.0

    def views(self, command):
        """Show Parquet files under the names of their tables, in a session of their own for the database ``plain``.

        ``stored``: other files of some tables. A filter on the flag ``kept`` leaves out superseded rows.
        """
        session = self.others[command.get("database", "plain")] = self.spark.newSession()
        for file in sorted(Path(command["folder"]).glob("*.parquet")):
            session.read.parquet(str(file)).createOrReplaceTempView(file.stem)
        for name, files in command.get("stored", {}).items():
            session.read.parquet(*files).where(command["kept"]).drop(command["kept"]).createOrReplaceTempView(name)
        return 0, 0.0

    def sql(self, command):
        """Run a statement in a database of the catalog, or on the plain files; count the rows of a query."""
        session = self.others.get(command["database"], self.spark)
        if session is self.spark:
            session.sql(f"USE paimon.{command['database']}")
        start = time.perf_counter()
        found = session.sql(command["text"]).collect()
        seconds = time.perf_counter() - start
        return (len(found) if command["text"].startswith(("SELECT", "WITH")) else 0), seconds

    def scan(self, command):
        """Read what a query selects into nothing; ``parquet``: from Parquet files as a temporary view ``files``."""
        session = self.spark
        if "parquet" in command:
            session.read.parquet(command["parquet"]).createOrReplaceTempView("files")
        start = time.perf_counter()
        session.sql(command["text"]).write.format("noop").mode("overwrite").save()
        return 0, time.perf_counter() - start

    def repeat(self, command):
        """Run a query several times."""
        start = time.perf_counter()
        for _ in range(command["times"]):
            self.spark.sql(command["text"]).collect()
        return command["times"], time.perf_counter() - start

    def sink(self, rows, table, form="paimon"):
        """A stream into a table, or into nothing, with a checkpoint of its own."""
        writer = rows.writeStream.option("checkpointLocation", tempfile.mkdtemp(dir=self.warehouse))
        return writer.format("noop") if table is None else writer.format(form).option("path", self.path(table))

    def follow(self, table):
        """A stream out of a table."""
        return self.spark.readStream.format("paimon").load(self.path(table))

    def stream_write(self, command):
        """Files into a table, one a batch; ``commits`` asks for what the quickest batch took to write and commit."""
        schema = self.spark.read.parquet(command["input"]).schema
        files = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(command["input"])
        reports = self.run_through(files, command["table"], command.get("format", "paimon"))
        if command.get("commits"):
            return counted(reports), min(one["durationMs"]["addBatch"] for one in reports) / 1000
        return counted(reports), ended(reports[-1]) - moment(reports[0]["timestamp"])

    def stream_read(self, command):
        """All there is into nothing."""
        reports = self.run_through(self.follow(command["table"]), None)
        return counted(reports), ended(reports[-1]) - moment(reports[0]["timestamp"])

    def run_through(self, rows, table, form="paimon"):
        """Return Spark's progress report of each batch of a stream that ends after all rows."""
        query = self.sink(rows, table, form).trigger(availableNow=True).start()
        query.awaitTermination()
        return batches(query)

    def stream_start(self, command):
        """Run a stream from a table to a sink that drops all rows; report triggers without rows as well."""
        interval = "spark.sql.streaming.noDataProgressEventInterval"
        self.spark.conf.set(interval, "0")
        self.query = self.sink(self.follow(command["table"]), None).start()
        self.spark.conf.unset(interval)
        self.query.processAllAvailable()
        return 0, 0.0

    def stream_idle(self, command):
        """Count the triggers without new data in some seconds, and return their median duration."""
        since = time.time()
        time.sleep(command["seconds"])
        reports = [one for one in map(progress, self.query.recentProgress) if ended(one) > since]
        return len(reports), statistics.median(one["durationMs"]["triggerExecution"] for one in reports) / 1000

    def stream_stop(self, command):
        """Stop it."""
        self.query.stop()
        return 0, 0.0

    def stream_lag(self, command):
        """Numbers at a rate into a table and out of it into nothing: mean age of a row when its batch has gone through,
        and how many rows a second came out, once both streams have warmed up."""
        made = self.spark.readStream.format("rate").option("rowsPerSecond", str(command["rate"])).load()
        first = self.sink(made, command["table"]).start()
        second = self.sink(self.follow(command["table"]).withWatermark("timestamp", "0 seconds"), None).start()
        since = time.time()
        while len(batches(second, since)) < command["warm"]:
            time.sleep(0.1)
        since = time.time()
        while time.time() - since < command["seconds"] or len(batches(second, since)) < 3:
            time.sleep(0.1)
        first.stop()
        second.stop()
        reports = batches(second, since)
        rows = counted(reports[1:])
        ages = [(ended(one) - moment(one["eventTime"]["avg"])) * one["numInputRows"] for one in reports[1:]]
        return rows / (ended(reports[-1]) - ended(reports[0])), sum(ages) / rows


def progress(one):
    """Return Spark's progress of a batch as a dictionary, in every version."""
    return one if isinstance(one, dict) else json.loads(one.json)


def batches(query, since=0):
    """Return Spark's progress reports of the batches with rows that ended after that time."""
    return [one for one in map(progress, query.recentProgress) if one["numInputRows"] and ended(one) > since]


def counted(reports):
    """Rows of all batches."""
    return sum(one["numInputRows"] for one in reports)


def moment(text):
    """Seconds since the epoch of a time as Spark writes it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def ended(one):
    """When a batch was done."""
    return moment(one["timestamp"]) + one["durationMs"]["triggerExecution"] / 1000


def main(side, warehouse, jar="", master="local[2]"):
    """Answer until the input ends."""
    here = Side(side, warehouse, session(side, warehouse, jar, master))
    print("\n@" + json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            here.use_native(command.get("native", True))
            rows, seconds = getattr(here, command["do"])(command)
            print("\n@" + json.dumps({"rows": rows, "wall": seconds}), flush=True)
        except Exception as error:
            print("\n@" + json.dumps({"error": f"{type(error).__name__}: {error}"[:1500]}), flush=True)
    here.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
