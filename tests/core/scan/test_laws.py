"""Laws of scanning: pruning never loses a row, for any statistics, schemas, partitions and buckets."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import And, Leaf, Not, Or, Predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn, UpdateType
from paimon_core.schema.schema import Schema
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO

ROOT = "memory://w/t"
INTS = [-(2**31), -1, 0, 1, 2**31 - 1]
MOMENTS = [-62135596800, -1, 0, 1, 1700000000, 4102444800]
LONG = "prefix shared by all " * 3
VALUES = {
    "i": (pa.int32(), INTS),
    "l": (pa.int64(), [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]),
    "f": (pa.float32(), [float("nan"), -0.0, 0.0, 1.5, float("-inf"), float("inf")]),
    "d": (pa.float64(), [float("nan"), -0.0, 0.0, 1.5, -1e300, float("inf")]),
    "s": (pa.string(), ["", "a", "b", LONG, LONG + "x", LONG + "\U0010ffff", "\U0010ffff" * 20, "ä"]),
    "y": (pa.binary(), [b"", b"\0", b"\xff" * 20, b"\xff" * 21, b"abc"]),
    "n": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.00"), Decimal("1.50"), Decimal("999.99")]),
    "w": (pa.decimal128(30, 5), [Decimal("-1e20"), Decimal("0.00001"), Decimal("1e20")]),
    "b": (pa.bool_(), [True, False]),
    "da": (pa.date32(), [-719162, -1, 0, 19000]),
    "ms": (pa.timestamp("ms"), [m * 1000 + 1 for m in MOMENTS]),
    "us": (pa.timestamp("us"), [m * 1_000_000 + 1 for m in MOMENTS]),
    "ns": (pa.timestamp("ns"), [m * 1_000_000_000 + 1 for m in MOMENTS[1:]]),
    "tz": (pa.timestamp("us", tz="UTC"), [m * 1_000_000 + 7 for m in MOMENTS]),
}
PARTITIONS = {
    "s": [None, "", " ", "a", "a/b=%", "__DEFAULT_PARTITION__", "é"],
    "i": [None, -1, 0, 7],
    "da": [None, -1, 19000],
    "n": [None, Decimal("-1.50"), Decimal("0.00")],
    "b": [None, True, False],
    "d": [None, 0.5, -1e300],
}
MODES = ["none", "counts", "truncate(1)", "truncate(2)", "truncate(3)", "truncate(16)", "full"]
TEXT_OPS = ["starts with", "ends with", "contains"]


def rows_strategy(columns: list[str], partition: str | None):
    values = {c: st.sampled_from([None, *VALUES[c][1]]) for c in columns}
    if partition is not None:
        values["p"] = st.sampled_from(PARTITIONS[partition])
    return st.lists(st.fixed_dictionaries(values), min_size=1, max_size=6)


def arrow(rows: list[dict], schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array([row[f.name] for row in rows], f.type) for f in schema], schema=schema)


@st.composite
def predicates(draw, columns: dict[str, list], depth: int = 2) -> Predicate:
    kind = draw(st.sampled_from(["leaf", "leaf", "and", "or", "not"])) if depth else "leaf"
    if kind == "not":
        return Not(draw(predicates(columns, depth - 1)))
    if kind != "leaf":
        children = tuple(draw(predicates(columns, depth - 1)) for _ in range(2))
        return And(children) if kind == "and" else Or(children)
    column = draw(st.sampled_from(sorted(columns)))
    values = columns[column]
    text = isinstance(values[0], str)
    op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null", "<=>"]
                              + (TEXT_OPS if text else [])))  # fmt: skip
    if op in ("is null", "is not null"):
        return Leaf(op, column, ())
    if op in ("in", "not in"):
        return Leaf(op, column, tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))))
    value = draw(st.sampled_from(values))
    return Leaf(op, column, (value[: draw(st.integers(0, 22))] if op in TEXT_OPS else value,))


def check(table: Table, predicate: Predicate) -> None:
    """Check that a filtered read equals a filtered full read."""
    full = table.to_arrow()
    bound = bind(predicate, table.schema.fields)
    expected = full.filter(evaluate(bound, full))
    result = table.to_arrow(filter=predicate)
    assert lines(result) == lines(expected), str(predicate)


def lines(table: pa.Table) -> list[str]:
    """Return sorted rows as text; timestamps as numbers, because Python lacks years before 1 and nanoseconds."""
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return sorted(map(repr, zip(*(c.to_pylist() for c in columns), strict=True)))


@draws(80)
@given(st.data())
def test_append_table_filter_equals_full_read(data):
    """Append tables: several commits, schemas that change in between, partitions of any type."""
    columns = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
    partition = data.draw(st.none() | st.sampled_from(sorted(PARTITIONS)))
    fields = [pa.field(c, VALUES[c][0]) for c in columns]
    if partition is not None:
        fields.append(pa.field("p", VALUES[partition][0]))
    options = {
        "metadata.stats-mode": data.draw(st.sampled_from(MODES)),
        "metadata.stats-dense-store": data.draw(st.sampled_from(["true", "false"])),
        "file.format": data.draw(st.sampled_from(["parquet", "parquet", "orc", "avro"])),
        "target-file-size": data.draw(st.sampled_from(["1 b", "128 mb"])),
    }
    if options["file.format"] != "parquet" and {"ms", "us", "ns", "tz"} & set(columns):
        options["file.format"] = "parquet"  # the others refuse some moments and precisions
    schema = pa.schema(fields)
    io = MemoryIO()
    keys = ("p",) if partition is not None else ()
    table = Table(FileStore(io, ROOT, create_table(io, ROOT, Schema(schema, (), keys, options))))
    known = {f.name: VALUES[f.name][1] for f in fields if f.name != "p"}
    for _ in range(data.draw(st.integers(1, 4))):
        rows = data.draw(rows_strategy([f.name for f in schema if f.name != "p"], partition))
        current = table.arrow_schema
        table.write(arrow(rows, schema).select([f.name for f in schema if takes(current, f)]))
        table = alter(data, table, known)
        schema = pa.schema([f for f in schema if f.name in table.arrow_schema.names])
        if not [f for f in schema if f.name != "p"]:
            break
    filters = dict(known)
    if partition is not None:
        filters["p"] = [v for v in PARTITIONS[partition] if v is not None]
    for _ in range(3):
        check(table, data.draw(predicates(filters)))


def takes(table: pa.Schema, column: pa.Field) -> bool:
    """Return True if the table still has the column, with a type that accepts the old values."""
    if column.name not in table.names:
        return False
    kind = table.field(column.name).type
    return kind == column.type or kind in (pa.int64(), pa.float64()) or pa.types.is_decimal(kind)


def alter(data, table: Table, known: dict[str, list]) -> Table:
    """Change the schema, or leave it."""
    what = data.draw(st.sampled_from(["nothing", "add", "drop", "rename", "widen"]))
    names = [n for n in table.arrow_schema.names if n in known]
    if what == "add":
        name = f"z{table.schema.id}"
        known[name] = [0, 5]
        return table.alter([AddColumn(name, "INT")])
    if what in ("drop", "rename") and len(names) > 1:
        name = data.draw(st.sampled_from(names))
        if what == "drop":
            del known[name]
            return table.alter([DropColumn(name)])
        new = f"r{table.schema.id}"
        known[new] = known.pop(name)
        return table.alter([RenameColumn(name, new)])
    if what == "widen":
        wider = {"i": ["BIGINT", "DOUBLE", "STRING"], "f": ["DOUBLE"], "n": ["DECIMAL(12, 2)"]}
        wider["da"] = ["TIMESTAMP(3)"]
        able = [n for n in names if n in wider and table.arrow_schema.field(n).type == VALUES[n][0]]
        if able:
            name = data.draw(st.sampled_from(able))
            target = data.draw(st.sampled_from(wider[name]))
            if target == "STRING":
                known[name] = [str(v) for v in known[name]]
            if target.startswith("TIMESTAMP"):
                known[name] = [v * 86_400_000 for v in known[name]]
            return table.alter([UpdateType(name, target)])
    return table


@draws(40)
@given(st.data(), st.sampled_from(["default", "mod", "hive"]), st.integers(1, 5))
def test_keyed_table_filter_equals_full_read(data, function, buckets):
    """With keys of any type and overlapping files, no row is lost and no older version reappears."""
    kinds = ["i", "l"] if function == "mod" else ["i", "l", "s", "n", "da", "us", "b", "y"]
    if function == "hive":
        kinds = ["i", "l", "s", "da"]
    key = data.draw(st.sampled_from(kinds))
    keys = ["k"] if function == "mod" else data.draw(st.sampled_from([["k"], ["k", "k2"]]))
    schema = pa.schema([pa.field("k", VALUES[key][0], nullable=False), pa.field("k2", pa.int32(), nullable=False),
                        ("i", pa.int32()), ("d", pa.float64()), ("s", pa.string())])  # fmt: skip
    options = {
        "bucket": str(buckets), "bucket-function.type": function,
        "metadata.stats-mode": data.draw(st.sampled_from(MODES)),
        "write-buffer-size": data.draw(st.sampled_from(["100 b", "64 mb"])),
        "write-buffer-spillable": "false",
        "source.split.target-size": data.draw(st.sampled_from(["1 b", "128 mb"])),
        "parquet.block.size": "1 kb",
    }  # fmt: skip
    io = MemoryIO()
    table = Table(FileStore(io, ROOT, create_table(io, ROOT, Schema(schema, keys, (), options))))
    row = st.fixed_dictionaries(
        {"k": st.sampled_from(VALUES[key][1]), "k2": st.integers(0, 2)}
        | {c: st.sampled_from([None, *VALUES[c][1]]) for c in ("i", "d", "s")}
    )
    for _ in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(row, min_size=1, max_size=8))
        kinds_ = data.draw(st.lists(st.sampled_from(["+I", "+I", "-D"]), min_size=len(rows), max_size=len(rows)))
        table.write(arrow(rows, schema), kinds_)
    filters = {"k": VALUES[key][1], "k2": [0, 1, 2], **{c: VALUES[c][1] for c in ("i", "d", "s")}}
    for _ in range(3):
        check(table, data.draw(predicates(filters)))
    for value in VALUES[key][1]:
        check(table, Leaf("=", "k", (value,)))


@pytest.mark.parametrize("function", ["default", "mod", "hive"])
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_bucket_pruning_keeps_buckets_of_matching_rows(function, kind):
    """Every key is found in the bucket that its filter selects, for each bucket function."""
    io = MemoryIO()
    schema = pa.schema([pa.field("k", kind, nullable=False), ("v", pa.string())])
    options = {"bucket": "7", "bucket-function.type": function}
    table = Table(FileStore(io, ROOT, create_table(io, ROOT, Schema(schema, ["k"], (), options))))
    keys = [-(2**31), -100, -1, 0, 1, 8, 100, 2**31 - 1]
    table.write(pa.table([pa.array(keys, kind), [str(k) for k in keys]], schema=schema))
    for key in keys:
        assert table.to_arrow(filter=f"k = {key}").column("v").to_pylist() == [str(key)]
        assert len(table.scan(filter=f"k = {key}").plan().splits) == 1
    assert table.to_arrow(filter="k IN (-1, 8)").num_rows == 2
    assert table.to_arrow(filter="k = 5.5").num_rows == 0


def test_filter_on_zero_finds_negative_zero_in_any_bucket():
    io = MemoryIO()
    schema = pa.schema([pa.field("k", pa.float64()), ("v", pa.string())])
    options = {"bucket": "8", "bucket-key": "k"}
    table = Table(FileStore(io, ROOT, create_table(io, ROOT, Schema(schema, (), (), options))))
    table.write(pa.table([pa.array([-0.0, 0.0, math.nan, None]), ["minus", "plus", "nan", "null"]], schema=schema))
    assert sorted(table.to_arrow(filter="k = 0").column("v").to_pylist()) == ["minus", "plus"]
    assert table.to_arrow(filter="k IS NULL").column("v").to_pylist() == ["null"]
    check(table, Leaf("=", "k", (math.nan,)))
