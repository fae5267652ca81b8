"""Conversion between values and serialised BinaryRows (format 5.5), for one row or for many rows at once.

Values are bool, int, float, str, bytes and Decimal. Dates are days, times are milliseconds of the day, and timestamps
are numbers in the unit of their Arrow type. `None`: null.
"""

import decimal
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types as pt

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.row.cell import FORMATS, cell
from paimon_core.row.decode import decode_column, locate
from paimon_core.row.encode import header_words
from paimon_core.row.stored_values import (
    COMPACT_DECIMAL,
    MILLIS_OF_DAY,
    TICKS,
    is_bytes,
    is_compact_timestamp,
    is_text,
    unsupported,
)

EMPTY_ROW = bytes(12)
"""The row without fields: the partition of an unpartitioned table, or absent statistics."""


def serialize(values: Sequence[Any], schema: pa.Schema) -> bytes:
    """Return one row with its arity prefix.

    Raises InvalidInputError if a value does not have its column's type, or if the numbers of values and columns differ.
    """
    if len(values) != len(schema):
        raise InvalidInputError(
            f"got {len(values)} values for a row of {len(schema)} columns, {', '.join(schema.names)}"
        )
    if not values:
        return EMPTY_ROW
    arity = len(values)
    first = 8 * header_words(arity)
    nulls, at = 0, first + 8 * arity
    slots, parts = [], []
    for i, (value, field) in enumerate(zip(values, schema, strict=True)):
        slot, part = cell(value, field)
        nulls |= (value is None) << i + 8
        slots.append(slot[:4] + struct.pack("<I", at) if part else slot)
        parts.append(part)
        at += len(part)
    return b"".join([struct.pack(">i", arity), nulls.to_bytes(first, "little"), *slots, *parts])


def deserialize(data: bytes, schema: pa.Schema) -> tuple[Any, ...]:
    """Return the values of one serialised row. Raises CorruptedError unless the row has ``len(schema)`` fields."""
    arity, first = len(schema), 8 * header_words(len(schema))
    row = data[4:]
    if len(row) < first + 8 * arity or int.from_bytes(data[:4], "big") != arity:
        raise CorruptedError(f"{len(data)} bytes starting {data[:8].hex()} are not a row of {arity} fields")
    return tuple(
        None if row[(i + 8) // 8] >> i % 8 & 1 else _value(row, first + 8 * i, t) for i, t in enumerate(schema.types)
    )


def _value(row: bytes, at: int, t: pa.DataType) -> Any:
    slot = row[at : at + 8]
    if pt.is_dictionary(t):
        return _value(row, at, t.value_type)
    if t.id in FORMATS:
        return struct.unpack_from(FORMATS[t.id], slot)[0]
    number, length, offset = struct.unpack("<q", slot)[0], *struct.unpack("<iI", slot)
    if is_bytes(t):
        data = slot[: slot[7] & 0x7F] if slot[7] & 0x80 else _part(row, offset, length)
        return data.decode() if is_text(t) else data
    if pt.is_decimal128(t):
        compact = t.precision <= COMPACT_DECIMAL
        unscaled = number if compact else int.from_bytes(_part(row, offset, length), "big", signed=True)
        if abs(unscaled) >= 10**t.precision:
            raise CorruptedError(f"{unscaled} has more digits than {t}")
        return decimal.Decimal(f"{unscaled}E{-t.scale}")
    if pt.is_time(t):
        if not 0 <= length < MILLIS_OF_DAY:
            raise CorruptedError(f"{length} ms is not a time of day")
        return length * TICKS[t.unit] // 1_000
    if not pt.is_timestamp(t):
        raise unsupported(t)
    if is_compact_timestamp(t):
        return number * TICKS[t.unit] // 1_000
    nanos = struct.unpack("<q", _part(row, offset, 8))[0] * 1_000_000 + length
    return nanos * TICKS[t.unit] // 1_000_000_000


def _part(row: bytes, offset: int, length: int) -> bytes:
    if length < 0 or offset + length > len(row):
        raise CorruptedError(f"a field is at bytes {offset} to {offset + length} of a row with only {len(row)} bytes")
    return row[offset : offset + length]


def decode_rows(rows: Sequence[bytes], schema: pa.Schema, columns: Sequence[int] | None = None) -> pa.RecordBatch:
    """Decode serialised rows to Arrow columns.

    Args:
        rows: serialised rows.
        schema: the layout of the rows.
        columns: positions in ``schema`` of the columns to return, in order; `None`: all columns.

    Returns nullable columns, because any field of a row may be null. Raises CorruptedError for bytes that are not a row
    of ``len(schema)`` fields. Cost: a few numpy passes per column, without a Python loop over rows.
    """
    picked = range(len(schema)) if columns is None else columns
    fields = [schema.field(i).with_nullable(True) for i in picked]
    positions = locate(rows, len(schema))
    if not fields:  # a batch without columns would lose the number of rows
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    arrays = [decode_column(positions, i, field.type) for i, field in zip(picked, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def internal_values(rows: Sequence[bytes], schema: pa.Schema) -> list[list[Any]]:
    """Return the values of each column of many serialised rows, as `deserialize` returns them for one row.

    Raises as `decode_rows`.
    """
    return [_internal(column).to_pylist() for column in decode_rows(rows, schema).columns]


def _internal(column: pa.Array) -> pa.Array:
    """Return days, times and timestamps as the numbers that Arrow stores."""
    kind = column.type
    if pt.is_date32(kind) or pt.is_time32(kind):
        return column.view(pa.int32())
    return column.view(pa.int64()) if pt.is_time64(kind) or pt.is_timestamp(kind) else column
