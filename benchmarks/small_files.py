"""An append table of very many small files in many partitions, through Spark, against Spark's own Parquet.

Both have the same layout: every task has rows of every partition, and writes a file into each.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, race
from benchmarks.spark import SparkSide, Worker
from paimon_core import FileSystemCatalog, Schema

_NAME = "small_files"
READS = {
    "sum by partition": "SELECT p, sum(a) FROM {} GROUP BY p",
    "count": "SELECT count(*) FROM {}",
    "count of a partition": "SELECT count(*) FROM {} WHERE p = 1",
    "sum of a partition": "SELECT sum(a), sum(c) FROM {} WHERE p = 1",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The number of partitions, of tasks that write, and of rows of a file: each task writes a file per partition."""

    partitions: int = 200
    tasks: int = 25
    rows_of_file: int = 1_000

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return self.partitions * self.tasks * self.rows_of_file

    def __str__(self) -> str:
        return f"{self.partitions * self.tasks:,} files in {self.partitions} partitions"


def benchmarks(arena: Arena, sides: tuple[str, ...] = ("ours",)) -> Iterator[Row]:
    """Write, read and compact 5,000 files of 1,000 rows, in a new Spark session."""
    worker = SparkSide("ours", arena.warehouse)
    try:
        yield from of_layout(arena, worker, Layout())
    finally:
        worker.close()


def of_layout(arena: Arena, worker: Worker, layout: Layout) -> Iterator[Row]:
    """Write, read and compact a table of this layout."""
    worker.call(do="catalog")
    yield _write(arena, worker, layout)
    yield from _reads(arena, worker, layout)
    yield _compaction(arena, worker, layout)


def _create(arena: Arena) -> str:
    """Create the table without rows and return its name."""
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    schema = rows.schema("int").append(pa.field("p", pa.int32(), nullable=False))
    catalog.drop_table(f"default.{_NAME}", ignore_if_not_exists=True)
    catalog.create_table(f"default.{_NAME}", Schema(schema, partition_keys=["p"]))
    return _NAME


def _plain(arena: Arena) -> str:
    """Return the directory of Spark's own files."""
    return f"{arena.warehouse}/{_NAME}-plain"


def _write(arena: Arena, worker: Worker, layout: Layout) -> Row:
    command = {"do": "generate", "rows": layout.rows, "tasks": layout.tasks, "partitions": layout.partitions}

    def ours() -> Timing:
        return worker.timing(**command, table=_create(arena))

    row = Row(f"Spark: write {layout}", layout.rows)
    contestants = {"ours": ours, "parquet": partial(worker.timing, **command, plain=_plain(arena))}
    return race(row, contestants, arena.rounds, patience=120)


def _reads(arena: Arena, worker: Worker, layout: Layout) -> Iterator[Row]:
    for name, text in READS.items():
        contestants = {
            "ours": partial(worker.timing, do="query", text=text, table=_NAME),
            "sql": partial(worker.timing, do="query", text=text, table=_NAME, by="name"),
            "parquet": partial(worker.timing, do="query", text=text, plain=_plain(arena)),
        }
        yield race(Row(f"Spark: {name}, {layout}", layout.rows), contestants, arena.rounds, patience=120)


def _compaction(arena: Arena, worker: Worker, layout: Layout) -> Row:
    source = Path(arena.warehouse, "default.db", _NAME)

    def copied() -> str:
        target = source.with_name(f"{_NAME}_copy")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, copy_function=os.link)
        return target.name

    contestants = {
        "ours": lambda: worker.timing(do="compact_files", table=copied()),
        "sql": lambda: worker.timing(do="compact_files", table=copied(), by="name"),
        "parquet": partial(worker.timing, do="rewrite", plain=_plain(arena), tasks=2),
    }
    return race(Row(f"Spark: compact {layout}", layout.rows), contestants, arena.rounds, patience=120)
