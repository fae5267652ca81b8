"""Shredded variants: what other writers store is read, value by value."""

import datetime as dt
import random
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format.conform import conform
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.parquet import ParquetFormat
from paimon_core.options.option import Options
from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from paimon_core.types import datatype
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import ArrayType, DataField, RowType
from paimon_core.types.parse import parse_type
from paimon_core.variant import rebuild
from paimon_core.variant.scalars import encoded_scalars
from paimon_core.variant.shred import shredded
from tests.support.samples import fields_of
from tests.support.variants import MISSING, decoded, encoded, metadata_of, names_of, shredded_column

NAMES = ("a", "b", "c", "é", "\uff5e", "\U0001f600", "long" * 20, *(f"n{i}" for i in range(300)))
LAYOUT = {
    "a": pa.int64(),
    "\U0001f600": pa.string(),
    "\uff5e": None,
    "c": {"d": [pa.float64()], "a": pa.bool_(), "rows": [{"a": pa.int64(), "e": pa.binary()}]},
}


def draw(rng, depth=3):
    """Return a random value."""
    scalars = (None, True, False, 0, -129, 1 << 40, 1.5, "", "x" * 63, "y" * 64, "é", b"", b"\x00z", Decimal("-1.50"))
    kind = rng.random() if depth else 0
    if kind < 0.5:
        return rng.choice(scalars)
    if kind < 0.65:
        return [draw(rng, depth - 1) for _ in range(rng.choice((0, 1, 3, 300 if depth == 3 else 2)))]
    names = rng.sample(NAMES, rng.choice((0, 2, 5, 290 if depth == 3 else 3)))
    value = {name: draw(rng, depth - 1) for name in names}
    if rng.random() < 0.5:
        value["a"] = rng.choice((7, "text", None))
    if rng.random() < 0.5:
        value["c"] = {"d": [1.0, 2], "a": True, "rows": [{"a": 1}, {}, {"e": b"x", "z": 2}, 5]}
    return value


def objects(column):
    """Return the Python values of a column of variants."""
    return [MISSING if row is None else decoded(row["value"], names_of(row["metadata"])) for row in column.to_pylist()]


def read(column):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c0": column}), sink)
    fields = fields_of(["VARIANT"])
    batches = ParquetFormat().read(pa.BufferReader(sink.getvalue()), ReadRequest(fields, 1000, path="the-file"))
    return pa.Table.from_batches(batches, arrow_schema(fields))["c0"].combine_chunks()


@pytest.mark.cases(2)
@pytest.mark.parametrize("layout", [LAYOUT, [LAYOUT], pa.int64(), pa.string(), [[pa.int64()]], {"zz": {"y": None}}])
def test_shredded_variants_are_read_value_by_value(layout, monkeypatch):
    monkeypatch.setattr(rebuild, "_MOST_CELLS", 500)
    rng = random.Random(str(layout))
    values = [rng.choice((MISSING, draw(rng), draw(rng))) for _ in range(120)]
    values += [[draw(rng) for _ in range(n)] for n in (0, 1, 5)]
    column = shredded_column(values, layout)
    assert objects(read(column)) == values
    assert objects(conform(column.slice(7, 50), to_arrow(datatype.VARIANT), variants=True)) == values[7:57]


MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 123000)
MICROS = 1714979289123000
TENTHS = [Decimal("1.5"), Decimal("-999999999.9")]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([-128, 127, None], pa.int8()), [-128, 127]),
        (pa.array([128, -(1 << 15), None, 1 << 15]), [128, -(1 << 15), 1 << 15]),
        (pa.array([(1 << 31) - 1, -(1 << 31) - 1]), [(1 << 31) - 1, -(1 << 31) - 1]),
        (pa.array(TENTHS, pa.decimal128(38, 1)), TENTHS),
        (pa.array([Decimal(10**37), Decimal(-(10**17))], pa.decimal128(38, 0)), [10**37, -(10**17)]),
        (pa.array([1.5, None], pa.float32()), [1.5]),
        (pa.array([True, None, False]), [True, False]),
        (pa.array([dt.date(1969, 12, 31)]), [(11, -1)]),
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), [(12, MICROS)]),
        (pa.array([MOMENT], pa.timestamp("ms")), [(13, MICROS)]),
        (pa.array([dt.time(0, 0, 1)], pa.time64("us")), [(17, 1_000_000)]),
        (pa.array([MOMENT], pa.timestamp("ns", "UTC")), [(18, MICROS * 1000)]),
        (pa.array([MOMENT], pa.timestamp("ns")), [(19, MICROS * 1000)]),
        (pa.array([uuid.UUID(int=5).bytes], pa.binary(16)), [uuid.UUID(int=5).bytes]),
        (pa.array([b"\xff", None]), [b"\xff"]),
        (pa.array(["a" * 64, "b"], pa.large_string()), ["a" * 64, "b"]),
    ],
)  # fmt: skip
def test_typed_values_of_every_type_are_read(array, expected):
    none = pa.array([b"\x00" if valid else b"\x05n" for valid in array.is_null().to_pylist()])
    value = pc.if_else(array.is_null(), none, pa.scalar(None, pa.binary()))
    metadata = pa.array([metadata_of([])] * len(array))
    column = pa.StructArray.from_arrays([metadata, value, array], ["metadata", "value", "typed_value"])
    assert [v for v in objects(read(column)) if v is not None] == expected


def group(**columns):
    return pa.StructArray.from_arrays([*columns.values()], [*columns])


ONE = pa.array([1])
OF_A = group(a=group(typed_value=ONE))
NOTHING, METADATA = pa.array([None], pa.binary()), pa.array([metadata_of(["a"])])
FIELD_A = pa.array([encoded({"a": 1}, ["a"])])


@pytest.mark.parametrize(
    ("metadata", "value", "typed", "error", "message"),
    [
        (NOTHING, NOTHING, ONE, CorruptedError, "no metadata"),
        (METADATA, NOTHING, pa.array([None], pa.int64()), CorruptedError, "neither value nor typed_value"),
        (METADATA, NOTHING, pa.array([1], pa.uint32()), UnsupportedError, "type uint32"),
        (METADATA, NOTHING, pa.array([[1]]), CorruptedError, "stored as int64, not as groups"),
        (METADATA, NOTHING, group(b=group(typed_value=ONE)), CorruptedError, "lacks the name 'b'"),
        (METADATA, FIELD_A, OF_A, CorruptedError, "both in typed_value and in value"),
        (METADATA, pa.array([b"\x00"]), OF_A, CorruptedError, "is an object in typed_value, but not in value"),
        (METADATA, pa.array([b"\x02\x05\x00"]), OF_A, CorruptedError, "cut off"),
        (pa.array([b"\x02\x00\x00"]), NOTHING, ONE, CorruptedError, "another version"),
        (pa.array([b"\x01\x09\x00"]), NOTHING, ONE, CorruptedError, "cut off"),
    ],
)
def test_invalid_shredded_variants_are_refused_by_column_and_file(metadata, value, typed, error, message):
    with pytest.raises(error, match=rf"column 'c0' of the-file: .*{message}"):
        read(group(metadata=metadata, value=value, typed_value=typed))


def test_row_whose_fields_look_like_a_shredded_variant_is_a_row():
    column = pa.array([{"value": b"v", "metadata": b"m", "typed_value": 1}])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c0": column}), sink)
    fields = fields_of(["ROW<`value` BYTES NOT NULL, metadata BYTES NOT NULL>"])
    batches = ParquetFormat().read(pa.BufferReader(sink.getvalue()), ReadRequest(fields, 1000))
    assert [row["c0"] for batch in batches for row in batch.to_pylist()] == [{"value": b"v", "metadata": b"m"}]


@pytest.mark.parametrize("text", ["ROW<v VARIANT NOT NULL>", "ARRAY<VARIANT>", "MAP<STRING, VARIANT>"])
def test_shredded_variants_inside_other_columns_are_read(text):
    inner = shredded_column([{"a": 1}, MISSING, {"a": "x", "b": 2}], {"a": pa.int64()})
    if text.startswith("ROW"):
        inner = inner.filter(inner.is_valid())
        column = pa.StructArray.from_arrays([inner], ["v"], mask=pa.array([False, True]))
        expected = [{"a": 1}]
    else:
        offsets = pa.array([0, 2, 2, 3], pa.int32())
        column = (
            pa.ListArray.from_arrays(offsets, inner)
            if text.startswith("ARRAY")
            else pa.MapArray.from_arrays(offsets, pa.array(["x", "y", "z"]), inner)
        )
        expected = [{"a": 1}, MISSING, {"a": "x", "b": 2}]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c0": column}), sink)
    fields = fields_of([text])
    batches = ParquetFormat().read(pa.BufferReader(sink.getvalue()), ReadRequest(fields, 1000))
    found = pa.Table.from_batches(batches, arrow_schema(fields))["c0"].combine_chunks()
    assert len(found) == len(column)
    if text.startswith("ROW"):
        assert objects(pc.struct_field(found, [0]).drop_null()) == expected
    else:
        assert objects(found.values if text.startswith("ARRAY") else found.items) == expected


TYPES = {pa.int64(): "BIGINT", pa.string(): "STRING", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}
TYPES[pa.binary()] = "BYTES"


def type_of(layout):
    """Return the type to shred by of a layout of `tests.support.variants`."""
    if isinstance(layout, dict):
        return RowType(tuple(DataField(-1, name, type_of(inner)) for name, inner in layout.items()))
    return ArrayType(type_of(layout[0])) if isinstance(layout, list) else parse_type(TYPES.get(layout, "VARIANT"))


@pytest.mark.cases(2)
@pytest.mark.parametrize("layout", [LAYOUT, [LAYOUT], pa.int64(), pa.string(), [[pa.int64()]], {"zz": {"y": None}}])
def test_variants_are_shredded_as_one_by_one(layout):
    rng = random.Random(str(layout))
    values = [rng.choice((MISSING, draw(rng), draw(rng))) for _ in range(120)]
    expected = shredded_column(values, layout)
    found = shredded(plain(values), type_of(layout))
    assert [without_bytes(row) for row in found.to_pylist()] == [without_bytes(row) for row in expected.to_pylist()]
    assert objects(conform(found, to_arrow(datatype.VARIANT), variants=True)) == values


def without_bytes(group):
    """Return a group with its values decoded."""
    if group is None:
        return None
    names = names_of(group["metadata"])

    def inner(part):
        if isinstance(part, list):
            return [inner(element) for element in part]
        if not isinstance(part, dict):
            return part
        found = {name: inner(value) for name, value in part.items()}
        if isinstance(part.get("value"), bytes) and part["value"]:
            found["value"] = decoded(part["value"], names)
        return found

    return inner({name: part for name, part in group.items() if name != "metadata"})


DECIMALS = (*map(Decimal, ("1.50", "1.505", "-999.99", "1000", 10**36, "0E-3")), 7, -1000, 999)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DECIMAL(5, 2)", [Decimal("1.50"), None, Decimal("-999.99"), None, None, 0, None, None, None]),
        ("DECIMAL(38, 4)", [Decimal("1.5"), Decimal("1.505"), Decimal("-999.99"), 1000, None, 0, None, None, None]),
        ("DECIMAL(2, 2)", [None, None, None, None, None, 0, None, None, None]),
        ("DECIMAL(37, 0)", [None, None, None, 1000, 10**36, 0, None, None, None]),
        ("BIGINT", [None, None, None, None, None, None, 7, -1000, 999]),
        ("TINYINT", [None, None, None, None, None, None, 7, None, None]),
    ],
)
def test_numbers_are_shredded_if_a_type_holds_them_exactly(text, expected):
    found = shredded(plain(DECIMALS), parse_type(text))
    assert pc.struct_field(found, "typed_value").to_pylist() == expected
    assert objects(conform(found, to_arrow(datatype.VARIANT), variants=True)) == list(DECIMALS)


@pytest.mark.parametrize("text", ["FLOAT", "DATE", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "DOUBLE", "BOOLEAN", "BYTES"])
def test_other_scalars_are_shredded_by_their_own_type_only(text):
    kinds = {"FLOAT": pa.array([1.5], pa.float32()), "DATE": pa.array([dt.date(1969, 12, 31)])}
    kinds |= {"DOUBLE": pa.array([2.5]), "BOOLEAN": pa.array([False]), "BYTES": pa.array([b"x"])}
    kinds |= {f"TIMESTAMP{z}(6)": pa.array([MOMENT], pa.timestamp("us", tz)) for z, tz in (("", None), ("_LTZ", "UTC"))}
    values = pa.concat_arrays([encoded_scalars(array) for array in kinds.values()])
    metadata = pa.array([metadata_of([])] * len(values))
    column = pa.StructArray.from_arrays([values, metadata], fields=list(to_arrow(datatype.VARIANT)))
    typed = pc.struct_field(shredded(column, parse_type(text)), "typed_value")
    assert typed.drop_null().equals(kinds[text])
    assert typed.is_valid().to_pylist() == [kind == text for kind in kinds]


def written(column, text="VARIANT", **options):
    """Return the stored type of a column of variants, and the variants read again."""
    sink = pa.BufferOutputStream()
    fields = fields_of([text])
    writer = ParquetFormat().open_writer(sink, fields, Options(options), "zstd")
    for start in range(0, len(column), 50):
        writer.write(pa.table([column.slice(start, 50)], arrow_schema(fields)))
    writer.close()
    data = sink.getvalue()
    batches = ParquetFormat().read(pa.BufferReader(data), ReadRequest(fields, 1000))
    found = pa.Table.from_batches(batches, arrow_schema(fields))["c0"].combine_chunks()
    return pq.read_schema(pa.BufferReader(data)).field(0).type, found


def plain(values):
    return conform(shredded_column(values, None), to_arrow(datatype.VARIANT), variants=True)


def typed_part(stored, *path):
    """Return the type of the values at a path in a stored type, in Arrow's words; `None`: they are not shredded."""
    for name in path:
        stored = stored.field("typed_value").type
        stored = stored.value_type if name is None else stored.field(name).type
    index = stored.get_field_index("typed_value")
    return None if index < 0 else str(stored.field(index).type)


SHAPE = '{"type":"ROW","fields":[{"name":"c0","type":{"type":"ROW","fields":[{"name":"a","type":"INT"}]}}]}'


@pytest.mark.parametrize("key", ["variant.shreddingSchema", "parquet.variant.shreddingSchema"])
def test_option_gives_the_stored_columns(key):
    values = [{"a": 1, "b": [1.5]}, MISSING, {"a": "x"}, [], 7] * 40
    stored, found = written(plain(values), **{key: SHAPE})
    assert [(f.name, f.metadata[b"PARQUET:field_id"]) for f in stored] == [
        ("metadata", b"0"), ("value", b"1"), ("typed_value", b"2"),
    ]  # fmt: skip
    assert typed_part(stored, "a") == "int32"
    assert objects(found) == values


INFER = {"variant.inferShreddingSchema": "true"}
MIXED = [
    {"a": k, "b": f"x{k}", "c": {"d": [k / 2], "e": None}, "m": k if k % 2 else "text", "n": Decimal("1.50"), " ": 1}
    | ({"rare": 1} if k == 7 else {})
    for k in range(100)
]


def test_inferred_types_are_those_of_common_fields():
    stored, found = written(plain([*MIXED, MISSING, {}]), **INFER)
    assert typed_part(stored, "a") == "int64"
    assert typed_part(stored, "b") == "string"
    assert typed_part(stored, "c", "d", None) == "double"
    assert typed_part(stored, "c", "e") is typed_part(stored, "m") is None
    assert typed_part(stored, "n") == "decimal128(18, 1)"
    assert [f.name for f in stored.field("typed_value").type] == ["a", "b", "c", "m", "n"]
    assert objects(found) == [*MIXED, MISSING, {}]


@pytest.mark.parametrize(
    ("options", "values", "path", "expected"),
    [
        ({"variant.shredding.minFieldCardinalityRatio": "0.001"}, MIXED, ("rare",), "int64"),
        ({"variant.shredding.maxSchemaDepth": "0"}, MIXED, (), None),
        ({"variant.shredding.maxSchemaDepth": "1"}, MIXED, ("c",), None),
        ({"variant.shredding.maxSchemaWidth": "3"}, MIXED, ("a",), "int64"),
        ({"variant.shredding.maxInferBufferRow": "1"}, [7, *MIXED], (), "int64"),
        ({}, [Decimal(10**20), 5], (), "decimal128(38, 0)"),
        ({}, [1 << 62, Decimal("0.5")], (), "decimal128(38, 1)"),
        ({}, [Decimal(10**36), Decimal("0.001")], (), None),
        ({}, [1.5, 1], (), None),
        ({}, [None, None], (), None),
        ({}, [MISSING], (), None),
        ({}, [], (), None),
    ],
)
def test_limits_of_the_inference(options, values, path, expected):
    stored, found = written(plain(values), **INFER, **options)
    assert typed_part(stored, *path) == expected
    assert objects(found) == values


def test_variants_in_rows_are_inferred_but_not_those_in_arrays():
    variants = plain([{"a": 1}, {"a": 2}]).to_pylist()
    rows = pa.array([*({"v": v} for v in variants), None], to_arrow(parse_type("ROW<v VARIANT>")))
    stored, found = written(rows, "ROW<v VARIANT>", **INFER)
    assert typed_part(stored.field("v").type, "a") == "int64"
    assert objects(pc.struct_field(found, [0]).drop_null()) == [{"a": 1}, {"a": 2}]
    lists = pa.array([variants, None], to_arrow(parse_type("ARRAY<VARIANT>")))
    stored, found = written(lists, "ARRAY<VARIANT>", **INFER)
    assert [f.name for f in stored.value_type] == ["value", "metadata"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ROW<c0 INT>", "not a type as JSON"),
        ('"INT"', "it must be a ROW"),
        ('{"type":"ROW","fields":[{"name":"c0","type":"TIMESTAMP(3)"}]}', r"TIMESTAMP\(3\) at c0"),
        ('{"type":"ROW","fields":[{"name":"c0","type":{"type":"ROW","fields":[]}}]}', "without fields"),
        ('{"type":"ROW","fields":[{"name":"k","type":"INT"}]}', "column 'k', which is INT"),
        ('{"type":"ROW","fields":[{"name":"z","type":"INT"}]}', "column 'z', which does not exist"),
    ],
)
def test_unsuitable_shredding_schemas_are_refused(text, message):
    fields = (DataField(0, "k", parse_type("INT")), DataField(1, "c0", parse_type("VARIANT")))
    with pytest.raises(InvalidInputError, match=f"option 'variant.shreddingSchema' .*{message}"):
        create(Schema(fields, options={"variant.shreddingSchema": text}), 0)


@pytest.mark.parametrize("options", [{"variant.shreddingSchema": SHAPE}, {"variant.inferShreddingSchema": "true"}])
@pytest.mark.parametrize(
    ("value", "metadata"), [(b"", b"\x01\x00\x00"), (b"\x02\x01", b"\x01\x00\x00"), (b"\x00", b"\x09")]
)
def test_bytes_that_are_no_variant_are_refused_by_column(options, value, metadata):
    column = pa.array([{"value": value, "metadata": metadata}], to_arrow(datatype.VARIANT))
    with pytest.raises(InvalidInputError, match="column 'c0' has bytes that are no VARIANT"):
        written(column, **options)


@pytest.mark.parametrize("nanos", [False, True])
def test_times_remain_times_beside_a_column_of_nanoseconds(nanos):
    value = encoded_scalars(pa.array([MOMENT], pa.timestamp("us", "UTC")))
    metadata = pa.array([metadata_of(["a"])])
    times = pa.StructArray.from_arrays([value, metadata], fields=list(to_arrow(datatype.VARIANT)))
    fields = fields_of(["VARIANT", "TIMESTAMP(9)" if nanos else "TIMESTAMP(6)"])
    rows = pa.table([times, pa.array([MOMENT], pa.timestamp("ns" if nanos else "us"))], arrow_schema(fields))
    sink = pa.BufferOutputStream()
    writer = ParquetFormat().open_writer(sink, fields, Options(INFER), "zstd")
    writer.write(rows)
    writer.close()
    data = sink.getvalue()
    assert (typed_part(pq.read_schema(pa.BufferReader(data)).field(0).type) is None) == nanos
    (batch,) = ParquetFormat().read(pa.BufferReader(data), ReadRequest(fields, 1000))
    assert objects(batch.column(0)) == [(12, MICROS)]
