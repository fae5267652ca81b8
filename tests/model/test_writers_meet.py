"""Writers that share a bucket and compact it as they write: in any commit order, no row is lost or changed.

Drawn: engine, producer, whether old rows are marked, shape of the tree. Then, in any order: several writers that go on
from snapshots of any age write the same keys, get ready and commit; whole writes, deletes and compactions come in
between, and compactions that were planned and carried out some commits earlier.

The model follows a table snapshot by snapshot, by the rows of new level-0 files. The row of a key with the largest
sequence number is current; among equal numbers, the row of the later commit.
"""

from collections import defaultdict
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.datafile.deletion_vectors import deleted_rows, vector_entries
from paimon_core.datafile.reader import read_file
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import ADD
from paimon_core.operations.compaction.compact import plan_compaction, run_task
from paimon_core.operations.compaction.compact_after_write import compact_written_buckets
from paimon_core.operations.jobs.task import PlanRequest
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.types.row_kind import SHORT_NAMES
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.table_write import TableWrite
from tests.support.compaction import check_levels, delta
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.merge_model import ADDS

ROOT = "memory://w/t"
COLUMNS = {"k": pa.int64(), "s": pa.int32(), "a": pa.int64(), "b": pa.int64(), "v": pa.string()}
KEYS = 8
BALLAST = {"k": KEYS, "s": 0, "a": 0, "b": 0, "v": "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(6000))}
"""A row so large that newer ones are put together in levels above it."""
ENGINES = {
    "deduplicate": {},
    "by-sequence": {"sequence.field": "s"},
    "first-row": {"merge-engine": "first-row"},
    "aggregation": {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum",
                    "fields.b.aggregate-function": "max", "fields.default-aggregate-function": "last_value"},
    "partial-update": {"merge-engine": "partial-update"},
}  # fmt: skip
LOOKUP, MARKED = {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}
WAYS = {
    "lookup": LOOKUP,
    "looked-up": {"force-lookup": "true"},
    "marked": MARKED,
    "marked-lookup": {**MARKED, **LOOKUP},
    "full": {"changelog-producer": "full-compaction"},
    "full-every-time": {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "1"},
    "plain": {},
}
CASES = [
    pytest.param(engine, way, id=f"{engine}-{way}")
    for engine in ENGINES
    for way in WAYS
    if engine != "first-row" or way in ("lookup", "looked-up")
]
ROW = st.tuples(
    st.sampled_from(["+I", "+I", "+I", "-D"]),
    st.integers(0, KEYS - 1),
    st.integers(0, 3),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
)
ROWS = st.lists(ROW, min_size=1, max_size=4)
WHO = st.integers(0, 2)
MOVES = st.one_of(
    *3 * (st.tuples(st.just("write"), WHO, ROWS),),
    *2 * (st.tuples(st.sampled_from(["get ready", "finish"]), WHO, st.just([])),),
    *3 * (st.tuples(st.just("commit"), st.integers(0, 5), st.just([])),),
    st.tuples(st.just("whole write"), st.just(0), ROWS),
    st.tuples(st.just("delete"), st.integers(0, KEYS - 1), st.just([])),
    st.tuples(st.sampled_from(["minor", "full", "plan", "plan full", "land", "afterwards"]), st.just(0), st.just([])),
)
SHAPES = st.fixed_dictionaries(
    {
        "num-sorted-run.compaction-trigger": st.sampled_from(["1", "2", "3"]),
        "compaction.max-size-amplification-percent": st.sampled_from(["200", "10000000"]),
        "target-file-size": st.sampled_from(["1 b", "128 mb"]),
        "write-buffer-size": st.sampled_from(["1 b", "64 mb"]),
    },
    optional={
        "num-levels": st.sampled_from(["3", "7"]),
        "lookup-compact": st.just("gentle"),
        "lookup-compact.max-interval": st.sampled_from(["1", "2"]),
        "sort-spill-threshold": st.just("2"),
        "changelog-producer.row-deduplicate": st.just("true"),
    },
)


@dataclass(frozen=True)
class Record:
    """A stored row."""

    number: int
    kind: str
    row: dict


def arrow(rows: list[dict]) -> pa.Table:
    return pa.table([pa.array([row[n] for row in rows], kind) for n, kind in COLUMNS.items()], names=list(COLUMNS))


class History:
    """A table, writers that are open, what is ready to be committed, and the rows as they came in."""

    def __init__(self, options: dict[str, str]) -> None:
        self.io, self.options = MemoryIO(), options
        fields = pa.schema([pa.field(name, kind, nullable=name != "k") for name, kind in COLUMNS.items()])
        settings = {"bucket": "1", "write-buffer-spillable": "false", **options}
        create_table(self.io, ROOT, Schema(fields, primary_keys=["k"], options=settings))
        schema = Schemas(self.io, ROOT).latest()
        assert schema is not None
        self.table = Table(FileStore(self.io, ROOT, schema))
        self.engine = options.get("merge-engine", "deduplicate")
        self.marked = "deletion-vectors.enabled" in options
        self.shows_compacted = self.marked or self.engine == "first-row"
        self.writers: dict[int, TableWrite] = {}
        self.ready: list[tuple[int | None, list[CommitMessage]]] = []
        self.planned: list[list[CommitMessage]] = []
        self.texts = 0
        self.seen = 0
        self.held: dict[str, list[Record]] = {}  # by live file
        self.rows: dict[int, list[tuple[str, Record]]] = defaultdict(list)  # by key; with the file they came in by
        self.lifted: set[str] = set()
        self.first: dict[int, dict] = {}
        self.told: dict[int, dict] = {}
        self.before: dict[int, dict] = {}

    # ---- moves

    def start(self) -> None:
        """All keys and the ballast, at the highest level."""
        rows = [("+I", key, 0, 1, 1) for key in range(KEYS)]
        self.table.write(pa.concat_tables([self.made(rows), arrow([BALLAST])]))
        self.table.compact(full=True)
        self.check()

    def made(self, rows) -> pa.Table:
        """Rows as they are written; their text is a new one."""
        texts = range(self.texts, self.texts + len(rows))
        self.texts += len(rows)
        return arrow(
            [{"k": k, "s": s, "a": a, "b": b, "v": f"v{n}"} for n, (_, k, s, a, b) in zip(texts, rows, strict=True)]
        )

    def kinds(self, rows) -> list[str]:
        return [kind if self.engine == "deduplicate" else "+I" for kind, *_ in rows]

    def do(self, move: str, which: int, rows: list) -> None:
        table = self.table
        if move == "write":
            if which not in self.writers:
                self.writers[which] = table.writer()
            self.writers[which].write(self.made(rows), self.kinds(rows))
            assert self.writers[which].started_from is not None  # it goes on from here
        elif move in ("get ready", "finish") and which in self.writers:
            messages = self.writers[which].prepare_commit()
            self.ready.append((self.writers[which].started_from, messages))
            if move == "finish":
                self.writers.pop(which).close()
        elif move == "commit" and self.ready:
            base, messages = self.ready.pop(which % len(self.ready))
            table.committer().commit(messages, started_from=base)
        elif move == "whole write":
            table.write(self.made(rows), self.kinds(rows))
        elif move == "delete" and self.engine == "deduplicate":
            table.delete(f"k = {which}")
        elif move in ("minor", "full"):
            table.compact(full=move == "full")
        elif move in ("plan", "plan full"):
            tasks = plan_compaction(table.store, PlanRequest(full=move == "plan full"))
            self.planned += [[run_task(table.store, task)] for task in tasks]
        elif move == "land" and self.planned:
            table.committer().compact(self.planned.pop(0))
        elif move == "afterwards":
            compact_written_buckets(table.store, {BucketRef(EMPTY_ROW, 0)})

    def end(self) -> None:
        """Commit all writers; then every file must be named by a snapshot."""
        for who in list(self.writers):
            self.do("finish", who, [])
        while self.ready:
            self.do("commit", 0, [])
            self.check()
        while self.planned:
            self.do("land", 0, [])
            self.check()
        self.table.compact(full=True)
        self.check()
        assert self.lifted >= {name for rows in self.rows.values() for name, _ in rows}
        named, indexes = set(), set()
        for snapshot in self.table.snapshots():
            named |= {e.file.file_name for e in delta(self.table, snapshot)}
            manifests = self.table.store.manifests
            told = snapshot.changelog_manifest_list
            for meta in manifests.read_list(told) if told else []:
                named |= {e.file.file_name for e in manifests.read(meta.file_name)}
            indexes |= {e.file_name for e in vector_entries(self.table.store, snapshot)}
        actual = {path.rsplit("/", 1)[1] for path in self.io.files if "/bucket-" in path}
        assert actual <= named, actual - named
        actual = {path.rsplit("/", 1)[1] for path in self.io.files if "/index/" in path}
        assert actual <= indexes, actual - indexes

    # ---- what must hold

    def check(self) -> None:
        """Look at every snapshot that is new, then at the newest one in every way."""
        latest = self.table.snapshot()
        last = 0 if latest is None else latest.id
        for number in range(self.seen + 1, last + 1):
            self.follow(self.table.store.snapshots.get(number))
        if last == self.seen:
            return
        self.seen = last
        check_levels(self.table)
        shown = self.shown(self.table)
        got = self.table.get(pa.table({"k": pa.array(range(KEYS + 2), pa.int64())})).to_pylist()
        assert [row["k"] for row in got] == sorted(shown)
        assert {row["k"]: row for row in got} == shown

    def shown(self, table: Table, **when) -> dict[int, dict]:
        """Every key with its row; none has two."""
        rows = table.to_arrow(**when).to_pylist()
        actual = {row["k"]: row for row in rows}
        assert len(actual) == len(rows), rows
        return actual

    def follow(self, snapshot: Snapshot) -> None:
        entries = delta(self.table, snapshot)
        compacted = snapshot.commit_kind == CommitKind.COMPACT
        for e in entries:
            if e.kind == ADD:
                self.held[e.file.file_name] = self.read(e)
                if not e.file.level:
                    assert not compacted
                    for record in self.held[e.file.file_name]:
                        self.rows[record.row["k"]].append((e.file.file_name, record))
        live = {e.file.file_name for e in live_entries(self.table.store, snapshot).live}
        self.held = {name: records for name, records in self.held.items() if name in live}
        lifted = {e.file.file_name for e in entries if e.kind != ADD and not e.file.level}
        self.lifted |= lifted
        self.keep_first(lifted)
        at = {"snapshot_id": snapshot.id}
        merged = {"deletion-vectors.merge-on-read": "true"} if self.marked else {}
        every = self.shown(self.table.with_options(merged), **at)
        if compacted and self.engine != "first-row":
            assert every == self.before, (snapshot.id, "a compaction changed rows")
        self.before = every
        shown = self.shown(self.table, **at)
        if self.engine == "first-row":
            assert shown == self.first
        elif self.engine != "partial-update":
            assert shown == self.expected(compacted_only=self.shows_compacted)
            assert every == self.expected(compacted_only=False)
        if compacted:
            self.forget_deletes()
        self.replay(snapshot, shown)
        if self.marked:
            self.marks_hide_no_live_row(snapshot, shown)

    def read(self, e) -> list[Record]:
        fields = (*self.table.schema.fields, SEQUENCE_NUMBER, VALUE_KIND)
        batches = read_file(self.table.store, e.bucket_ref, e.file, fields)
        rows = [row for batch in batches for row in batch.to_pylist()]
        number, kind = SEQUENCE_NUMBER.name, VALUE_KIND.name
        return [Record(row.pop(number), SHORT_NAMES[row.pop(kind)], row) for row in rows]

    def keep_first(self, lifted: set[str]) -> None:
        """Of a key that did not show, the first of the rows that come to be compacted."""
        for key, rows in self.rows.items():
            came = [record for name, record in rows if name in lifted]
            if came and key not in self.first:
                self.first[key] = min(came, key=lambda record: record.number).row

    def expected(self, *, compacted_only: bool) -> dict[int, dict]:
        """Return the current row of every key, of all rows or only of compacted rows."""
        found = {}
        for key, rows in self.rows.items():
            records = [record for name, record in rows if name in self.lifted or not compacted_only]
            made = self.folded(records) if records else None
            if made is not None:
                found[key] = made
        return found

    def folded(self, records: list[Record]) -> dict | None:
        """The row that a key's records, in the order of their commits, come to."""
        by = (lambda r: (r.row["s"], r.number)) if "sequence.field" in self.options else (lambda r: r.number)
        last = sorted(records, key=by)[-1]
        if self.engine == "deduplicate":
            return last.row if last.kind in ADDS else None
        a, b = ([r.row[n] for r in records if r.row[n] is not None] for n in "ab")
        return {**last.row, "a": sum(a) if a else None, "b": max(b, default=None)}

    def forget_deletes(self) -> None:
        """A delete that no file holds any more hides nothing that comes later."""
        kept = {r.row["k"] for records in self.held.values() for r in records if r.kind not in ADDS}
        for key, rows in self.rows.items():
            records = [record for name, record in rows if name in self.lifted]
            if self.engine == "deduplicate" and key not in kept and records and self.folded(records) is None:
                self.rows[key] = [(name, record) for name, record in rows if name not in self.lifted]

    def replay(self, snapshot: Snapshot, shown: dict[int, dict]) -> None:
        """Replay all changes. A deleted row must exist with the same values; an inserted row must not exist."""
        producer = self.options.get("changelog-producer")
        if producer is None:
            return
        for row in self.table.changes(snapshot.id - 1, snapshot.id).to_pylist():
            kind = row.pop("rowkind")
            if kind in ADDS:
                assert row["k"] not in self.told, (kind, row, self.told[row["k"]])
                self.told[row["k"]] = row
            else:
                assert self.told.pop(row["k"], None) == row, (kind, row)
        levels = {e.file.level for e in live_entries(self.table.store, snapshot).live}
        if producer == "full-compaction":
            assert self.told == self.shown(self.table.read_optimized(), snapshot_id=snapshot.id)
        elif self.shows_compacted or 0 not in levels:
            assert self.told == shown
        elif self.engine != "partial-update":
            assert self.told == self.expected(compacted_only=True)

    def marks_hide_no_live_row(self, snapshot: Snapshot, shown: dict[int, dict]) -> None:
        """The rows without deletion marks, in files above level 0, are exactly the visible rows."""
        files = [e.file for e in live_entries(self.table.store, snapshot).live]
        deleted = deleted_rows(vector_entries(self.table.store, snapshot), files)
        assert set(deleted) <= {f.file_name for f in files if f.level}
        assert sum(f.row_count - deleted.get(f.file_name, 0) for f in files if f.level) == len(shown)


def play(data, engine: str, way: str, most: int) -> None:
    history = History({**ENGINES[engine], **WAYS[way], **data.draw(SHAPES)})
    history.start()
    for move in data.draw(st.lists(MOVES, min_size=4, max_size=most)):
        history.do(*move)
        history.check()
    history.end()


@draws(6)
@given(st.sampled_from([case.values for case in CASES]), st.data())
def test_concurrent_writers_lose_no_row(case, data):
    play(data, *case, 12)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "way"), CASES)
@draws(50)
@given(data=st.data())
def test_concurrent_writers_lose_no_row_at_length(engine, way, data):
    play(data, engine, way, 40)
