"""The index from hashes of keys to the dynamic buckets of a partition. Memory: 8 bytes per hash."""

from collections.abc import Collection
from itertools import pairwise

import numpy as np

__all__ = ["PartitionIndex", "packed", "unpacked"]

_GROWTH = 4  # a sorted part is merged with the one before if that is at most four times as large
_BITS = 16
_BUCKET = (1 << _BITS) - 1


class PartitionIndex:
    """A map from hashes (int32, each once) to buckets (up to 16 bits), packed into one number per hash.

    The numbers are in sorted parts, each at most a quarter of the part before. A lookup is a binary search per part.
    """

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self.sizes: dict[int, int] = {}
        """The number of hashes by bucket; known empty buckets are included."""

    def __len__(self) -> int:
        return sum(self.sizes.values())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self._parts)

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """Return the bucket (int32) of each hash; -1: unknown. REQUIRES: ``hashes`` are sorted."""
        found = np.full(len(hashes), -1, np.int32)
        least = hashes.astype(np.int64) << _BITS
        for part in self._parts:
            at = np.searchsorted(part, least)
            at[at == len(part)] = 0
            there = part[at]
            hit = there >> _BITS == hashes
            found[hit] = there[hit] & _BUCKET
        return found

    def add(self, hashes: np.ndarray, buckets: np.ndarray) -> None:
        """Add hashes with their buckets. REQUIRES: each hash once, and none known yet."""
        self.add_packed(np.sort(packed(hashes, buckets)))

    def add_packed(self, part: np.ndarray) -> None:
        """Add hashes and buckets that are packed (see `packed`) and sorted already."""
        if not len(part):
            return
        counts = np.bincount(part & _BUCKET)
        for bucket in np.flatnonzero(counts).tolist():
            self.sizes[bucket] = self.sizes.get(bucket, 0) + int(counts[bucket])
        self._parts.append(part)
        while len(self._parts) > 1 and _GROWTH * len(self._parts[-1]) >= len(self._parts[-2]):
            self._parts[-2:] = [np.sort(np.concatenate(self._parts[-2:]))]

    def by_bucket(self, wanted: Collection[int] | None = None) -> dict[int, np.ndarray]:
        """Return the hashes by bucket, of the buckets ``wanted``. `None`: of all buckets."""
        if not self._parts:
            return {}
        together = np.concatenate(self._parts)
        if wanted is not None:
            asked = np.zeros(_BUCKET + 1, bool)
            asked[list(wanted)] = True
            together = together[asked[together & _BUCKET]]
        buckets = (together & _BUCKET).astype(np.uint16)
        hashes = (together >> _BITS).astype(np.int32)[np.argsort(buckets, kind="stable")]  # of 16 bits: one pass
        ends = np.cumsum(np.bincount(buckets)).tolist()
        return {b: hashes[at:end] for b, (at, end) in enumerate(pairwise([0, *ends])) if end > at}


def packed(hashes: np.ndarray, buckets: np.ndarray | int) -> np.ndarray:
    """Pack each hash and its bucket into one number (int64); the numbers are ordered by hash."""
    both: np.ndarray = hashes.astype(np.int64) << _BITS | buckets
    return both


def unpacked(both: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes (int32) and buckets (int64) of packed numbers."""
    return (both >> _BITS).astype(np.int32), both & _BUCKET
