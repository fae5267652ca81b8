"""Decoding of serialised BinaryRows to Arrow columns for many rows at once: numpy gathers slots and variable parts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.row.encode import header_words
from paimon_core.row.stored_values import (
    COMPACT_DECIMAL,
    HALF,
    MILLIS_OF_DAY,
    TICKS,
    is_bytes,
    is_compact_timestamp,
    is_text,
    runs,
    unsupported,
)

_NUMBERS = {
    t.id: np.dtype(f)
    for t, f in [
        (pa.int8(), "<i1"),
        (pa.int16(), "<i2"),
        (pa.int32(), "<i4"),
        (pa.date32(), "<i4"),
        (pa.float32(), "<f4"),
    ]
}


@dataclass(frozen=True, slots=True)
class _RowBytes:
    """Concatenated serialised rows. A row is four bytes and whole words, so all offsets are multiples of four."""

    halves: np.ndarray
    """All bytes as uint32."""
    starts: np.ndarray
    """Index of the first half word of each row, after its arity prefix."""
    sizes: np.ndarray
    """Bytes of each row without the prefix."""
    head: int
    """Half words before the slots."""


def locate(rows: Sequence[bytes], arity: int) -> _RowBytes:
    """Concatenate rows. Raises CorruptedError for bytes that are not a row of ``arity`` fields."""
    sizes = np.fromiter(map(len, rows), np.int64, len(rows)) - 4
    head = 2 * header_words(arity)
    wrong = (sizes & 7 != 0) | (sizes < 4 * head + 8 * arity)
    if not wrong.any():
        halves = np.frombuffer(b"".join(rows), HALF)
        starts = np.cumsum(sizes // 4 + 1) - sizes // 4
        wrong = halves.take(starts - 1) != np.array(arity, ">u4").view(HALF)
        if not wrong.any():
            return _RowBytes(halves, starts, sizes, head)
    row = rows[int(np.flatnonzero(wrong)[0])]
    raise CorruptedError(f"{len(row)} bytes starting {row[:8].hex()} are not a row of {arity} fields")


def decode_column(positions: _RowBytes, field: int, t: pa.DataType) -> pa.Array:
    """Return the values of one field of every row, as an array of type ``t``."""
    word, bit = divmod(field + 8, 32)
    null = (positions.halves.take(positions.starts + word) >> HALF.type(bit) & HALF.type(1)).astype(bool)
    at = positions.starts + positions.head + 2 * field
    low, high = positions.halves.take(at), positions.halves.take(at + 1)
    if is_bytes(t):
        return _bytes(positions, at, low, high, null, t)
    if pt.is_decimal128(t):
        return _decimal(positions, low, high, null, t)
    if pt.is_boolean(t):
        return pa.array(low.astype("u1") != 0, t, mask=null)
    if t.id in _NUMBERS:
        dtype = _NUMBERS[t.id]
        values: np.ndarray = low.astype(f"<u{dtype.itemsize}").view(dtype)
    elif pt.is_time(t):
        values = _time(low, null, t)
    elif pt.is_timestamp(t) and not is_compact_timestamp(t):
        values = _timestamp(positions, low, high, null, t)
    else:
        values = _words(low, high)
        if pt.is_timestamp(t):
            values = values // (1_000 // TICKS[t.unit])
        elif t == pa.float64():
            values = values.view("<f8")
        elif t != pa.int64():
            raise unsupported(t)
    return _array(t, null, values)


def _words(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    words: np.ndarray = (low.astype("<u8") | high.astype("<u8") << np.uint64(32)).view("<i8")
    return words


def _array(t: pa.DataType, null: np.ndarray, *buffers: np.ndarray) -> pa.Array:
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(t, len(null), [validity, *map(pa.py_buffer, map(np.ascontiguousarray, buffers))])


def _inside(positions: _RowBytes, offset: np.ndarray, length: np.ndarray | int, used: np.ndarray) -> None:
    if (used & ((offset + length > positions.sizes) | (offset < 4 * positions.head))).any():
        raise CorruptedError("the offset of a field points outside its row")


def _time(low: np.ndarray, null: np.ndarray, t: pa.DataType) -> np.ndarray:
    if (low[~null] >= MILLIS_OF_DAY).any():  # also negative numbers, because these halves are unsigned
        raise CorruptedError("a time of day is not within a day")
    values: np.ndarray = (low.astype(np.int64) * TICKS[t.unit] // 1_000).astype(f"<i{t.bit_width // 8}")
    return values


def _timestamp(positions: _RowBytes, low: np.ndarray, high: np.ndarray, null: np.ndarray, t: pa.DataType) -> np.ndarray:
    """Decode timestamps with milliseconds in the variable part and the remaining nanoseconds in the slot."""
    offset = high.astype(np.int64)
    _inside(positions, offset, 8, ~null)
    at = np.where(null, 0, positions.starts + (offset >> 2))
    millis: np.ndarray = np.where(null, 0, _words(positions.halves.take(at), positions.halves.take(at + 1 - null)))
    if t.unit == "us":
        micros: np.ndarray = millis * 1_000 + low // HALF.type(1_000)
        return micros
    nanos: np.ndarray = millis * 1_000_000 + low
    if (nanos // 1_000_000 != millis).any():  # the product overflowed
        raise UnsupportedError("a timestamp before 1677 or after 2262 does not fit 64-bit nanoseconds")
    return nanos


def _decimal(positions: _RowBytes, low: np.ndarray, high: np.ndarray, null: np.ndarray, t: pa.DataType) -> pa.Array:
    if t.precision <= COMPACT_DECIMAL:
        words = _words(low, high)
        return _checked(_array(t, null, np.stack([words, words >> 63], 1)))
    offset, length = high.astype(np.int64), np.where(null, 0, low.view("<i4")).astype(np.int64)
    _inside(positions, offset, length, ~null)
    if ((length < 1) & ~null | (length > 16)).any():
        raise CorruptedError(f"a value of type {t} does not have 1 to 16 bytes")
    data, back = positions.halves.view("u1"), np.arange(16)
    first = 4 * positions.starts + np.where(null, 0, offset)
    sign = -(data.take(first) >> 7)  # 255 for a negative value, else 0
    little = np.where(
        back < length[:, None], data.take((first + length - 1)[:, None] - back, mode="clip"), sign[:, None]
    )
    return _checked(_array(t, null, little))


def _checked(decimals: pa.Array) -> pa.Array:
    try:
        decimals.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptedError(f"a row contains a decimal of too many digits: {error}") from error
    return decimals


def _bytes(
    positions: _RowBytes, at: np.ndarray, low: np.ndarray, high: np.ndarray, null: np.ndarray, t: pa.DataType
) -> pa.Array:
    """Decode byte strings: up to seven bytes are in the slot (its highest bit is set), longer strings at an offset."""
    inline = high >> HALF.type(31) != 0
    length = np.where(null, 0, np.where(inline, high >> HALF.type(24) & HALF.type(0x7F), low)).astype(np.int64)
    offset = np.where(inline, 4 * (at - positions.starts), high)
    _inside(positions, offset, length, ~null)
    ends = np.cumsum(length)
    if ends.size and ends[-1] >= 1 << 31:
        raise UnsupportedError(
            f"a column of keys or statistics has {ends[-1]} bytes, more than 2^31 - 1: read fewer rows at once"
        )
    data = positions.halves.view("u1").take(runs(4 * positions.starts + offset, length))
    array = _array(pa.string() if is_text(t) else pa.binary(), null, np.append(0, ends).astype("<i4"), data)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptedError(f"a row contains text that is not UTF-8: {error}") from error
    return array if array.type == t else array.cast(t)
