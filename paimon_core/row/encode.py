"""Arrow columns to BinaryRow bytes, every row of a batch at once (format 5.1 to 5.5).

The Arrow type alone decides the layout: decimal128 up to 18 digits and timestamps in milliseconds are compact, all other
decimals and timestamps are not; of those, nulls keep their room in the row.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

WORD, HALF = np.dtype("<u8"), np.dtype("<u4")
_KEEP = np.array([(1 << 8 * n) - 1 for n in range(9)], WORD)  # the first n bytes of a word
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # per second


@dataclass(frozen=True)
class BinaryRows:
    """Rows end to end in 8-byte ``words``: row i is ``words[starts[i]:starts[i + 1]]``; ``width`` if all are as long."""

    words: np.ndarray
    starts: np.ndarray
    arity: int
    width: int | None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> bytes:
        return self.words[self.starts[i]:self.starts[i + 1]].tobytes()

    def serialized(self) -> pa.LargeBinaryArray:
        """Every row behind its big-endian arity, as partitions, keys and statistics are stored."""
        data = np.insert(self.words.view(HALF), 2 * self.starts[:-1], np.array(self.arity, ">i4").view(HALF))
        offsets = 8 * self.starts + 4 * np.arange(len(self.starts))
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


# ---- encoding: a column gives (slots without offsets, words of its variable part: one number or one per row, those words)


def encode(batch: pa.RecordBatch) -> BinaryRows:
    """Lay out every row of the batch."""
    n, arity = batch.num_rows, batch.num_columns
    head = (arity + 71) // 64
    header = np.zeros((n, head), WORD)
    pieces = [(0, head, header)]  # (first word in the row, how many, their values)
    at = head + arity  # where the variable part goes on: a number until a column's rows differ in size, then one per row
    for i, column in enumerate(map(_plain, batch.columns)):
        slots, size, tail = _column(column)
        if column.null_count:
            word, bit = divmod(i + 8, 64)
            header[:, word] |= _nulls(column).astype(WORD) << np.uint64(bit)
            slots[_nulls(column)] = 0
        pieces.append((head + i, 1, slots))
        if tail is not None:
            slots |= np.where(np.asarray(size) > 0, np.asarray(at, WORD) << np.uint64(35), np.uint64(0))  # bytes, upper half
            pieces.append((at, size, tail))
            at = at + size
    width = at if isinstance(at, int) else None
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.broadcast_to(at, n), out=starts[1:])
    words = np.empty(starts[-1], WORD)
    for first, size, values in pieces:
        if width is not None:
            words.reshape(n, width)[:, first:first + size] = values.reshape(n, size)
        else:
            words[_runs(starts[:-1] + first, size)] = values.ravel()
    return BinaryRows(words, starts, arity, width)


def _runs(first: np.ndarray, size: int | np.ndarray) -> np.ndarray:
    """first, first + 1, ... (``size`` of them) for every row, end to end."""
    if isinstance(size, int):
        return first if size == 1 else (first[:, None] + np.arange(size)).ravel()
    ends = np.cumsum(size)
    return np.repeat(first - ends + size, size) + np.arange(size.sum())


def _plain(array: pa.Array) -> pa.Array:
    if pt.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    view = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(array.type)
    return array.cast(view) if view else array


def _is_bytes(t: pa.DataType) -> bool:
    return t in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()) or pt.is_fixed_size_binary(t)


def _nulls(array: pa.Array) -> np.ndarray:
    return array.is_null().to_numpy(zero_copy_only=False)


def _raw(buffer: pa.Buffer, dtype: str, first: int, count: int) -> np.ndarray:
    return np.frombuffer(buffer, dtype, count, first * np.dtype(dtype).itemsize) if count else np.zeros(0, dtype)


def _column(array: pa.Array) -> tuple[np.ndarray, int | np.ndarray, np.ndarray | None]:
    t = array.type
    if _is_bytes(t):
        return _bytes_column(array)
    if pt.is_decimal128(t):
        high, low = _decimal_words(array)
        return (low, 0, None) if t.precision <= 18 else _decimal_column(high, low)
    values = _numbers(array)
    if not pt.is_timestamp(t):
        return values.view(f"<u{values.itemsize}").astype(WORD), 0, None
    if t.unit in ("s", "ms"):
        return (values * (1_000 // _TICKS[t.unit])).view(WORD), 0, None
    per = _TICKS[t.unit] // 1_000
    millis = values // per
    return ((values - millis * per) * (1_000_000 // per)).view(WORD), 1, millis.view(WORD)


def _numbers(array: pa.Array) -> np.ndarray:
    """The values as Paimon holds them, times as milliseconds of the day; timestamps in their Arrow unit; 0 where null."""
    t = array.type
    if pt.is_boolean(t):
        return _numbers(array.cast(pa.int8()))
    if not (pt.is_signed_integer(t) or t in (pa.float32(), pa.float64(), pa.date32()) or pt.is_time(t) or pt.is_timestamp(t)):
        raise TypeError(f"{t} has no BinaryRow form here")
    values = _raw(array.buffers()[1], f"<{'f' if pt.is_floating(t) else 'i'}{t.bit_width // 8}", array.offset, len(array))
    if pt.is_time(t):
        values = (values * 1_000 if t.unit == "s" else values // (_TICKS[t.unit] // 1_000)).astype("<i4")
    return np.where(_nulls(array), values.dtype.type(0), values) if array.null_count else values


def _decimal_words(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Upper and lower half of the unscaled values; 0 where null."""
    words = _raw(array.buffers()[1], "<u8", 2 * array.offset, 2 * len(array)).reshape(-1, 2)
    if array.null_count:
        words = np.where(_nulls(array)[:, None], WORD.type(0), words)
    return words[:, 1].copy(), words[:, 0].copy()


def _decimal_column(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Always two words: the fewest big-endian bytes that hold the value and its sign, then zeros."""
    fold, one = (high.view("<i8") >> 63).view(WORD), np.uint64(1)  # all ones where negative
    bits = np.stack([(low ^ fold) << one | one, (high ^ fold) << one | (low ^ fold) >> np.uint64(63)], 1)  # magnitude and sign
    used = np.packbits(bits.view("u1") != 0, axis=1, bitorder="little").view("<u2").ravel()
    length = np.frexp(used)[1].astype(np.int64)  # number of the highest byte in use
    source = np.zeros(2 * len(low) + 2, WORD)
    source[:-2:2], source[1:-2:2] = high.byteswap(), low.byteswap()
    first = 16 * np.arange(1, len(low) + 1) - length
    return length.view(WORD), 2, np.stack([_load(source, first, length), _load(source, first + 8, length - 8)], 1).ravel()


def _bytes(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The data, padded into words; first byte and length of each value, a null's length being 0."""
    n, t, buffers = len(array), array.type, array.buffers()
    if isinstance(t, pa.FixedSizeBinaryType):
        bounds = (array.offset + np.arange(n + 1)) * t.byte_width
    else:
        wide = t in (pa.large_string(), pa.large_binary())
        bounds = _raw(buffers[1], "<i8" if wide else "<i4", array.offset, n + 1).astype(np.int64) if n else np.zeros(1, np.int64)
    total, length = int(bounds[-1] - bounds[0]), np.diff(bounds)
    words = np.zeros(total // 8 + 2, WORD)
    words.view("u1")[:total] = _raw(buffers[-1], "u1", int(bounds[0]), total)
    return words, bounds[:-1] - bounds[0], np.where(_nulls(array), 0, length) if array.null_count else length


def _load(words: np.ndarray, at: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Eight bytes from byte ``at`` on, those from ``length`` on being zero."""
    index, shift = at >> 3, ((at & 7) << 3).astype(WORD)
    value = words.take(index) >> shift | words.take(index + 1) << (np.uint64(64) - shift)
    return value & _KEEP.take(length, mode="clip")


def _bytes_column(array: pa.Array) -> tuple[np.ndarray, int | np.ndarray, np.ndarray | None]:
    """Up to seven bytes lie in the slot; longer values in the variable part, and the slot has their length."""
    words, first, length = _bytes(array)
    size = np.where(length > 7, (length + 7) >> 3, 0)
    most = int(size.max(initial=0))
    least = int(size.min(initial=most))
    slots = length.astype(WORD)
    if least == 0:
        slots = np.where(length > 7, slots, _load(words, first, length) | (slots | np.uint64(0x80)) << np.uint64(56))
    if most == 0:
        return slots, 0, None
    size = most if least == most else size
    step = 8 * _runs(np.zeros(len(array), np.int64), size)
    return slots, size, _load(words, np.repeat(first, size) + step, np.repeat(length, size) - step)
