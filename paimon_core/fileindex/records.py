"""Encoding and decoding of many small records, one column at a time."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon_core.fileindex.values import gathered
from paimon_core.row.stored_values import byte_runs, is_bytes, runs


def big_endian(values: np.ndarray, width: int) -> np.ndarray:
    """Return integers as rows of ``width`` big-endian bytes (uint8)."""
    raw: np.ndarray = np.ascontiguousarray(values.astype(f">i{width}")).view(np.uint8).reshape(-1, width)
    return raw


def key_width(keys: pa.Array) -> int | None:
    """Return the bytes of a key; ``None``: keys vary in length, and four bytes before each key hold its length."""
    return None if is_bytes(keys.type) else keys.type.bit_width // 8


def key_sizes(keys: pa.Array) -> np.ndarray:
    """Return the bytes that each key takes (int64)."""
    width = key_width(keys)
    return 4 + byte_runs(keys)[2].astype(np.int64) if width is None else np.full(len(keys), width, np.int64)


def records(keys: pa.Array, *numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Encode each key followed by its big-endian int32 ``numbers``.

    Returns all bytes (uint8), and the start of each record followed by the end of the last record.
    """
    sizes = key_sizes(keys) + 4 * len(numbers)
    starts = np.append(0, np.cumsum(sizes))
    out = np.zeros(int(starts[-1]), np.uint8)
    width, at = key_width(keys), starts[:-1]
    if width is None:
        words, first, length = byte_runs(keys)
        _put_rows(out, at, big_endian(length, 4))
        out[runs(at + 4, length)] = words.view(np.uint8)[runs(first, length)]
        at = at + 4 + length
    else:
        _put_rows(out, at, big_endian(keys.to_numpy(), width))
        at = at + width
    for column in numbers:
        _put_rows(out, at, big_endian(column, 4))
        at = at + 4
    return out, starts


def _put_rows(out: np.ndarray, at: np.ndarray, rows: np.ndarray) -> None:
    for byte in range(rows.shape[1]):
        out[at + byte] = rows[:, byte]


def read_records(
    data: bytes, at: int, count: int, key_type: pa.DataType, numbers: int
) -> tuple[pa.Array, list[np.ndarray], int]:
    """Invert :func:`records` for ``count`` records: return keys, columns of numbers (int64) and the end position.

    Raises ValueError or struct.error if the bytes end too early.
    """
    if not 0 <= count <= len(data):
        raise ValueError(f"{len(data)} bytes cannot have {count} keys")
    if not is_bytes(key_type):
        width = key_type.bit_width // 8
        table = np.frombuffer(data, np.uint8, count * (width + 4 * numbers), at).reshape(count, width + 4 * numbers)
        keys = np.ascontiguousarray(table[:, :width]).view(f">i{width}").ravel().astype(f"<i{width}")
        rest = np.ascontiguousarray(table[:, width:]).view(">i4").astype(np.int64).reshape(count, numbers)
        return pa.array(keys), list(rest.T), at + count * (width + 4 * numbers)
    starts = np.empty(count, np.int64)
    lengths = np.empty(count, np.int64)
    for i in range(count):  # the start of a key depends on the length of the key before
        length = int.from_bytes(data[at : at + 4], "big")
        starts[i], lengths[i] = at + 4, length
        at += 4 + length + 4 * numbers
        if at > len(data):
            raise ValueError("its keys extend past the end")
    raw = np.frombuffer(data, np.uint8)
    ends = starts + lengths
    columns = [raw[(ends + 4 * n)[:, None] + np.arange(4)].view(">i4").ravel().astype(np.int64) for n in range(numbers)]
    return gathered(raw, starts, lengths), columns, at


def filled(sizes: np.ndarray, limit: int) -> Sequence[slice]:
    """Divide items into the fewest groups of at most ``limit`` bytes; a larger item has its own group."""
    ends, groups, first = np.cumsum(sizes), [], 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + limit, "right")))
        groups.append(slice(first, last))
        first = last
    return groups
