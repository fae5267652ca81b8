"""One row back to values."""

import decimal

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from paimon_core.row.encode import _TICKS, _is_bytes, encode

EMPTY_ROW = bytes(12)


def serialize(values: tuple, schema: pa.Schema) -> bytes:
    """One tuple as a row with its arity prefix."""
    columns = [pa.array([v], t) for v, t in zip(values, schema.types, strict=True)]
    return encode(pa.record_batch(columns, schema=schema)).serialized()[0].as_py() if columns else bytes(12)


def deserialize(data: bytes, schema: pa.Schema) -> tuple:
    """The inverse of :func:`serialize`."""
    if (arity := int.from_bytes(data[:4], "big")) != len(schema):
        raise ValueError(f"a row of {arity} fields, not {len(schema)}")
    return decode(data[4:], schema)


def decode(row: bytes, schema: pa.Schema) -> tuple:
    """The values of one row (without prefix) as Python objects."""
    first = (len(schema) + 71) // 64 * 8
    return tuple(None if row[(i + 8) // 8] >> i % 8 & 1 else _read(row, row[first + 8 * i:first + 8 * i + 8], t)
                 for i, t in enumerate(schema.types))


def _read(row: bytes, slot: bytes, t: pa.DataType) -> object:
    number, length, offset = (int.from_bytes(b, "little", signed=True) for b in (slot, slot[:4], slot[4:]))
    t = t.value_type if pt.is_dictionary(t) else t
    if _is_bytes(t) or t in (pa.string_view(), pa.binary_view()):
        data = slot[:slot[7] & 0x7F] if slot[7] & 0x80 else row[offset:offset + length]
        return data.decode() if t in (pa.string(), pa.large_string(), pa.string_view()) else data
    if pt.is_decimal128(t):
        unscaled = number if t.precision <= 18 else int.from_bytes(row[offset:offset + length], "big", signed=True)
        return decimal.Decimal(f"{unscaled}E{-t.scale}")
    if pt.is_timestamp(t):
        compact = t.unit in ("s", "ms")
        millis = number if compact else int.from_bytes(row[offset:offset + 8], "little", signed=True)
        value = (millis * 1_000_000 + (0 if compact else length)) * _TICKS[t.unit] // 1_000_000_000
        return value
    if pt.is_time(t):
        return length
    if pt.is_boolean(t):
        return bool(slot[0])
    if pt.is_signed_integer(t) or t in (pa.float32(), pa.float64()):
        return np.frombuffer(slot, f"<{'f' if pt.is_floating(t) else 'i'}{t.bit_width // 8}", 1)[0].item()
    if t == pa.date32():
        return length
    raise TypeError(f"{t} has no BinaryRow form here")


def decode_rows(rows, schema, columns=None):
    picked = list(range(len(schema))) if columns is None else list(columns)
    values = [deserialize(r, schema) for r in rows]
    fields = [schema.field(i).with_nullable(True) for i in picked]
    return pa.RecordBatch.from_arrays([pa.array([v[i] for v in values], schema.field(i).type) for i in picked], schema=pa.schema(fields))
