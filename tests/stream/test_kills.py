"""kill -9 of the processes of a micro-batch: a task, the committing process, the driver's JVM.

The killed process had come to a given FileIO call of the batch; another run of the query starts from its checkpoint.
Some calls by default; with ``-m slow`` every one of them, in one long life of a query that is killed again and again.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from paimon_core.schema.schema import Schema
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.table import Table
from tests.support.killing import KillingDataSource
from tests.support.tables import ORDERS

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parent.parent.parent
OPTIONS = {
    "bucket": "1",
    "merge-engine": "aggregation",
    "fields.n.aggregate-function": "sum",
    "num-sorted-run.compaction-trigger": "2",
    "file.format": "avro",
}
RUN = "from tests.stream.test_kills import main; main()"


@pytest.fixture
def home(tmp_path):
    """A place with a table of sums, and room for a checkpoint."""
    Table.create(f"{tmp_path}/t", Schema(ORDERS, primary_keys=["id"], options=OPTIONS))
    return tmp_path


def run(spark: SparkSession, home: Path, kill: str = "nobody:0") -> None:
    """The batch that was not finished, if any, and another ten numbers; one of the two is struck."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "10").load()
    writing = source.selectExpr("value % 7 AS id", "'x' AS v", "1 AS n").writeStream.format("killing")
    writing = writing.option("kill", f"{kill}:{mark(home, kill)}").option("checkpointLocation", f"{home}/c")
    writing.trigger(availableNow=True).start(f"{home}/t").awaitTermination()


def mark(home: Path, kill: str) -> Path:
    """Return the file that marks a kill."""
    return home / f"killed-{kill.replace(':', '-')}"


def here(spark: SparkSession) -> Callable[[Path, str], bool]:
    """Strikes at Python processes of this session."""
    spark.dataSource.register(KillingDataSource)

    def strike(home: Path, kill: str) -> bool:
        try:
            run(spark, home, kill)
        except StreamingQueryException:
            assert mark(home, kill).exists()
        return mark(home, kill).exists()

    return strike


def apart(home: Path, kill: str) -> bool:
    """A driver in a process of its own, so that its JVM can be struck at."""
    command = [sys.executable, "-c", RUN, str(home), kill]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=600).returncode
    assert (ended != 0) == mark(home, kill).exists()
    return ended != 0


def main() -> None:
    """Run the query of `apart`."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    spark = builder.config("spark.log.level", "OFF").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.dataSource.register(KillingDataSource)
    run(spark, Path(sys.argv[1]), sys.argv[2])
    spark.stop()


def batches_in(home: Path) -> Counter[int]:
    """Return the number of snapshots with the rows of each batch."""
    made = [s for s in Table.open(f"{home}/t").snapshots() if s.commit_kind != CommitKind.COMPACT]
    return Counter(s.commit_identifier for s in made)


def check(home: Path) -> None:
    """Every batch that Spark knows of is in the table once, with its rows."""
    offsets = home / "c" / "offsets"
    newest = max(int(path.name) for path in offsets.iterdir() if path.name.isdecimal())
    assert batches_in(home) == dict.fromkeys(range(newest + 1), 1)
    sent = json.loads((offsets / str(newest)).read_text().splitlines()[-1])["offset"]
    actual = Table.open(f"{home}/t").to_arrow().to_pylist()
    assert {row["id"]: row["n"] for row in actual} == Counter(v % 7 for v in range(sent))


@pytest.mark.more
@pytest.mark.parametrize("kill", ["commit:4+", "commit:18+", "task:3"])
def test_python_process_is_killed(spark, home, kill):
    strike = here(spark)
    assert not strike(home, "nobody:0")
    assert strike(home, kill)
    assert not strike(home, "nobody:0")
    check(home)


@pytest.mark.slow
@pytest.mark.parametrize(("process", "least"), [("commit", 25), ("task", 3), ("driver", 25)])
def test_process_is_killed_at_every_call(spark, home, process, least):
    strike = apart if process == "driver" else here(spark)
    strike(home, "nobody:0")
    for at in count():
        if not all([strike(home, f"{process}:{at}"), strike(home, f"{process}:{at}+")]):
            break
        assert set(batches_in(home).values()) == {1}
    strike(home, "nobody:1")
    check(home)
    print(f"{process}: killed before and after each of {at} calls")
    assert at >= least
