"""A session that runs many small statements, and prints its resources while it runs, one JSON object per line.

Arguments: the directory of the warehouse; the number of statements; how often to print. It prints when Spark's threads
of the last query have ended.
"""

import gc
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

from pyspark.sql import SparkSession

import paimon_spark
from tests.spark.conftest import SETTINGS

_SHORT_LIVED = ("ResultQueryStageExecution", "serve-", "broadcast-exchange", "shuffle-exchange", "subquery")


def sockets(pid):
    """Return the number of sockets of a process."""
    return sum(map(is_socket, Path(f"/proc/{pid}/fd").iterdir()))


def is_socket(descriptor):
    """Return True for a descriptor that is a socket, and open."""
    try:
        return str(descriptor.readlink()).startswith("socket:")
    except OSError:
        return False


def children(pid):
    """Return the number of processes below a process."""
    child_ids = [
        int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()
    ]
    return len(child_ids) + sum(map(children, child_ids))


def wait_for_threads(java):
    """Wait until Spark's threads of queries have ended: their pools let them go after a minute."""
    pause = threading.Event()
    for _ in range(300):
        names = [str(thread.getName()) for thread in java.java.lang.Thread.getAllStackTraces().keySet().toArray()]
        if not any(name.startswith(_SHORT_LIVED) for name in names):
            return
        pause.wait(1)


def state(spark, done):
    """Return what Python and Java hold."""
    java = spark._jvm
    gc.collect()
    java.java.lang.System.gc()
    java_pid = java.java.lang.ProcessHandle.current().pid()
    return {
        "done": done,
        "threads": threading.active_count(),
        "sockets": sockets("self"),
        "sockets of Java": sockets(java_pid),
        "workers": children(java_pid),
        "files": len(os.listdir(tempfile.gettempdir())),
    }


def statement(spark, number):
    """Run one statement."""
    table, key = "ak"[number % 2], number % 20
    source = f"(SELECT {key} AS id, 5 AS v) s"
    match number % 3:
        case 0:
            spark.sql(f"UPDATE {table} SET v = v + 1 WHERE id = {key}")
        case 1:
            spark.sql(
                f"MERGE INTO {table} t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
                "WHEN NOT MATCHED THEN INSERT *"
            )
        case _:
            spark.sql(f"DELETE FROM {table} WHERE id = {key}")
            spark.sql(f"SELECT count(*), sum(t.v) FROM {table} t JOIN {table} USING (id)").toArrow()


def main(warehouse, statements, each):
    """Run the statements."""
    builder = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    paimon_spark.catalog(spark, "pm", warehouse=warehouse)
    spark.sql("CREATE DATABASE pm.d")
    spark.sql("USE pm.d")
    for table, options in (("a", "'bucket' = '-1'"), ("k", "'primary-key' = 'id', 'bucket' = '1'")):
        spark.sql(f"CREATE TABLE {table} (id INT NOT NULL, v INT) TBLPROPERTIES ({options})")
        spark.sql(f"INSERT INTO {table} SELECT CAST(id AS INT), 0 FROM range(20)")
    for number in range(statements):
        statement(spark, number)
        if (number + 1) % each == 0:
            wait_for_threads(spark._jvm)
            print(json.dumps(state(spark, number + 1)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
