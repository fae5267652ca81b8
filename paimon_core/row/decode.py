"""Serialised BinaryRows to Arrow columns, many rows at once: numpy gathers of slots and of what they point at."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.row.columns import (
    COMPACT_DECIMAL,
    HALF,
    TICKS,
    is_bytes,
    is_compact_timestamp,
    is_text,
    runs,
    unsupported,
)
from paimon_core.row.encode import header_words

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
class _BytePositions:
    """Serialised rows end to end. A row is four bytes and whole words, so everything lies on a multiple of four."""

    halves: np.ndarray
    """All bytes as uint32."""
    starts: np.ndarray
    """First half word of each row, its arity prefix left out."""
    sizes: np.ndarray
    """Bytes of each row, the prefix left out."""
    head: int
    """Half words in front of the slots."""


def locate(rows: Sequence[bytes], arity: int) -> _BytePositions:
    """Put rows end to end. Raises CorruptedError when one is no row of ``arity`` fields."""
    sizes = np.fromiter(map(len, rows), np.int64, len(rows)) - 4
    head = 2 * header_words(arity)
    wrong = (sizes & 7 != 0) | (sizes < 4 * head + 8 * arity)
    if not wrong.any():
        halves = np.frombuffer(b"".join(rows), HALF)
        starts = np.cumsum(sizes // 4 + 1) - sizes // 4
        wrong = halves.take(starts - 1) != np.array(arity, ">u4").view(HALF)
        if not wrong.any():
            return _BytePositions(halves, starts, sizes, head)
    row = rows[int(np.flatnonzero(wrong)[0])]
    raise CorruptedError(f"{len(row)} bytes starting {row[:8].hex()} are no row of {arity} fields")


def decode_column(places: _BytePositions, field: int, t: pa.DataType) -> pa.Array:
    """Return the values of one field of every row, as an array of type ``t``."""
    word, bit = divmod(field + 8, 32)
    null = (places.halves.take(places.starts + word) >> HALF.type(bit) & HALF.type(1)).astype(bool)
    at = places.starts + places.head + 2 * field
    low, high = places.halves.take(at), places.halves.take(at + 1)
    if is_bytes(t):
        return _bytes(places, at, low, high, null, t)
    if pt.is_decimal128(t):
        return _decimal(places, low, high, null, t)
    if pt.is_boolean(t):
        return pa.array(low.astype("u1") != 0, t, mask=null)
    if t.id in _NUMBERS:
        dtype = _NUMBERS[t.id]
        values: np.ndarray = low.astype(f"<u{dtype.itemsize}").view(dtype)
    elif pt.is_time(t):
        values = low.view("<i4").astype(np.int64) * TICKS[t.unit] // 1_000
        values = values.astype(f"<i{t.bit_width // 8}")
    elif pt.is_timestamp(t) and not is_compact_timestamp(t):
        values = _timestamp(places, low, high, null, t)
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


def _inside(places: _BytePositions, offset: np.ndarray, length: np.ndarray | int, used: np.ndarray) -> None:
    if (used & ((offset + length > places.sizes) | (offset < 4 * places.head))).any():
        raise CorruptedError("a row points at bytes outside itself")


def _timestamp(
    places: _BytePositions, low: np.ndarray, high: np.ndarray, null: np.ndarray, t: pa.DataType
) -> np.ndarray:
    """Milliseconds in the variable part, the nanoseconds of the last one in the slot."""
    offset = high.astype(np.int64)
    _inside(places, offset, 8, ~null)
    at = np.where(null, 0, places.starts + (offset >> 2))
    millis: np.ndarray = np.where(null, 0, _words(places.halves.take(at), places.halves.take(at + 1 - null)))
    if t.unit == "us":
        micros: np.ndarray = millis * 1_000 + low // HALF.type(1_000)
        return micros
    nanos: np.ndarray = millis * 1_000_000 + low
    if (nanos // 1_000_000 != millis).any():  # it wrapped round
        raise UnsupportedError("a timestamp before 1677 or after 2262 does not fit nanoseconds of 64 bits")
    return nanos


def _decimal(places: _BytePositions, low: np.ndarray, high: np.ndarray, null: np.ndarray, t: pa.DataType) -> pa.Array:
    if t.precision <= COMPACT_DECIMAL:
        words = _words(low, high)
        return _array(t, null, np.stack([words, words >> 63], 1))
    offset, length = high.astype(np.int64), np.where(null, 0, low.view("<i4")).astype(np.int64)
    _inside(places, offset, length, ~null)
    if ((length < 1) & ~null | (length > 16)).any():
        raise CorruptedError(f"a value of {t} that is not 1 to 16 bytes long")
    data, back = places.halves.view("u1"), np.arange(16)
    first = 4 * places.starts + np.where(null, 0, offset)
    sign = -(data.take(first) >> 7)  # 0, or 255 where negative
    little = np.where(
        back < length[:, None], data.take((first + length - 1)[:, None] - back, mode="clip"), sign[:, None]
    )
    return _array(t, null, little)


def _bytes(
    places: _BytePositions, at: np.ndarray, low: np.ndarray, high: np.ndarray, null: np.ndarray, t: pa.DataType
) -> pa.Array:
    """Values of up to seven bytes lie in the slot (its highest bit says so), others at an offset."""
    inline = high >> HALF.type(31) != 0
    length = np.where(null, 0, np.where(inline, high >> HALF.type(24) & HALF.type(0x7F), low)).astype(np.int64)
    offset = np.where(inline, 4 * (at - places.starts), high)
    _inside(places, offset, length, ~null)
    ends = np.cumsum(length)
    if ends.size and ends[-1] >= 1 << 31:
        raise UnsupportedError(f"{ends[-1]} bytes of keys or statistics in one column: read fewer rows at once")
    data = places.halves.view("u1").take(runs(4 * places.starts + offset, length))
    array = _array(pa.string() if is_text(t) else pa.binary(), null, np.append(0, ends).astype("<i4"), data)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptedError(f"a row holds text that is not UTF-8: {error}") from error
    return array if array.type == t else array.cast(t)
