"""Tables of very many files, partitions and snapshots: what grows faster than its work (``--files``)."""

from collections.abc import Iterator

import pyarrow as pa

from benchmarks import maintenance, metadata
from benchmarks.engine import Arena
from benchmarks.made_up import COLUMNS, PARTITIONS, Maker, table_of_manifests, table_of_snapshots
from benchmarks.measure import Row, timed
from benchmarks.workers import once
from paimon_core import Table

MILLION = 1_000_000


def benchmarks(arena: Arena, partitions: int = 100_000, snapshots: int = 10_000) -> Iterator[Row]:
    """Plans, look-ups, commits and system tables of ``arena.files`` files; many partitions; many snapshots.

    The goals hold for a million files.
    """
    table = table_of_manifests(arena, "files", arena.files)
    goals = {"": "<= 4 s, <= 700 MB", "dt = 7": "<= 0.3 s", "dt >= 98": "no goal", "dt = 7 and id = 5": "<= 0.3 s"}
    for question, goal in goals.items():
        row = metadata.plan(arena, table, _name("plan", arena.files, question), arena.files, question)
        row.values["goal"] = goal
        yield row
    yield _in_new_process(arena, table, "get", f"look up a key among {arena.files:,} files", "<= 1 s")
    yield maintenance.system_table(arena, table, "files", arena.files, f"$files of {arena.files:,} files")
    yield maintenance.system_table(arena, table, "partitions", PARTITIONS, f"$partitions of {arena.files:,} files")
    yield commit(arena, table, arena.files)
    yield orphans(arena, table, arena.files)
    wide = table_of_manifests(arena, "wide", partitions, partitions)
    for question in ("", "dt = 7"):
        yield metadata.plan(arena, wide, _name("plan", partitions, question, "partitions"), partitions, question)
    yield maintenance.system_table(arena, wide, "partitions", partitions, f"$partitions of {partitions:,} partitions")
    yield commit(arena, wide, partitions, "partitions")
    history = table_of_snapshots(arena, "history", PARTITIONS * 10, snapshots, 2)
    yield maintenance.expiry(arena, history, snapshots, PARTITIONS * 10)


def orphans(arena: Arena, table: Table, count: int) -> Row:
    """Look for orphans in a table whose files exist, without content; one file in a hundred is an orphan."""
    maker = Maker(table, table.scan(filter="dt = 0").plan().splits[0].files[0])
    for partition in range(PARTITIONS):
        maker.touch(partition, range(count // PARTITIONS))
    row = maintenance.orphans(arena, table, count)
    row.values["goal"] = "ten times the time of a tenth of the files"
    return row


def _name(action: str, count: int, question: str, kind: str = "files") -> str:
    return f"{action} {count:,} {kind}" + (f" where {question}" if question else "")


def _in_new_process(arena: Arena, table: Table, action: str, name: str, goal: str) -> Row:
    row = Row(name, 1, values={"goal": goal})
    for _ in range(max(1, arena.rounds)):
        timing, answer = once(action, table.path)
        row.timings.setdefault("ours", []).append(timing)
        row.values["peak_mb"] = answer["peak_mb"]
    return row


def commit(arena: Arena, table: Table, count: int, kind: str = "files") -> Row:
    """Write and commit a row; the table is opened before, and its other commits are small."""
    row = Row(f"write and commit a row, table of {count:,} {kind}", 1, values={"goal": "<= 0.4 s"})
    for turn in range(arena.rounds + 1):
        data = pa.table([[PARTITIONS // 2 + turn], [-1 - turn], ["new"]], schema=COLUMNS)
        opened = Table.open(table.path)
        row.timings.setdefault("ours", []).append(timed(lambda t=opened, d=data: len(d) if t.write(d) else 0))  # type: ignore[misc]
    return row
