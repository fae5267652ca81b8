"""Many clients of one server: ``python -m tests.spark.server_load --minutes 10 --clients 16``.

Every client merges into the same keyed table, appends to the same log, reads both, and reconnects from time to time.
Clients of Spark Connect run in a process of their own, clients of JDBC in the JVM of the server. At the end, the tables
contain what was acknowledged. The report gives threads, sockets and memory of the idle server after a warm-up and after
each of ``--rounds`` rounds: what a server leaks grows from round to round. ``--heap-dump FILE`` keeps the last heap;
``--trace`` also prints which lines of Python hold more memory after a round than before it. The caches of metadata
fill for hours. ``--small-caches`` gives them less than a round needs: then what still grows is a leak.
"""

import argparse
import ctypes
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

import paimon_spark
from paimon_core import Table
from paimon_core.manifest import manifests
from tests.spark.conftest import SETTINGS
from tests.support.servers import free_port

RECONNECT = 25
"""The statements of a session before its client reconnects."""
IDLE = 70
"""Seconds before the server is measured: Spark's pools end threads that were idle for 60 s."""
TABLES = (
    "CREATE DATABASE served.load",
    "CREATE TABLE served.load.counts (client INT, n BIGINT) TBLPROPERTIES "
    "('primary-key' = 'client', 'bucket' = '1', 'snapshot.num-retained.min' = '5', 'snapshot.num-retained.max' = '20', "
    "'snapshot.time-retained' = '1 s')",
    "CREATE TABLE served.load.log (client INT, n BIGINT) TBLPROPERTIES "
    "('snapshot.num-retained.min' = '5', 'snapshot.num-retained.max' = '20', 'snapshot.time-retained' = '1 s')",
)
Run = Callable[[str], None]


@dataclass
class Usage:
    """Threads and sockets of the JVM and of Python, the heap after a collection, and resident memory."""

    jvm_threads: int
    python_threads: int
    jvm_sockets: int
    python_sockets: int
    heap_mb: int
    jvm_rss_mb: int
    python_rss_mb: int
    python_memory: dict[str, int]
    """What the resident memory of Python consists of (see ``python_memory``)."""
    kinds: dict[str, int]
    """The most frequent names of threads of the JVM, without their numbers."""
    classes: dict[str, str]
    """The classes of the JVM that hold most memory: instances and MB."""


def usage(spark: SparkSession) -> Usage:
    """Return what the server holds after ``IDLE`` seconds without a client."""
    time.sleep(IDLE)
    factory = spark._jvm.java.lang.management.ManagementFactory
    for _ in range(3):
        gc.collect()
        spark._jvm.System.gc()
        time.sleep(1)
    own = psutil.Process()
    jvm = next(p for p in own.children(recursive=True) if p.name() == "java")
    return Usage(
        jvm_threads=factory.getThreadMXBean().getThreadCount(),
        python_threads=threading.active_count(),
        jvm_sockets=len(jvm.net_connections("all")),
        python_sockets=len(own.net_connections("all")),
        heap_mb=factory.getMemoryMXBean().getHeapMemoryUsage().getUsed() >> 20,
        jvm_rss_mb=jvm.memory_info().rss >> 20,
        python_rss_mb=own.memory_info().rss >> 20,
        python_memory=python_memory(),
        kinds=dict(Counter(map(_kind, _thread_names(spark))).most_common(8)),
        classes=_classes(spark),
    )


class _MallocInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33 and later (``man 3 mallinfo``): ten sizes in bytes or counts."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = tuple((name, ctypes.c_size_t) for name in _names)


def python_memory() -> dict[str, int]:
    """Return the memory of this process by owner, in KiB, and the number of its objects.

    ``traced``: given out by Python's allocators; 0 without ``--trace``. ``arrow``: given out by pyarrow's default pool.
    ``malloc``: given out by glibc. ``malloc free``: kept by glibc although it is free.
    """
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallocInfo
    info = libc.mallinfo2()
    return {
        "traced": tracemalloc.get_traced_memory()[0] >> 10,
        "arrow": pa.total_allocated_bytes() >> 10,
        "malloc": (info.uordblks + info.hblkhd) >> 10,
        "malloc free": info.fordblks >> 10,
        "objects": len(gc.get_objects()),
    }


def growth(before: tracemalloc.Snapshot, after: tracemalloc.Snapshot) -> list[str]:
    """Return the lines of Python that hold most memory more than before."""
    return [str(line) for line in after.compare_to(before, "lineno")[:25]]


def _jcmd(spark: SparkSession, *command: str) -> str:
    """Return what ``jcmd`` answers to a command for the JVM of the session."""
    jcmd = f"{spark._jvm.System.getProperty('java.home')}/bin/jcmd"
    process = str(spark._jvm.java.lang.ProcessHandle.current().pid())
    return subprocess.run([jcmd, process, *command], capture_output=True, text=True, check=True).stdout


def _classes(spark: SparkSession) -> dict[str, str]:
    lines = re.findall(r"^ *\d+: +(\d+) +(\d+) +(\S+)", _jcmd(spark, "GC.class_histogram"), re.M)
    return {name: f"{count}, {int(size) >> 20} MB" for count, size, name in lines[:12]}


def _thread_names(spark: SparkSession) -> list[str]:
    beans = spark._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    return [info.getThreadName() for info in beans.dumpAllThreads(False, False) if info is not None]


def _kind(name: str) -> str:
    return re.sub(r"[0-9a-f-]{8,}|\d+", "#", name)


def statements(client: int) -> Iterator[tuple[str, str]]:
    """Endless statements of a client, each with what it does."""
    turn = 0
    while True:
        turn += 1
        yield (
            "merge",
            f"MERGE INTO served.load.counts t USING (SELECT {client} AS client, 1L AS n) s ON t.client = s.client "
            "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *",
        )
        yield "insert", f"INSERT INTO served.load.log VALUES ({client}, {turn})"
        yield "read", f"SELECT n FROM served.load.counts WHERE client = {client}"
        yield "count", f"SELECT count(*), max(n) FROM served.load.log WHERE client = {client}"
        if turn % 10 == 0 and client == 0:
            yield "compact", "CALL served.sys.compact('load.log')"


def work(client: int, end: float, connect: Callable[[], tuple[Run, Callable[[], None]]]) -> dict[str, Any]:
    """Run statements until a time; return the number of each, and the errors."""
    done: Counter[str] = Counter()
    errors: list[str] = []
    run, close = connect()
    for number, (kind, text) in enumerate(statements(client)):
        if time.time() > end:
            break
        if number % RECONNECT == RECONNECT - 1:
            close()
            run, close = connect()
            done["connect"] += 1
        try:
            run(text)
            done[kind] += 1
        except Exception as error:
            errors.append(f"client {client}: {text}\n{str(error)[:1500]}")
    close()
    return {"client": client, "done": done, "errors": errors}


def over_connect(url: str) -> tuple[Run, Callable[[], None]]:
    """Return a function that runs a statement in a new session of Spark Connect, and a function that closes it."""
    session = SparkSession.builder.remote(url).create()
    return lambda text: session.sql(text).collect(), session.stop


def over_thrift(spark: SparkSession, address: str) -> tuple[Run, Callable[[], None]]:
    """Return the same functions for a new connection of JDBC."""
    manager = spark.sparkContext._jvm.java.sql.DriverManager
    connection = manager.getConnection(f"jdbc:hive2://{address}")

    def run(text: str) -> None:
        statement = connection.createStatement()
        if statement.execute(text):
            rows = statement.getResultSet()
            while rows.next():
                pass
        statement.close()

    return run, connection.close


def connect_clients(url: str, clients: list[int], end: float) -> None:
    """The process of the Connect clients: print their results as JSON."""
    with ThreadPoolExecutor(len(clients)) as pool:
        results = list(pool.map(lambda client: work(client, end, lambda: over_connect(url)), clients))
    print("\n" + json.dumps(results), flush=True)
    os._exit(0)  # PySpark 4.3 waits forever for the channel of a second session at the end of a process


def round_of_clients(spark: SparkSession, addresses: tuple[str, str], clients: int, seconds: float) -> Any:
    """Let clients work for some seconds, three of four over Connect; return their results."""
    end = time.time() + seconds
    over = [n for n in range(clients) if n % 4]
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"}
    command = [sys.executable, "-m", "tests.spark.server_load", "--connect", addresses[0]]
    command += ["--end", str(end), "--numbers", ",".join(map(str, over))]
    with (
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process,
        ThreadPoolExecutor(clients) as pool,
    ):
        others = [n for n in range(clients) if n % 4 == 0]
        own = list(pool.map(lambda client: work(client, end, lambda: over_thrift(spark, addresses[1])), others))
        output, _ = process.communicate()
    return own + json.loads(output.splitlines()[-1])


def main(
    minutes: float, clients: int, warm_up: float, number: int, heap_dump: str | None, trace: bool, small: bool
) -> bool:
    """Run the clients, print the report, and return True if nothing failed."""
    options = {}
    if small:
        options["cache.manifest.small-file-memory"] = "256 kb"
        manifests._DECODED._most = manifests._DECODED_LISTS._most = 500
    builder = SparkSession.builder.master("local[*]")
    for key, value in SETTINGS.items():
        if not key.endswith("JavaOptions"):
            builder = builder.config(key, value)
    builder = builder.config("spark.driver.memory", "2g").config("spark.sql.shuffle.partitions", "2")
    spark = builder.getOrCreate()
    if trace:
        tracemalloc.start()
    warehouse = tempfile.mkdtemp()
    paimon_spark.catalog(spark, "served", warehouse=warehouse, options=options)
    for statement in TABLES:
        spark.sql(statement)
    addresses = (f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")
    with paimon_spark.serve(spark, connect=addresses[0], thrift=addresses[1]):
        rounds = [round_of_clients(spark, addresses, clients, warm_up * 60)]
        usages = [usage(spark)]
        for _ in range(number):
            before = tracemalloc.take_snapshot() if trace else None
            rounds.append(round_of_clients(spark, addresses, clients, minutes * 60 / number))
            usages.append(usage(spark))
            if before is not None:
                print("\n".join(growth(before, tracemalloc.take_snapshot())))
            print(json.dumps(asdict(usages[-1]), indent=1), flush=True)
        if heap_dump:
            _jcmd(spark, "GC.heap_dump", os.path.abspath(heap_dump))
    done: Counter[str] = Counter()
    errors: list[str] = []
    merged: Counter[int] = Counter()
    for result in (result for results in rounds for result in results):
        done.update(result["done"])
        merged[result["client"]] += result["done"].get("merge", 0)
        errors += result["errors"]
    counts = Table.open(f"{warehouse}/load.db/counts").to_arrow().to_pylist()
    logged = Table.open(f"{warehouse}/load.db/log").to_arrow().num_rows
    correct = {row["client"]: row["n"] for row in counts} == dict(merged) and logged == done["insert"]
    report = {"statements": dict(done), "errors": len(errors), "tables are correct": correct}
    print(json.dumps({**report, "after warm-up": asdict(usages[0]), "at the end": asdict(usages[-1])}, indent=1))
    print("\n".join(errors[:5]))
    return correct and not errors


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--warm-up", type=float, default=1)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--heap-dump")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--small-caches", action="store_true")
    parser.add_argument("--connect")
    parser.add_argument("--end", type=float)
    parser.add_argument("--numbers", default="")
    given = parser.parse_args()
    if given.connect:
        connect_clients(f"sc://{given.connect}", list(map(int, given.numbers.split(","))), given.end)
    else:
        held = (given.heap_dump, given.trace, given.small_caches)
        sys.exit(not main(given.minutes, given.clients, given.warm_up, given.rounds, *held))
