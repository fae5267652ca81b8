"""Tables of every merge engine under random histories, against folds that go record by record.

Drawn once: merge engine, format, buckets, partitions, when to compact, sizes. Then, in any order: upserts and deletes
by one writer, by a job of several, by independent ones at once and by one that stays open; compactions, full or as is
due, of chosen partitions too; new and renamed columns; writing through a table opened before; overwrites.

Two models. For *lawful* engines, a row is the fold of all rows written with its key, independent of compactions. A
*traced* table (one flush a commit, no compaction but for that asked for) is followed file by file: a new file holds
the fold of what was written, a compaction the fold of what the files it replaced held, a reader sees the fold of what
all files hold. So the engines where compaction shows are held to it, too.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from paimon_core.datafile.reader import read_file
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD
from paimon_core.merge import MERGE_ENGINES
from paimon_core.row.bucket import buckets
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, RenameColumn
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.types.row_kind import SHORT_NAMES
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.table_write import TableWrite, WriterRole
from tests.support.compaction import check_levels, delta
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.merge_model import ADDS
from tests.support.merge_specs import SPECS
from tests.support.model import same

ROOT = "memory://w/t"
PARTITIONS = ["x", "y", ""]
KINDS = {"k": pa.int32(), "p": pa.string(), "s": pa.int32(), "t": pa.int32(), "g": pa.int32(), "h": pa.int32(),
         "a": pa.int64(), "b": pa.string(), "c": pa.int32(), "d": pa.float64(), "f": pa.bool_(),
         "u": pa.int32()}  # fmt: skip
SQL = {"INT": pa.int32(), "STRING": pa.string()}
SMALL = st.none() | st.integers(0, 3)
TEXT = st.none() | st.sampled_from(["", "a", "b" * 30])
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    "k": st.integers(-2, 6), "p": st.sampled_from(PARTITIONS), "s": SMALL, "t": SMALL, "g": SMALL, "h": SMALL,
    "a": st.none() | st.integers(-3, 2**40), "b": TEXT, "c": SMALL, "d": st.none() | st.sampled_from([-0.0, 0.0, 1.5]),
    "f": st.none() | st.booleans(), "u": st.none() | st.sampled_from([-1, 1]), "INT": SMALL, "STRING": TEXT,
}  # fmt: skip
"""By column, and by type for columns that are added."""
BALLAST = {"k": 100, "p": "x", "b": "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(4000))}
"""A row so large that newer runs are put together in levels above it."""
RARELY = st.integers(0, 3).map(lambda n: n == 0)
Key = tuple
Rows = list[tuple[str, dict]]


@dataclass
class Column:
    """``uid`` stays through renames."""

    uid: str
    name: str
    type: pa.DataType
    pool: str


@dataclass(frozen=True)
class Record:
    """A stored row."""

    number: int
    kind: str
    row: dict


@dataclass
class File:
    """A live file, and what it holds; one key after the other."""

    place: tuple[bytes, int]
    meta: DataFileMeta
    records: dict[Key, Record]


@dataclass
class Open:
    """A writer that stays open, the columns it knows, and rows it holds that are not committed."""

    table: Table
    writer: TableWrite
    columns: list[Column]
    pending: Rows


class MergeTree(RuleBasedStateMachine):
    """See the module; tables of one engine, in one of the two ways to follow them."""

    def __init__(self, engine: str, traced: bool) -> None:
        super().__init__()
        self.traced = traced
        self.specs = [spec for spec in SPECS if spec.engine == engine and (spec.traced if traced else spec.lawful)]

    @initialize(
        data=st.data(),
        partitioned=st.booleans(),
        ballast=st.booleans(),
        drawn=st.fixed_dictionaries(
            {
                "file.format": st.sampled_from(["parquet", "orc", "avro"]),
                "bucket": st.sampled_from(["1", "2"]),
                "target-file-size": st.sampled_from(["1 b", "4 kb", "128 mb"]),
                "write-buffer-size": st.sampled_from(["256 b", "64 mb"]),
                "write-buffer-spillable": st.sampled_from(["true", "false"]),
                "write-only": st.sampled_from(["false", "false", "true"]),
                "source.split.target-size": st.sampled_from(["1 b", "128 mb"]),
                "manifest.merge-min-count": st.sampled_from(["2", "30"]),
                "num-sorted-run.compaction-trigger": st.sampled_from(["1", "2", "3", "5"]),
                "compaction.max-size-amplification-percent": st.sampled_from(["200", "1", "1000000", "10000000"]),
            },
            optional={
                "num-sorted-run.stop-trigger": st.sampled_from(["2", "4"]),
                "num-levels": st.sampled_from(["2", "3", "7"]),
                "compaction.size-ratio": st.sampled_from(["0", "100"]),
                "compaction.force-up-level-0": st.just("true"),
                "compaction.force-rewrite-all-files": st.just("true"),
                "full-compaction.delta-commits": st.sampled_from(["1", "3"]),
                "sort-spill-threshold": st.just("2"),
                "lookup-compact": st.just("gentle"),
            },
        ),
    )
    def create(self, data, partitioned, ballast, drawn):
        self.spec, self.partitioned = data.draw(st.sampled_from(self.specs)), partitioned
        if self.traced:
            drawn |= {"write-only": "true", "write-buffer-size": "64 mb"}
        self.columns = [Column(uid, uid, kind, uid) for uid, kind in KINDS.items()]
        self.key = ("p", "k") if partitioned else ("k",)
        fields = [pa.field(c.name, c.type, nullable=c.uid not in self.key) for c in self.columns]
        self.io = MemoryIO()
        create_table(
            self.io,
            ROOT,
            Schema(pa.schema(fields), list(self.key), ["p"] if partitioned else [], {**drawn, **self.spec.options}),
        )
        self.bucket_count, self.unique, self.fresh = int(drawn["bucket"]), True, 0
        self.written: dict[Key, Rows] = defaultdict(list)  # since the last overwrite, in the order that counts
        self.files: dict[str, File] = {}
        self.history: dict[int, list[dict]] = {}
        self.stream: Open | None = None
        self.old: tuple[Table, list[Column]] | None = None
        self.identifier = 0
        self.looked_at: tuple[int, int] | None = None
        self.table = self.reopened()
        if ballast:
            self.commit_one(self.table, [("+I", {c.uid: BALLAST.get(c.uid) for c in self.columns})], self.columns)
            self.compact(full=True, where=None)

    def reopened(self) -> Table:
        schema = Schemas(self.io, ROOT).latest()
        assert schema is not None
        return Table(FileStore(self.io, ROOT, schema))

    # ---- rows

    def rows(self, data, columns: list[Column], most: int = 8, keys: st.SearchStrategy | None = None) -> Rows:
        values = {c.uid: keys if keys is not None and c.uid == "k" else VALUES[c.pool] for c in columns}
        row = st.tuples(st.sampled_from(self.spec.kinds), st.fixed_dictionaries(values))
        return data.draw(st.lists(row, min_size=0 if data.draw(RARELY) else 1, max_size=most))

    @staticmethod
    def give(writer: TableWrite, rows: Rows, columns: list[Column]) -> None:
        arrays = [pa.array([row[c.uid] for _, row in rows], c.type) for c in columns]
        writer.write(
            pa.table(arrays, names=[c.name for c in columns]), pa.array([kind for kind, _ in rows], pa.string())
        )

    def kept(self, rows: Rows) -> Rows:
        return [(kind, row) for kind, row in rows if not self.spec.ignores or kind in ADDS]

    def key_of(self, row: dict) -> Key:
        return tuple(row[name] for name in self.key)

    def fold(self, records: list[tuple[int, str, dict]]) -> tuple[str, dict] | None:
        """Of (number, kind, row) of one key, in any order."""
        values = [c.uid for c in self.columns if c.uid not in self.key]
        filled = [(n, kind, {name: row.get(name) for name in (*self.key, *values)}) for n, kind, row in records]
        ordered = sorted(
            filled, key=lambda r: ([(r[2][s] is not None, r[2][s] or 0) for s in self.spec.sequence], r[0])
        )
        made = self.spec.fold([(kind, row) for _, kind, row in ordered], values)
        return None if made is None else (made[0], {**{k: filled[0][2][k] for k in self.key}, **made[1]})

    def note(self, *flushes: Rows) -> None:
        """Record a commit, in commit order; ``flushes``: the rows of each writer."""
        self.flushes = flushes
        for rows in flushes:
            for kind, row in rows:
                self.written[self.key_of(row)].append((kind, row))

    # ---- writing

    def others_write(self) -> None:
        """Commit the rows of the open writer first: they have their sequence numbers already."""
        if self.stream is not None:
            self.stream_commit(again=False)

    def commit_one(self, table: Table, rows: Rows, columns: list[Column]) -> None:
        self.others_write()
        writer = table.writer()
        self.give(writer, rows, columns)
        snapshot = table.committer().commit(writer.prepare_commit(), started_from=writer.started_from)
        kept = self.kept(rows)
        assert (snapshot is None) == (not kept)
        self.note(kept)
        self.catch_up()

    @rule(data=st.data())
    def upsert(self, data):
        self.commit_one(self.table, self.rows(data, self.columns), self.columns)

    @rule(data=st.data(), times=st.integers(2, 4), compacting=st.booleans())
    def upsert_again_and_again(self, data, times, compacting):
        """So that there are runs enough for several levels."""
        for _ in range(times):
            self.commit_one(self.table, self.rows(data, self.columns, most=3), self.columns)
        if compacting:
            self.compact(full=False, where=None)

    @precondition(lambda self: self.old is not None)
    @rule(data=st.data())
    def upsert_with_an_older_schema(self, data):
        table, columns = self.old
        self.commit_one(table, self.rows(data, columns), columns)

    @rule(data=st.data())
    def upsert_by_a_job_of_two(self, data):
        """They meet in the buckets. Of one key the larger number counts, where that is all: each has put his rows of
        a key together before the other's come in between."""
        apart = self.spec.lawful and self.spec.engine in ("partial-update", "aggregation")
        self.others_write()
        messages, flushes, numbered = [], [], []
        for offset in (0, 1):
            rows = self.kept(self.rows(data, self.columns, most=5, keys=of_parity(offset) if apart else None))
            writer = self.table.writer(role=WriterRole(offset, 2))
            if rows:
                self.give(writer, rows, self.columns)
            messages += writer.prepare_commit()
            flushes.append(rows)
            counts: dict[Any, int] = defaultdict(int)
            if rows:
                found = buckets(
                    pa.record_batch([pa.array([r["k"] for _, r in rows], pa.int32())], ["k"]), self.bucket_count
                )
                for (kind, row), bucket in zip(rows, found.tolist(), strict=True):
                    place = (row["p"] if self.partitioned else "", bucket)
                    numbered.append((counts[place] * 2 + offset, kind, row))
                    counts[place] += 1
        self.table.committer().commit(messages)
        self.note([(kind, row) for _, kind, row in sorted(numbered, key=lambda r: r[0])])
        self.flushes = flushes
        self.catch_up()

    @rule(data=st.data())
    def upsert_different_keys_at_once(self, data):
        """Two writers that know nothing of each other; the compaction of the second may come too late."""
        self.others_write()
        jobs = []
        for parity in (0, 1):
            rows = self.rows(data, self.columns, most=5, keys=of_parity(parity))
            writer = self.table.writer()
            self.give(writer, rows, self.columns)
            jobs.append((writer, rows))
        ready = [(writer, writer.prepare_commit(), rows) for writer, rows in jobs]
        self.unique = False
        for writer, messages, rows in ready:
            self.table.committer().commit(messages, started_from=writer.started_from)
            self.note(self.kept(rows))
            self.catch_up()

    @rule(data=st.data())
    def stream_write(self, data):
        if self.stream is None:
            columns = [replace(c) for c in self.columns]
            self.stream = Open(self.table, self.table.writer(), columns, [])
        rows = self.rows(data, self.stream.columns, most=5)
        self.give(self.stream.writer, rows, self.stream.columns)
        self.stream.pending += self.kept(rows)

    @precondition(lambda self: self.stream is not None)
    @rule(again=RARELY)
    def stream_commit(self, again):
        stream = self.stream
        self.identifier += 1
        messages = stream.writer.prepare_commit()
        started_from = stream.writer.started_from
        result = stream.table.committer("stream").commit(messages, self.identifier, started_from=started_from)
        assert result is not None
        self.note(stream.pending)
        stream.pending = []
        self.catch_up()
        if again:  # as who crashed after it was done
            before = len(self.table.snapshots())
            stream.table.committer("stream").commit(messages, self.identifier, started_from=stream.writer.started_from)
            assert len(self.table.snapshots()) == before

    @precondition(lambda self: self.stream is not None)
    @rule()
    def stream_dies(self):
        self.stream.writer.abort()
        self.stream = None

    @rule(data=st.data(), whole=st.booleans())
    def overwrite(self, data, whole):
        self.others_write()
        rows = [(kind, row) for kind, row in self.rows(data, self.columns, most=5) if kind in ADDS]
        partition = None
        if self.partitioned and not whole:
            value = data.draw(st.sampled_from(PARTITIONS))
            partition, rows = {"p": value}, [("+I", {**row, "p": value}) for _, row in rows]
        arrays = [pa.array([row[c.uid] for _, row in rows], c.type) for c in self.columns]
        self.table.overwrite(pa.table(arrays, names=[c.name for c in self.columns]), partition)
        for key in [k for k in self.written if partition is None or k[0] == partition["p"]]:
            del self.written[key]
        self.note([("+I", row) for _, row in rows])
        self.catch_up()

    # ---- compacting, changing

    @rule(full=st.booleans(), where=st.none() | st.lists(st.sampled_from(PARTITIONS), min_size=1, unique=True))
    def compact(self, full, where):
        before = self.visible()
        partitions = [{"p": value} for value in where] if self.partitioned and where is not None else None
        snapshot = self.table.compact(full=full, partitions=partitions)
        if snapshot is None:
            return
        assert snapshot.commit_kind == CommitKind.COMPACT
        if partitions is not None:
            touched = {self.table.store.partition_values(e.partition) for e in delta(self.table, snapshot)}
            assert touched <= {(value,) for value in where}
        self.flushes = ()
        self.catch_up()
        if self.spec.lawful and not self.spec.shows_compacted_only:
            assert same(self.visible(), before)
        if full and partitions is None:
            top = num_levels(self.table.store.options) - 1
            assert {f.meta.level for f in self.files.values()} <= set(range(top, 10))
            if self.spec.lawful:
                assert same(self.visible(), self.named(self.lawful(set(self.written))))

    def change(self, *changes) -> None:
        if self.old is None:
            self.old = self.table, [replace(c) for c in self.columns]
        self.table = self.table.alter(changes)

    @rule(kind=st.sampled_from(sorted(SQL)))
    def add_column(self, kind):
        self.fresh += 1
        name = f"n{self.fresh}"
        self.change(AddColumn(name, kind))
        self.columns.append(Column(name, name, SQL[kind], kind))

    @rule(data=st.data())
    def rename_column(self, data):
        column = data.draw(st.sampled_from([c for c in self.columns if c.uid != "p" or not self.partitioned]))
        self.fresh += 1
        self.change(RenameColumn(column.name, f"r{self.fresh}"))
        column.name = f"r{self.fresh}"

    @precondition(lambda self: self.old is not None)
    @rule()
    def forget_the_older_schema(self):
        self.old = None

    # ---- what became of it

    def catch_up(self) -> None:
        """Look at every snapshot made since, one after the other."""
        newest = self.table.snapshot()
        for snapshot_id in range(max(self.history, default=0) + 1, 1 if newest is None else newest.id + 1):
            snapshot = self.table.snapshot(snapshot_id=snapshot_id)
            self.follow(snapshot)
            self.history[snapshot_id] = self.named(self.expected())

    def follow(self, snapshot: Snapshot) -> None:
        entries = delta(self.table, snapshot)
        live = dict(self.files)
        gone = {e.file.file_name: e for e in entries if e.kind != ADD}
        before = {name: live.pop(name) for name in gone}
        added = [e for e in entries if e.kind == ADD]
        assert len({e.file.file_name for e in added}) == len(added)
        after = {}
        for e in added:
            place = e.bucket_ref
            assert e.file.file_name not in live
            moved = before.get(e.file.file_name)
            records = self.stored(place, e.file) if moved is None else moved.records
            after[e.file.file_name] = File(place, e.file, records)
        made = [file for name, file in after.items() if name not in before]
        if snapshot.commit_kind == CommitKind.COMPACT:
            self.check_numbers_kept(before, made)
            if self.traced:
                self.check_compaction([f for name, f in before.items() if name not in after], made, live.values())
        else:
            assert all(file.meta.level == 0 for file in made)
            if self.unique:
                self.check_numbers_grow(live.values(), made)
            if self.traced:
                self.check_flushes(made)
        self.files = {**live, **after}

    def stored(self, bucket: BucketRef, meta: DataFileMeta) -> dict[Key, Record]:
        store = self.table.store
        fields = (*store.schema.fields, SEQUENCE_NUMBER, VALUE_KIND)
        actual: dict[Key, Record] = {}
        for batch in read_file(store, bucket, meta, fields):
            for stored in batch.to_pylist():
                row = {c.uid: stored[c.name] for c in self.columns}
                assert self.key_of(row) not in actual
                kind = SHORT_NAMES[stored[VALUE_KIND.name]]
                actual[self.key_of(row)] = Record(stored[SEQUENCE_NUMBER.name], kind, row)
        assert len(actual) == meta.row_count
        numbers = [record.number for record in actual.values()]
        assert (min(numbers), max(numbers)) == (meta.min_sequence_number, meta.max_sequence_number)
        assert meta.delete_row_count == sum(record.kind not in ADDS for record in actual.values())
        return actual

    def check_numbers_grow(self, live, made: list[File]) -> None:
        for file in made:
            known = [r.number for other in live if other.place == file.place for r in other.records.values()]
            assert file.meta.min_sequence_number > max(known, default=-1)

    def check_numbers_kept(self, before: dict[str, File], made: list[File]) -> None:
        for file in made:
            same_place = [old for old in before.values() if old.place == file.place]
            for key, record in file.records.items():
                assert record.number in {old.records[key].number for old in same_place if key in old.records}

    def check_flushes(self, made: list[File]) -> None:
        expected = []
        for rows in self.flushes:
            by_key: dict[Key, list] = defaultdict(list)
            for number, (kind, row) in enumerate(rows):
                by_key[self.key_of(row)].append((number, kind, row))
            expected += [self.fold(records) for records in by_key.values()]
        found = [(record.kind, record.row) for file in made for record in file.records.values()]
        assert same([self.shown(*e) for e in expected if e is not None], [self.shown(*f) for f in found])

    def check_compaction(self, replaced: list[File], made: list[File], left) -> None:
        for place in {file.place for file in replaced}:
            here = [file for file in made if file.place == place]
            others = [file for file in left if file.place == place]
            level = max((file.meta.level for file in here), default=max((f.meta.level for f in others), default=0))
            actual = {key: (r.kind, r.row) for file in here for key, r in file.records.items()}
            assert len(actual) == sum(len(file.records) for file in here)
            for key, (kind, row) in self.folded(f for f in replaced if f.place == place).items():
                if key in actual:
                    assert self.shown(*actual.pop(key)) == self.shown(kind, row)
                elif self.spec.shows_compacted_only:  # higher levels have an older row already
                    assert any(key in file.records for file in others if file.meta.level >= level)
                else:
                    assert kind not in ADDS
                    assert not any(key in file.records for file in others if file.meta.level >= level > 0)
            assert not actual

    def folded(self, files) -> dict[Key, tuple[str, dict]]:
        """Return the result of merging these files, for all their keys."""
        by_key: dict[Key, list] = defaultdict(list)
        for file in files:
            for key, record in file.records.items():
                by_key[key].append((record.number, record.kind, record.row))
        made = {key: self.fold(records) for key, records in by_key.items()}
        return {key: result for key, result in made.items() if result is not None}

    # ---- reading

    def shown(self, kind: str, row: dict) -> dict:
        return {"kind": kind, **{c.uid: row.get(c.uid) for c in self.columns}}

    def named(self, rows: list[dict]) -> list[dict]:
        return [{c.name: row.get(c.uid) for c in self.columns} for row in rows]

    def lawful(self, keys: set[Key]) -> list[dict]:
        made = [
            self.fold([(n, kind, row) for n, (kind, row) in enumerate(rows)])
            for key, rows in self.written.items()
            if key in keys
        ]
        return [row for kind, row in filter(None, made) if kind in ADDS]

    def traced_rows(self, files) -> list[dict]:
        return [row for kind, row in self.folded(files).values() if kind in ADDS]

    def expected(self) -> list[dict]:
        files = [f for f in self.files.values() if f.meta.level > 0 or not self.spec.shows_compacted_only]
        if not self.spec.lawful:
            return self.traced_rows(files)
        keys = {key for file in files for key in file.records} if self.spec.shows_compacted_only else set(self.written)
        expected = self.lawful(keys)
        if self.traced:
            assert same(self.named(self.traced_rows(files)), self.named(expected))
        return expected

    def visible(self) -> list[dict]:
        return self.table.to_arrow().to_pylist()

    @invariant()
    def the_table_is_right(self):
        """Looked at when it changed."""
        snapshot = self.table.snapshot()
        now = (0 if snapshot is None else snapshot.id), self.table.schema.id
        if now != self.looked_at:
            self.looked_at = now
            self.the_newest_snapshot_equals_the_model()
            self.levels_and_files_are_sound(snapshot)

    def the_newest_snapshot_equals_the_model(self) -> None:
        actual = self.table.to_arrow()
        assert actual.schema.names == [c.name for c in self.columns]
        assert same(actual.to_pylist(), self.named(self.expected()))

    def levels_and_files_are_sound(self, snapshot: Snapshot | None) -> None:
        if snapshot is None:
            return
        check_levels(self.table)
        live = live_entries(self.table.store, snapshot).live
        names = [e.file.file_name for e in live]
        assert len(set(names)) == len(names)
        assert set(names) == set(self.files)
        assert {e.file.file_name: e.file.level for e in live} == {n: f.meta.level for n, f in self.files.items()}
        for e in live:
            assert self.table.store.file_path(e.bucket_ref, e.file) in self.io.files
        assert snapshot.total_record_count == sum(e.file.row_count for e in live)
        if self.unique:
            for place in {file.place for file in self.files.values()}:
                numbers = [r.number for f in self.files.values() if f.place == place for r in f.records.values()]
                assert len(set(numbers)) == len(numbers)

    @rule(data=st.data(), value=st.integers(0, 2))
    def read_some(self, data, value):
        """Some columns, and a filter on one: what they need besides is read too."""
        expected = data.draw(st.lists(st.sampled_from(self.columns), unique_by=lambda c: c.uid, min_size=1))
        on = data.draw(st.sampled_from([c for c in self.columns if c.type == pa.int32()]))
        found = self.table.to_arrow(columns=[c.name for c in expected], filter=f"{on.name} >= {value}")
        rows = [r for r in self.expected() if r.get(on.uid) is not None and r[on.uid] >= value]
        assert same(found.to_pylist(), [{c.name: r.get(c.uid) for c in expected} for r in rows])

    @rule()
    def read_optimized(self):
        top = num_levels(self.table.store.options) - 1
        at_top = [f for f in self.files.values() if f.meta.level == top]
        records = [r for f in at_top for r in f.records.values()]
        assert all(record.kind in ADDS for record in records)
        found = self.table.read_optimized().to_arrow().to_pylist()
        assert same(found, self.named([record.row for record in records]))

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def read_at(self, data):
        self.check_at(data.draw(st.sampled_from(sorted(self.history))))

    def check_at(self, snapshot_id: int) -> None:
        assert same(self.table.to_arrow(snapshot_id=snapshot_id).to_pylist(), self.history[snapshot_id])

    def teardown(self):
        if not hasattr(self, "history"):
            return
        if self.stream is not None:
            self.stream.writer.abort()
        snapshots = self.table.snapshots()
        assert [s.id for s in snapshots] == sorted(self.history)
        named = set()
        for snapshot in snapshots:
            self.check_at(snapshot.id)
            named |= {e.file.file_name for e in live_entries(self.table.store, snapshot).live}
        assert {path.rsplit("/", 1)[1] for path in self.io.files if "/bucket-" in path} == named


def of_parity(odd: int) -> st.SearchStrategy[int]:
    """Keys that are even, or odd."""
    return st.integers(-1, 3).map(lambda n: 2 * n + odd)


EVERY_ENGINE = pytest.mark.parametrize("engine", MERGE_ENGINES)
BOTH_WAYS = pytest.mark.parametrize("traced", [False, True], ids=["associative", "traced"])


@pytest.mark.drawn
@pytest.mark.cases(1)
@EVERY_ENGINE
@BOTH_WAYS
def test_merge_tree_equals_model(engine, traced):
    short = settings(draws(5), stateful_step_count=10)
    run_state_machine_as_test(partial(MergeTree, engine, traced), settings=short)


@pytest.mark.slow
@EVERY_ENGINE
@BOTH_WAYS
def test_merge_tree_equals_model_in_long_histories(engine, traced):
    at_length = settings(draws(30), stateful_step_count=30)
    run_state_machine_as_test(partial(MergeTree, engine, traced), settings=at_length)
