"""Metadata alone: planning and committing on tables of many files, and planning after many commits."""

from collections.abc import Iterator

import pyarrow as pa

from benchmarks.engine import Arena
from benchmarks.made_up import COLUMNS, PARTITIONS, Maker, partitioned, table_of_files
from benchmarks.measure import Row, race, timed
from benchmarks.workers import once
from paimon_core import Table
from paimon_core.fileio.fileio import FileIO
from paimon_core.store.file_store import FileStore
from tests.support.faulty_io import FaultyIO


def benchmarks(
    arena: Arena,
    files: tuple[int, ...] = (10_000, 100_000),
    commits: int = 1_000,
    most: int = 1_000_000,
    buckets: tuple[int, ...] = (1, 200),
) -> Iterator[Row]:
    """Planning, with a filter on the partition and without; a page; the cost of commits; many small commits."""
    for count in files:
        table = table_of_files(arena, f"files_{count}", count)
        for question in ("", "dt = 7"):
            name = f"plan {count} files" + (f" where {question}" if question else "")
            yield plan(arena, table, name, count, question)
    yield notebook_page(arena, table_of_files(arena, "page", files[0]), files[0])
    yield commit_calls(arena, files[0])
    for count in buckets:
        yield synced_commits(arena, count)
    yield many_commits(arena, commits)
    yield commit_beside(arena, most)


def plan(arena: Arena, table: Table, name: str, files: int, question: str) -> Row:
    """Plan in fresh processes: seconds from an opened table to its splits, peak memory, manifests opened."""
    row = Row(name, files)
    for _ in range(max(1, arena.rounds)):
        timing, answer = once("plan", table.path, question)
        row.timings.setdefault("ours", []).append(timing)
        row.values = {k: answer[k] for k in ("peak_mb", "manifests", "manifests_read", "import_seconds")}
    if files >= 100_000 and not question:
        row.values["goal"] = "<= 2 s, <= 300 MB"
    return row


def notebook_page(arena: Arena, table: Table, files: int) -> Row:
    """The page of a table for a notebook, in fresh processes: seconds from an opened table to its HTML."""
    row = Row(f"notebook page of {files} files", files)
    for _ in range(max(1, arena.rounds)):
        timing, answer = once("page", table.path)
        row.timings.setdefault("ours", []).append(timing)
        row.values = {k: answer[k] for k in ("peak_mb", "kilobytes", "import_seconds")}
    row.values["goal"] = "< 1 s"
    return row


def commit_calls(arena: Arena, files: int) -> Row:
    """Calls to the storage that a small write and its commit make: to a table of few files and to one of many."""
    row = Row(f"storage calls of a commit, table of {files} files", 1)
    for label, table in (
        ("calls_few", table_of_files(arena, "calls_few", PARTITIONS)),
        ("calls_many", table_of_files(arena, "calls_many", files)),
    ):
        io = FaultyIO(FileIO.of(table.path))
        counted = Table(FileStore(io, table.path, table.schema))
        counted.write(pa.table([[1], [-1], ["new"]], schema=COLUMNS))
        row.values[label] = io.calls
    row.values["goal"] = "independent of the table's size"
    return row


def commit_beside(arena: Arena, files: int) -> Row:
    """A row written and committed to a table of very many files, whose metadata are made up and written at once."""
    table = partitioned(arena, f"beside_{files}")
    maker = Maker.of(table)
    table.committer().commit([maker.added(partition, files // PARTITIONS) for partition in range(PARTITIONS)])
    row = Row(f"write and commit beside {files} files", 1)
    for turn in range(arena.rounds + 1):
        one = pa.table([[turn % PARTITIONS], [-1], ["new"]], schema=COLUMNS)
        opened = Table.open(table.path)
        row.timings.setdefault("ours", []).append(timed(lambda t=opened, d=one: len(d) if t.write(d) else 0))  # type: ignore[misc]
    row.values["goal"] = "<= 0.5 s"
    return row


def synced_commits(arena: Arena, buckets: int, commits: int = 20) -> Row:
    """Small writes and their commits, with what they name pushed to the disk first, and without."""
    row = Row(f"{commits} commits of {buckets} files, pushed to the disk", commits)
    contestants = {}
    for label, sync in (("ours", "true"), ("commit.sync=false", "false")):
        table = partitioned(arena, f"synced_{buckets}_{sync}", **{"commit.sync": sync})
        contestants[label] = lambda table=table: timed(lambda: _write_often(table, buckets, commits))
    return race(row, contestants, arena.rounds)


def _write_often(table: Table, buckets: int, commits: int) -> int:
    for i in range(commits):
        table.write(pa.table([list(range(buckets)), [i] * buckets, ["value"] * buckets], schema=COLUMNS))
    return commits


def many_commits(arena: Arena, commits: int) -> Row:
    """Planning after very many small commits, whose manifests were merged on the way."""
    table = partitioned(arena, "many_commits")
    for i in range(commits):
        table.write(pa.table([[i % PARTITIONS], [i], ["value"]], schema=COLUMNS))
    row = plan(arena, table, f"plan after {commits} small commits", commits, "")
    row.values["goal"] = "< 1 s"
    return row
