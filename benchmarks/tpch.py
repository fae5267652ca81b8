"""TPC-H, changes of rows and small statements in SQL: the catalog against plain Parquet and against the connector."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import rows, stored
from benchmarks.engine import Arena
from benchmarks.measure import Row, Work, race
from benchmarks.spark import SparkSide
from benchmarks.tpch_data import KINDS, MERGED, RUNS, generate, load
from benchmarks.tpch_queries import QUERIES, query
from paimon_core import FileSystemCatalog, Schema, Table

SCALE = 1.0
"""Of TPC-H, with the default number of rows; fewer rows make it smaller."""
DEFAULT_ROWS = 400_000
CHANGED_FACTOR = 5  # rows of a table whose rows are changed, in runs
SHARE = 100  # one row in SHARE is changed
FILES = 5_000  # of the partition that is counted
COMMITS = 100  # before a read
CHANGES = {
    "DELETE": "DELETE FROM {table} WHERE k % {share} = {turn}",
    "UPDATE": "UPDATE {table} SET a = a - 1 WHERE k % {share} = {turn}",
    "MERGE": "MERGE INTO {table} t USING (SELECT k, a - 1 AS a FROM {source} WHERE k % {share} = {turn}) s "
    "ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = s.a",
}
CHANGED: dict[str, dict[str, str]] = {
    "append": {},
    "keyed": {},
    "append with vectors": {"deletion-vectors.enabled": "true"},
}
"""Kinds of tables whose rows are changed, and their options."""

READS = {
    "all columns": "SELECT * FROM {table}",
    "two columns": "SELECT k, c FROM {table}",
    "a range of 1 % of the keys": "SELECT * FROM {table} WHERE k >= {low} AND k < {high}",
    "one key": "SELECT * FROM {table} WHERE k = {low}",
    "count": "SELECT count(*) FROM {table}",
}
READ_FACTORS = {"append": 12.5, "runs": 7.5, "compacted": 7.5}
"""Kinds of tables that are read, and their rows, in ``--rows``."""


def benchmarks(arena: Arena, sides: tuple[str, ...] = ("ours", "java")) -> Iterator[Row]:
    """Yield a row for each query of TPC-H on each kind of table."""
    with _running(arena, sides) as running:
        yield from queries(arena, running, SCALE * arena.count / DEFAULT_ROWS)


def statements(arena: Arena, sides: tuple[str, ...] = ("ours", "java")) -> Iterator[Row]:
    """Yield a row for each change of rows, and for small statements."""
    with _running(arena, sides) as running:
        yield from reads(arena, running)
        yield from changes(arena, running)
        yield many_files(arena, running)
        yield small_commit(arena, running)
        yield after_commits(arena, running)
        running["bare"] = SparkSide("ours", arena.warehouse)
        yield parsing(arena, running["ours"], running["bare"])


@contextmanager
def _running(arena: Arena, sides: tuple[str, ...]) -> Iterator[dict[str, SparkSide]]:
    """Start a Spark of each side with its catalog."""
    running: dict[str, SparkSide] = {}
    try:
        for side in sides:
            running[side] = SparkSide(side, arena.warehouse)
            running[side].call(do="catalog")
        yield running
    finally:
        for worker in running.values():
            worker.close()


def queries(arena: Arena, running: dict[str, Any], scale: float) -> Iterator[Row]:
    """Yield all queries on each kind of table; ``parquet``: on plain Parquet files in our own Spark.

    ``stored``: on Parquet files of the rows of all runs, filtered by a flag.
    """
    files = generate(arena.warehouse / "tpch-files", scale)
    for worker in running.values():
        worker.call(do="views", folder=str(files))
    for kind in KINDS:
        load(files, str(arena.warehouse), kind)
        goals = {"connector": 1.0, "stored": 1.1} if kind == "runs" else {"parquet": 1.1}
        if kind == "runs":
            tables = {name: Table.open(f"{arena.warehouse}/{kind}.db/{name}") for name in MERGED}
            every = {name: stored.write(table, arena.warehouse / f"tpch-{name}") for name, table in tables.items()}
            views = {"folder": str(files), "database": "stored", "stored": every, "kept": stored.KEPT}
            running["ours"].call(do="views", **views)
        for number in QUERIES:
            command = {"do": "sql", "text": query(number, scale)}
            contestants: dict[str, Work] = {"parquet": _sql(running["ours"], command, "plain")}
            if kind == "runs":
                contestants["stored"] = _sql(running["ours"], command, "stored")
            for side, worker in running.items():
                contestants["ours" if side == "ours" else "connector"] = _sql(worker, command, kind)
            row = Row(f"SQL: TPC-H query {number}, {kind}", 0, goals=dict(goals))
            yield race(row, contestants, arena.rounds, patience=120)


def _sql(worker: Any, command: dict[str, Any], database: str) -> Work:
    return lambda: worker.timing(**command, database=database)


def changes(arena: Arena, running: dict[str, Any]) -> Iterator[Row]:
    """Yield DELETE, UPDATE and MERGE of one row in SHARE, each round other rows, on each kind of table."""
    count = CHANGED_FACTOR * arena.count
    source = arena.warehouse / "changed.parquet"
    data = rows.make(count, "int", 1)
    data = data.set_column(0, data.schema.field(0), pa.array(np.arange(count)).cast(data.schema.field(0).type))
    pq.write_table(data, source)
    for kind, options in CHANGED.items():
        for name, text in CHANGES.items():
            contestants: dict[str, Work] = {}
            for side, worker in running.items():
                table = f"changed_{name.lower()}_{kind.replace(' ', '_')}_{side}"
                settings = {"write-only": "false", **options}
                arena.table(table, "int", keyed=kind == "keyed", buckets=2, options=settings).write(data)
                who = "ours" if side == "ours" else "connector"
                contestants[who] = _changing(worker, text, table, source)
            row = Row(f"SQL: {name} of 1 in {SHARE} rows, {kind}", count, goals={"connector": 1.0})
            yield race(row, contestants, arena.rounds, patience=120)


def reads(arena: Arena, running: dict[str, Any]) -> Iterator[Row]:
    """Yield reads of an append table, of overlapping runs, and of a compacted table; ``parquet``: the append table's
    files, read as files of Parquet."""
    for kind, factor in READ_FACTORS.items():
        table = arena.table(f"read_{kind}", "int", keyed=kind != "append", buckets=2)
        for seed in range(RUNS):
            table.write(rows.make(int(factor * arena.count) // RUNS, "int", seed))
        if kind == "compacted":
            table.compact(full=True)
        keys = int(rows.OVERLAP * factor * arena.count // RUNS)
        low = keys // 2
        places = {"table": f"paimon.default.read_{kind}", "low": low, "high": low + keys // 100}
        for name, text in READS.items():
            contestants: dict[str, Work] = {}
            for side, worker in running.items():
                command = {"do": "scan", "text": text.format(**places)}
                contestants["ours" if side == "ours" else "connector"] = _scanning(worker, command)
            goals = {"connector": 1.0}
            if kind == "append":
                files = {"do": "scan", "text": text.format(**{**places, "table": "files"})}
                files["parquet"] = f"{table.path}/bucket-*/*.parquet"
                contestants["parquet"] = _scanning(running["ours"], files)
                goals["parquet"] = 1.1
            row = Row(f"SQL: {name}, {kind}", int(factor * arena.count), goals=goals)
            yield race(row, contestants, arena.rounds, patience=120)


def _scanning(worker: Any, command: dict[str, Any]) -> Work:
    return lambda: worker.timing(**command)


def _changing(worker: Any, text: str, table: str, source: Path) -> Work:
    turns = iter(range(SHARE))

    def work() -> Any:
        filled = text.format(
            table=f"paimon.default.{table}", source=f"parquet.`{source}`", share=SHARE, turn=next(turns)
        )
        return worker.timing(do="sql", text=filled, database="default")

    return work


def many_files(arena: Arena, running: dict[str, Any], files: int = FILES) -> Row:
    """Return what a count in one partition of many files takes."""
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    schema = pa.schema([("p", pa.int32()), ("k", pa.int64())])
    options = {"write-only": "true", "commit.sync": "false", "bucket": str(min(100, files)), "bucket-key": "k"}
    table = catalog.create_table("default.many_files", Schema(schema, partition_keys=["p"], options=options))
    commits = max(1, files // 100)
    for commit in range(commits):
        keys = np.arange(commit * 2000, (commit + 1) * 2000)
        table.write(pa.table({"p": np.full(2000, 1, np.int32), "k": keys}, schema=schema))
    command = {"do": "sql", "text": "SELECT count(*) FROM many_files WHERE p = 1", "database": "default"}
    row = Row(f"SQL: count in a partition of {files} files", commits * 2000, values={"goal": "<= 0.1 s"})
    return race(row, _both(running, lambda worker, _: lambda: worker.timing(**command)), arena.rounds, patience=120)


def small_commit(arena: Arena, running: dict[str, Any]) -> Row:
    """Return what an INSERT of 100 rows takes."""
    for side in running:
        arena.table(f"small_commit_{side}", "int", keyed=False)
    source = arena.warehouse / "small.parquet"
    pq.write_table(rows.make(100, "int", 0), source)
    row = Row("SQL: INSERT of 100 rows", 100, values={"goal": "<= 0.2 s"})

    def insert(worker: Any, side: str) -> Work:
        text = f"INSERT INTO small_commit_{side} SELECT * FROM parquet.`{source}`"
        return lambda: worker.timing(do="sql", text=text, database="default")

    return race(row, _both(running, insert), arena.rounds, patience=120)


def after_commits(arena: Arena, running: dict[str, Any], commits: int = COMMITS) -> Row:
    """Return what a sum takes after many small commits."""
    table = arena.table("after_commits", "int", keyed=False)
    for seed in range(commits):
        table.write(rows.make(100, "int", seed))
    command = {"do": "sql", "text": "SELECT sum(a) FROM after_commits", "database": "default"}
    row = Row(f"SQL: sum after {commits} commits of 100 rows", 100 * commits)
    return race(row, _both(running, lambda worker, _: lambda: worker.timing(**command)), arena.rounds, patience=120)


def parsing(arena: Arena, ours: Any, bare: Any) -> Row:
    """Return what SELECT 1 takes; ``bare``: in a Spark without the catalog, and so with Spark's own parser."""
    row = Row("SQL: SELECT 1, 50 times", 50, values={"goal": "<= 0.25 s more than bare"})
    command = {"do": "repeat", "text": "SELECT 1", "times": 50}
    return race(row, {"ours": lambda: ours.timing(**command), "bare": lambda: bare.timing(**command)}, arena.rounds)


def _both(running: dict[str, Any], work: Callable[[Any, str], Work]) -> dict[str, Work]:
    return {"ours" if side == "ours" else "connector": work(worker, side) for side, worker in running.items()}
