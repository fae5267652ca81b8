"""Avro data files: what others write, and the parts Avro does not have."""

import datetime as dt
import io
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format import decimal_bytes
from paimon_core.format.avro_rows import AvroFormat
from paimon_core.format.file_format import ReadRequest
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from tests.support.samples import fields_of

AVRO = AvroFormat()


def foreign(avro_type, rows, union=False):
    record = {"type": "record", "name": "r", "fields": [{"name": "c0", "type": avro_type}]}
    sink = io.BytesIO()
    fastavro.writer(sink, ["null", record] if union else record, [{"c0": row} for row in rows])
    return sink.getvalue()


def read(data, type_text, batch_rows=100):
    batches = list(AVRO.read(pa.BufferReader(data), ReadRequest(fields_of([type_text]), batch_rows, path="the-file")))
    return pa.Table.from_batches(batches)["c0"].to_pylist()


def logical(base, name, **more):
    return {"type": base, "logicalType": name, **more}


MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 123000)
UTC = dt.timezone.utc


@pytest.mark.parametrize("union", [True, False])
@pytest.mark.parametrize(
    ("avro_type", "rows", "type_text", "expected"),
    [
        (logical("long", "timestamp-millis"), [MOMENT.replace(tzinfo=UTC)], "TIMESTAMP(6)", [MOMENT]),
        (logical("long", "local-timestamp-micros"), [MOMENT], "TIMESTAMP(3)", [MOMENT]),
        (
            logical("long", "timestamp-micros"),
            [MOMENT.replace(tzinfo=UTC)],
            "TIMESTAMP_LTZ(6)",
            [MOMENT.replace(tzinfo=UTC)],
        ),
        (logical("bytes", "decimal", precision=5, scale=2), [Decimal("-1.25")], "DECIMAL(5,2)", [Decimal("-1.25")]),
        (["null", logical("int", "date")], [None, dt.date(1969, 1, 1)], "DATE", [None, dt.date(1969, 1, 1)]),
        (logical("int", "time-millis"), [dt.time(1, 2, 3, 4000)], "TIME(3)", [dt.time(1, 2, 3, 4000)]),
        ("int", [-5], "TINYINT", [-5]),
        ("int", [-5], "BIGINT", [-5]),
        (
            {"type": "map", "values": ["null", "long"]},
            [{"a": 1, "b": None}],
            "MAP<STRING,BIGINT>",
            [[("a", 1), ("b", None)]],
        ),
    ],
)
def test_files_of_other_engines_are_read(avro_type, rows, type_text, expected, union):
    assert read(foreign(avro_type, rows, union), type_text) == expected


def test_list_of_pairs_is_read_as_map():
    pair = {
        "type": "record",
        "name": "p",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}],
    }
    rows = [[{"key": 1, "value": "a"}], [], [{"key": 2, "value": None}, {"key": 3, "value": "b"}]]
    data = foreign({"type": "array", "items": pair, "logicalType": "map"}, rows)
    assert read(data, "MAP<INT,STRING>", 2) == [[(1, "a")], [], [(2, None), (3, "b")]]


def written_schema(types):
    sink = io.BytesIO()
    fields = fields_of(types)
    AVRO.open_writer(sink, fields, Options({}), "zstd").write(arrow_schema(fields).empty_table())
    return fastavro.reader(io.BytesIO(sink.getvalue())).writer_schema


def test_written_schema_is_one_that_other_engines_expect():
    types = ["TIMESTAMP(3)", "TIMESTAMP_LTZ(6) NOT NULL", "DECIMAL(9,2)", "MAP<STRING,INT>", "ROW<a INT>"]
    schema = written_schema(types)
    assert schema["name"] == "org.apache.paimon.avro.generated.record"
    types = [field["type"] for field in schema["fields"]]
    assert types[0] == ["null", logical("long", "timestamp-millis")]
    assert types[1] == logical("long", "local-timestamp-micros")
    assert types[2] == ["null", logical("bytes", "decimal", precision=9, scale=2)]
    assert types[3] == ["null", {"type": "map", "values": ["null", "int"]}]
    assert types[4][1]["name"] == "org.apache.paimon.avro.generated.record_c4"
    assert ["default" in field for field in schema["fields"]] == [True, False, True, True, True]


def test_records_with_equal_names_are_renamed():
    fields = fields_of(["ROW<b ROW<x INT>>", "INT"])
    clashing = [DataField(0, "a", fields[0].type), DataField(9, "a_b", fields[0].type)]
    table = pa.Table.from_arrays([pa.array([{"b": {"x": 1}}], f.type) for f in arrow_schema(clashing)], ["a", "a_b"])
    sink = io.BytesIO()
    AVRO.open_writer(sink, clashing, Options({}), "zstd").write(table)
    (batch,) = AVRO.read(io.BytesIO(sink.getvalue()), ReadRequest(clashing, 10))
    assert batch.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("type_text", ["TIMESTAMP(9)", "TIME(6)", "VARIANT", "ROW<a TIMESTAMP(7)>", "GEOMETRY"])
def test_types_that_avro_lacks_are_refused(type_text):
    with pytest.raises(UnsupportedError, match="Avro"):
        written_schema([type_text])


def test_column_names_that_avro_forbids_are_refused():
    with pytest.raises(UnsupportedError, match="'a-b'"):
        AVRO.open_writer(io.BytesIO(), [DataField(0, "a-b", fields_of(["INT"])[0].type)], Options({}), "zstd")


@pytest.mark.parametrize("avro_type", [["int", "string"], ["null", "int", "string"]])
def test_unions_that_no_column_has_are_refused(avro_type):
    with pytest.raises(CorruptedError, match="the-file"):
        read(foreign(avro_type, [1]), "INT")


def test_container_without_records_is_refused():
    sink = io.BytesIO()
    fastavro.writer(sink, "long", [1])
    with pytest.raises(CorruptedError, match="not a file of rows"):
        read(sink.getvalue(), "BIGINT")


edges = [0, -1, 127, 128, -128, -129, 255, 256, 2**63, -(2**63)]
unscaled = st.integers(-(10**38) + 1, 10**38 - 1) | st.sampled_from(edges)


def shortest_bytes(n):
    return n.to_bytes((n + (n < 0)).bit_length() // 8 + 1, "big", signed=True)


@given(st.lists(st.none() | unscaled), st.integers(0, 3))
def test_decimals_as_shortest_bytes(numbers, skip):
    decimals = [None if n is None else Decimal(f"{n}e-2") for n in numbers]
    values = pa.array(decimals, pa.decimal128(38, 2)).slice(skip)
    stored = decimal_bytes.to_bytes(values)
    shortest = [None if n is None else shortest_bytes(n) for n in numbers]
    assert stored.to_pylist() == shortest[skip:]
    assert decimal_bytes.from_bytes(stored, values.type).equals(values)
    padded = pa.array([b and (b"\xff" if b[0] >= 0x80 else b"\0") * (16 - len(b)) + b for b in shortest], pa.binary())
    assert decimal_bytes.from_bytes(padded.slice(skip), values.type).equals(values)


def test_decimals_too_long_are_refused():
    with pytest.raises(ValueError, match="16 bytes"):
        decimal_bytes.from_bytes(pa.array([b"\0" * 17]), pa.decimal128(38, 0))
    with pytest.raises(pa.ArrowInvalid):
        decimal_bytes.from_bytes(pa.array([b"\x7f\xff"]), pa.decimal128(3, 0))


@pytest.mark.parametrize("union", [True, False])
def test_some_columns_of_either_root(union):
    columns = [{"name": n, "type": ["null", "long"]} for n in ("a", "c0", "z")]
    record = {"type": "record", "name": "r", "fields": columns}
    sink = io.BytesIO()
    fastavro.writer(sink, ["null", record] if union else record, [{"a": 1, "c0": i, "z": None} for i in range(5)])
    assert read(sink.getvalue(), "BIGINT") == [0, 1, 2, 3, 4]
    assert read(sink.getvalue(), "BIGINT", 2) == [0, 1, 2, 3, 4]
