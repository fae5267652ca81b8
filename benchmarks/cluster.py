"""On a standalone cluster of two workers on this machine: reads with masks, and writes by Spark's encoder.

Each row compares Spark's own scan or encoder with Python workers in the same session. CPU time includes the executors.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, race
from benchmarks.spark import RUNS, SparkSide, Worker
from paimon_core import FileSystemCatalog, Schema, Table
from tests.support.servers import free_port, listens, server

_FACTOR = 7.5
"""The rows of a table, in runs of the benchmarks."""
_DELETED_PERCENT, _DATES = 5, 24
_READS: dict[str, dict[str, Any]] = {
    "all columns": {"as": "nothing"},
    "2 columns": {"as": "nothing", "columns": ["k", "c"]},
    "3 aggregates": {"as": "rows", "aggregate": ["sum(a)", "max(k)", "count(s)"]},
}


def benchmarks(arena: Arena, sides: tuple[str, ...] = ("ours",)) -> Iterator[Row]:
    """Every row, in one session on a new cluster."""
    with standalone(arena.warehouse) as (master, processes):
        worker = SparkSide("ours", arena.warehouse, master, processes)
        try:
            yield from of_session(arena, worker)
        finally:
            worker.close()


def of_session(arena: Arena, worker: Worker) -> Iterator[Row]:
    """Every row, in the session of a worker."""
    yield from _deleted_rows(arena, worker)
    yield from _runs(arena, worker)
    yield _append(arena, worker)
    yield _append(arena, worker, _DATES)


@contextmanager
def standalone(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Start a master and two workers of one core each; yield the address of the master, and the process ids."""
    home, port = Path(pyspark.__file__).parent, free_port()
    url = f"spark://127.0.0.1:{port}"
    command = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy."]
    environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:

        def start(name: str, arguments: list[str], log: Path, ready: Callable[[], bool]) -> int:
            program = [command[0], command[1] + name, *common, *arguments]
            return stack.enter_context(server(program, log, ready, environment=environment)).pid

        log = folder / "master.log"
        processes = [start("master.Master", ["--port", str(port)], log, listens(port))]
        for number in range(2):
            log = folder / f"worker-{number}.log"
            own = ["--cores", "1", "--memory", "2g", "--work-dir", str(folder / f"work-{number}"), url]
            processes.append(start("worker.Worker", own, log, partial(_has, log, "Successfully registered")))
        yield url, processes


def _has(log: Path, text: str) -> bool:
    return text in log.read_text(errors="replace")


def _rows(arena: Arena) -> int:
    return int(_FACTOR * arena.count)


def _deleted_rows(arena: Arena, worker: Worker) -> Iterator[Row]:
    """Read a table with deletion vectors."""
    table = arena.table("cluster_vectors", "int", keyed=False, options={"deletion-vectors.enabled": "true"})
    for seed in range(2):
        table.write(rows.make(_rows(arena) // 2, "int", seed))
    table.delete(f"d < {_DELETED_PERCENT}")
    yield from _reads(arena, worker, table, f"cluster: {_DELETED_PERCENT}% of the rows deleted", first=False)


def _runs(arena: Arena, worker: Worker) -> Iterator[Row]:
    """Read a table of overlapping runs."""
    table = arena.table("cluster_runs", "int", keyed=True, buckets=2)
    for seed in range(RUNS):
        table.write(rows.make(_rows(arena) // RUNS, "int", seed))
    yield from _reads(arena, worker, table, f"cluster: {RUNS} runs", first=True)


def _reads(arena: Arena, worker: Worker, table: Table, title: str, *, first: bool) -> Iterator[Row]:
    """Race Spark's own scan with masks against Python workers.

    `first`: also read the table through a new link each time, for which the driver has no masks yet.
    """
    path = Path(table.path)
    links = (path.with_name(f"{path.name}_{number}") for number in itertools.count())

    def unknown(command: dict[str, Any]) -> Timing:
        link = next(links)
        link.symlink_to(path)
        return worker.timing(**{**command, "table": link.name})

    for name, command in _READS.items():
        ours = {"do": "by_path", "table": path.name, **command}
        contestants = {
            "ours": partial(worker.timing, **ours),
            "python": partial(worker.timing, **ours, native=False),
        }
        if first:
            contestants["first"] = partial(unknown, ours)
        yield race(Row(f"{title}, {name}", _rows(arena)), contestants, arena.rounds, patience=120)


def _append(arena: Arena, worker: Worker, dates: int = 0) -> Row:
    """Append rows to a table. `dates`: the number of partitions; 0: a table without partitions."""
    name, keys = f"cluster_append_{dates}", ["p"] if dates else []
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    schema = rows.schema("int").append(pa.field("p", pa.int32(), nullable=False))
    catalog.create_table(f"default.{name}", Schema(schema, partition_keys=keys, options={"write-only": "true"}))
    command = {"do": "generate", "rows": _rows(arena), "tasks": 4, "partitions": dates or 1, "table": name}
    contestants = {
        "ours": partial(worker.timing, **command),
        "python": partial(worker.timing, **command, native=False),
    }
    suffix = f" to {dates} partitions" if dates else ""
    return race(Row(f"cluster: append{suffix}", _rows(arena)), contestants, arena.rounds, patience=120)
