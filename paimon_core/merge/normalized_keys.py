"""Columns as unsigned 64-bit words whose order, most significant word first, is the order of the values.

Sorting and grouping then need one kind of comparison for every type. Numbers, times and booleans are one word, wide
decimals two. Strings and binary are the bytes behind the window's common prefix, eight to a word, zero padded, then
their length (it distinguishes ``a`` from ``a\\0``). A word is computed only for the requested rows, so the tail of a
long string costs nothing if its head decides.

Order of values: numbers by value with -0.0 equal to 0.0 and NaN largest, instants and dates by time, false before
true, strings and binary by unsigned bytes. Callers pass floating keys as integers, which distinguish the zeros.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import UnsupportedError
from paimon_core.types.selection import Positions, take_rows

U64: TypeAlias = npt.NDArray[np.uint64]
KeyWord: TypeAlias = Callable[[Positions | None], U64]
"""A function from rows to their words; `None`: the words of all rows, without a copy."""
Column: TypeAlias = Any
"""A ``pyarrow.Array``, whose type stubs are too narrow to compute with."""

_PACKED_WORDS = 8  # values longer than this past the prefix are also ranked: rare, and it bounds the work per value
_SIGN = np.uint64(1 << 63)


def comparable(column: Column, name: str) -> Column:
    """Return the values in a type whose ``as_py`` compares in Paimon's order: times as integers, strings as bytes.

    Zero-copy. Raises UnsupportedError, naming the column, for a type that has no order.
    """
    kind = column.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return column.view(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return column.view(pa.int64())
    if pa.types.is_string(kind):
        return column.view(pa.binary())
    if (
        pa.types.is_signed_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_binary(kind)
    ):
        return column
    raise UnsupportedError(f"Rows cannot be ordered by column {name!r}: type {kind} has no order in Paimon.")


def words(column: Column, name: str, extremes: Positions | None = None) -> list[KeyWord]:
    """Return the words of a column without nulls; ``extremes``: rows that include its smallest and largest value."""
    column = comparable(column, name)
    kind = column.type
    if pa.types.is_binary(kind):
        return _binary(column, extremes)
    if pa.types.is_decimal128(kind):
        return _decimal(column)
    if pa.types.is_floating(kind):
        return [_stored(_float_bits(column.to_numpy()))]
    if pa.types.is_boolean(kind):
        return [_stored(column.cast(pa.uint8()).to_numpy().astype(np.uint64))]
    return [_stored(_above_least(column.to_numpy().astype(np.int64, copy=False)))]


def nullable_key_words(column: Column, name: str, *, descending: bool = False) -> list[KeyWord]:
    """Return the words of a column. Nulls are smallest in both directions; ``descending`` inverts the values."""
    column = comparable(column, name)
    valid: list[KeyWord] = []
    if column.null_count:
        valid = [_stored(column.is_valid().cast(pa.uint8()).to_numpy().astype(np.uint64))]
        column = filled(column)
    values = words(column, name)
    return valid + [_inverted(word) for word in values] if descending else valid + values


def filled(column: Column) -> Column:
    """Return the column with an arbitrary value, the same for all, in place of nulls."""
    kind = column.type
    return column.fill_null(pa.scalar({pa.binary(): b"", pa.bool_(): False}.get(kind, 0), kind))


def _stored(values: U64) -> KeyWord:
    def word(rows: Positions | None) -> U64:
        return values if rows is None else values[rows]

    return word


def _inverted(inner: KeyWord) -> KeyWord:
    def word(rows: Positions | None) -> U64:
        return ~inner(rows)

    return word


def _above_least(values: npt.NDArray[np.int64]) -> U64:
    """Return distances from the least value: ordered, unsigned (the subtraction may wrap), and few bits wide."""
    distances: U64 = values.view(np.uint64) - np.uint64(int(values.min()) & 0xFFFF_FFFF_FFFF_FFFF)
    return distances


def _float_bits(values: npt.NDArray[Any]) -> U64:
    """Return the bits of the values as doubles, as ordered integers, with one zero and one NaN."""
    wide = values.astype(np.float64) + 0.0
    wide[np.isnan(wide)] = np.nan
    bits: U64 = wide.view(np.uint64)
    ordered: U64 = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return ordered


def _decimal(column: Column) -> list[KeyWord]:
    start = 2 * column.offset
    halves = np.frombuffer(column.buffers()[1], np.int64)[start : start + 2 * len(column)].reshape(-1, 2)
    low, high = halves[:, 0].copy(), halves[:, 1].copy()
    if np.array_equal(high, low >> 63):
        return [_stored(_above_least(low))]
    return [_stored(_above_least(high)), _stored(low.view(np.uint64))]


def _binary(column: Column, extremes: Positions | None) -> list[KeyWord]:
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets)
    shortest, longest = int(lengths.min()), int(lengths.max())
    prefix = _common_prefix(column, extremes)
    data = column.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    if len(content) < 8:
        content = np.concatenate([content, np.zeros(8 - len(content), np.uint8)])
    loaders = [
        _even_bytes(content, int(offsets[0]), len(column), shortest, at)
        if shortest == longest and shortest >= 8
        else _ragged_bytes(content, offsets[:-1], lengths, at)
        for at in range(prefix, min(longest, prefix + 8 * _PACKED_WORDS), 8)
    ]
    if longest > prefix + 8 * _PACKED_WORDS:
        return [*loaders, _ranked(column)]
    return loaders if shortest == longest else [*loaders, _stored(lengths.astype(np.uint64))]


def _common_prefix(column: Column, extremes: Positions | None) -> int:
    """Return the number of leading bytes that all values share, found from the smallest and the largest value."""
    if extremes is None:
        ends: Any = pc.min_max(column)
        least, largest = ends["min"].as_py(), ends["max"].as_py()
    else:
        values = take_rows(column, extremes).to_pylist()
        least, largest = min(values), max(values)
    shared = zip(least, largest, strict=False)
    return next((i for i, (a, b) in enumerate(shared) if a != b), min(len(least), len(largest)))


def _even_bytes(content: npt.NDArray[np.uint8], start: int, count: int, length: int, at: int) -> KeyWord:
    """Return bytes `at:at+8` of values that all have the same length >= 8, by a strided view.

    If fewer bytes are left, the view reads the last eight and shifts them.
    """
    late = max(0, at + 8 - length)
    strided: npt.NDArray[Any] = np.ndarray((count,), ">u8", content.data, offset=start + at - late, strides=(length,))

    def word(rows: Positions | None) -> U64:
        loaded: U64 = (strided if rows is None else strided[rows]).astype(np.uint64)
        return loaded << np.uint64(8 * late) if late else loaded

    return word


def _ragged_bytes(
    content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32], at: int
) -> KeyWord:
    """Return bytes `at:at+8` of values of any length, padded with zeros."""
    end = len(content) - 8
    every: npt.NDArray[Any] = np.ndarray((end + 1,), ">u8", content.data, strides=(1,))

    def word(rows: Positions | None) -> U64:
        begin = (starts if rows is None else starts[rows]).astype(np.int64) + at
        left = (lengths if rows is None else lengths[rows]) - at
        read = np.minimum(begin, end)
        loaded: U64 = every[read].astype(np.uint64)
        late = np.flatnonzero(begin != read)
        loaded[late] <<= np.minimum(8 * (begin[late] - end), 63).astype(np.uint64)
        short = np.flatnonzero(left < 8)
        if len(short):
            shift = (64 - 8 * np.clip(left[short], 1, 8)).astype(np.uint64)
            loaded[short] = np.where(left[short] > 0, loaded[short] >> shift << shift, np.uint64(0))
        return loaded

    return word


def _ranked(column: Column) -> KeyWord:
    """Return the rank of each value among the requested rows."""

    def word(rows: Positions | None) -> U64:
        values = column if rows is None else take_rows(column, rows)
        ranks: U64 = pc.rank(values, tiebreaker="dense").to_numpy()
        return ranks

    return word
