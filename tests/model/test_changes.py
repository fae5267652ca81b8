"""Changes of tables under random histories, for every producer and merge engine.

Replaying all changes gives the rows of the table, and deletion vectors hide exactly the rows that newer rows replace.

Drawn: engine, producer, whether old rows are marked, format, sizes. Then, in any order: upserts by one writer, by a job
whose writers meet in buckets and whose commit step compacts, by one that leaves compaction to others; compactions;
overwrites, which emit no changes.
"""

from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.datafile.deletion_vectors import deleted_rows, vector_entries
from paimon_core.lsm.universal import num_levels
from paimon_core.merge import MERGE_ENGINES
from paimon_core.operations.compaction.compact_after_write import compact_written_buckets
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write.table_write import WriterRole
from tests.support.compaction import check_levels, levels_of
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.merge_model import ADDS
from tests.support.merge_specs import SPECS
from tests.support.model import same

ROOT = "memory://w/t"
COLUMNS = {"k": pa.int32(), "s": pa.int32(), "t": pa.int32(), "g": pa.int32(), "h": pa.int32(), "a": pa.int64(),
           "b": pa.string(), "c": pa.int32(), "d": pa.float64(), "f": pa.bool_(), "u": pa.int32()}  # fmt: skip
SMALL = st.none() | st.integers(0, 3)
VALUES = {"k": st.integers(0, 9), "a": st.none() | st.integers(-3, 2**40), "b": st.none() | st.sampled_from(["", "x"]),
          "d": st.none() | st.sampled_from([0.0, 1.5]), "f": st.none() | st.booleans(),
          "u": st.none() | st.sampled_from([-1, 1])}  # fmt: skip
ROW = st.fixed_dictionaries({name: VALUES.get(name, SMALL) for name in COLUMNS})
LOOKUP, FULL = {"changelog-producer": "lookup"}, {"changelog-producer": "full-compaction"}
ONCE = {"changelog-producer.row-deduplicate": "true"}
MARKED = {"deletion-vectors.enabled": "true"}
WAYS = {
    "lookup": LOOKUP,
    "lookup, once": {**LOOKUP, **ONCE},
    "full": FULL,
    "full, every time": {**FULL, **ONCE, "full-compaction.delta-commits": "1"},
    "looked up": {"force-lookup": "true"},
    "input": {"changelog-producer": "input"},
    "marked": MARKED,
    "marked, lookup": {**MARKED, **LOOKUP, "deletion-vectors.bitmap64": "true"},
}
MOVES = st.one_of(
    *2 * (st.tuples(st.sampled_from(["alone", "together", "later"]), st.lists(st.tuples(st.integers(0, 9), ROW))),),
    st.tuples(st.sampled_from(["minor", "full", "overwrite"]), st.just([])),
)


def new_table(options: dict[str, str]) -> Table:
    io = MemoryIO()
    fields = pa.schema([pa.field(name, kind, nullable=name != "k") for name, kind in COLUMNS.items()])
    create_table(io, ROOT, Schema(fields, primary_keys=["k"], options={"bucket": "2", **options}))
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def arrow(rows: list[dict]) -> pa.Table:
    return pa.table([pa.array([row[n] for row in rows], kind) for n, kind in COLUMNS.items()], names=list(COLUMNS))


def replayed(table: Table) -> list[dict]:
    """Replay all changes. A deleted row must exist with the same values; an inserted row must not exist."""
    held: dict[int, dict] = {}
    for row in table.changes(0).to_pylist():
        kind = row.pop("rowkind")
        if kind in ADDS:
            assert row["k"] not in held, (kind, row)
            held[row["k"]] = row
        else:
            assert repr(held.pop(row["k"])) == repr(row), (kind, row)
    return list(held.values())


class History:
    """A table, and per key all that was written since it was last overwritten, in the order that counts."""

    def __init__(self, spec, options: dict[str, str]) -> None:
        self.spec, self.options = spec, options
        self.table = new_table({**spec.options, **options})
        self.written: dict[int, list[tuple[str, dict]]] = defaultdict(list)
        self.overwritten = False

    def do(self, how: str, rows: list[tuple[str, dict]]) -> None:
        table = self.table
        if how == "overwrite":
            table.overwrite(arrow([]))
            self.written.clear()
            self.overwritten = True
            return
        if how in ("minor", "full"):
            table.compact(full=how == "full")
            return
        if how == "together":
            self.write_together(rows)
        else:
            writing = table.with_options({"write-only": "true"}) if how == "later" else table
            writing.write(arrow([row for _, row in rows]), [kind for kind, _ in rows])
        for kind, row in rows:
            if not self.spec.ignores or kind in ADDS:
                self.written[row["k"]].append((kind, row))

    def write_together(self, rows: list[tuple[str, dict]]) -> None:
        """Two tasks, of even keys and of odd ones, that meet in the buckets."""
        messages = []
        for task in (0, 1):
            own = [(kind, row) for kind, row in rows if row["k"] % 2 == task]
            with self.table.writer(role=WriterRole(task, 2)) as writer:
                writer.write(arrow([row for _, row in own]), pa.array([kind for kind, _ in own], pa.string()))
                messages += writer.prepare_commit()
        self.table.committer().commit(messages)
        compact_written_buckets(self.table.store, {m.bucket_ref for m in messages})

    def expected(self) -> list[dict]:
        found = []
        for key, rows in self.written.items():
            ordered = sorted(rows, key=lambda r: [(r[1][s] is not None, r[1][s] or 0) for s in self.spec.sequence])
            made = self.spec.fold(ordered, [n for n in COLUMNS if n != "k"])
            if made is not None and made[0] in ADDS:
                found.append({**made[1], "k": key})
        return [{name: row[name] for name in COLUMNS} for row in found]

    def check(self) -> None:
        table, options = self.table, self.options
        files = [f for levels in levels_of(table).values() for f in levels.all_files]
        levels = {f.level for f in files}
        check_levels(table)
        if 0 not in levels or ("deletion-vectors.enabled" not in options and not self.spec.shows_compacted_only):
            assert same(table.to_arrow().to_pylist(), self.expected())
        producer, top = options.get("changelog-producer"), num_levels(table.store.options) - 1
        complete = (producer == "lookup" and 0 not in levels) or (producer == "full-compaction" and levels <= {top})
        if complete and not self.overwritten:
            assert same(replayed(table), self.expected())
        if "deletion-vectors.enabled" in options:
            deleted = deleted_rows(vector_entries(table.store, table.snapshot()), files)
            kept = sum(f.row_count - deleted.get(f.file_name, 0) for f in files if f.level)
            assert kept == table.to_arrow().num_rows
            assert set(deleted) <= {f.file_name for f in files if f.level}


def drawn(data, way: str, engine: str) -> History:
    # of a row that is alone a look-up drops what its sequence groups have no place for, as Java does; others do not
    specs = [s for s in SPECS if s.lawful and s.engine == engine and "groups" not in s.name]
    options = dict(WAYS[way])
    for option, texts in {
        "file.format": ("parquet", "orc", "avro"),
        "target-file-size": ("1 b", "128 mb"),
        "num-sorted-run.compaction-trigger": ("1", "2", "5"),
        "compaction.max-size-amplification-percent": ("200", "1000000"),
        "sort-spill-threshold": (None, "2"),
        "num-levels": (None, "3", "7"),
        "write-buffer-size": (None, "256 b"),
        "write-buffer-spillable": ("true", "false"),
    }.items():
        text = data.draw(st.sampled_from(texts))
        if text is not None:
            options[option] = text
    return History(data.draw(st.sampled_from(specs)), options)


def play(data, way: str, engine: str, most: int) -> None:
    history = drawn(data, way, engine)
    for how, rows in data.draw(st.lists(MOVES, min_size=2, max_size=most)):
        kinds = history.spec.kinds
        history.do(how, [(kinds[kind % len(kinds)], row) for kind, row in rows])
        history.check()


CASES = [
    pytest.param(way, engine, id=f"{way.replace(', ', '-').replace(' ', '-')}-{engine}")
    for way in WAYS
    for engine in sorted(MERGE_ENGINES)
    if engine != "first-row" or (WAYS[way].get("changelog-producer") == "lookup" and "marked" not in way)
]


@pytest.mark.cases(6)
@pytest.mark.parametrize(("way", "engine"), CASES)
@draws(4)
@given(data=st.data())
def test_changes_lead_to_the_table(way, engine, data):
    play(data, way, engine, 7)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "engine"), CASES)
@draws(100)
@given(data=st.data())
def test_changes_lead_to_the_table_at_length(way, engine, data):
    play(data, way, engine, 16)
