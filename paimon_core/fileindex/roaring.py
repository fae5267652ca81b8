"""Roaring bitmaps of 32-bit row numbers in the portable form, many bitmaps at once (format 15.1).

A container covers 65 536 row numbers. It holds a list of up to 4 096 rows, or bits, or runs if runs are smaller.
"""

import numpy as np
from pyroaring import BitMap

from paimon_core.row.stored_values import runs
from paimon_core.types.sorted_values import run_starts

_PLAIN, _WITH_RUNS = 12346, 12347
_MOST_LISTED = 4096
_BITS_BYTES = 8192
_FEW = 4  # a bitmap with runs and fewer containers than this has no offsets


def bitmap(rows: np.ndarray) -> bytes:
    """Return one bitmap of ascending row numbers."""
    return bitmaps(np.zeros(len(rows), np.int64), rows, 1)[0].tobytes()


def bitmaps(groups: np.ndarray, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a bitmap for each of ``count`` groups: all bytes (uint8), and ``count + 1`` bounds of the bitmaps.

    REQUIRES: ``groups`` ascending, ``rows`` ascending within a group.
    """
    groups, rows = groups.astype(np.int64), rows.astype(np.int64)
    starts_container = run_starts(groups) | run_starts(rows >> 16)
    starts_run = starts_container | ~_follows(rows)
    first = np.flatnonzero(starts_container)
    owner, size = groups[first], np.diff(np.append(first, len(rows)))
    run_count = np.add.reduceat(starts_run, first, dtype=np.int64) if len(first) else size
    listed = size <= _MOST_LISTED
    plain, packed = np.where(listed, 2 * size, _BITS_BYTES), 2 + 4 * run_count
    as_runs = packed < plain
    body = np.where(as_runs, packed, plain)

    containers = np.bincount(owner, minlength=count)
    with_runs = np.bincount(owner[as_runs], minlength=count) > 0
    flags = np.where(with_runs, (containers + 7) // 8, 0)
    offsets = np.where(~with_runs | (containers >= _FEW), 4 * containers, 0)
    head = np.where(with_runs, 4, 8) + flags + 4 * containers + offsets
    bodies = np.bincount(owner, weights=body, minlength=count).astype(np.int64)
    ends = np.cumsum(head + bodies)
    start = ends - head - bodies

    out = np.zeros(int(ends[-1]) if count else 0, np.uint8)
    _put(out, start, np.where(with_runs, _WITH_RUNS | (containers - 1) << 16, _PLAIN), 4)
    _put(out, start[~with_runs] + 4, containers[~with_runs], 4)
    rank = np.arange(len(first)) - (np.cumsum(containers) - containers)[owner]  # index of a container in its bitmap
    np.bitwise_or.at(out, (start[owner] + 4 + rank // 8)[as_runs], (1 << rank % 8)[as_runs].astype(np.uint8))
    described = start[owner] + np.where(with_runs, 4, 8)[owner] + flags[owner] + 4 * rank
    _put(out, described, rows[first] >> 16, 2)
    _put(out, described + 2, size - 1, 2)
    before = np.cumsum(body) - body
    offset = head[owner] + before - before[np.searchsorted(owner, owner)]  # of a container in its bitmap
    has_offset = (offsets > 0)[owner]
    _put(out, (described + 4 * containers[owner])[has_offset], offset[has_offset], 4)
    position = start[owner] + offset
    _put_lists(out, position, rows, first, size, listed & ~as_runs)
    _put_runs(out, position, rows, np.flatnonzero(starts_run), run_count, as_runs)
    for at in np.flatnonzero(~listed & ~as_runs).tolist():
        bits = np.zeros(1 << 16, bool)
        bits[rows[first[at] : first[at] + size[at]] & 0xFFFF] = True
        out[position[at] : position[at] + _BITS_BYTES] = np.packbits(bits, bitorder="little")
    return out, np.append(0, ends)


def _follows(rows: np.ndarray) -> np.ndarray:
    return np.append([False], rows[1:] == rows[:-1] + 1)[: len(rows)]


def _put(out: np.ndarray, at: np.ndarray, values: np.ndarray, width: int) -> None:
    """Write little-endian numbers of ``width`` bytes at these positions."""
    for byte in range(width):
        out[at + byte] = values >> 8 * byte & 0xFF


def _put_lists(
    out: np.ndarray, position: np.ndarray, rows: np.ndarray, first: np.ndarray, size: np.ndarray, chosen: np.ndarray
) -> None:
    positions = np.repeat(position[chosen] - 2 * (np.cumsum(size[chosen]) - size[chosen]), size[chosen])
    _put(out, positions + 2 * np.arange(len(positions)), rows[runs(first[chosen], size[chosen])] & 0xFFFF, 2)


def _put_runs(
    out: np.ndarray, position: np.ndarray, rows: np.ndarray, begins: np.ndarray, count: np.ndarray, chosen: np.ndarray
) -> None:
    """Write the number of runs, then for each run its first row and the number of rows after it."""
    lengths = np.diff(np.append(begins, len(rows)))
    of_chosen = np.repeat(chosen, count)
    begins, lengths, count, position = begins[of_chosen], lengths[of_chosen], count[chosen], position[chosen]
    _put(out, position, count, 2)
    positions = np.repeat(position + 2 - 4 * (np.cumsum(count) - count), count) + 4 * np.arange(len(begins))
    _put(out, positions, rows[begins] & 0xFFFF, 2)
    _put(out, positions + 2, lengths - 1, 2)


def decode(data: bytes, at: int, limit: int) -> tuple[np.ndarray, int]:
    """Return the rows (int64) of the bitmap at ``data[at:]``, all below ``limit``, and the position of its end.

    Raises ValueError if the bytes are not a bitmap of rows below ``limit``.
    """
    rows, at = _parsed(data, at)
    if rows and rows.max() >= limit:
        raise ValueError(f"a bitmap contains row {rows.max()}, but all rows must be below {limit}")
    return np.frombuffer(rows.to_array(), np.uint32).astype(np.int64), at


def decode_mask(data: bytes, at: int, limit: int) -> tuple[np.ndarray, int]:
    """Return the rows of :func:`decode` as a mask of ``limit`` rows, and the position of the bitmap's end."""
    rows, at = decode(data, at, limit)
    mask = np.zeros(limit, bool)
    mask[rows] = True
    return mask, at


def _parsed(data: bytes, at: int) -> tuple[BitMap, int]:
    """Return the bitmap at ``data[at:]`` and the position of its end.

    Raises ValueError unless the bitmap serialises to exactly these bytes, because the library ignores corrupt offsets.
    """
    try:
        rows = BitMap.deserialize(data[at:])
    except (ValueError, IndexError) as error:
        raise ValueError(f"no roaring bitmap begins at byte {at} of {len(data)}: {error}") from error
    end = at + len(written := rows.serialize())
    if data[at:end] != written:
        raise ValueError(f"the bitmap at byte {at} of {len(data)} is not in the portable form")
    return rows, end
