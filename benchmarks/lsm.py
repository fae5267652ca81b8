"""The LSM tree in one process: merge engines, full compaction, and a long loop of small upserts."""

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, Work, race, timed
from paimon_core import CommitMessage, Table
from paimon_core.manifest.entry import ADD
from paimon_core.operations.compaction.compact import plan_compaction, run_task
from paimon_core.operations.jobs.task import PlanRequest
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

RUNS = 5
LATE = 40
"""Upserts whose states are read: each key is upserted once in as many."""
OF_JAVA = {"compaction.max-size-amplification-percent": "200"}
ENGINES = {
    "deduplicate": {},
    "first-row": {"merge-engine": "first-row"},
    "partial-update, two sequence groups": {
        "merge-engine": "partial-update",
        "fields.a.sequence-group": "c,s",
        "fields.d.sequence-group": "b",
    },
    "aggregation, five functions": {
        "merge-engine": "aggregation",
        "fields.a.aggregate-function": "max",
        "fields.b.aggregate-function": "min",
        "fields.c.aggregate-function": "sum",
        "fields.d.aggregate-function": "first_non_null_value",
        "fields.s.aggregate-function": "last_non_null_value",
    },
}


def benchmarks(arena: Arena) -> Iterator[Row]:
    """All rows of the LSM tree, one after another."""
    yield from merge_engines(arena)
    for key in rows.KEYS:
        yield full_compaction(arena, key)
    yield from upserts(arena)


def merge_engines(arena: Arena) -> Iterator[Row]:
    """Merge reads of the same rows by every engine; the goal is relative to deduplicate."""
    tables = {name: _overlapping(arena, f"engine_{i}", options) for i, (name, options) in enumerate(ENGINES.items())}
    for i, (name, table) in enumerate(tables.items()):
        row = Row(f"merge read, {RUNS} runs, {name}", RUNS * arena.count)
        contestants = {"ours": _reading(table)}
        if i:
            contestants["deduplicate"] = _reading(tables["deduplicate"])
            row.goals = {"deduplicate": 1.3}
        if (java := arena.workers.get("java")) and name != "first-row":  # it would not merge levels it has not made
            contestants["java"] = lambda j=java, i=i: j.read(f"default.engine_{i}")
        yield race(row, contestants, arena.rounds)


def _overlapping(arena: Arena, name: str, options: dict[str, str]) -> Table:
    """A table of RUNS runs, one in each level from 1 down: readers of first-row pass over level 0."""
    table = arena.table(name, "int", keyed=True, options=options)
    for seed in range(RUNS):
        with table.writer() as writer:
            writer.write(rows.make(arena.count, "int", seed))
            (message,) = writer.prepare_commit()
        files = tuple(replace(file, level=RUNS - seed) for file in message.new_files)
        table.committer().commit([replace(message, new_files=files)])
    return table


def _reading(*tables: Table) -> Work:
    """Read tables one after the other."""

    def read(table: Table) -> int:
        reader, plan = table.reader(), table.scan().plan()
        return sum(batch.num_rows for split in plan.splits for batch in reader.to_batches(split))

    return lambda: timed(lambda: sum(map(read, tables)))


def _decoding(*tables: Table) -> Work:
    """Decode all files of tables without a merge; the rows of the tables count, so that it can race with reads."""
    counts = [table.to_arrow(["k"]).num_rows for table in tables]
    files = [
        [
            f"{table.path}/bucket-{split.bucket}/{file.file_name}"
            for split in table.scan().plan().splits
            for file in split.files
        ]
        for table in tables
    ]

    def decode() -> int:
        for file in itertools.chain.from_iterable(files):
            for _ in pq.ParquetFile(file).iter_batches(1 << 17):
                pass
        return sum(counts)

    return lambda: timed(decode)


def full_compaction(arena: Arena, key: str) -> Row:
    """Runs to one: merge, encode, statistics, no commit.

    pyarrow decodes the same files and encodes the same number of rows; Java compacts copies of the table and commits.
    """
    name = f"compact_{key}"
    table = arena.table(name, key, keyed=True)
    for seed in range(RUNS):
        table.write(rows.make(arena.count, key, seed))
    files = sorted(Path(table.path).glob("bucket-*/*.parquet"))
    kept, store = table.to_arrow(columns=["k"]).num_rows, FileStore.open(table.path)

    def ours() -> Timing:
        messages: list[CommitMessage] = []

        def run() -> int:
            messages.extend(run_task(store, task) for task in plan_compaction(store, PlanRequest(full=True)))
            return sum(file.row_count for message in messages for file in message.compact_after)

        timing = timed(run)
        table.committer().abort(messages)
        return timing

    def raw() -> int:
        data = pa.concat_tables([pq.read_table(file) for file in files]).slice(0, kept)
        pq.write_table(data, arena.warehouse / "raw.parquet", compression="zstd", compression_level=1)
        return data.num_rows

    contestants: dict[str, Work] = {"ours": ours, "pyarrow": lambda: timed(raw)}
    if java := arena.workers.get("java"):
        contestants["java"] = _copying(arena, java, name, kept)
    row = Row(f"full compaction, {RUNS} runs, {key} key", RUNS * arena.count, goals={"pyarrow": 1.5, "java": 0.5})
    return race(row, contestants, arena.rounds)


def _copying(arena: Arena, java: Any, name: str, kept: int) -> Work:
    def compact() -> Timing:
        place = arena.warehouse / "default.db" / f"{name}_java"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(arena.warehouse / "default.db" / name, place)
        return replace(java.compact(f"default.{name}_java"), rows=kept)

    return compact


@dataclass(frozen=True, slots=True)
class Loop:
    """A long loop of small upserts: ``commits`` of ``size`` keys each, spread evenly over ``keys``."""

    commits: int = 200
    size: int = 5_000
    keys: int = 200_000

    def batch(self, number: int) -> pa.Table:
        """The rows of one commit."""
        step = self.keys // self.size
        data = rows.make(self.size, "int", number, overlap=1.0)
        ids = pa.array([k * step + number % step for k in data.column("k").to_pylist()], pa.int64())
        return data.set_column(0, data.schema.field(0), ids)

    def late_states(self, table: Table) -> list[Table]:
        """The table after every fourth of its last ``LATE`` upserts: compactions make its states differ."""
        appended = [s.id for s in FileStore.open(table.path).snapshots.all() if s.commit_kind == "APPEND"]
        return [Table.open(table.path, options={"scan.snapshot-id": str(number)}) for number in appended[-LATE::4]]

    def stored(self, tables: list[Table]) -> float:
        """The rows that the files of the tables store, over the rows of the tables."""
        files = [file for table in tables for split in table.scan().plan().splits for file in split.files]
        return round(sum(file.row_count for file in files) / (self.keys * len(tables)), 2)


def upserts(arena: Arena, loop: Loop = Loop()) -> Iterator[Row]:
    """A writer that compacts what it owns: how large its table stays, what it writes again, how fast it reads then.

    ``fixed``: with the limit of Java for the size of newer runs, instead of ours.
    """
    table = arena.table("upserts", "int", keyed=True, options={"write-only": "false"})
    fixed = arena.table("upserts_fixed", "int", keyed=True, options={"write-only": "false", **OF_JAVA})
    data = [loop.batch(number) for number in range(loop.commits)]
    row = Row(f"{loop.commits} upserts of {loop.size} rows, compacting", loop.commits * loop.size)
    most = 0

    def written(target: Table) -> int:
        nonlocal most
        for batch in data:
            target.write(batch)
            most = max(most, sum(len(split.files) for split in target.scan().plan().splits))
        return loop.commits * loop.size

    row.timings["fixed"] = [timed(lambda: written(fixed))]
    most = 0
    row.timings["ours"] = [timed(lambda: written(table))]
    row.values = {"files_at_most": most, "written_again": amplification(table)}
    row.values["written_again_with_fixed"] = amplification(fixed)
    if java := arena.workers.get("java"):
        theirs = arena.table("upserts_java", "int", keyed=True, options={"write-only": "false"})
        step = loop.keys // loop.size
        row.timings["java"] = [
            _sum_of(
                java.write("default.upserts_java", loop.size, n, key_start=n % step, key_stride=step)
                for n in range(loop.commits)
            )
        ]
        row.values["written_again_by_java"] = amplification(Table.open(theirs.path))
    yield row
    place = arena.warehouse / "default.db" / "upserts_compacted"
    shutil.copytree(table.path, place)
    compacted = Table.open(str(place))
    compacted.compact(full=True)
    late, late_fixed = loop.late_states(table), loop.late_states(fixed)
    row = Row(f"reads during {loop.commits} upserts", loop.keys * len(late), goals={"compacted": 1.5})
    row.values = {"stored_rows_per_row": loop.stored(late), "with_fixed": loop.stored(late_fixed)}
    contestants = {
        "ours": _reading(*late),
        "fixed": _reading(*late_fixed),
        "pyarrow": _decoding(*late),
        "compacted": _reading(*[compacted] * len(late)),
    }
    yield race(row, contestants, arena.rounds)


def _sum_of(timings: Iterator[Timing]) -> Timing:
    every = list(timings)
    return Timing(sum(t.wall for t in every), sum(t.cpu for t in every), sum(t.rows for t in every))


def amplification(table: Table) -> float:
    """Return the write amplification: bytes of all data files written per byte that writers flushed."""
    store, sizes = FileStore.open(table.path), {"APPEND": 0, "COMPACT": 0}
    for snapshot in store.snapshots.all():
        sizes[snapshot.commit_kind] += _added(store, snapshot)
    return round((sizes["APPEND"] + sizes["COMPACT"]) / sizes["APPEND"], 2)


def _added(store: FileStore, snapshot: Snapshot) -> int:
    """Bytes of the files a snapshot adds; a file that only changed its level is not one of them."""
    manifests = store.manifests
    entries = [
        entry
        for meta in manifests.read_list(snapshot.delta_manifest_list)
        for entry in manifests.read(meta.file_name, meta.file_size)
    ]
    gone = {entry.file.file_name for entry in entries if entry.kind != ADD}
    return sum(e.file.file_size for e in entries if e.kind == ADD and e.file.file_name not in gone)
