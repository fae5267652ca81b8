"""An append table of very many small files in many partitions, through Spark, against Spark's own Parquet.

Both have the same layout: every task has rows of every partition, and writes a file into each.
"""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, race
from benchmarks.spark import SparkSide
from paimon_core import FileSystemCatalog, Schema

PARTITIONS, TASKS = 200, 25
ROWS_OF_FILE = 1_000
_NAME = "small_files"
READS = {
    "sum by partition": "SELECT p, sum(a) FROM {} GROUP BY p",
    "count": "SELECT count(*) FROM {}",
    "count of a partition": "SELECT count(*) FROM {} WHERE p = 7",
    "sum of a partition": "SELECT sum(a), sum(c) FROM {} WHERE p = 7",
}


def benchmarks(arena: Arena, sides: tuple[str, ...] = ("ours",), tasks: int = TASKS) -> Iterator[Row]:
    """Write, read and compact files of 1,000 rows, a file in each of 200 partitions from each task."""
    worker = SparkSide("ours", arena.warehouse)
    try:
        worker.call(do="catalog")
        yield _write(arena, worker, tasks)
        yield from _reads(arena, worker, tasks)
        yield from _compactions(arena, worker, tasks)
    finally:
        worker.close()


def _title(tasks: int) -> str:
    return f"{PARTITIONS * tasks:,} files in {PARTITIONS} partitions"


def _create(arena: Arena, name: str) -> Path:
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    schema = rows.schema("int").append(pa.field("p", pa.int32(), nullable=False))
    catalog.drop_table(f"default.{name}", ignore_if_not_exists=True)
    return Path(catalog.create_table(f"default.{name}", Schema(schema, partition_keys=["p"])).path)


def _plain(arena: Arena) -> str:
    """Return the directory of Spark's own files."""
    return f"{arena.warehouse}/{_NAME}-plain"


def _write(arena: Arena, worker: SparkSide, tasks: int) -> Row:
    count = PARTITIONS * tasks * ROWS_OF_FILE
    command = {"do": "generate", "rows": count, "tasks": tasks, "partitions": PARTITIONS}

    def ours() -> Timing:
        return worker.timing(**command, table=_create(arena, _NAME).name)

    row = Row(f"Spark: write {_title(tasks)}", count, values={"goal": "no goal"})
    contestants = {"ours": ours, "parquet": partial(worker.timing, **command, plain=_plain(arena))}
    return race(row, contestants, arena.rounds, patience=120)


def _reads(arena: Arena, worker: SparkSide, tasks: int) -> Iterator[Row]:
    for name, text in READS.items():
        row = Row(f"Spark: {name}, {_title(tasks)}", PARTITIONS * tasks * ROWS_OF_FILE)
        contestants = {
            "ours": partial(worker.timing, do="query", text=text, table=_NAME),
            "sql": partial(worker.timing, do="query", text=text, table=_NAME, by="name"),
            "parquet": partial(worker.timing, do="query", text=text, plain=_plain(arena)),
        }
        yield race(row, contestants, arena.rounds, patience=120)


def _compactions(arena: Arena, worker: SparkSide, tasks: int) -> Iterator[Row]:
    source = Path(arena.warehouse, "default.db", _NAME)

    def copied() -> str:
        target = source.with_name(f"{_NAME}_copy")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, copy_function=os.link)
        return target.name

    row = Row(f"Spark: compact {_title(tasks)}", PARTITIONS * tasks * ROWS_OF_FILE)
    contestants = {
        "ours": lambda: worker.timing(do="compact_files", table=copied()),
        "sql": lambda: worker.timing(do="compact_files", table=copied(), by="name"),
        "parquet": partial(worker.timing, do="rewrite", plain=_plain(arena), tasks=2),
    }
    yield race(row, contestants, arena.rounds, patience=120)
