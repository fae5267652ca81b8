"""Spark's own Parquet encoder in the executors of a cluster: each row once, also if tasks run again."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from zipfile import ZipFile

import psutil
import pytest

from paimon_core.table import Table
from tests.spark.conftest import MODE, ROOT
from tests.spark.sql.test_native_partitions import create, encoders, parquet_files
from tests.spark.sql.test_native_writes import ENGINE, SPARK, rows, save
from tests.support.standalone import StandaloneCluster

pytestmark = pytest.mark.spark
needs_executors = pytest.mark.skipif(MODE not in ("cluster", "standalone"), reason="needs executors")


def ids(path):
    return sorted(Table.open(str(path)).to_arrow()["id"].to_pylist())


def live_files(path):
    return {file.file_name for split in Table.open(str(path)).scan().plan().splits for file in split.files}


def killing_once(path, marker):
    """Return a function for `mapInArrow` that ends an executor while it has a file of the table open."""

    def run(batches):
        executor = next(process for process in psutil.Process().parents() if process.name() == "java")
        for batch in batches:
            yield batch
            if not marker.exists() and any(file.path.startswith(path) for file in executor.open_files()):
                marker.touch()
                os.kill(executor.pid, signal.SIGKILL)
                return

    return run


@pytest.fixture
def small_batches(spark):
    """Python workers pass rows to the encoder in many batches, for one test."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.everywhere
@needs_executors
@pytest.mark.usefixtures("writes_by_tasks", "small_batches")
@pytest.mark.parametrize("keys", [("p",), pytest.param((), marks=pytest.mark.more)])
def test_killed_executor_leaves_each_row_once(spark, tmp_path, keys):
    """Its tasks run again, and so do the tasks whose shuffled rows are lost with it."""
    path, marker = tmp_path / "t", tmp_path / "killed"
    create(path, ("id", "BIGINT"), ("p", "INT"), keys=keys)
    shuffled = rows(spark, 0, 120_000, "id", "INT(id % 3) AS p", tasks=4).repartition(4, "id")
    save(shuffled.mapInArrow(killing_once(str(path), marker), shuffled.schema), path)
    assert marker.exists()
    assert ids(path) == list(range(120_000))
    assert live_files(path) < {file.name for file in parquet_files(path)}, "the killed attempt leaves a file"
    time.sleep(1.1)  # files of the newest second are kept
    Table.open(str(path)).maintenance.remove_orphan_files(int(time.time() * 1000))
    assert live_files(path) == {file.name for file in parquet_files(path)}
    assert encoders(path) == {SPARK}


@pytest.mark.everywhere
@needs_executors
@pytest.mark.usefixtures("writes_by_tasks")
def test_session_with_jars_of_its_own_keeps_them(spark, tmp_path, tmp_path_factory):
    """The tasks of this session do not get the jars of the application, which get its jar until the run ends."""
    jar, path = tmp_path_factory.mktemp("jars") / "own.jar", tmp_path / "t"
    with ZipFile(jar, "w") as file:
        file.writestr("nothing", "")
    session = spark.newSession()
    session.conf.set("spark.sql.artifact.isolation.enabled", "true")
    session.sql(f"ADD JAR '{jar}'")
    create(path, ("id", "BIGINT"), keys=())
    for start in (0, 50):
        save(rows(session, start, start + 50, "id"), path)
    assert encoders(path) == {SPARK}
    assert ids(path) == list(range(100))
    own = session._jsparkSession.artifactManager().state().uuid()
    names = str(spark.sparkContext._jsc.sc().addedJars().apply(own).keySet())
    assert (names.count(".jar"), names.count("/own.jar"), names.count("/paimon-classes-")) == (2, 1, 1)


OWN_CLUSTER = """
import sys, time
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import SparkSession

from paimon_core import Table
from paimon_spark import frame_write, register
from paimon_spark.sql.bridge.jvm import Jvm
from tests.spark.conftest import SETTINGS

frame_write.FEW_ROWS = -1
builder = SparkSession.builder.master(sys.argv[2]).config("spark.executor.memory", "700m")
speculation = {"": "true", ".interval": "100ms", ".multiplier": "1.1", ".quantile": "0.5", ".minTaskRuntime": "1s"}
for key, value in [*SETTINGS.items(), *((f"spark.speculation{key}", value) for key, value in speculation.items())]:
    builder = builder.config(key, value)
spark = builder.getOrCreate()
register(spark)
jvm, folder = Jvm(spark), Path(sys.argv[1])

def written(name, frame):
    frame.write.format("paimon").mode("append").save(str(folder / name))
    rows = sorted(Table.open(str(folder / name)).to_arrow()["id"].to_pylist())
    live = [file for split in Table.open(str(folder / name)).scan().plan().splits for file in split.files]
    found = {file.name: file for file in (folder / name).rglob("*.parquet")}
    encoders = {pq.read_metadata(found[file.file_name]).created_by.split()[0] for file in live}
    return rows == list(range(len(rows))), len(rows), sorted(encoders)

classes, empty = jvm.call("ClassDefiner", "jar"), BytesIO()
ZipFile(empty, "w").close()
jvm.call("ClassDefiner", "keep", empty.getvalue())
print("without", *written("without", spark.range(100)), flush=True)
jvm.call("ClassDefiner", "keep", classes)
print("with", *written("with", spark.range(100)), flush=True)

def slow(batches):
    yield from batches
    context, second, end = TaskContext.get(), folder / "second", time.monotonic() + 180
    if context.partitionId() == 0 and context.attemptNumber() > 0:
        second.touch()
    while context.partitionId() == 0 and not second.exists() and time.monotonic() < end:
        time.sleep(0.1)

frame = spark.range(0, 4000, 1, 4)
print("twice", *written("twice", frame.mapInArrow(slow, frame.schema)), (folder / "second").exists(), flush=True)
"""


@pytest.mark.slow
def test_executors_without_the_classes_and_tasks_that_run_twice(tmp_path):
    """Executors get another jar instead of the classes. Later, Spark runs a slow task again, on the other host."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(OWN_CLUSTER))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with StandaloneCluster(tmp_path, ("127.0.0.1", "127.0.0.2")) as cluster:
        command = [sys.executable, str(script), str(tmp_path), cluster.url]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        f"without True 100 ['{ENGINE}']",
        f"with True 100 ['{SPARK}']",
        f"twice True 4000 ['{SPARK}'] True",
    ], done.stderr[-3000:]
