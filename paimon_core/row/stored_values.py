"""Arrow columns as numpy arrays of stored values: numbers, decimal words, runs of bytes.

This module requires a little-endian machine, and a numpy that returns 0 for a uint64 shifted by 64 or more bits.
"""

import numpy as np
import pyarrow as pa
import xxhash
from pyarrow import types as pt

from paimon_core.errors import UnsupportedError

WORD, HALF = np.dtype("<u8"), np.dtype("<u4")

TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks per second of the Arrow time units."""

MILLIS_OF_DAY = 86_400_000
"""A time of day is stored as fewer milliseconds than these."""

COMPACT_DECIMAL = 18
"""The most digits of a decimal that a row stores as one 64-bit number."""

# by type id, because comparing types is slow
_VIEWS = {pa.string_view().id: pa.large_string(), pa.binary_view().id: pa.large_binary()}
_LARGE = frozenset({pa.large_string().id, pa.large_binary().id})
_TEXT = frozenset({pa.string().id, pa.large_string().id, pa.string_view().id})
_BYTES = _TEXT | _LARGE | {pa.binary().id, pa.binary_view().id, pa.binary(1).id}
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_NUMBERS = frozenset(t.id for t in (*_INTEGERS, pa.float32(), pa.float64(), pa.date32()))


def is_bytes(t: pa.DataType) -> bool:
    """Return True if the format stores a column of this type as runs of bytes."""
    return t.id in _BYTES


def is_text(t: pa.DataType) -> bool:
    """Return True if the format stores a column of this type as UTF-8."""
    return t.id in _TEXT


def is_compact_timestamp(t: pa.DataType) -> bool:
    """Return True if a row stores timestamps of this type as one number of milliseconds."""
    return t.unit in ("s", "ms")


def unsupported(t: pa.DataType) -> UnsupportedError:
    """Return the error for a type that cannot be in a key, a partition or statistics."""
    return UnsupportedError(f"a column of Arrow type {t} cannot be in a key, a partition or statistics")


def plain(array: pa.Array) -> pa.Array:
    """Return the same values without a dictionary and without views."""
    if pt.is_dictionary(array.type):
        return plain(array.dictionary_decode())
    view = _VIEWS.get(array.type.id)
    return array.cast(view) if view else array


def nulls(array: pa.Array) -> np.ndarray:
    """Return a mask of the nulls."""
    mask: np.ndarray = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def runs(first: np.ndarray, size: int | np.ndarray) -> np.ndarray:
    """Return ``first[i], first[i] + 1, ..., first[i] + size[i] - 1`` for every i, concatenated."""
    if isinstance(size, int):
        return first if size == 1 else (first[:, None] + np.arange(size)).ravel()
    ends = np.cumsum(size)
    return np.repeat(first - ends + size, size) + np.arange(size.sum())


def numbers(array: pa.Array) -> np.ndarray:
    """Return stored numbers: times as milliseconds of the day, timestamps in their unit, nulls as 0."""
    t = array.type
    if pt.is_boolean(t):
        return numbers(array.cast(pa.int8()))
    if not (t.id in _NUMBERS or pt.is_time(t) or pt.is_timestamp(t)):
        raise unsupported(t)
    values = _raw(
        array.buffers()[1], f"<{'f' if pt.is_floating(t) else 'i'}{t.bit_width // 8}", array.offset, len(array)
    )
    if pt.is_time(t):
        values = (values * 1_000 if t.unit == "s" else values // (TICKS[t.unit] // 1_000)).astype("<i4")
    return np.where(nulls(array), values.dtype.type(0), values) if array.null_count else values


def decimal_words(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the upper and lower halves of the unscaled values of decimal128; 0 for null."""
    words = _raw(array.buffers()[1], "<u8", 2 * array.offset, 2 * len(array)).reshape(-1, 2)
    if array.null_count:
        words = np.where(nulls(array)[:, None], WORD.type(0), words)
    return words[:, 1].copy(), words[:, 0].copy()


def byte_runs(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the data padded into words, and the first byte and the length of each value; a null has length 0."""
    n, t, buffers = len(array), array.type, array.buffers()
    if isinstance(t, pa.FixedSizeBinaryType):
        bounds = (array.offset + np.arange(n + 1)) * t.byte_width
    else:
        dtype = "<i8" if t.id in _LARGE else "<i4"
        bounds = _raw(buffers[1], dtype, array.offset, n + 1).astype(np.int64) if n else np.zeros(1, np.int64)
    total, length = int(bounds[-1] - bounds[0]), np.diff(bounds)
    words = np.zeros(total // 8 + 2, WORD)
    words.view("u1")[:total] = _raw(buffers[-1], "u1", int(bounds[0]), total)
    return words, bounds[:-1] - bounds[0], np.where(nulls(array), 0, length) if array.null_count else length


def xxh64(values: pa.Array) -> np.ndarray:
    """Return the XXH64 hash with seed 0 of each byte string (uint64).

    REQUIRES: a binary Arrow type without nulls.
    """
    return np.fromiter(map(xxhash.xxh64_intdigest, values.to_pylist()), WORD, len(values))


def _raw(buffer: pa.Buffer, dtype: str, first: int, count: int) -> np.ndarray:
    return np.frombuffer(buffer, dtype, count, first * np.dtype(dtype).itemsize) if count else np.zeros(0, dtype)
