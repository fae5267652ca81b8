"""ORC: padding, the years nanoseconds cannot hold, and what the encoder gets wrong."""

import datetime as dt
import io

import pyarrow as pa
import pyarrow.orc as paorc
import pyorc
import pytest

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format import orc
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.orc import OrcFormat
from paimon_core.format.orc_instants import beyond_nanoseconds
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from tests.support.samples import fields_of

ORC = OrcFormat()
UTC = dt.timezone.utc
USUAL = dt.datetime(2000, 1, 1)
YEARS = [USUAL] * 3 + [dt.datetime(1, 1, 1), dt.datetime(1500, 2, 3, 4, 5, 6), None, dt.datetime(9999, 12, 31)]


def encode(fields, *parts, **options):
    sink = pa.BufferOutputStream()
    writer = ORC.open_writer(sink, fields, Options(options), "zstd")
    for part in parts:
        writer.write(part)
    writer.close()
    return sink.getvalue()


def table_of(fields, *columns):
    schema = arrow_schema(fields)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def read(data, fields, batch_rows=1000):
    batches = list(ORC.read(pa.BufferReader(data), ReadRequest(fields, batch_rows, path="the-file")))
    return pa.Table.from_batches(batches, arrow_schema(fields))


def test_padding_of_char_is_removed_at_any_depth():
    sink = io.BytesIO()
    schema = "struct<c0:char(5),c1:array<char(3)>,c2:struct<a:char(4)>,c3:map<char(2),int>,c4:string>"
    with pyorc.Writer(sink, schema) as writer:
        writer.write(("ab", ["x", None], ("y",), {"k": 1}, "z  "))
        writer.write((None, None, None, None, None))
    fields = fields_of(["CHAR(5)", "ARRAY<CHAR(3)>", "ROW<a CHAR(4)>", "MAP<CHAR(2),INT>", "STRING"])
    assert read(sink.getvalue(), fields).to_pylist() == [
        {"c0": "ab", "c1": ["x", None], "c2": {"a": "y"}, "c3": [("k", 1)], "c4": "z  "},
        dict.fromkeys(["c0", "c1", "c2", "c3", "c4"]),
    ]


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
@pytest.mark.parametrize("types", [["TIMESTAMP(3)"], ["TIMESTAMP(6)", "INT"], ["STRING", "TIMESTAMP_LTZ(3)"]])
def test_years_beyond_nanoseconds(types, batch_size):
    fields = fields_of(types)
    columns = {"INT": range(len(YEARS)), "STRING": [f"row {i}" for i in range(len(YEARS))]}
    table = table_of(fields, *(columns.get(t, YEARS) for t in types))
    assert read(encode(fields, table), fields, batch_size).equals(table)


def test_statistics_of_years_beyond_nanoseconds():
    """Readers with an older pyarrow, which wraps these values around, skip them by these statistics."""
    fields = fields_of(["TIMESTAMP(3)", "ROW<a TIMESTAMP_LTZ(6), b INT>", "TIMESTAMP(9)", "INT"])
    usual, far = [USUAL, None], [None, dt.datetime(1500, 1, 1)]

    def beyond(c0, a, requested):
        table = table_of(fields, c0, [{"a": a[0], "b": 1}, {"a": a[1], "b": 2}], usual, [1, 2])
        return beyond_nanoseconds(pa.BufferReader(encode(fields, table)), requested)

    assert not beyond(usual, usual, fields)
    assert not beyond([None, None], usual, fields)
    assert beyond(far, usual, fields)
    assert not beyond(far, usual, fields[1:])
    assert beyond(usual, far, fields)
    assert beyond(usual, far, fields[1:2])
    assert not beyond(usual, far, [fields[0], *fields[2:]])


@pytest.mark.parametrize("moments", [YEARS, [USUAL, None]])
def test_rows_are_equal_if_statistics_choose_reader(moments, monkeypatch):
    fields = fields_of(["TIMESTAMP(3)", "INT"])
    table = table_of(fields, moments, range(len(moments)))
    data = encode(fields, table)
    monkeypatch.setattr(orc, "_WRAPS_TIMESTAMPS", True)
    assert read(data, fields, 2).equals(table)


def test_years_beyond_nanoseconds_in_several_stripes():
    fields = fields_of(["TIMESTAMP(3)", "STRING"])
    rows = 30_000
    moments = [dt.datetime(9999, 1, 1) if i > 25_000 else USUAL + dt.timedelta(hours=i) for i in range(rows)]
    table = table_of(fields, moments, [str(i * 7919 % 100_003) for i in range(rows)])
    data = encode(fields, *(table.slice(i, 5000) for i in range(0, rows, 5000)), **{"file.block-size": "1kb"})
    assert paorc.ORCFile(pa.BufferReader(data)).nstripes > 1
    assert read(data, fields, 3000).equals(table)


@pytest.mark.parametrize("type_text", ["TIMESTAMP(9)", "ROW<a TIMESTAMP(3)>"])
def test_years_that_column_cannot_hold_are_refused(type_text):
    sink = io.BytesIO()
    nested = type_text.startswith("ROW")
    with pyorc.Writer(sink, "struct<c0:struct<a:timestamp>>" if nested else "struct<c0:timestamp>") as writer:
        moment = dt.datetime(3000, 1, 1, tzinfo=UTC)
        writer.write(((moment,),) if nested else (moment,))
    with pytest.raises(UnsupportedError, match=r"the-file.*1677 to 2262"):
        read(sink.getvalue(), fields_of([type_text]))


EARLY = dt.datetime(1969, 12, 31, 23, 59, 58, 1)


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("TIMESTAMP(6)", EARLY),
        ("ARRAY<TIMESTAMP(6)>", [EARLY]),
        ("ROW<a TIMESTAMP(9)>", {"a": EARLY}),
        ("MAP<INT,TIMESTAMP(6)>", [(1, EARLY)]),
    ],
)
def test_parts_of_milliseconds_before_1970_are_refused(type_text, value):
    fields = fields_of([type_text])
    with pytest.raises(UnsupportedError, match="'c0' holds a timestamp before 1970"):
        encode(fields, table_of(fields, [None, value]))


def test_whole_milliseconds_before_1970_are_stored():
    fields = fields_of(["TIMESTAMP(6)", "TIMESTAMP(3)"])
    moments = [EARLY.replace(microsecond=999_000), dt.datetime(1901, 2, 3, 4, 5, 6, 7000)]
    table = table_of(fields, moments, moments)
    data = encode(fields, table)
    assert read(data, fields).equals(table)
    rows = list(pyorc.Reader(io.BytesIO(data.to_pybytes())))
    assert [row[0].replace(tzinfo=None) for row in rows] == moments


def test_timestamps_with_and_without_time_zone_have_different_types():
    fields = fields_of(["TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIME(3)", "MULTISET<STRING>", "CHAR(3)"])
    data = encode(fields, arrow_schema(fields).empty_table())
    stored = str(pyorc.Reader(io.BytesIO(data.to_pybytes())).schema)
    assert stored == "struct<c0:timestamp,c1:timestamp with local time zone,c2:int,c3:map<string,int>,c4:string>"


def test_slices_of_rows_with_nulls():
    fields = fields_of(["ROW<x INT, y ROW<z INT>>"])
    rows = [None if i % 3 == 0 else {"x": i, "y": None if i % 4 == 1 else {"z": i}} for i in range(20)]
    table = table_of(fields, rows)
    data = encode(fields, table.slice(0, 4), table.slice(4, 9), table.slice(13))
    assert read(data, fields).equals(table)


@pytest.mark.parametrize("type_text", ["VARIANT", "GEOMETRY", "VECTOR<FLOAT, 2>", "ARRAY<VARIANT>"])
def test_types_that_orc_lacks_are_refused(type_text):
    with pytest.raises(UnsupportedError, match=r"'c0'.*ORC"):
        encode(fields_of([type_text]))


DOTTED = {
    "a.b": [10, 20, None],
    "a": [{"b": 100, "c.d": 1, "e`f": {"g.h": 5}}, None, {"b": None, "c.d": 2, "e`f": {"g.h": 6}}],
    "a.c": [{"d": 7}, {"d": 8}, None],
    "q`r": [3, 4, 5],
    "l": [[{"m.n": 1}], [], None],
    "l.element": [9, 8, 7],
}


def dotted():
    """A file whose columns are also paths of nested fields, and its columns."""
    table = pa.table(DOTTED)
    sink = pa.BufferOutputStream()
    with paorc.ORCWriter(sink) as writer:
        writer.write(table)
    types = ["BIGINT", "ROW<b BIGINT, `c.d` BIGINT, `e``f` ROW<`g.h` BIGINT>>", "ROW<d BIGINT>", "BIGINT"]
    types += ["ARRAY<ROW<`m.n` BIGINT>>", "BIGINT"]
    fields = [DataField(i, name, f.type) for i, (name, f) in enumerate(zip(DOTTED, fields_of(types), strict=True))]
    return sink.getvalue(), {f.name: f for f in fields}


@pytest.mark.parametrize("names", [[name] for name in DOTTED] + [["a.b", "a"], ["a.c", "a.b"], [*DOTTED]])
@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_columns_whose_names_are_paths_of_nested_fields(names, batch_rows):
    data, fields = dotted()
    actual = read(data, [fields[name] for name in names], batch_rows)
    assert actual.to_pydict() == {name: DOTTED[name] for name in names}


@pytest.mark.parametrize("wraps", sorted({orc._WRAPS_TIMESTAMPS, True}))
def test_years_beyond_nanoseconds_in_column_with_dot(monkeypatch, wraps):
    monkeypatch.setattr(orc, "_WRAPS_TIMESTAMPS", wraps)
    moments = [dt.datetime(1, 1, 1), None, USUAL]
    sink = io.BytesIO()
    with pyorc.Writer(sink, pyorc.Struct(**{"t.x": pyorc.Timestamp(), "t": pyorc.Struct(x=pyorc.Int())})) as writer:
        for moment in moments:
            writer.write((None if moment is None else moment.replace(tzinfo=UTC), (5,)))
    (kind,) = fields_of(["TIMESTAMP(6)"])
    assert read(sink.getvalue(), [DataField(0, "t.x", kind.type)]).to_pydict() == {"t.x": moments}


@pytest.mark.parametrize("precision", [39, 82, 127])
def test_decimals_of_too_many_digits_in_a_footer_are_damage(precision):
    fields = fields_of(["DECIMAL(10, 2)"])
    sink = pa.BufferOutputStream()
    paorc.write_table(pa.table({fields[0].name: pa.array([1, None], pa.decimal128(10, 2))}), sink)
    data = sink.getvalue().to_pybytes()
    stored = b"\x08\x0e \x00(\x0a0\x02"  # the type in the footer: its kind, 10 digits, 2 of them after the point
    assert data.count(stored) == 1
    hostile = data.replace(stored, stored.replace(b"(\x0a", bytes([0x28, precision])))
    with pytest.raises(CorruptedError, match=f"a decimal of {precision} digits, more than 38"):
        read(hostile, fields)
    with pytest.raises(CorruptedError, match=f"a decimal of {precision} digits"):
        ORC.row_count(io.BytesIO(hostile), "f")
