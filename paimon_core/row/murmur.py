"""MurmurHash3 (x86, 32 bits, seed 42) of the bytes of many rows (format 6.2), or of many texts.

The package mmh3 in a loop is several times slower, and Paimon differs from standard Murmur: it mixes each byte of a
text's tail as a signed word.
"""

import numpy as np
import pyarrow as pa

from paimon_core.row.encode import BinaryRows
from paimon_core.row.stored_values import HALF, byte_runs, runs

_SEED = 42
_CHUNK = 1 << 14  # rows hashed together: temporaries stay in the cache
_FEW = 32  # remaining rows below which plain integers are faster than numpy


def hashes(rows: BinaryRows) -> np.ndarray:
    """Return the hash of each row (int32). Rows consist of whole words, so they have no tail."""
    out = np.empty(len(rows), HALF)
    for low in range(0, len(rows), _CHUNK):
        starts = 2 * rows.starts[low : low + _CHUNK + 1]
        blocks = rows.words.view(HALF)[starts[0] : starts[-1]]
        if rows.width is not None:
            h = np.full(len(starts) - 1, _SEED, HALF)
            for block in _mix(blocks.reshape(-1, 2 * rows.width).T.copy()):
                _step(h, block)
        else:
            h = _uneven(_mix(blocks.copy()), starts[:-1] - starts[0], np.diff(starts))
        out[low : low + _CHUNK] = _scrambled(h, 4 * np.diff(starts))
    return out.view(np.int32)


def byte_hashes(values: pa.Array) -> np.ndarray:
    """Return the hash of each text or byte string (int32): whole words, then each byte of the tail as a signed word."""
    words, first, length = byte_runs(values)
    if not len(length):
        return np.zeros(0, np.int32)
    data, whole, rest = words.view("u1"), length // 4, length % 4
    size = whole + rest
    starts = np.cumsum(size) - size
    blocks = np.empty(int(size.sum()), HALF)
    blocks[runs(starts, whole)] = data[runs(first, 4 * whole)].view(HALF)
    blocks[runs(starts + whole, rest)] = data[runs(first + 4 * whole, rest)].view("i1").astype("<i4").view(HALF)
    return _scrambled(_uneven(_mix(blocks), starts, size), length).view(np.int32)


def _scrambled(h: np.ndarray, length: np.ndarray) -> np.ndarray:
    h ^= length.astype(HALF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h ^= h >> HALF.type(shift)
        h *= HALF.type(factor)
    return h


def _rotate(x: np.ndarray, by: int) -> None:
    right = x >> HALF.type(32 - by)
    x <<= HALF.type(by)
    x |= right


def _mix(blocks: np.ndarray) -> np.ndarray:
    blocks *= HALF.type(0xCC9E2D51)
    _rotate(blocks, 15)
    blocks *= HALF.type(0x1B873593)
    return blocks


def _step(h: np.ndarray, block: np.ndarray) -> None:
    h ^= block
    _rotate(h, 13)
    h *= HALF.type(5)
    h += HALF.type(0xE6546B64)


def _uneven(blocks: np.ndarray, first: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return hashes of rows with different numbers of blocks.

    Sorted by length in descending order, the rows that have a block j are a prefix.
    """
    order = np.argsort(-size, kind="stable")
    first, size = first[order], size[order]
    h = np.full(len(first), _SEED, HALF)
    for j, rows in enumerate(np.searchsorted(-size, -np.arange(size[0]))):
        if rows < _FEW < len(first):
            for i in range(rows):  # a few rows are much longer than all other rows
                h[i] = _finish(int(h[i]), blocks[first[i] + j : first[i] + size[i]])
            break
        _step(h[:rows], blocks.take(first[:rows] + j))
    result = np.empty_like(h)
    result[order] = h
    return result


def _finish(h: int, blocks: np.ndarray) -> int:
    for block in blocks.tolist():
        h ^= block
        h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    return h
