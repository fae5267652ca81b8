import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import arrow_field, arrow_schema, assign_ids, fields_from_arrow, from_arrow, to_arrow
from paimon_core.types.datatype import (
    BIGINT,
    INT,
    NO_ID,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    decimal,
)
from paimon_core.types.parse import parse_type
from tests.support.column_types import any_type, nested, scalars, vectors


def canonical(t):
    """The type that remains after a conversion to Arrow."""
    match t:
        case AtomicType(root="CHAR" | "VARCHAR"):
            return AtomicType("VARCHAR", t.nullable, length=2**31 - 1)
        case AtomicType(root="BINARY" | "VARBINARY"):
            return AtomicType("VARBINARY", t.nullable, length=2**31 - 1)
        case AtomicType(root="TIME"):
            return AtomicType("TIME", t.nullable, precision=3)
        case AtomicType(root="TIMESTAMP" | "TIMESTAMP_LTZ"):
            precision = 3 if t.precision <= 3 else 6 if t.precision <= 6 else 9
            return AtomicType(t.root, t.nullable, precision=precision)
        case ArrayType(element):
            return ArrayType(canonical(element), t.nullable)
        case MapType(key, value):
            return MapType(not_null(canonical(key)), canonical(value), t.nullable)
        case MultisetType(element):
            return MapType(not_null(canonical(element)), AtomicType("INT", False), t.nullable)
        case RowType(fields):
            return RowType(tuple(DataField(NO_ID, f.name, canonical(f.type)) for f in fields), t.nullable)
        case _:
            return t


def not_null(t):
    return type(t)(*[False if name == "nullable" else getattr(t, name) for name in t.__slots__])


@given(nested(st.one_of(scalars, vectors)))
def test_arrow_types_convert_back(t):
    assert from_arrow(to_arrow(t), t.nullable) == canonical(t)


@given(any_type)
def test_arrow_types_are_stable(t):
    once = to_arrow(t)
    field = arrow_field(DataField(0, "c", t))
    assert field.type == once
    assert field.nullable == t.nullable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
        ("TIME(9)", pa.time32("ms")),
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP_LTZ(7)", pa.timestamp("ns", "UTC")),
        ("VARIANT", pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])),
        ("MULTISET<STRING>", pa.map_(pa.string(), pa.field("value", pa.int32(), False))),
        ("VECTOR<FLOAT, 3>", pa.list_(pa.field("element", pa.float32()), 3)),
        ("BLOB", pa.binary()),
    ],
)
def test_type_has_one_arrow_type(text, expected):
    assert to_arrow(parse_type(text)) == expected


def test_lists_name_their_element():
    assert to_arrow(ArrayType(INT)).value_field.name == "element"


@pytest.mark.parametrize(
    ("arrow_type", "expected"),
    [
        (pa.uint32(), BIGINT),
        (pa.uint64(), decimal(20)),
        (pa.float16(), AtomicType("FLOAT")),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.dictionary(pa.int32(), pa.string()), STRING),
        (pa.run_end_encoded(pa.int32(), pa.int64()), BIGINT),
        (pa.binary(16), AtomicType("BINARY", length=16)),
        (pa.time32("s"), AtomicType("TIME")),
        (pa.timestamp("s", "Europe/Berlin"), AtomicType("TIMESTAMP_LTZ", precision=0)),
        (pa.large_list(pa.int32()), ArrayType(INT)),
        (pa.list_view(pa.int32()), ArrayType(INT)),
        (pa.list_(pa.string(), 2), ArrayType(STRING)),
        (pa.list_(pa.int32(), 2), VectorType(INT, 2)),
        (pa.uuid(), AtomicType("BINARY", length=16)),
        (pa.date64(), AtomicType("DATE")),
    ],
)
def test_arrow_type_becomes_column_type(arrow_type, expected):
    assert from_arrow(arrow_type) == expected


@pytest.mark.parametrize(
    "arrow_type",
    [pa.null(), pa.duration("s"), pa.month_day_nano_interval(), pa.decimal256(50, 2), pa.decimal128(5, -2)],
)
def test_types_without_counterpart_are_refused_by_name(arrow_type):
    with pytest.raises(InvalidInputError, match=r"column 'x'.*has no counterpart"):
        fields_from_arrow(pa.schema([("x", arrow_type)]))


def test_ids_of_worked_example():
    row = parse_type("ROW<x INT, y ROW<z STRING>>")
    (field,), highest = assign_ids([DataField(NO_ID, "c_row", row)], 27)
    x, y = field.type.fields
    assert (field.id, x.id, y.id, y.type.fields[0].id, highest) == (27, 28, 30, 29, 30)


def test_ids_inside_of_collections():
    t = parse_type("MAP<ROW<a INT>, ARRAY<ROW<b INT>>>")
    (first, second), highest = assign_ids([DataField(5, "m", t), DataField(5, "n", INT)], 0)
    assert first.type.key.fields[0].id == 1
    assert first.type.value.element.fields[0].id == 2
    assert (second.id, highest) == (3, 3)


def test_no_fields_no_ids():
    assert assign_ids([], 7) == ((), 6)


@given(st.lists(any_type, max_size=4), st.integers(0, 100))
def test_every_id_is_given_once_and_without_gaps(types, start):
    fields = [DataField(NO_ID, f"c{i}", t) for i, t in enumerate(types)]
    numbered, highest = assign_ids(fields, start)
    ids = list(ids_of(numbered))
    assert sorted(ids) == list(range(start, highest + 1))


def ids_of(fields):
    for field in fields:
        yield field.id
        yield from ids_in(field.type)


def ids_in(t):
    match t:
        case RowType(fields):
            yield from ids_of(fields)
        case ArrayType(element) | MultisetType(element):
            yield from ids_in(element)
        case MapType(key, value):
            yield from ids_in(key)
            yield from ids_in(value)


def test_schema_keeps_nullability():
    fields = (DataField(0, "a", AtomicType("INT", False)), DataField(1, "b", STRING))
    schema = arrow_schema(fields)
    assert [field.nullable for field in schema] == [False, True]
    assert fields_from_arrow(schema) == fields
