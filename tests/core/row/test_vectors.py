"""Rows, hashes and buckets, as recorded from the Java engine."""

import datetime as dt
import json
import pathlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.row.binary_row import decode_rows, deserialize, serialize
from paimon_core.row.bucket import buckets
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

RECORDED = json.loads((pathlib.Path(__file__).parent / "vectors.json").read_text())
COUNTS = RECORDED["counts"]
EPOCH = dt.datetime(1970, 1, 1)
DOCUMENTED = """
INT             1           00000001 0000000000000000 0100000000000000 1465514398
INT             null        00000001 0001000000000000 0000000000000000 -1748325344
BIGINT          -5          00000001 0000000000000000 fbffffffffffffff -716660054
STRING          '1234567'   00000001 0000000000000000 3132333435363787 199144172
STRING          '12345678'  00000001 0000000000000000 0800000010000000 3132333435363738 -391021801
DECIMAL(20,2)   null        00000001 0001000000000000 0000000010000000 0000000000000000 0000000000000000 -1380280760
TIMESTAMP(6)    null        00000001 0001000000000000 0000000010000000 0000000000000000 -340882661
BYTES           0x01        00000001 0000000000000000 0100000000000081 -913794622
"""


def columns_of(types):
    """Return the schema of a recorded case; ``57 x INT`` stands for 57 columns."""
    if " x " in types[0]:
        count, name = types[0].split(" x ")
        types = [name] * int(count)
    return arrow_schema([DataField(i, f"c{i}", parse_type(t)) for i, t in enumerate(types)])


def internal(value, t):
    """Return a recorded value in the form that metadata use."""
    if value is None or isinstance(value, bool | int):
        return value
    if pa.types.is_floating(t):
        return float(value)
    if pa.types.is_decimal(t):
        return Decimal(value)
    if pa.types.is_binary(t):
        return bytes.fromhex(value)
    if pa.types.is_date(t):
        return (dt.date.fromisoformat(value) - EPOCH.date()).days
    if pa.types.is_time(t):
        return int((dt.datetime.combine(EPOCH, dt.time.fromisoformat(value)) - EPOCH) / dt.timedelta(milliseconds=1))
    if pa.types.is_timestamp(t):
        seconds, fraction = value.split(".")
        whole = (dt.datetime.fromisoformat(seconds) - EPOCH) // dt.timedelta(seconds=1)
        digits = {"ms": 3, "us": 6, "ns": 9}[t.unit]
        return whole * 10**digits + int(fraction[:digits])
    return value


def cases():
    result = []
    for case in RECORDED["cases"]:
        schema = columns_of(case["types"])
        values = [[internal(v, t) for v, t in zip(row["values"], schema.types, strict=True)] for row in case["rows"]]
        result.append(pytest.param(schema, values, case["rows"], id=", ".join(case["types"])))
    return result


def batch_of(values, schema):
    return pa.record_batch([pa.array([v[i] for v in values], t) for i, t in enumerate(schema.types)], schema=schema)


@pytest.mark.parametrize(("schema", "values", "recorded"), cases())
def test_rows_hashes_and_buckets_equal_recorded_values(schema, values, recorded):
    batch = batch_of(values, schema)
    rows = encode(batch)
    assert [row.hex() for row in rows.serialized().to_pylist()] == [r["row"] for r in recorded]
    assert hashes(rows).tolist() == [r["hash"] for r in recorded]
    for function in {"default", "mod", "hive"} & set(recorded[0]):
        result = np.stack([buckets(batch, count, function) for count in COUNTS], 1).tolist()
        assert result == [r[function] for r in recorded], function


@pytest.mark.parametrize(("schema", "values", "recorded"), cases())
def test_recorded_rows_decode_to_values(schema, values, recorded):
    data = [bytes.fromhex(r["row"]) for r in recorded]
    batch = decode_rows(data, schema)
    batch.validate(full=True)
    assert batch.schema.types == schema.types
    assert encode(batch).serialized().to_pylist() == data
    assert repr([list(deserialize(row, schema)) for row in data]) == repr(values)
    assert [serialize(row, schema) for row in values] == data


@pytest.mark.parametrize("line", DOCUMENTED.strip().splitlines())
def test_rows_of_format_description(line):
    name, text, *row, hash_ = line.split()
    value = {"null": None, "'": text.strip("'"), "0x": text[2:]}.get(
        text if text == "null" else "0x" if text.startswith("0x") else text[:1], text
    )
    schema = columns_of([name])
    t = schema.types[0]
    value = int(value) if value is not None and pa.types.is_integer(t) else internal(value, t)
    assert serialize([value], schema).hex() == "".join(row)
    assert hashes(encode(batch_of([[value]], schema))).tolist() == [int(hash_)]


def test_statistics_row_has_bytes_of_java():
    schema = columns_of(["INT", "STRING", "STRING", "BIGINT", "DECIMAL(10, 2)", "TIMESTAMP(6)"])
    row = serialize([3, "p=1", None, 30, Decimal("1.03"), 1_700_000_000_123_456], schema)
    assert row.hex() == (
        "00000006" "0004000000000000" "0300000000000000" "703d310000000083" "0000000000000000"
        "1e00000000000000" "6700000000000000" "40f5060038000000" "7b68e5cf8b010000"
    )  # fmt: skip


def test_buckets_of_documentation():
    def of(types, values, count, function):
        return buckets(batch_of([values], columns_of(types)), count, function).tolist()

    assert of(["INT"], [-7], 4, "mod") == [1]
    assert of(["INT"], [13], 4, "mod") == [1]
    assert of(["INT"], [-7], 4, "hive") == [1]
    assert of(["STRING"], ["hello world"], 7, "hive") == [4]
    assert of(["INT", "BIGINT", "STRING"], [5, 1234567890123, "abc"], 10, "hive") == [9]
    assert [of(["INT", "STRING"], [7, "paimon-key"], n, "default") for n in (4, 5, 128)] == [[2], [4], [10]]
