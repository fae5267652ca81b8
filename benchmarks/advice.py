"""Advice that is followed: scans before and after it, beside a copy that is compacted fully; and what advice costs."""

import shlex
from collections.abc import Callable, Iterator

from click.testing import CliRunner

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.made_up import table_of_files
from benchmarks.measure import Row, Work, race, timed
from benchmarks.workers import once
from paimon_command.main import command
from paimon_core import Table

_SMALL = 60
_MOST_ROUNDS = 3


def benchmarks(arena: Arena, files: int = 100_000) -> Iterator[Row]:
    """Three tables that were written in small pieces, each scanned in three states; advice for very many files."""
    for name, make in TABLES.items():
        yield from followed(arena, name, make)
    yield cost(arena, files)


def followed(arena: Arena, name: str, make: Callable[[Arena, str], Table]) -> Iterator[Row]:
    """Scan a table before its advice is followed, and after, beside a copy that is compacted fully."""
    short = "advice_" + name.replace(" ", "_")
    before, after, compacted = (make(arena, f"{short}_{state}") for state in ("before", "after", "compacted"))
    commands = follow(after)
    compacted.compact(full=True)
    compacted.maintenance.materialize_deletion_vectors()
    row = Row(f"scan of {name}, advice not followed", _stored(before))
    row.values["advice"] = sorted({one.kind for one in before.advice()})
    yield race(row, {"ours": _scanning(before), "compacted": _scanning(compacted)}, arena.rounds)
    row = Row(f"scan of {name}, advice followed", _stored(after), goals={"compacted": 1.1})
    row.values["commands"] = commands
    yield race(row, {"ours": _scanning(after), "compacted": _scanning(compacted)}, arena.rounds)


def follow(table: Table) -> int:
    """Run the commands of a table's advice until none is left; return their number."""
    done = 0
    for _ in range(_MOST_ROUNDS):
        lines = dict.fromkeys(one.command for one in table.advice() if one.command is not None)
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
    """Make a table of many small upserts that nobody compacts."""
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


TABLES = {"small upserts": upserts, "upserts never compacted": neglected, "small files with vectors": appends}


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


def _stored(table: Table) -> int:
    return sum(table.health().buckets["rows"].to_pylist())


def _scanning(table: Table) -> Work:
    def scan() -> int:
        return sum(batch.num_rows for batch in table.to_batches())

    return lambda: timed(scan)
