"""Through Spark, local[2]: this project on its pyspark against the Java connector on pyspark 3.5, on the same data."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import rows, stored
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, Work, race
from benchmarks.workers import ROOT, SPARK_35, environment
from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.scan.task_plan import packing_of_tasks, plan_tasks
from paimon_spark.options import DEFAULT_MIN_TASKS
from tests.conformance.judge import resolve

CONNECTOR = ("org.apache.paimon", "paimon-spark-3.5", "0.9.0")
RUNS = 5
READ_FACTOR = 4  # runs that large, or the start of a query would be most of what is measured
LARGE_FACTOR = 20  # rows of the one large file, in runs
PATH_FACTOR = 12  # rows of the table that is read by its path, in runs
PARTITIONS, COMMITS = 200, 25  # of the table of many small files: each commit writes a file in each partition
RANGE_SHARE = 0.01  # of the keys
DELETED_PERCENTS = (5, 30)  # of the rows of a table with deletion vectors


class Worker(Protocol):
    """One side's Spark."""

    def call(self, **command: Any) -> dict[str, Any]:
        """A command of `benchmarks.spark_worker`; the answer holds ``rows``, ``wall`` and ``cpu``."""

    def timing(self, **command: Any) -> Timing:
        """The same as a timing."""


class SparkSide:
    """A Spark session in a process of its own.

    Args:
        side: ``ours`` or ``java``.
        warehouse: the directory of its tables.
        master: where the tasks run.
        others: ids of other processes whose CPU time counts, with their children.
    """

    def __init__(self, side: str, warehouse: Path, master: str = "local[2]", others: Sequence[int] = ()) -> None:
        self._others = others
        if side == "ours":
            python, jar = Path(sys.executable), ""
        else:
            python, jar = environment("spark-3.5-bench", SPARK_35), str(resolve(*CONNECTOR))
        unwanted = (
            "SPARK_HOME",
            "PYSPARK_DRIVER_PYTHON",
            "PYTHONDONTWRITEBYTECODE",
        )  # so that no process compiles
        environ = {k: v for k, v in os.environ.items() if k not in unwanted}
        environ |= {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
        environ["PYTHONPATH"] = str(ROOT) if side == "ours" else ""
        self._log = (warehouse / f"spark-{side}.log").open("w")
        self._process = subprocess.Popen(
            [python, Path(__file__).with_name("spark_worker.py"), side, str(warehouse), jar, master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environ,
        )
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@"):
                answer: dict[str, Any] = json.loads(line[1:])
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer
        raise RuntimeError(f"Spark ended: see {self._log.name}")

    def _cpu(self) -> float:
        started = [psutil.Process(pid) for pid in (self._process.pid, *self._others)]
        return sum(_seconds(process) for own in started for process in (own, *own.children(recursive=True)))

    def call(self, **command: Any) -> dict[str, Any]:
        """Run one command and return its answer; its ``cpu`` covers the JVM and all Python workers."""
        assert self._process.stdin is not None
        before = self._cpu()
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        return {**answer, "cpu": self._cpu() - before}

    def timing(self, **command: Any) -> Timing:
        """Run one command and return its timing."""
        answer = self.call(**command)
        return Timing(answer["wall"], answer["cpu"], answer["rows"])

    def close(self) -> None:
        """Stop the session."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._log.close()


def _seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # a worker that ended since it was listed
        return 0.0
    return float(sum(times[:4]))  # user and system time, of the process and of its ended children


def benchmarks(arena: Arena, sides: tuple[str, ...] = ("ours", "java")) -> Iterator[Row]:
    """Every row through Spark."""
    running: dict[str, SparkSide] = {}
    try:
        for side in sides:
            running[side] = SparkSide(side, arena.warehouse)
        yield from _writes(arena, running)
        yield from _compaction(arena, running)
        yield from _reads(arena, running)
        yield path_write(arena, running["ours"])
        yield path_write(arena, running["ours"], dates=24)
        yield from path_reads(arena, running["ours"])
        yield from vector_reads(arena, running["ours"])
        yield from merge_reads(arena, running["ours"])
        yield many_files(arena, running)
        yield large_file(arena, running)
        yield key_range(arena, running)
        yield from _small(arena, running)
    finally:
        for side in running.values():
            side.close()


def _race(
    arena: Arena,
    row: Row,
    running: dict[str, SparkSide],
    commands: dict[str, dict[str, Any]],
    bare: int | None = None,
) -> Row:
    """Both sides; with ``bare`` also one that has no work: its rows come from nowhere, that many, or go nowhere."""
    contestants: dict[str, Work] = {}
    for side, worker in running.items():
        contestants["ours" if side == "ours" else "connector"] = lambda w=worker, c=commands[side]: w.timing(**c)
    if bare is not None:
        options = {"rows": str(bare), "partitions": "2" if bare > 100 else "1"}
        contestants["bare"] = lambda: running["ours"].timing(**commands["ours"], bare=options)
    return race(row, contestants, arena.rounds, patience=120)


def _writes(arena: Arena, running: dict[str, SparkSide]) -> Iterator[Row]:
    source = str(arena.warehouse / "spark-input.parquet")
    pq.write_table(rows.make(arena.count, "int", 1), source)
    kinds = (
        ("append write", False, {}, 1.0),
        ("keyed upsert, write-only", True, {}, 1 / 3),
        ("keyed upsert, compacting", True, {"write-only": "false"}, 1 / 3),
        ("keyed upsert, dynamic buckets", True, {"bucket": "-1"}, 1 / 3),
        ("keyed upsert, lookup changelog", True, {"write-only": "false", "changelog-producer": "lookup"}, 1 / 5),
        ("keyed upsert, deletion vectors", True, {"write-only": "false", "deletion-vectors.enabled": "true"}, 1 / 5),
    )
    for i, (name, keyed, options, goal) in enumerate(kinds):
        tables = {side: f"spark_write_{i}_{side}" for side in running}
        for table in tables.values():
            arena.table(table, "int", keyed=keyed, buckets=2, options=options)
        row = Row(f"Spark: {name}", arena.count, goals={"connector": goal})
        commands = {s: {"do": "write", "table": t, "input": source} for s, t in tables.items()}
        yield _race(arena, row, running, commands, bare=arena.count)


def _compaction(arena: Arena, running: dict[str, SparkSide]) -> Iterator[Row]:
    """Measure a full compaction of RUNS runs in two buckets, rewritten before each round."""
    contestants: dict[str, Work] = {}
    for side, worker in running.items():
        table = arena.table(f"spark_compact_{side}", "int", keyed=True, buckets=2)
        contestants["ours" if side == "ours" else "connector"] = lambda w=worker, t=table: _compacting(arena, w, t)
    row = Row(f"Spark: full compaction, {RUNS} runs", RUNS * arena.count, goals={"connector": 0.5})
    yield race(row, contestants, arena.rounds, patience=120)


def _compacting(arena: Arena, worker: SparkSide, table: Table) -> Timing:
    table.truncate()
    for seed in range(RUNS):
        table.write(rows.make(arena.count, "int", seed))
    return worker.timing(do="compact", table=Path(table.path).name)


def _reads(arena: Arena, running: dict[str, SparkSide]) -> Iterator[Row]:
    for keyed, name in ((False, "append read"), (True, f"keyed merge read, {RUNS} runs")):
        table = f"spark_read_{'keyed' if keyed else 'append'}"
        made = arena.table(table, "int", keyed=keyed, buckets=2)
        for seed in range(RUNS):
            made.write(rows.make(READ_FACTOR * arena.count, "int", seed))
        count = made.to_arrow(columns=["k"]).num_rows
        for columns in (None, ["k", "c"]):
            row = Row(f"Spark: {name}, {len(columns) if columns else 'all'} columns", RUNS * READ_FACTOR * arena.count)
            row.goals = {"connector": 1.0}
            command = {"do": "read", "table": table, "columns": columns}
            yield _race(arena, row, running, dict.fromkeys(running, command), bare=count)


def path_write(arena: Arena, worker: Worker, dates: int = 0) -> Row:
    """Append rows to a table by its path, and write the same rows with Spark's own Parquet writer.

    `dates`: the number of partitions, which are dates in January; 0: the table has no partitions.
    """
    data = rows.make(PATH_FACTOR * arena.count, "int", 1)
    keys = ["dt"] if dates else []
    if dates:
        days = pa.array([f"2026-01-{day:02d}" for day in range(1, dates + 1)])
        data = data.append_column("dt", days.take(pa.array(data["d"].to_numpy() % dates)))
    name = f"spark_path_write_{dates}"
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    catalog.create_table(f"default.{name}", Schema(data.schema, partition_keys=keys, options={"write-only": "true"}))
    source = str(arena.warehouse / f"spark-path-input-{dates}.parquet")
    pq.write_table(data, source)
    command = {"do": "write", "table": name, "input": source, "partition": keys}
    suffix = f" to {dates} partitions" if dates else ""
    row = Row(f"Spark: format('paimon') by path, append{suffix}", data.num_rows, goals={"parquet": 1.1})
    contestants = {
        "ours": partial(worker.timing, **command),
        "parquet": partial(worker.timing, **command, plain=f"{arena.warehouse}/spark-path-output"),
    }
    return race(row, contestants, arena.rounds, patience=120)


def path_reads(arena: Arena, worker: Worker) -> Iterator[Row]:
    """Read an append table by its path and in SQL, and its files with Spark's own Parquet source, in one session."""
    worker.call(do="catalog")
    table = arena.table("spark_path", "int", keyed=False)
    data = rows.make(PATH_FACTOR * arena.count, "int", 1)
    table.write(data)
    yield from _by_path(arena, worker, table, data, "Spark: format('paimon') by path", {"count": {"as": "number"}})


def vector_reads(arena: Arena, worker: Worker) -> Iterator[Row]:
    """Read a table with deleted rows by its path and in SQL, and all rows of its files with Spark's own source."""
    worker.call(do="catalog")
    data = rows.make(PATH_FACTOR * arena.count, "int", 1)
    aggregate = {"aggregate": {"as": "rows", "aggregate": ["sum(a)", "max(k)", "count(s)"]}}
    for percent in DELETED_PERCENTS:
        table = arena.table(
            f"spark_vectors_{percent}", "int", keyed=False, options={"deletion-vectors.enabled": "true"}
        )
        table.write(data)
        table.delete(f"d < {percent}")
        yield from _by_path(arena, worker, table, data, f"Spark: {percent}% of the rows deleted", aggregate)


def _by_path(
    arena: Arena, worker: Worker, table: Table, data: pa.Table, title: str, kinds: Mapping[str, dict[str, Any]]
) -> Iterator[Row]:
    """Race reads of a table by its path with reads of its files.

    Args:
        arena: the arena.
        worker: our side.
        table: the table.
        data: the rows that were written.
        title: the title of the rows of the benchmark.
        kinds: commands by name, besides the common ones.
    """
    files = [str(path) for path in sorted(Path(table.path).glob("bucket-*/*.parquet"))]
    keys = int(rows.OVERLAP * data.num_rows)
    low = keys // 2
    key = next(
        k for k, d in zip(data["k"].to_pylist(), data["d"].to_pylist(), strict=True) if d >= max(DELETED_PERCENTS)
    )
    commands: dict[str, dict[str, Any]] = {
        "all columns": {"as": "nothing"},
        "2 columns": {"as": "nothing", "columns": ["k", "c"]},
        f"{RANGE_SHARE:.0%} of the keys": {
            "as": "nothing",
            "where": f"k >= {low} AND k < {low + int(RANGE_SHARE * keys)}",
        },
        "one row": {"as": "rows", "where": f"k = {key}"},
        **kinds,
    }
    for name, command in commands.items():
        row = Row(f"{title}, {name}", data.num_rows, goals={"parquet": 1.1})
        ours = {"do": "by_path", "table": Path(table.path).name, **command}
        plain = {"do": "by_path", "files": files, **command}
        named = {**ours, "by": "name"}
        contestants = {"ours": partial(worker.timing, **ours), "parquet": partial(worker.timing, **plain)}
        contestants["sql"] = partial(worker.timing, **named)
        yield race(row, contestants, arena.rounds, patience=120)


def merge_reads(arena: Arena, worker: Worker) -> Iterator[Row]:
    """Read overlapping runs, with masks that the read computes and then with the same masks, and Parquet of the result.

    Each ``first`` read opens the table through a new link: masks of a file belong to its path. ``stored``: Spark's own
    source reads the rows of all runs and filters them by a flag.
    """
    worker.call(do="catalog")
    count = READ_FACTOR * arena.count
    table = arena.table("spark_runs", "int", keyed=True, buckets=2)
    for seed in range(RUNS):
        table.write(rows.make(count, "int", seed))
    merged, path = table.to_arrow(), Path(table.path)
    files = []
    for number in range(2):
        files.append(str(arena.warehouse / f"spark-runs-{number}.parquet"))
        half = -(-merged.num_rows // 2)
        pq.write_table(merged.slice(number * half, half), files[-1], compression="zstd")
    every = stored.write(table, arena.warehouse / "spark-runs-stored")
    links = (path.with_name(f"{path.name}_{number}") for number in itertools.count())

    def first(command: dict[str, Any]) -> Timing:
        link = next(links)
        link.symlink_to(path)
        return worker.timing(**{**command, "table": link.name})

    keys = int(rows.OVERLAP * count)
    low = keys // 2
    commands: dict[str, dict[str, Any]] = {
        "all columns": {"as": "nothing"},
        "2 columns": {"as": "nothing", "columns": ["k", "c"]},
        f"{RANGE_SHARE:.0%} of the keys": {
            "as": "nothing",
            "where": f"k >= {low} AND k < {low + int(RANGE_SHARE * keys)}",
        },
        "one row": {"as": "rows", "where": f"k = {merged['k'][0].as_py()}"},
        "count": {"as": "number"},
    }
    for name, command in commands.items():
        row = Row(f"Spark: {RUNS} runs by path, {name}", RUNS * count, goals={"parquet": 1.15, "stored": 1.0})
        ours = {"do": "by_path", "table": path.name, **command}
        kept = {"columns": merged.column_names, **command, "where": f"{stored.KEPT} AND {command.get('where', 'true')}"}
        contestants: dict[str, Work] = {
            "first": partial(first, ours),
            "ours": partial(worker.timing, **ours),
            "parquet": partial(worker.timing, do="by_path", files=files, **command),
            "stored": partial(worker.timing, do="by_path", files=every, **kept),
        }
        yield race(row, contestants, arena.rounds, patience=120)


def many_files(arena: Arena, running: dict[str, SparkSide]) -> Row:
    """Read many small files in many partitions: planning, and what a task and a file cost by themselves."""
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    schema = rows.schema("int").append(pa.field("p", pa.int32(), nullable=False))
    options = {"write-only": "true", "commit.sync": "false"}
    table = catalog.create_table("default.spark_files", Schema(schema, partition_keys=["p"], options=options))
    for seed in range(COMMITS):
        made = rows.make(PARTITIONS * 20, "int", seed)
        parts = pa.array(np.arange(made.num_rows, dtype=np.int32) % PARTITIONS)
        table.write(made.append_column(schema.field("p"), parts))
    row = Row(f"Spark: read of {PARTITIONS * COMMITS} files in {PARTITIONS} partitions", PARTITIONS * 20 * COMMITS)
    row.goals = {"connector": 1.5}
    command = {"do": "count", "table": "spark_files"}
    return _race(arena, row, running, dict.fromkeys(running, command))


def large_file(arena: Arena, running: dict[str, SparkSide]) -> Row:
    """Read one large file, which several tasks can share."""
    table = arena.table("spark_large", "int", keyed=False, options={"target-file-size": "64 gb"})
    table.write(rows.make(LARGE_FACTOR * arena.count, "int", 1))
    row = Row("Spark: read of one large file", LARGE_FACTOR * arena.count, goals={"connector": 1.0})
    packing = packing_of_tasks(table.store.options, table.path)
    row.values["tasks"] = len(plan_tasks(table.scan().plan().splits, packing, DEFAULT_MIN_TASKS))
    command = {"do": "read", "table": "spark_large", "columns": None}
    return _race(arena, row, running, dict.fromkeys(running, command))


def key_range(arena: Arena, running: Mapping[str, Worker]) -> Row:
    """Return how a filter on RANGE_SHARE of the keys fares, all columns summed up, of RUNS overlapping runs.

    Both sides read files of ours; ``own``: the connector on files that it wrote itself, of the same rows.
    """
    count = READ_FACTOR * arena.count
    ours, own = (arena.table(name, "int", keyed=True, buckets=2) for name in ("spark_range", "spark_range_own"))
    for seed in range(RUNS):
        data = rows.make(count, "int", seed)
        ours.write(data)
        if "java" in running:
            source = str(arena.warehouse / f"spark-range-{seed}.parquet")
            pq.write_table(data, source)
            running["java"].call(do="load", table=Path(own.path).name, input=source)
    keys = int(rows.OVERLAP * count)
    low = keys // 2
    command = {"do": "range", "table": Path(ours.path).name, "low": low, "high": low + int(RANGE_SHARE * keys)}
    contestants: dict[str, Work] = {"ours": lambda: running["ours"].timing(**command)}
    contestants["bare"] = lambda: running["ours"].timing(**command, bare={"rows": str(found), "partitions": "2"})
    if "java" in running:
        contestants["connector"] = lambda: running["java"].timing(**command)
        contestants["own"] = lambda: running["java"].timing(**{**command, "table": Path(own.path).name})
    found = ours.to_arrow(["k"], filter=f"k >= {low} AND k < {command['high']}").num_rows
    row = Row(f"Spark: {RANGE_SHARE:.0%} of the keys, {RUNS} runs", RUNS * count, goals={"connector": 1.2})
    return race(row, contestants, arena.rounds, patience=120)


def _small(arena: Arena, running: dict[str, SparkSide]) -> Iterator[Row]:
    source = str(arena.warehouse / "spark-input.parquet")
    for do, name, goal in (("write", "small append", "<= 0.5 s"), ("count", "small read", "<= 0.4 s")):
        tables = {side: f"spark_small_{do}_{side}" for side in running}
        for table in tables.values():
            arena.table(table, "int", keyed=False).write(rows.make(100, "int", 0))
        row = Row(f"Spark: {name}, 100 rows, warm", 100, values={"goal": goal})
        commands = {s: {"do": do, "table": t, "input": source, "limit": 100} for s, t in tables.items()}
        yield _race(arena, row, running, commands, bare=100)
