"""``spark.readStream.format("paimon")``: every row is read once over failures and restarts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.consumers import Consumers
from paimon_core.table import Table
from paimon_core.types.datatype import AtomicType

pytestmark = [pytest.mark.spark, pytest.mark.versions]
everywhere = pytest.mark.everywhere
ROWS = pa.schema(
    [pa.field("dt", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())]
)
HAS_AVAILABLE_NOW = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)


@pytest.fixture
def table(warehouse):
    return made(f"{warehouse}/db.db/t")


def made(path: str, **options: str) -> Table:
    settings = {"bucket": "2", "write-only": "true", **{k.replace("_", "-"): v for k, v in options.items()}}
    return Table.create(path, Schema(ROWS, primary_keys=["dt", "id"], partition_keys=["dt"], options=settings))


def put(table: Table, *ids: int, text: str = "x", kinds: list[str] | None = None) -> None:
    rows = {"dt": [f"d{i % 2}" for i in ids], "id": pa.array(ids, pa.int64()), "v": [text] * len(ids)}
    table.write(pa.table(rows), kinds)


class Run:
    """A query from a table into files, which Spark writes once per batch; the same place again goes on."""

    def __init__(self, spark, path, place, trigger=None, **options: str) -> None:
        frame = spark.readStream.format("paimon").options(**options).load(path)
        stream = frame.writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint")
        self.query = stream.trigger(**trigger or {"processingTime": "0 seconds"}).start(f"{place}/out")
        self.place = place

    def __enter__(self):
        return self

    def __exit__(self, *error: object) -> None:
        self.query.stop()

    def rows(self) -> list[tuple]:
        """All that came, once the query has caught up."""
        self.query.processAllAvailable()
        return came(self.place)

    def batches(self) -> int:
        """Return the number of batches from the checkpoint; over Connect the query's own report is late."""
        return sum(file.name.isdigit() for file in Path(self.place, "checkpoint", "commits").iterdir())


def came(place) -> list[tuple]:
    out = Path(place) / "out"
    return sorted(tuple(row.values()) for file in out.glob("*.parquet") for row in pq.read_table(file).to_pylist())


def ids(rows: list[tuple]) -> list[int]:
    return sorted(row[1] for row in rows)


@everywhere
def test_rows_then_changes_over_restarts(spark, table, tmp_path):
    put(table, 1, 2, 3)
    put(table, 3, text="y")
    with Run(spark, table.path, tmp_path) as run:
        assert run.rows() == [("d0", 2, "x"), ("d1", 1, "x"), ("d1", 3, "y")]
        put(table, 4)
        assert ids(run.rows()) == [1, 2, 3, 4]
    put(table, 5)
    table.compact(full=True)
    put(table, 6, 7)
    with Run(spark, table.path, tmp_path) as run:
        assert ids(run.rows()) == [1, 2, 3, 4, 5, 6, 7], "what was compacted comes once"


@pytest.mark.more
def test_changes_of_every_kind_in_small_batches(spark, warehouse, tmp_path):
    table = made(f"{warehouse}/db.db/changes", changelog_producer="input")
    put(table, 1, 2, 3, 4)
    put(table, 1, text="y", kinds=["-U"])
    put(table, 1, text="z", kinds=["+U"])
    put(table, 2, kinds=["-D"])
    options = {"read.changelog": "true", "startingVersion": "1", "maxFilesPerTrigger": "1"}
    with Run(spark, table.path, tmp_path, **options) as run:
        came = sorted(run.rows())
        assert run.batches() >= 4
    assert came == sorted(
        [
            *(("+I", f"d{i % 2}", i, "x") for i in (1, 2, 3, 4)),
            ("-U", "d1", 1, "y"),
            ("+U", "d1", 1, "z"),
            ("-D", "d0", 2, "x"),
        ]
    )


@pytest.mark.more
def test_stream_of_empty_table_reads_its_first_rows(spark, table, tmp_path):
    with Run(spark, table.path, tmp_path) as run:
        assert run.rows() == []
        time.sleep(0.5)
        assert run.query.lastProgress["batchId"] == 0, "one empty batch notes where it starts, no others"
        put(table, 1, 2)
        assert ids(run.rows()) == [1, 2]
        batch = run.query.lastProgress["batchId"]
        time.sleep(0.5)
        assert run.query.lastProgress["batchId"] == batch


@pytest.mark.more
def test_available_now_reads_all_rows_and_ends(spark, table, tmp_path):
    """On Spark 4.1, a limit would end an available-now query after one batch."""
    limits = {"maxFilesPerTrigger": "1"} if HAS_AVAILABLE_NOW else {}
    put(table, *range(20))
    put(table, *range(20, 30))
    for turn in range(2):
        run = Run(spark, table.path, tmp_path, {"availableNow": True}, **limits)
        assert run.query.awaitTermination(120)
        assert ids(came(tmp_path)) == list(range(30 + turn))
        assert run.batches() >= (4 if limits else 1) + turn
        put(table, 30 + turn)


class Stumbles(Exception):
    pass


@pytest.mark.more
def test_failed_batch_is_repeated_with_same_rows(spark, table, tmp_path):
    """The first one, whose start Spark does not keep, and a later one; the table goes on in between."""
    seen: list[list[int]] = []
    failing = {0, 1}

    def take(batch, number):
        seen.append([number, *ids([("", row.id) for row in batch.collect()])])
        if number in failing:
            failing.remove(number)
            raise Stumbles

    def run():
        stream = spark.readStream.format("paimon").option("scan.mode", "latest-full").load(table.path)
        query = stream.writeStream.option("checkpointLocation", str(tmp_path)).foreachBatch(take).start()
        try:
            query.processAllAvailable()
            return True
        except Exception:
            return False
        finally:
            query.stop()

    put(table, 1, 2)
    assert not run()
    put(table, 3)
    assert not run()
    put(table, 4)
    assert run()
    assert seen == [[0, 1, 2], [0, 1, 2], [1, 3], [1, 3], [2, 4]]


@pytest.mark.more
def test_query_stops_at_new_columns_and_continues_after_restart(spark, table, tmp_path):
    put(table, 1)
    with Run(spark, table.path, tmp_path) as run:
        assert run.rows() == [("d1", 1, "x")]
        newer = table.alter([AddColumn("w", AtomicType("INT"))])
        newer.write(pa.table({"dt": ["d1"], "id": [5], "v": ["y"], "w": pa.array([7], pa.int32())}))
        with pytest.raises(Exception, match="Restart the reader to continue with the new columns"):
            run.rows()
    with Run(spark, table.path, tmp_path) as run:
        assert run.rows() == [("d1", 1, "x"), ("d1", 5, "y", 7)]


@pytest.mark.more
def test_consumer_protects_unread_snapshots_from_expiry(spark, table, tmp_path):
    consumers = Consumers(table.store.io, table.store.branch_root)
    put(table, 1)
    with Run(spark, table.path, tmp_path, **{"consumer-id": "c"}) as run:
        run.rows()
        put(table, 2)
        assert ids(run.rows()) == [1, 2]
    assert consumers.get("c") in (2, 3), "a batch is known as done once Spark asks for another"


# ---- one query, several versions of Spark

OTHERS = [python for python in os.environ.get("PAIMON_OTHER_SPARKS", "").split(os.pathsep) if python]
"""Interpreters with other versions of Spark, the oldest first."""

ONE_RUN = """
import sys
from pyspark.sql import SparkSession
path, place = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
stream = spark.readStream.format("paimon").option("read.changelog", "true").load(path).writeStream.format("parquet")
query = stream.option("checkpointLocation", place + "/checkpoint").start(place + "/out")
query.processAllAvailable()
query.stop()
"""


@pytest.mark.skipif(not OTHERS, reason="PAIMON_OTHER_SPARKS names no other version of Spark")
def test_query_continues_in_next_version_of_spark(table, tmp_path):
    expected = []
    for turn, python in enumerate([*OTHERS, sys.executable]):
        put(table, turn)
        put(table, 100, text=f"by {turn}")
        expected.append(("+I", f"d{turn % 2}", turn, "x"))
        environment = {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        command = [python, "-c", ONE_RUN, table.path, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        actual = came(tmp_path)
        assert [row for row in actual if row[2] != 100] == sorted(expected)
        assert len(actual) == 2 * (turn + 1)
