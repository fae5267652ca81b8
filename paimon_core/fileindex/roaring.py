"""Roaring bitmaps of 32-bit row numbers in their portable form, many at a time (format 15.1).

Containers of 65 536 rows each are lists of up to 4 096 rows, bits, or runs where these are smaller than either.
"""

import struct

import numpy as np

from paimon_core.row.columns import runs

_PLAIN, _WITH_RUNS = 12346, 12347
_MOST_LISTED = 4096
_BITS_BYTES = 8192
_ROWS = 1 << 16  # of a container
_FEW = 4  # containers below which no offsets follow, where there are runs


def bitmap(rows: np.ndarray) -> bytes:
    """One bitmap of ascending row numbers."""
    return bitmaps(np.zeros(len(rows), np.int64), rows, 1)[0].tobytes()


def bitmaps(groups: np.ndarray, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A bitmap for each of ``count`` groups: their bytes end to end (uint8), and where each starts, and the last ends.

    REQUIRES: ``groups`` ascending, ``rows`` ascending within a group.
    """
    groups, rows = groups.astype(np.int64), rows.astype(np.int64)
    starts_container = _changes(groups) | _changes(rows >> 16)
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
    rank = np.arange(len(first)) - (np.cumsum(containers) - containers)[owner]  # of a container in its bitmap
    np.bitwise_or.at(out, (start[owner] + 4 + rank // 8)[as_runs], (1 << rank % 8)[as_runs].astype(np.uint8))
    described = start[owner] + np.where(with_runs, 4, 8)[owner] + flags[owner] + 4 * rank
    _put(out, described, rows[first] >> 16, 2)
    _put(out, described + 2, size - 1, 2)
    before = np.cumsum(body) - body
    offset = head[owner] + before - before[np.searchsorted(owner, owner)]  # of a container from its bitmap's start
    shown = (offsets > 0)[owner]
    _put(out, (described + 4 * containers[owner])[shown], offset[shown], 4)
    place = start[owner] + offset
    _put_lists(out, place, rows, first, size, listed & ~as_runs)
    _put_runs(out, place, rows, np.flatnonzero(starts_run), run_count, as_runs)
    for at in np.flatnonzero(~listed & ~as_runs).tolist():
        bits = np.zeros(1 << 16, bool)
        bits[rows[first[at] : first[at] + size[at]] & 0xFFFF] = True
        out[place[at] : place[at] + _BITS_BYTES] = np.packbits(bits, bitorder="little")
    return out, np.append(0, ends)


def _changes(values: np.ndarray) -> np.ndarray:
    return np.append([True], values[1:] != values[:-1])[: len(values)]


def _follows(rows: np.ndarray) -> np.ndarray:
    return np.append([False], rows[1:] == rows[:-1] + 1)[: len(rows)]


def _put(out: np.ndarray, at: np.ndarray, values: np.ndarray, width: int) -> None:
    """Little-endian numbers of so many bytes at these places."""
    for byte in range(width):
        out[at + byte] = values >> 8 * byte & 0xFF


def _put_lists(
    out: np.ndarray, place: np.ndarray, rows: np.ndarray, first: np.ndarray, size: np.ndarray, chosen: np.ndarray
) -> None:
    places = np.repeat(place[chosen] - 2 * (np.cumsum(size[chosen]) - size[chosen]), size[chosen])
    _put(out, places + 2 * np.arange(len(places)), rows[runs(first[chosen], size[chosen])] & 0xFFFF, 2)


def _put_runs(
    out: np.ndarray, place: np.ndarray, rows: np.ndarray, begins: np.ndarray, count: np.ndarray, chosen: np.ndarray
) -> None:
    """Per run its first row and how many follow."""
    lengths = np.diff(np.append(begins, len(rows)))
    of_chosen = np.repeat(chosen, count)
    begins, lengths, count, place = begins[of_chosen], lengths[of_chosen], count[chosen], place[chosen]
    _put(out, place, count, 2)
    places = np.repeat(place + 2 - 4 * (np.cumsum(count) - count), count) + 4 * np.arange(len(begins))
    _put(out, places, rows[begins] & 0xFFFF, 2)
    _put(out, places + 2, lengths - 1, 2)


def decode(data: bytes, at: int, limit: int) -> tuple[np.ndarray, int]:
    """The rows (int64) of the bitmap that starts at ``at``, all below ``limit``, and where it ends.

    Raises ValueError, or struct.error, for bytes that are no such bitmap.
    """
    containers, at = _containers(data, at)
    found = [(np.flatnonzero(low) if bits else low) + base for base, low, bits in containers]
    rows: np.ndarray = np.concatenate(found) if found else np.zeros(0, np.int64)
    if len(rows) and int(rows.max()) >= limit:
        raise ValueError(f"a bitmap holds row {int(rows.max())} of {limit}")
    return rows, at


def decode_mask(data: bytes, at: int, limit: int) -> tuple[np.ndarray, int]:
    """What :func:`decode` gives as a mask of ``limit`` rows: quick where a bitmap holds many of them."""
    containers, at = _containers(data, at)
    mask = np.zeros(-(-limit // _ROWS) * _ROWS, bool)
    for base, low, bits in containers:
        if base >= len(mask):
            raise ValueError(f"a bitmap holds rows from {base} on, of {limit}")
        mask[base : base + _ROWS] |= low if bits else _spread(low)
    if mask[limit:].any():
        raise ValueError(f"a bitmap holds rows beyond {limit}")
    return mask[:limit], at


def _spread(low: np.ndarray) -> np.ndarray:
    block = np.zeros(_ROWS, bool)
    block[low] = True
    return block


def _containers(data: bytes, at: int) -> tuple[list[tuple[int, np.ndarray, bool]], int]:
    """Of each container its first possible row and what it holds, as row numbers from there or (True) as a mask of
    65 536; and where the bitmap ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    if cookie == _PLAIN:
        (count,) = struct.unpack_from("<I", data, at + 4)
        at, as_runs = at + 8, np.zeros(0, bool)
    elif cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(data, np.uint8, (count + 7) // 8, at + 4)
        at, as_runs = at + 4 + len(flags), np.unpackbits(flags, bitorder="little").astype(bool)
    else:
        raise ValueError(f"a bitmap starts with {cookie}")
    described = np.frombuffer(data, "<u2", 2 * count, at).reshape(-1, 2).tolist()
    at += 4 * count + (4 * count if cookie == _PLAIN or count >= _FEW else 0)
    found = []
    for i, (key, more) in enumerate(described):
        bits = False
        if i < len(as_runs) and as_runs[i]:
            (pieces,) = struct.unpack_from("<H", data, at)
            pairs = np.frombuffer(data, "<u2", 2 * pieces, at + 2).astype(np.int64)
            low, size = runs(pairs[::2], pairs[1::2] + 1), 2 + 4 * pieces
            if len(low) and int(low.max()) >= _ROWS:
                raise ValueError("a run goes beyond its container")
        elif more < _MOST_LISTED:
            low, size = np.frombuffer(data, "<u2", more + 1, at).astype(np.int64), 2 * (more + 1)
        else:
            raw = np.frombuffer(data, np.uint8, _BITS_BYTES, at)
            low, size, bits = np.unpackbits(raw, bitorder="little").view(bool), _BITS_BYTES, True
        found.append((key << 16, low, bits))
        at += size
    return found, at
