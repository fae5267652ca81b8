"""Spark's own Parquet encoder in the executors of a cluster: each row once, whatever happens to its tasks."""

import os
import signal
import time
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest

from paimon_core.table import Table
from paimon_spark.sql.bridge.jvm import Jvm
from tests.spark.conftest import MODE
from tests.spark.sql.test_native_partitions import create, encoders, parquet_files
from tests.spark.sql.test_native_writes import ENGINE, SPARK, rows, save

pytestmark = [
    pytest.mark.spark,
    pytest.mark.everywhere,
    pytest.mark.skipif(MODE not in ("cluster", "standalone"), reason="needs executors"),
    pytest.mark.usefixtures("writes_by_tasks"),
]


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


@pytest.mark.parametrize("keys", [("p",), pytest.param((), marks=pytest.mark.slow)])
def test_killed_executor_leaves_each_row_once(spark, tmp_path, small_batches, keys):
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


@pytest.fixture
def session_with_jar(spark, tmp_path):
    """A session that has a jar of its own, whose tasks do not get the jars of the application."""
    jar = tmp_path / "own.jar"
    with ZipFile(jar, "w") as file:
        file.writestr("nothing", "")
    session = spark.newSession()
    session.conf.set("spark.sql.artifact.isolation.enabled", "true")
    session.sql(f"ADD JAR '{jar}'")
    return session


def test_executors_without_the_classes_leave_the_rows_to_python_workers(session_with_jar, tmp_path):
    """Executors get another jar instead of the classes, and then the classes besides the jar of the session."""
    jvm, path = Jvm(session_with_jar), tmp_path / "t"
    create(path, ("id", "BIGINT"), ("p", "INT"))
    classes = jvm.call("ClassDefiner", "jar")
    empty = BytesIO()
    ZipFile(empty, "w").close()
    for jar, encoder in ((empty.getvalue(), {ENGINE}), (classes, {ENGINE, SPARK})):
        jvm.call("ClassDefiner", "keep", jar)
        try:
            save(rows(session_with_jar, 0, 50, "id", "INT(id % 3) AS p"), path)
        finally:
            jvm.call("ClassDefiner", "keep", classes)
        assert encoders(path) == encoder
        assert live_files(path) == {file.name for file in parquet_files(path)}
    assert ids(path) == sorted([*range(50), *range(50)])
