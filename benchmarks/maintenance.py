"""Maintenance of large tables: expiry, orphans, tags, system tables; time compared with Java, and peak memory.

Each action of ours has a process of its own, from an opened table on; Java has run the same one before, to warm up.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.made_up import COLUMNS, PARTITIONS, Maker, copied, partitioned, table_of_files, table_of_snapshots
from benchmarks.measure import Row, Timing, race
from benchmarks.workers import once
from paimon_core import Table
from paimon_core.fileio.fileio import FileIO
from paimon_core.store.file_store import FileStore
from tests.support.faulty_io import FaultyIO
from tests.support.timeline import prolong

MOST_MB = 300
_PATIENCE = 60.0


def benchmarks(
    arena: Arena,
    files: int = 100_000,
    live: int = 10_000,
    snapshots: int = 1_000,
    tags: int = 1_000,
    long: int = 10_000,
) -> Iterator[Row]:
    """All rows: tables of ``files`` files; ``snapshots`` to expire of ``live`` files; ``tags``; ``long`` histories."""
    table = table_of_files(arena, "maintenance_files", files, touch=True)
    yield system_table(arena, table, "files", files, f"$files of {files:,} files")
    yield orphans(arena, table, files)
    history = table_of_snapshots(
        arena, "maintenance_history", live, snapshots, each=max(1, live // max(snapshots, PARTITIONS))
    )
    yield expiry(arena, history, snapshots, live)
    yield tagging(arena, history, tags)
    yield tags_of_expired(arena, history, tags)
    yield from audit_logs(arena)
    yield commit_calls(arena, long)


def _race(arena: Arena, row: Row, ours: Callable[[], tuple[Timing, Any]], java: Callable[[Any], Timing]) -> Row:
    """Let both take turns; note the most memory that a process of ours took."""

    def work() -> Timing:
        timing, answer = ours()
        row.values["peak_mb"] = max(answer["peak_mb"], row.values.get("peak_mb", 0))
        return timing

    contestants = {"ours": work}
    if opponent := arena.workers.get("java"):
        contestants["java"] = lambda: java(opponent)
    row.goals = {"java": 1.0}
    return race(row, contestants, arena.rounds, patience=_PATIENCE)


def system_table(arena: Arena, table: Table, kind: str, count: int, name: str, between: str = "") -> Row:
    """Read all columns of a system table; ``between``: the changes between two snapshots."""
    where = f"default.{table.path.rpartition('/')[2]}${kind}"
    wanted = {"incremental_between": between} if between else {}
    row = Row(name, count)
    row.values["goal"] = f"<= {MOST_MB} MB" if kind == "files" else "bounded"
    return _race(
        arena,
        row,
        lambda: once("read", f"{table.path}${kind}", between),
        lambda java: java.read_from_plan_on(where, **wanted),
    )


def orphans(arena: Arena, table: Table, files: int) -> Row:
    """Look for one orphan among a hundred files, and delete none."""
    maker, each = Maker(table, _any_file(table)), files // PARTITIONS
    for partition in range(PARTITIONS):
        maker.touch(partition, range(max(1, each // 100)), suffix=".left")
    time.sleep(0.1)
    now, name = int(time.time() * 1000) - 1, table.path.rpartition("/")[2]
    row = Row(f"orphan scan of {files:,} files", files)
    row.values["goal"] = f"<= {MOST_MB} MB"
    return _race(
        arena, row, lambda: once("orphans", table.path, now), lambda java: java.find_orphans(f"default.{name}", now)
    )


def _any_file(table: Table) -> Any:
    return table.scan(filter="dt = 0").plan().splits[0].files[0]


def expiry(arena: Arena, history: Table, snapshots: int, live: int) -> Row:
    """Expire all snapshots but the newest one, of a copy of the table for each look."""
    row, numbers, retained = Row(f"expire {snapshots:,} snapshots, {live:,} files", snapshots), itertools.count(), 1
    name = "maintenance_expiring_{}"

    def ours() -> tuple[Timing, Any]:
        copy = copied(history, name.format(next(numbers)))
        timing, answer = once("expire", copy.path, retained)
        row.values["files_left"] = _count(copy)
        return timing, answer

    def java(worker: Any) -> Timing:
        copy = copied(history, name.format(next(numbers)))
        timing: Timing = worker.expire_snapshots("default." + copy.path.rpartition("/")[2], retained)
        row.values["files_left_by_java"] = _count(copy)
        return timing

    return _race(arena, row, ours, java)


def _count(table: Table) -> int:
    """Count all files of a table's directory but hints."""
    found = list(itertools.chain.from_iterable(_below(table.store.io, table.path)))
    return sum(name not in ("EARLIEST", "LATEST") for name in found)


def _below(io: FileIO, directory: str) -> Iterator[list[str]]:
    entries = io.list(directory)
    yield [entry.name for entry in entries if not entry.is_directory]
    for entry in entries:
        if entry.is_directory:
            yield from _below(io, entry.path)


def tagging(arena: Arena, history: Table, tags: int) -> Row:
    """Create a tag for each of the oldest snapshots, then delete the tags, while the snapshots exist."""
    name = "default." + history.path.rpartition("/")[2]

    def java(worker: Any) -> Timing:
        return _counted(worker.tags(name, tags, 1, create=True, delete=True), tags)

    return _race(
        arena,
        Row(f"create and delete {tags:,} tags", tags),
        lambda: once("tags", history.path, tags, 1, "create and delete"),
        java,
    )


def tags_of_expired(arena: Arena, history: Table, tags: int) -> Row:
    """Delete tags whose snapshots have expired, with the files that only they need, of a copy for each look.

    Ours is one call, as ``CALL sys.delete_tag`` with all names makes. For the same statement Java's procedure deletes
    one tag after the other, as is done here.
    """
    tagged, numbers = copied(history, "maintenance_tagged"), itertools.count()
    once("tags", tagged.path, tags, 1, "create")
    once("expire", tagged.path, 1)
    row = Row(f"delete {tags:,} tags of expired snapshots", tags)

    def copy() -> Table:
        return copied(tagged, f"maintenance_tagged_{next(numbers)}")

    def ours() -> tuple[Timing, Any]:
        table = copy()
        timing, answer = once("tags", table.path, tags, 1, "delete at once")
        row.values["files_left"] = _count(table)
        return timing, answer

    def java(worker: Any) -> Timing:
        table = copy()
        found = worker.tags("default." + table.path.rpartition("/")[2], tags, 1, delete=True)
        row.values["files_left_by_java"] = _count(table)
        return _counted(found, tags)

    return _race(arena, row, ours, java)


def _counted(timing: Timing, count: int) -> Timing:
    return Timing(timing.wall, timing.cpu, count)


def audit_logs(arena: Arena) -> Iterator[Row]:
    """Read ``$audit_log`` of five times ``--rows``: a snapshot of an append table, and changes of a keyed one."""
    append = arena.table("maintenance_append", "int", keyed=False)
    keyed = arena.table("maintenance_changes", "int", keyed=True, options={"changelog-producer": "input"})
    for seed in range(5):
        append.write(rows.make(arena.count, "int", seed))
        keyed.write(rows.make(arena.count, "int", seed))
    count = 5 * arena.count
    yield system_table(arena, append, "audit_log", count, f"$audit_log of {count:,} rows")
    yield system_table(arena, keyed, "audit_log", count, f"$audit_log of {count:,} changes", f"0,{5}")


def commit_calls(arena: Arena, snapshots: int) -> Row:
    """Count the calls to the storage of a small write and its commit: after few snapshots and after many."""
    row = Row(f"storage calls of a commit after {snapshots:,} snapshots", 1)
    for label, count in (("calls_after_10", 10), (f"calls_after_{snapshots}", snapshots)):
        table = partitioned(arena, f"maintenance_calls_{count}", **{"write-only": "false"})
        table.write(pa.table([[1], [0], ["first"]], schema=COLUMNS))
        prolong(table.store, count)
        io = FaultyIO(FileIO.of(table.path))
        Table(FileStore(io, table.path, table.schema)).write(pa.table([[1], [-1], ["new"]], schema=COLUMNS))
        row.values[label] = io.calls
    row.values["goal"] = "the same"
    return row
