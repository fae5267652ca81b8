"""Scans before and after advice is followed, compared with a fully compacted copy, and the cost of advice."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
from click.testing import CliRunner

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.made_up import copied, table_of_files
from benchmarks.measure import Row, Work, race, timed
from benchmarks.workers import once
from paimon_command.main import command
from paimon_core import Table
from paimon_core.inspect.advice.table_facts import DAY, DEFAULT_LIMITS

_SMALL = 60
_BUCKETS = 64
_MOST_ROUNDS = 3


def benchmarks(arena: Arena, files: int = 100_000) -> Iterator[Row]:
    """Tables that need advice, each scanned in three states; advice for very many files."""
    for name, make in TABLES.items():
        yield from followed(arena, name, make, days=DAYS.get(name, 0))
    yield cost(arena, files)


def followed(arena: Arena, name: str, make: Callable[[Arena, str], Table], days: int = 0) -> Iterator[Row]:
    """Scan a table before its advice is followed, and after, and scan a copy that is fully compacted.

    ``days``: the age of the table when it asks for advice. A table so small that reads lose next to nothing gets no
    advice, and has no goal.
    """
    short = "advice_" + name.replace(" ", "_")
    before = make(arena, f"{short}_before")
    after, compacted = copied(before, f"{short}_after"), copied(before, f"{short}_compacted")
    advice, measures = aged(before, days).advice(), before.health().buckets
    commands = follow(after, days)
    compacted.compact(full=True)
    compacted.maintenance.materialize_deletion_vectors()
    stored, size = (sum(measures[column].to_pylist()) for column in ("rows", "bytes"))
    row = Row(f"{name}: as it is", stored)
    row.values["advice"] = sorted({one.kind for one in advice})
    yield race(row, {"ours": _scanning(before), "compacted": _scanning(compacted)}, arena.rounds)
    large = size >= 2 * DEFAULT_LIMITS.worth
    row = Row(f"{name}: advice followed", stored, goals={"compacted": 1.1} if commands or large else {})
    row.values["commands"] = commands
    yield race(row, {"ours": _scanning(after), "compacted": _scanning(compacted)}, arena.rounds)


def aged(table: Table, days: int) -> Table:
    """Return the table as it is seen some days from now."""
    moment = table.store.now() + days * DAY
    return Table(replace(table.store, now=lambda: moment))


def follow(table: Table, days: int = 0) -> int:
    """Run the commands of a table's advice until none is left; return their number."""
    done = 0
    for _ in range(_MOST_ROUNDS):
        lines = dict.fromkeys(one.command for one in aged(table, days).advice() if one.command is not None)
        for line in lines:
            result = CliRunner().invoke(command, shlex.split(line)[1:])
            assert result.exit_code == 0, result.output
        done += len(lines)
        if not lines:
            break
    return done


def upserts(arena: Arena, name: str) -> Table:
    """Make a table of one large load and many small upserts, which its writer compacts as the defaults say."""
    table = arena.table(name, "int", keyed=True, options={"write-only": "false"})
    table.write(rows.make(2 * arena.count, "int", 0))
    for seed in range(1, _SMALL + 1):
        table.write(rows.make(max(1, arena.count // 40), "int", seed, overlap=2 * rows.OVERLAP * 40))
    return table


def neglected(arena: Arena, name: str) -> Table:
    """Make a table of many small upserts without compaction."""
    table = arena.table(name, "int", keyed=True)
    for seed in range(_SMALL):
        table.write(rows.make(max(1, arena.count // 20), "int", seed, overlap=rows.OVERLAP * 20))
    return table


def appends(arena: Arena, name: str) -> Table:
    """Make a table without a key of many small files, in which deletion vectors mark every third row."""
    table = arena.table(name, "int", keyed=False, options={"deletion-vectors.enabled": "true"})
    for seed in range(_SMALL):
        table.write(rows.make(max(1, arena.count // 20), "int", seed, overlap=rows.OVERLAP * 20))
    table.delete("d < 33")
    return table


def marked(arena: Arena, name: str) -> Table:
    """Make a table with a key whose writer compacts small upserts by marking old rows in deletion vectors."""
    table = arena.table(name, "int", keyed=True, options={"write-only": "false", "deletion-vectors.enabled": "true"})
    table.write(rows.make(2 * arena.count, "int", 0))
    for seed in range(1, _SMALL // 4 + 1):
        table.write(rows.make(max(1, arena.count // 20), "int", seed, overlap=rows.OVERLAP * 20))
    return table


def appended(arena: Arena, name: str) -> Table:
    """Make a table without a key of many small files."""
    table = arena.table(name, "int", keyed=False)
    for seed in range(4 * _SMALL):
        table.write(rows.make(max(1, arena.count // 80), "int", seed))
    return table


def divided(arena: Arena, name: str) -> Table:
    """Make a table of far more buckets than its rows need."""
    table = arena.table(name, "int", keyed=True, buckets=_BUCKETS)
    for seed in range(3):
        table.write(rows.make(arena.count, "int", seed))
    return table


def evolved(arena: Arena, name: str) -> Table:
    """Make a table without a key of many small files, whose rows have a column in a file of its own."""
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = arena.table(name, "int", keyed=False, options=options)
    each = max(1, arena.count // 40)
    for seed in range(2 * _SMALL):
        table.write(rows.make(each, "int", seed))
    ids = pa.array(range(0, 2 * _SMALL * each, each))
    table.update_columns(pa.table({"_ROW_ID": ids, "c": pa.nulls(len(ids), pa.float64())}))
    return table


TABLES = {
    "small upserts": upserts,
    "upserts never compacted": neglected,
    "upserts with vectors": marked,
    "small files": appended,
    "small files with vectors": appends,
    "columns in several files": evolved,
    "many buckets": divided,
}
DAYS = {"many buckets": 8}
"""The age from which on some advice is given."""


def cost(arena: Arena, files: int) -> Row:
    """Ask for advice in fresh processes: seconds from an opened table to its advice, peak memory."""
    table = table_of_files(arena, "advice_files", files)
    row = Row(f"advice for {files:,} files", files)
    for _ in range(max(1, arena.rounds)):
        timing, answer = once("advice", table.path)
        row.timings.setdefault("ours", []).append(timing)
        row.values = {k: answer[k] for k in ("peak_mb", "advice")}
    row.values["goal"] = "<= 300 MB"
    return row


def _scanning(table: Table) -> Work:
    def scan() -> int:
        return sum(batch.num_rows for batch in table.to_batches())

    return lambda: timed(scan)
