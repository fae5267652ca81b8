"""The locations of all keys of a cross-partition table. Memory: 20 bytes per key."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes
from paimon_core.row.stored_values import xxh64
from paimon_core.write.sorted_parts import Columns, SortedParts, sort_columns

_SLICE = 1 << 16  # rows encoded and hashed at a time, which bounds memory


class Fingerprints(NamedTuple):
    """The fingerprints of keys: two independent hashes of each key.

    Among 10**9 keys the probability that any two have equal fingerprints is about 10**-11.
    """

    hash64: np.ndarray
    """uint64: XXH64."""
    hash32: np.ndarray
    """int32: Murmur, the hash that routes keys to slots."""

    def take(self, indices: np.ndarray) -> "Fingerprints":
        """Return the fingerprints at ``indices``, or where a boolean mask is True."""
        return Fingerprints(self.hash64[indices], self.hash32[indices])


def fingerprints(keys: pa.RecordBatch) -> Fingerprints:
    """Return the fingerprint of every row."""
    result = Fingerprints(np.empty(keys.num_rows, np.uint64), np.empty(keys.num_rows, np.int32))
    for start in range(0, keys.num_rows, _SLICE):
        rows = encode(keys.slice(start, _SLICE))
        result.hash64[start : start + _SLICE] = xxh64(rows.serialized())
        result.hash32[start : start + _SLICE] = hashes(rows)
    return result


class KeyLocationIndex(SortedParts):
    """A map from keys, by their fingerprints, to the numbers of their locations.

    The parts have three columns: 64-bit hashes, 32-bit hashes and locations.
    """

    def __init__(self, entries: Sequence[tuple[Fingerprints, np.ndarray]] = ()) -> None:
        """Build an index of ``entries``: keys and their locations."""
        super().__init__()
        if entries:
            columns = zip(*((*keys, locations) for keys, locations in entries), strict=True)
            self.append(sort_columns(tuple(map(np.concatenate, columns))))

    def find(self, keys: Fingerprints) -> np.ndarray:
        """Return the location (int64) of each key; -1: unknown."""
        locations = np.full(len(keys.hash64), -1, np.int64)
        for part in self:
            rows, positions = _match(part, keys)
            locations[rows] = part[2][positions]
        return locations

    def put(self, keys: Fingerprints, locations: np.ndarray) -> None:
        """Set the locations (int64) of these keys. REQUIRES: all keys are different."""
        new = np.ones(len(locations), bool)
        for part in self:
            rows, positions = _match(part, keys)
            part[2][positions] = locations[rows]
            new[rows] = False
        if new.any():
            self.append(sort_columns((*keys.take(new), locations[new])))


def _match(part: Columns, keys: Fingerprints) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the keys that the part has, and their positions in the part."""
    positions = np.searchsorted(part[0], keys.hash64)
    rows = np.arange(len(positions))
    matches = [rows[:0]], [rows[:0]]
    while len(rows):  # once, unless keys agree in 64 bits
        inside = positions < len(part[0])
        rows, positions = rows[inside], positions[inside]
        same = part[0][positions] == keys.hash64[rows]
        rows, positions = rows[same], positions[same]
        hit = part[1][positions] == keys.hash32[rows]
        matches[0].append(rows[hit])
        matches[1].append(positions[hit])
        rows, positions = rows[~hit], positions[~hit] + 1
    return np.concatenate(matches[0]), np.concatenate(matches[1])
