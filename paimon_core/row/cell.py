"""The encoding of a single value in a row, for metadata: an Arrow column for each value would cost too much.

The bytes are the same as `encode` returns for a column with one value.
"""

import decimal
import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types as pt

from paimon_core.errors import InvalidInputError
from paimon_core.row.stored_values import (
    COMPACT_DECIMAL,
    TICKS,
    is_bytes,
    is_compact_timestamp,
    is_text,
    plain,
    unsupported,
)

Cell: TypeAlias = tuple[bytes, bytes]
"""The slot (eight bytes, without the offset of the variable part), and the variable part: whole words, or empty."""

FORMATS = {
    pa.bool_().id: "<?", pa.int8().id: "<b", pa.int16().id: "<h", pa.int32().id: "<i", pa.int64().id: "<q",
    pa.date32().id: "<i", pa.float32().id: "<f", pa.float64().id: "<d",
}  # fmt: skip
"""The struct format of numbers at the start of their slot, by type id."""

_NO_PART = b""
_EMPTY = bytes(8)
_EXACT = decimal.Context(prec=100)
_FLOATS = frozenset({pa.float32().id, pa.float64().id})


def cell(value: Any, field: pa.Field) -> Cell:
    """Return the value as a cell of the field's type. A null has a variable part if its type reserves one.

    Raises InvalidInputError for a value of another type, UnsupportedError for types that cannot be in a row.
    """
    t = field.type.value_type if pt.is_dictionary(field.type) else field.type
    python_type, encode = _encoder(t)
    if value is None:
        return _EMPTY, bytes(_reserved_for_null(t))
    if type(value) is python_type:
        try:
            return encode(value, t)
        except (struct.error, ValueError, ArithmeticError):
            pass  # Arrow then converts the value, or raises an error with the reason
    return encode(_as_stored(value, field), t)


def _as_stored(value: Any, field: pa.Field) -> Any:
    """Convert a value of another Python type with Arrow, such as a date, a numpy number or an integer for a double.

    Raises InvalidInputError for a value that does not fit the field.
    """
    try:
        scalar = plain(pa.array([value], field.type))[0]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{value!r} is not a value of column {field.name} ({field.type}): {error}") from error
    if not scalar.is_valid:
        raise InvalidInputError(f"{value!r} is not a value of column {field.name} ({field.type})")
    return scalar.value if pt.is_temporal(scalar.type) else scalar.as_py()


def _encoder(t: pa.DataType) -> tuple[type | None, Callable[[Any, pa.DataType], Cell]]:
    """Return the Python type that needs no conversion to ``t``, and the function that encodes its values."""
    if t.id in FORMATS:
        return (float if t.id in _FLOATS else bool if pt.is_boolean(t) else int), _number
    if is_bytes(t):
        return (None if pt.is_fixed_size_binary(t) else str if is_text(t) else bytes), _bytes
    if pt.is_decimal128(t):
        return decimal.Decimal, _decimal
    if pt.is_time(t):
        return int, _time
    if pt.is_timestamp(t):
        return int, _timestamp
    raise unsupported(t)


def _reserved_for_null(t: pa.DataType) -> int:
    if pt.is_decimal128(t):
        return 0 if t.precision <= COMPACT_DECIMAL else 16
    return 8 if pt.is_timestamp(t) and not is_compact_timestamp(t) else 0


def _number(value: Any, t: pa.DataType) -> Cell:
    return struct.pack(FORMATS[t.id], value).ljust(8, b"\0"), _NO_PART


def _bytes(value: str | bytes, t: pa.DataType) -> Cell:
    data = value.encode() if isinstance(value, str) else value
    if len(data) <= 7:
        return data.ljust(7, b"\0") + bytes([0x80 | len(data)]), _NO_PART
    return struct.pack("<q", len(data)), data + bytes(-len(data) % 8)


def _decimal(value: decimal.Decimal, t: pa.DataType) -> Cell:
    scaled = value.scaleb(t.scale, _EXACT)
    unscaled = int(scaled)
    if scaled != unscaled or abs(unscaled) >= 10**t.precision:
        raise ValueError
    if t.precision <= COMPACT_DECIMAL:
        return struct.pack("<q", unscaled), _NO_PART
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return struct.pack("<q", length), unscaled.to_bytes(length, "big", signed=True).ljust(16, b"\0")


def _time(value: int, t: pa.DataType) -> Cell:
    return struct.pack("<i", value * 1_000 // TICKS[t.unit]).ljust(8, b"\0"), _NO_PART


def _timestamp(value: int, t: pa.DataType) -> Cell:
    if is_compact_timestamp(t):
        return struct.pack("<q", value * 1_000 // TICKS[t.unit]), _NO_PART
    per = TICKS[t.unit] // 1_000
    millis, rest = divmod(value, per)
    struct.pack("<q", value)  # raises for a value beyond 64 bits
    return struct.pack("<q", rest * (1_000_000 // per)), struct.pack("<q", millis)
