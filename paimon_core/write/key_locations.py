"""The locations of all keys of a cross-partition table. Memory: 20 bytes per key."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon_core.row.columns import xxh64
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes

__all__ = ["KeyLocationIndex", "fingerprints"]

_GROWTH = 4  # a sorted part is merged with the one before if that is at most four times as large
_SLICE = 1 << 16  # rows encoded for hashing together: bounds the memory

Fingerprints = tuple[np.ndarray, np.ndarray]
"""The fingerprints of keys: a 64-bit and a 32-bit hash, which are independent.

Among 10**9 keys the probability that any two have equal fingerprints is about 10**-11.
"""


_Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # 64-bit hashes, sorted; 32-bit hashes; locations


def fingerprints(keys: pa.RecordBatch) -> Fingerprints:
    """Return the fingerprints (uint64, int32) of every row."""
    wide, narrow = np.empty(keys.num_rows, np.uint64), np.empty(keys.num_rows, np.int32)
    for at in range(0, keys.num_rows, _SLICE):
        rows = encode(keys.slice(at, _SLICE))
        wide[at : at + _SLICE] = xxh64(rows.serialized())
        narrow[at : at + _SLICE] = hashes(rows)
    return wide, narrow


class KeyLocationIndex:
    """A map from keys, by their fingerprints, to the numbers of their locations.

    Entries are in parts sorted by the 64-bit hash, each at most a quarter of the part before.
    """

    def __init__(self, known: Sequence[tuple[Fingerprints, np.ndarray]] = ()) -> None:
        """Build an index of ``known`` keys and their locations."""
        self._parts: list[_Part] = []
        if known:
            wide, narrow = (np.concatenate([marks[i] for marks, _ in known]) for i in range(2))
            self._parts.append(_sorted(wide, narrow, np.concatenate([places for _, places in known])))

    def __len__(self) -> int:
        return sum(len(wide) for wide, _, _ in self._parts)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for part in self._parts for column in part)

    def find(self, marks: Fingerprints) -> np.ndarray:
        """Return the location (int64) of each key; -1: unknown."""
        found = np.full(len(marks[0]), -1, np.int64)
        for part in self._parts:
            rows, at = _located(part, marks)
            found[rows] = part[2][at]
        return found

    def put(self, marks: Fingerprints, places: np.ndarray) -> None:
        """Set the locations of these keys. REQUIRES: all keys are different."""
        new = np.ones(len(places), bool)
        for part in self._parts:
            rows, at = _located(part, marks)
            part[2][at] = places[rows]
            new[rows] = False
        if not new.any():
            return
        self._parts.append(_sorted(marks[0][new], marks[1][new], places[new]))
        while len(self._parts) > 1 and _GROWTH * len(self._parts[-1][0]) >= len(self._parts[-2][0]):
            wide, narrow, both = (np.concatenate(columns) for columns in zip(*self._parts[-2:], strict=True))
            self._parts[-2:] = [_sorted(wide, narrow, both)]


def _sorted(wide: np.ndarray, narrow: np.ndarray, places: np.ndarray) -> _Part:
    order = np.argsort(wide)
    return wide[order], narrow[order], places[order].astype(np.int64)


def _located(part: _Part, marks: Fingerprints) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys that the part has, and their positions in the part."""
    (wide, narrow, _), (asked_wide, asked_narrow) = part, marks
    at = np.searchsorted(wide, asked_wide)
    rows = np.arange(len(at))
    hits: list[tuple[np.ndarray, np.ndarray]] = []
    while len(rows):  # once, unless keys agree in 64 bits
        there = at < len(wide)
        rows, at = rows[there], at[there]
        same = wide[at] == asked_wide[rows]
        rows, at = rows[same], at[same]
        hit = narrow[at] == asked_narrow[rows]
        hits.append((rows[hit], at[hit]))
        rows, at = rows[~hit], at[~hit] + 1
    if not hits:
        return rows, at
    return np.concatenate([r for r, _ in hits]), np.concatenate([a for _, a in hits])
