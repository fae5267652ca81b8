"""The first minute: imports, the help, the catalog and the first write, each in new processes.

``python -m benchmarks.start ACTION DIRECTORY`` runs one action in this process and prints what it took.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, Work, race
from benchmarks.workers import ROOT

FIRST_WRITE_GOAL = 1.5
"""The longest first write, as a multiple of a first write of Parquet."""
ROUNDS = 3
"""Rounds of the rows that start a session, which takes seconds."""
WRITTEN_ROWS = 1_000
_PATIENCE = 120.0
_CACHE = "PAIMON_CACHE_DIR"


def benchmarks(arena: Arena, sides: tuple[str, ...] = ("ours",)) -> Iterator[Row]:
    """Every row of the first minute. ``sides``: not used, because other connectors start in other ways."""
    yield imports(arena)
    yield help_text(arena)
    yield catalog(arena)
    yield first_write(arena)


def imports(arena: Arena) -> Row:
    """A script that imports the classes of tables, against a script that imports what the engine needs of pyarrow."""
    contestants = {
        "ours": lambda: command("-c", "from paimon_core import FileSystemCatalog, Schema, Table"),
        "pyarrow": lambda: command("-c", "import numpy, pyarrow.compute, pyarrow.parquet"),
    }
    return race(Row("start: import table classes", 0), contestants, arena.rounds)


def help_text(arena: Arena) -> Row:
    """The help of the command, against a Python process that does nothing."""
    contestants = {
        "ours": lambda: command("-m", "paimon_command.main", "--help"),
        "bare": lambda: command("-c", "pass"),
    }
    return race(Row("start: paimon-spark --help", 0), contestants, arena.rounds)


def catalog(arena: Arena) -> Row:
    """A catalog in a new session, against a session without the cache of compiled classes."""
    return _race(arena, Row("start: catalog()", 0), ours="install_catalog", without="compile_catalog")


def first_write(arena: Arena) -> Row:
    """A write as the first statement of a session, against the same write of Parquet."""
    row = Row("start: first write of a session", WRITTEN_ROWS, goals={"parquet": FIRST_WRITE_GOAL})
    return _race(arena, row, ours="write_paimon", parquet="write_parquet")


def _race(arena: Arena, row: Row, **actions: str) -> Row:
    contestants: dict[str, Work] = {
        who: lambda action=action: in_new_process(arena, action) for who, action in actions.items()
    }
    return race(row, contestants, min(ROUNDS, arena.rounds), patience=_PATIENCE)


def environment() -> dict[str, str]:
    """Return the environment of a new process: compiled modules are kept, as for users."""
    kept = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "PYTHONDONTWRITEBYTECODE")}
    return kept | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def in_new_process(arena: Arena, action: str) -> Timing:
    """Run an action of `ACTIONS` in a new process; only the action is timed, not the start before it."""
    variables = environment() | {_CACHE: str(arena.warehouse / "cache")}
    arguments = [sys.executable, "-m", "benchmarks.start", action, str(arena.warehouse)]
    output = subprocess.run(arguments, env=variables, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout
    return Timing(**json.loads(output.splitlines()[-1]))


def command(*arguments: str) -> Timing:
    """Run Python with these arguments, and time the whole process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment(), stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Timing(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 0)


def _session() -> Any:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def install_catalog(directory: str) -> Callable[[], int]:
    """Install a catalog in a new session."""
    import paimon_spark  # noqa: PLC0415

    session = _session()
    paimon_spark.catalog  # noqa: B018 - import it

    def action() -> int:
        paimon_spark.catalog(session, "paimon", warehouse=directory)
        return 0

    return action


def compile_catalog(directory: str) -> Callable[[], int]:
    """Install a catalog in a new session that compiles its classes."""
    os.environ[_CACHE] = "off"
    return install_catalog(directory)


def _writes(form: str, directory: str) -> Callable[[], int]:
    import paimon_spark  # noqa: PLC0415

    session, path = _session(), tempfile.mkdtemp(dir=directory)
    paimon_spark.register(session)  # for both forms, so that only the write differs
    frame = session.range(WRITTEN_ROWS).selectExpr("id", "cast(id AS STRING) AS name", "id * 0.5 AS price")

    def action() -> int:
        frame.write.format(form).mode("append").save(f"{path}/t")
        return WRITTEN_ROWS

    return action


def write_paimon(directory: str) -> Callable[[], int]:
    """Write a new table as the first statement of a session."""
    return _writes("paimon", directory)


def write_parquet(directory: str) -> Callable[[], int]:
    """Write Parquet files as the first statement of a session."""
    return _writes("parquet", directory)


ACTIONS: dict[str, Callable[[str], Callable[[], int]]] = {
    f.__name__: f for f in (install_catalog, compile_catalog, write_paimon, write_parquet)
}


def _cpu() -> float:
    """Return the CPU seconds of this process and of its descendants, including processes that ended."""
    own = psutil.Process()
    return sum(map(_seconds, (own, *own.children(recursive=True))))


def _seconds(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


def main(name: str, directory: str) -> None:
    """Prepare an action, run it and print its timing as JSON."""
    action = ACTIONS[name](directory)
    cpu, start = _cpu(), time.perf_counter()
    rows = action()
    wall = time.perf_counter() - start
    print("\n" + json.dumps({"wall": wall, "cpu": _cpu() - cpu, "rows": rows}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
