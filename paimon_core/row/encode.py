"""Encoding of Arrow columns as BinaryRows, all rows of a batch at once (format 5.1-5.5).

The Arrow type determines the layout, so a batch must have its table's Arrow types. Decimals of up to 18 digits and
timestamps in (milli)seconds are compact. Other decimals and timestamps have a variable part, even if they are null. The
row kind byte is always 0 (insert).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from paimon_core.row.stored_values import (
    COMPACT_DECIMAL,
    HALF,
    TICKS,
    WORD,
    byte_runs,
    decimal_words,
    is_bytes,
    is_compact_timestamp,
    nulls,
    numbers,
    plain,
    runs,
)
from paimon_core.types.float_order import one_nan

_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], WORD)  # masks: the first n bytes of a word

_Column = tuple[np.ndarray, int | np.ndarray, np.ndarray | None]
"""Slots without offsets; number of words in the variable part, for all rows or per row; these words (`None`: zero)."""


@dataclass(frozen=True, slots=True)
class BinaryRows:
    """Concatenated rows of 8-byte words: row i is ``words[starts[i]:starts[i + 1]]``.

    ``width`` is the number of words of every row; `None`: the lengths of rows differ.
    """

    words: np.ndarray
    starts: np.ndarray
    arity: int
    width: int | None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> bytes:
        return self.words[self.starts[i] : self.starts[i + 1]].tobytes()

    def serialized(self) -> pa.Array:
        """Return every row after its big-endian arity (large_binary), the form of partitions, keys and statistics."""
        data = np.insert(self.words.view(HALF), 2 * self.starts[:-1], np.array(self.arity, ">i4").view(HALF))
        offsets = 8 * self.starts + 4 * np.arange(len(self.starts))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self), buffers)


def header_words(arity: int) -> int:
    """Return the number of words before the slots, which hold row kind and null bits."""
    return (arity + 71) // 64


def encode(batch: pa.RecordBatch) -> BinaryRows:
    """Encode every row of the batch. Cost: one pass per column. Memory: about twice the bytes of the rows.

    Raises UnsupportedError for types that cannot be in a row (nested, unsigned, decimal256).
    """
    n, arity = batch.num_rows, batch.num_columns
    head = header_words(arity)
    header = np.zeros((n, head), WORD)
    # (first word in the row, number of words, their values)
    parts: list[tuple[int | np.ndarray, int | np.ndarray, np.ndarray]] = [(0, head, header)]
    at: int | np.ndarray = head + arity  # end of the row so far: a single number while all rows have the same end
    for i, column in enumerate(map(plain, batch.columns)):
        slots, size, tail = _column(column)
        if column.null_count:
            word, bit = divmod(i + 8, 64)
            header[:, word] |= nulls(column).astype(WORD) << np.uint64(bit)
            slots = np.where(nulls(column), WORD.type(0), slots)
        parts.append((head + i, 1, slots))
        if tail is not None:
            # the upper half of a slot is the offset in bytes
            slots |= np.where(np.asarray(size) > 0, np.asarray(at, WORD) << np.uint64(35), np.uint64(0))
            parts.append((at, size, tail))
            at = at + size
    width = at if isinstance(at, int) else None
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.broadcast_to(at, n), out=starts[1:])
    words = np.empty(starts[-1], WORD)
    for first, size, values in parts:
        if width is not None:
            words.reshape(n, width)[:, first : first + size] = values.reshape(n, size)
        else:
            words[runs(starts[:-1] + first, size)] = values.ravel()
    return BinaryRows(words, starts, arity, width)


def _column(array: pa.Array) -> _Column:
    t = array.type
    if is_bytes(t):
        return _bytes_column(array)
    if pt.is_decimal128(t):
        high, low = decimal_words(array)
        return (low, 0, None) if t.precision <= COMPACT_DECIMAL else _decimal_column(high, low)
    values = numbers(array)
    if pt.is_floating(t):
        values = one_nan(values)
    if not pt.is_timestamp(t):
        return values.view(f"<u{values.itemsize}").astype(WORD), 0, None
    if is_compact_timestamp(t):
        return (values * (1_000 // TICKS[t.unit])).view(WORD), 0, None
    per = TICKS[t.unit] // 1_000
    millis = values // per
    return ((values - millis * per) * (1_000_000 // per)).view(WORD), 1, millis.view(WORD)


def _decimal_column(high: np.ndarray, low: np.ndarray) -> _Column:
    """Encode decimals in two words: the fewest big-endian bytes that hold value and sign, then zeros."""
    fold, one = (high.view("<i8") >> 63).view(WORD), np.uint64(1)  # all ones where negative
    least, most = low ^ fold, high ^ fold
    bits = np.stack([least << one | one, most << one | least >> np.uint64(63)], 1)  # magnitude, one bit up, and a sign
    used = np.packbits(bits.view("u1") != 0, axis=1, bitorder="little").view("<u2").ravel()
    length = np.frexp(used)[1].astype(np.int64)  # number of the highest byte in use
    source = np.zeros(2 * len(low) + 2, WORD)
    source[:-2:2], source[1:-2:2] = high.byteswap(), low.byteswap()
    first = 16 * np.arange(1, len(low) + 1) - length
    tail = np.stack([_load(source, first, length), _load(source, first + 8, length - 8)], 1).ravel()
    return length.view(WORD), 2, tail


def _bytes_column(array: pa.Array) -> _Column:
    """Encode byte strings: up to seven bytes are in the slot; for longer strings the slot holds the length."""
    words, first, length = byte_runs(array)
    sizes = np.where(length > 7, (length + 7) >> 3, 0)
    most = int(sizes.max(initial=0))
    least = int(sizes.min(initial=most))
    slots = length.astype(WORD)
    if least == 0:
        slots = np.where(length > 7, slots, _load(words, first, length) | (slots | np.uint64(0x80)) << np.uint64(56))
    if most == 0:
        return slots, 0, None
    size = most if least == most else sizes
    step = 8 * runs(np.zeros(len(array), np.int64), size)
    return slots, size, _load(words, np.repeat(first, size) + step, np.repeat(length, size) - step)


def _load(words: np.ndarray, at: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the eight bytes from byte ``at`` as a word; bytes past ``length`` are zero."""
    index, shift = at >> 3, ((at & 7) << 3).astype(WORD)
    value = words.take(index) >> shift | words.take(index + 1) << (np.uint64(64) - shift)
    masked: np.ndarray = value & _FIRST_BYTES.take(length, mode="clip")
    return masked
