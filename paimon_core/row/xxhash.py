"""XXH64 with seed 0 of many texts or runs of bytes: what bloom filters hash (format 9.3)."""

from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.row.columns import WORD, byte_runs

_P1, _P2, _P3, _P4, _P5 = (
    WORD.type(p)
    for p in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
_STRIPE = 32


def xxh64(values: pa.Array) -> np.ndarray:
    """The hash of each value, uint64; a null counts as empty."""
    words, first, length = byte_runs(values)
    result = np.full(len(length), _P5, WORD)
    long = np.flatnonzero(length >= _STRIPE)
    if len(long):
        result[long] = _stripes(words, first[long], length[long] // _STRIPE)
    result += length.astype(WORD)
    at, end = first + length // _STRIPE * _STRIPE, first + length
    for width in (8, 8, 8, 4, 1, 1, 1):  # what fewer than 32 bytes can be cut into
        rows = np.flatnonzero(end - at >= width)
        result[rows] = _STEPS[width](result[rows], _load(words, at[rows]) & _MASKS[width])
        at[rows] += width
    for shift, factor in ((33, _P2), (29, _P3), (32, WORD.type(1))):
        result ^= result >> WORD.type(shift)
        result *= factor
    return result


def _stripes(words: np.ndarray, first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Four sums over stripes of 32 bytes, mixed into one; values with fewer stripes drop out on the way."""
    order = np.argsort(-count, kind="stable")
    first, count = first[order], count[order]
    with np.errstate(over="ignore"):
        sums = np.array([_P1 + _P2, _P2, WORD.type(0), WORD.type(0) - _P1])[:, None].repeat(len(first), axis=1)
    for stripe, rows in enumerate(np.searchsorted(-count, -np.arange(int(count[0])))):
        for lane in range(4):
            word = _load(words, first[:rows] + (_STRIPE * stripe + 8 * lane))
            sums[lane, :rows] = _rotated(sums[lane, :rows] + word * _P2, 31) * _P1
    mixed = sum(_rotated(s, by) for s, by in zip(sums, (1, 7, 12, 18), strict=True))
    for s in sums:
        mixed = (mixed ^ _rotated(s * _P2, 31) * _P1) * _P1 + _P4
    result = np.empty(len(first), WORD)
    result[order] = mixed
    return result


def _load(words: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The eight bytes from each place on, as little-endian numbers."""
    shift = (8 * (at & 7)).astype(WORD)
    loaded: np.ndarray = (words[at >> 3] >> shift) | (words[(at >> 3) + 1] << (WORD.type(64) - shift))
    return loaded


def _rotated(x: np.ndarray, by: int) -> np.ndarray:
    rotated: np.ndarray = (x << WORD.type(by)) | (x >> WORD.type(64 - by))
    return rotated


def _eight(h: np.ndarray, word: np.ndarray) -> Any:
    return _rotated(h ^ _rotated(word * _P2, 31) * _P1, 27) * _P1 + _P4


def _four(h: np.ndarray, word: np.ndarray) -> Any:
    return _rotated(h ^ word * _P1, 23) * _P2 + _P3


def _one(h: np.ndarray, word: np.ndarray) -> Any:
    return _rotated(h ^ word * _P5, 11) * _P1


_STEPS = {8: _eight, 4: _four, 1: _one}
_MASKS = {width: WORD.type((1 << 8 * width) - 1) for width in _STEPS}
