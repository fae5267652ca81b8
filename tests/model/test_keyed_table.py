"""A primary-key table under random histories, against a dictionary.

Drawn once: format, buckets, bucket function, partitions, sequence fields, statistics, file and buffer sizes. Then, in
any order: upserts and deletes; overwrites of all kinds; compactions (by the writer too, unless the table is
write-only); schema changes, reopening, writing through a table opened before the last change, and reads with
projections and filters. After every step the newest snapshot equals the model, an older one still reads as when it was
made, and every file that any snapshot refers to is there.
"""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateType,
)
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.model import KeyedModel, same

ROOT = "memory://w/t"
PARTITIONS = ["", "a", "b/ =%", "é"]
FIXED = ("k", "p", "s", "t")
ARROW = {"INT": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "STRING": pa.string(),
         "DECIMAL(5, 2)": pa.decimal128(5, 2), "DECIMAL(12, 3)": pa.decimal128(12, 3)}  # fmt: skip
WIDER = {
    "INT": ["BIGINT", "DOUBLE", "STRING"],
    "BIGINT": ["STRING"],
    "FLOAT": ["DOUBLE"],
    "DECIMAL(5, 2)": ["DECIMAL(12, 3)"],
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INT": st.integers(-3, 3),
    "BIGINT": st.sampled_from([-(2**40), -1, 0, 1, 2**40]),
    "FLOAT": st.sampled_from([-1.5, -0.0, 0.0, 0.25, float("inf")]),
    "DOUBLE": st.sampled_from([-1e300, -1.5, 0.0, 0.1, 3.0]),
    "STRING": st.sampled_from(["", "a", "b" * 40, "ü%_", "zz"]),
    "DECIMAL(5, 2)": st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("999.99")]),
    "DECIMAL(12, 3)": st.sampled_from([Decimal("-1.500"), Decimal("123456789.125")]),
}
LITERAL = {"STRING": lambda v: f"'{v}'"}


@dataclass
class Column:
    """A column of the model: ``uid`` stays through renames, as the field id does."""

    uid: str
    name: str
    kind: str
    default: Any = None


@dataclass
class Opened:
    """A table object and the columns its schema has."""

    table: Table
    columns: list[Column] = field(default_factory=list)


def as_kind(value: Any, kind: str) -> Any:
    """A value of an older, narrower type as it reads now."""
    if value is None:
        return None
    if kind == "STRING":
        return str(value)
    if kind in ("FLOAT", "DOUBLE"):
        return float(value)
    if kind.startswith("DECIMAL(12"):
        return Decimal(value).quantize(Decimal("0.001"))
    return value


class KeyedTable(RuleBasedStateMachine):
    """See the module."""

    @initialize(
        data=st.data(),
        settings_=st.fixed_dictionaries(
            {
                "file.format": st.sampled_from(["parquet", "orc", "avro"]),
                "bucket": st.sampled_from(["1", "2", "3"]),
                "bucket-function.type": st.sampled_from(["default", "mod", "hive"]),
                "metadata.stats-mode": st.sampled_from(["none", "counts", "truncate(1)", "truncate(16)", "full"]),
                "metadata.stats-dense-store": st.sampled_from(["true", "false"]),
                "target-file-size": st.sampled_from(["1 b", "128 mb"]),
                "write-buffer-size": st.sampled_from(["256 b", "64 mb"]),
                "write-buffer-spillable": st.sampled_from(["true", "false"]),
                "source.split.target-size": st.sampled_from(["1 b", "128 mb"]),
                "manifest.merge-min-count": st.sampled_from(["2", "30"]),
                "write-only": st.sampled_from(["true", "false"]),
                "num-sorted-run.compaction-trigger": st.sampled_from(["1", "2", "5"]),
            }
        ),
        sequence=st.sampled_from([(), ("s",), ("s", "t"), ("t", "s")]),
        descending=st.booleans(),
        partitioned=st.booleans(),
        ignore_delete=st.booleans(),
    )
    def create(self, data, settings_, sequence, descending, partitioned, ignore_delete):
        options = dict(settings_)
        if sequence:
            options["sequence.field"] = ",".join(sequence)
            options["sequence.field.sort-order"] = "descending" if descending else "ascending"
        if ignore_delete:
            options["ignore-delete"] = "true"
        self.ignore_delete = ignore_delete
        # a compaction forgets deletes, and a row that comes later may then win though its sequence is smaller
        self.compacted = not sequence or ignore_delete
        if not self.compacted:
            options["write-only"] = "true"
        self.partitioned = partitioned
        self.columns = [Column("k", "k", "INT"), Column("p", "p", "STRING"), Column("s", "s", "INT"),
                        Column("t", "t", "INT"), Column("a", "a", "INT"), Column("b", "b", "STRING"),
                        Column("d", "d", "FLOAT"), Column("e", "e", "DECIMAL(5, 2)")]  # fmt: skip
        fields = [pa.field(c.name, ARROW[c.kind], nullable=c.uid not in ("k", "p")) for c in self.columns]
        self.key = ("p", "k") if partitioned else ("k",)
        self.io = MemoryIO()
        keys, partitions = list(self.key), ["p"] if partitioned else []
        create_table(self.io, ROOT, Schema(pa.schema(fields), keys, partitions, options))
        self.model = KeyedModel(self.key, sequence, descending=bool(sequence) and descending)
        self.history: dict[int, list[dict]] = {}
        self.fresh = 0
        self.stale: Opened | None = None
        self.reopen()

    # ---- writing

    def draw_rows(self, data, columns: list[Column], most: int = 8) -> list[dict]:
        values = {c.uid: self.values_of(c) for c in columns}
        return data.draw(st.lists(st.fixed_dictionaries(values), max_size=most))

    def values_of(self, column: Column) -> st.SearchStrategy[Any]:
        if column.uid == "k":
            return st.integers(-4, 6)
        if column.uid == "p":
            return st.sampled_from(PARTITIONS)
        return st.none() | VALUES[column.kind]

    def arrow(self, rows: list[dict], columns: list[Column]) -> pa.Table:
        arrays = [pa.array([row[c.uid] for row in rows], ARROW[c.kind]) for c in columns]
        return pa.table(arrays, names=[c.name for c in columns])

    def stored(self, rows: list[dict], columns: list[Column]) -> list[dict]:
        return [{c.uid: c.default if row[c.uid] is None else row[c.uid] for c in columns} for row in rows]

    def write_through(self, opened: Opened, data) -> None:
        rows = self.draw_rows(data, opened.columns)
        kinds = data.draw(st.lists(st.sampled_from(["+I", "+U", "-D", "-U"]), min_size=len(rows), max_size=len(rows)))
        snapshot = opened.table.write(self.arrow(rows, opened.columns), kinds)
        kept = [
            (kind, row)
            for kind, row in zip(kinds, self.stored(rows, opened.columns), strict=True)
            if not (self.ignore_delete and kind in ("-D", "-U"))
        ]
        assert (snapshot is None) == (not kept)
        if snapshot is not None:
            self.model.upsert(kept)
            self.remember(snapshot.id)

    @rule(data=st.data())
    def upsert_and_delete(self, data):
        self.write_through(self.opened, data)

    @precondition(lambda self: self.stale is not None)
    @rule(data=st.data())
    def write_with_an_older_schema(self, data):
        self.write_through(self.stale, data)

    @rule(data=st.data(), how=st.sampled_from(["whole", "partition", "dynamic"]))
    def overwrite(self, data, how):
        rows = self.draw_rows(data, self.columns, most=5)
        partition: Any = None
        gone = lambda row: True  # noqa: E731
        if how == "partition" and self.partitioned:
            value = data.draw(st.sampled_from(PARTITIONS))
            rows = [{**row, "p": value} for row in rows]
            partition = {"p": value}
            gone = lambda row: row["p"] == value  # noqa: E731
        elif how == "dynamic":
            partition = "dynamic"
            if self.partitioned:
                touched = {row["p"] for row in rows}
                gone = lambda row: row["p"] in touched  # noqa: E731
        snapshot = self.table.overwrite(self.arrow(rows, self.columns), partition)
        if how == "dynamic" and self.partitioned and not rows:
            assert snapshot is None
            return
        self.model.overwrite([("+I", row) for row in self.stored(rows, self.columns)], gone)
        self.remember(snapshot.id)

    @rule()
    def truncate(self):
        self.model.overwrite([])
        self.remember(self.table.truncate().id)

    @precondition(lambda self: self.partitioned)
    @rule(values=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=2, unique=True))
    def drop_partitions(self, values):
        self.model.overwrite([], lambda row: row["p"] in values)
        self.remember(self.table.drop_partitions([{"p": value} for value in values]).id)

    @precondition(lambda self: self.compacted)
    @rule(full=st.booleans())
    def compact(self, full):
        if any(self.table.schema.id < f.schema_id for f in self.live_files()):
            return  # refused, as it would lose what changed since
        snapshot = self.table.compact(full=full)
        if snapshot is not None:
            assert snapshot.commit_kind == "COMPACT"
            self.remember(snapshot.id)

    def live_files(self):
        snapshot = self.table.snapshot()
        return [] if snapshot is None else [e.file for e in live_entries(self.table.store, snapshot).live]

    def remember(self, snapshot_id: int) -> None:
        """Rows are there with the first snapshot of a commit; what is compacted is a second one."""
        for table in range(max(self.history, default=0) + 1, snapshot_id + 1):
            self.history[table] = self.expected()

    # ---- changing

    def change(self, *changes: SchemaChange) -> None:
        self.stale = Opened(self.table, self.opened.columns)
        self.opened = Opened(self.table.alter(changes), [replace(column) for column in self.columns])

    def name(self) -> str:
        self.fresh += 1
        return f"c{self.fresh}"

    @rule(data=st.data(), kind=st.sampled_from(sorted(ARROW)), again=st.booleans(), filled=st.booleans())
    def add_column(self, data, kind, again, filled):
        free = [n for n in ("a", "b", "d") if n not in [c.name for c in self.columns]]
        name = free[0] if again and free else self.name()  # a dropped name that comes back is another column
        default = data.draw(VALUES[kind]) if filled and kind in ("INT", "STRING") else None
        after = data.draw(st.sampled_from([c.name for c in self.columns]))
        self.columns.insert([c.name for c in self.columns].index(after) + 1, Column(self.name(), name, kind, default))
        text = None if default is None else str(default)
        self.change(AddColumn(name, kind, default=text, position=Position("after", after)))

    @precondition(lambda self: any(c.uid not in FIXED for c in self.columns))
    @rule(data=st.data())
    def drop_column(self, data):
        column = data.draw(st.sampled_from([c for c in self.columns if c.uid not in FIXED]))
        self.columns.remove(column)
        self.change(DropColumn(column.name))

    @rule(data=st.data())
    def rename_column(self, data):
        column = data.draw(st.sampled_from([c for c in self.columns if c.uid != "p" or not self.partitioned]))
        old, column.name = column.name, self.name()
        self.change(RenameColumn(old, column.name))

    @precondition(lambda self: any(c.uid not in FIXED and c.kind in WIDER for c in self.columns))
    @rule(data=st.data())
    def widen_column(self, data):
        column = data.draw(st.sampled_from([c for c in self.columns if c.uid not in FIXED and c.kind in WIDER]))
        column.kind = data.draw(st.sampled_from(WIDER[column.kind]))
        if column.default is not None:
            column.default = as_kind(column.default, column.kind)
        self.change(UpdateType(column.name, column.kind))

    @rule(data=st.data())
    def move_column(self, data):
        column = data.draw(st.sampled_from(self.columns))
        self.columns.remove(column)
        self.columns.insert(0, column)
        self.change(MoveColumn(column.name, Position("first")))

    @rule(format_=st.sampled_from(["parquet", "orc", "avro"]))
    def change_format(self, format_):
        self.change(SetOption("file.format", format_))

    @rule()
    def reopen(self):
        schema = Schemas(self.io, ROOT).latest()
        assert schema is not None
        columns = [replace(column) for column in self.columns]
        self.opened, self.stale = Opened(Table(FileStore(self.io, ROOT, schema)), columns), None

    # ---- reading

    @property
    def table(self) -> Table:
        return self.opened.table

    def expected(self) -> list[dict]:
        return [{c.name: as_kind(row.get(c.uid), c.kind) for c in self.columns} for row in self.model.rows()]

    @rule(data=st.data())
    def read_projected_and_filtered(self, data):
        rows = self.expected()
        expected = data.draw(st.lists(st.sampled_from([c.name for c in self.columns]), unique=True))
        first, one = self.condition(data)
        second, two = self.condition(data)
        join, both = data.draw(
            st.sampled_from([("AND", lambda r: one(r) and two(r)), ("OR", lambda r: one(r) or two(r))])
        )
        text = f"({first}) {join} ({second})"
        actual = self.table.to_arrow(columns=expected, filter=text)
        assert actual.schema.names == expected
        assert same(
            actual.to_pylist() if expected else [{}] * actual.num_rows, [pick(r, expected) for r in rows if both(r)]
        )

    def condition(self, data):
        column = data.draw(st.sampled_from(self.columns))
        name, literal = column.name, LITERAL.get(column.kind, str)
        value = data.draw(self.values_of(column).filter(lambda v: v not in (None, float("inf"), 1e300, -1e300)))
        op, test = data.draw(
            st.sampled_from(
                [
                    ("=", lambda v: v is not None and v == value),
                    ("<>", lambda v: v is not None and v != value),
                    ("<", lambda v: v is not None and v < value),
                    (">=", lambda v: v is not None and v >= value),
                    ("IS NULL", lambda v: v is None),
                ]
            )
        )
        text = f"{name} {op}" if op == "IS NULL" else f"{name} {op} {literal(value)}"
        return text, lambda row: test(row[name])

    @invariant()
    def the_newest_snapshot_equals_the_model(self):
        actual = self.table.to_arrow()
        assert actual.schema.names == [c.name for c in self.columns]
        assert same(actual.to_pylist(), self.expected())

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def read_at(self, data):
        snapshot_id = data.draw(st.sampled_from(sorted(self.history)))
        assert same(self.table.to_arrow(snapshot_id=snapshot_id).to_pylist(), self.history[snapshot_id])

    def teardown(self):
        if not hasattr(self, "history"):
            return
        assert [s.id for s in self.table.snapshots()] == sorted(self.history)
        store = self.table.store
        for snapshot in self.table.snapshots():
            assert same(self.table.to_arrow(snapshot_id=snapshot.id).to_pylist(), self.history[snapshot.id])
            for entry in live_entries(store, snapshot).live:
                assert store.file_path(entry.bucket_ref, entry.file) in self.io.files
            assert snapshot.total_record_count == sum(e.file.row_count for e in live_entries(store, snapshot).live)


def pick(row: dict, names: list[str]) -> dict:
    """Some columns of a row."""
    return {name: row[name] for name in names}


TestKeyedTable = KeyedTable.TestCase
TestKeyedTable.settings = settings(draws(30), stateful_step_count=15)


@pytest.mark.slow
class TestKeyedTableAtLength(KeyedTable.TestCase):
    """The same, for longer."""

    settings = settings(draws(250), stateful_step_count=30)
