"""Rows of every column type, reproducible from a seed, and their values as the recorded files spell them."""

import datetime as dt
import json
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa

from paimon_core.types.arrow import arrow_schema, assign_ids
from paimon_core.types.datatype import NO_ID, DataField
from paimon_core.types.parse import parse_type

EVERYWHERE = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(18,3)",
    "DECIMAL(38,10)", "CHAR(5)", "VARCHAR(9)", "STRING", "BINARY(3)", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(0)",
    "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "ARRAY<INT>", "MAP<STRING,BIGINT>", "MAP<INT,ARRAY<STRING>>", "MULTISET<STRING>",
    "ROW<x INT, y ROW<z DECIMAL(10,2), w TIMESTAMP(3)>>", "ARRAY<ROW<d DATE, m MAP<STRING, TIMESTAMP(6)>>>",
    "INT NOT NULL",
)  # fmt: skip
NANOS = ("TIMESTAMP(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE", "ROW<q TIMESTAMP(8), r TIMESTAMP(3)>")
VECTORS = ("VECTOR<FLOAT, 3>",)
TYPES = {"parquet": EVERYWHERE + NANOS + VECTORS, "orc": EVERYWHERE + NANOS, "avro": EVERYWHERE + VECTORS}


def fields_of(types):
    """Columns c0, c1, ... of these types."""
    return assign_ids([DataField(NO_ID, f"c{i}", parse_type(t)) for i, t in enumerate(types)], 0)[0]


def rows_of(fields, seed, count, earliest=-(10**15)):
    """A table of random rows, a fifth of the values null; ``earliest`` bounds timestamps, in their own unit."""
    random = np.random.default_rng(seed)
    schema = arrow_schema(fields)
    columns = [pa.array([_value(random, f.type, f.nullable, earliest) for _ in range(count)], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _value(random, t, nullable, earliest):
    def inner(part):
        return _value(random, part.type, part.nullable, earliest)

    kinds = pa.types
    if nullable and random.random() < 0.2:
        return None
    if kinds.is_boolean(t):
        return bool(random.integers(2))
    if kinds.is_integer(t):
        return int(random.integers(-(2 ** (t.bit_width - 1)), 2 ** (t.bit_width - 1) - 1))
    if kinds.is_floating(t):
        return float(np.float32(random.normal()))
    if kinds.is_decimal(t):
        digits = min(t.precision, 18)
        unscaled = int(random.integers(-(9**digits), 9**digits)) * (10**15 if t.precision > 30 else 1)
        return Decimal(unscaled).scaleb(-t.scale)
    if kinds.is_string(t):
        return "é中x"[: int(random.integers(0, 4))]
    if kinds.is_binary(t):
        return bytes(random.integers(0, 255, 3, dtype=np.uint8))
    if kinds.is_date(t):
        return int(random.integers(-600_000, 600_000))
    if kinds.is_time(t):
        return int(random.integers(0, 86_400_000))
    if kinds.is_timestamp(t):
        scale = 1000 if t.unit == "ms" else 1
        return int(random.integers(earliest // scale, 10**15 // scale))
    if kinds.is_struct(t):
        return {f.name: inner(f) for f in t}
    if kinds.is_map(t):
        keys = [f"k{i}" if kinds.is_string(t.key_type) else i for i in range(int(random.integers(0, 3)))]
        return [(k, inner(t.item_field)) for k in keys]
    if kinds.is_fixed_size_list(t):
        return [inner(t.value_field) for _ in range(t.list_size)]
    return [inner(t.value_field) for _ in range(int(random.integers(0, 4)))]


def spelled(array):
    """A column as texts and numbers: how `tests/core/format/recorded` keeps what the Java engine read."""
    t, kinds = array.type, pa.types
    if kinds.is_struct(t):
        columns = [spelled(array.field(i)) for i in range(t.num_fields)]
        whole = [{f.name: c[i] for f, c in zip(t, columns, strict=True)} for i in range(len(array))]
    elif kinds.is_map(t):
        pairs = [list(p) for p in zip(spelled(array.keys), spelled(array.items), strict=True)]
        offsets = array.offsets.to_pylist()
        whole = [sorted(pairs[a:b], key=lambda pair: json.dumps(pair[0])) for a, b in pairwise(offsets)]
    elif kinds.is_list(t):
        values, offsets = spelled(array.values), array.offsets.to_pylist()
        whole = [values[a:b] for a, b in pairwise(offsets)]
    elif kinds.is_timestamp(t):
        return [None if v is None else _instant(v, t) for v in array.view(pa.int64()).to_pylist()]
    else:
        return [None if v is None else _text(v, t) for v in array.to_pylist()]
    return [v if ok else None for v, ok in zip(whole, array.is_valid().to_pylist(), strict=True)]


def _instant(value, t):
    seconds, nanos = divmod(value * {"ms": 10**6, "us": 10**3, "ns": 1}[t.unit], 10**9)
    day = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    return f"{day.isoformat()}.{nanos:09d}{'Z' if t.tz else ''}"


def _text(value, t):
    if pa.types.is_decimal(t):
        return format(value, "f")
    if pa.types.is_binary(t):
        return value.hex()
    if pa.types.is_date(t):
        return value.isoformat()
    return value.isoformat(timespec="milliseconds") if pa.types.is_time(t) else value
