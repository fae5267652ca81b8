"""Which dynamic bucket every key of a partition lives in, by the hash of the key; memory: 8 bytes a hash."""

from collections.abc import Collection
from itertools import pairwise

import numpy as np

__all__ = ["PartitionIndex", "packed", "unpacked"]

_GROWTH = 4  # a sorted part is joined with the one before it when it is no smaller than a quarter of it
_BITS = 16
_BUCKET = (1 << _BITS) - 1


class PartitionIndex:
    """Hashes (int32, each once) and their buckets (up to 16 bits), one number for both.

    Kept as sorted parts, each some times smaller than the one before it: adding costs little, looking up one binary
    search per part.
    """

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self.sizes: dict[int, int] = {}
        """How many hashes each bucket has; buckets known to have none are there as well."""

    def __len__(self) -> int:
        return sum(self.sizes.values())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self._parts)

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The bucket (int32) of each of these hashes, which are sorted; -1 where it is not known."""
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
        """Take in hashes, each once, none of them known yet."""
        self.add_packed(np.sort(packed(hashes, buckets)))

    def add_packed(self, part: np.ndarray) -> None:
        """The same, of hashes and buckets packed and sorted already."""
        if not len(part):
            return
        counts = np.bincount(part & _BUCKET)
        for bucket in np.flatnonzero(counts).tolist():
            self.sizes[bucket] = self.sizes.get(bucket, 0) + int(counts[bucket])
        self._parts.append(part)
        while len(self._parts) > 1 and _GROWTH * len(self._parts[-1]) >= len(self._parts[-2]):
            self._parts[-2:] = [np.sort(np.concatenate(self._parts[-2:]))]

    def by_bucket(self, wanted: Collection[int] | None = None) -> dict[int, np.ndarray]:
        """All hashes of these buckets, or of every one, apart by bucket."""
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
    """A hash and its bucket in one number (int64); such numbers are ordered by hash."""
    both: np.ndarray = hashes.astype(np.int64) << _BITS | buckets
    return both


def unpacked(both: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hashes (int32) and buckets (int64) again."""
    return (both >> _BITS).astype(np.int32), both & _BUCKET
