"""An index from key hashes to the dynamic buckets of a partition. Memory: 8 bytes per hash."""

from collections.abc import Collection
from itertools import pairwise

import numpy as np

from paimon_core.write.sorted_parts import SortedParts

_BITS = 16
_BUCKET = (1 << _BITS) - 1


class PartitionIndex(SortedParts):
    """A map from hashes (int32, each once) to buckets (up to 16 bits), packed into one sorted number per hash."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        """The number of hashes in each bucket, including known empty buckets."""

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """Return the bucket (int32) of each hash; -1: unknown. REQUIRES: ``hashes`` are sorted."""
        buckets = np.full(len(hashes), -1, np.int32)
        lowest = hashes.astype(np.int64) << _BITS
        for (part,) in self:
            at = np.searchsorted(part, lowest)
            at[at == len(part)] = 0
            candidates = part[at]
            hit = candidates >> _BITS == hashes
            buckets[hit] = candidates[hit] & _BUCKET
        return buckets

    def add(self, hashes: np.ndarray, buckets: np.ndarray) -> None:
        """Add hashes with their buckets. REQUIRES: the hashes are distinct, and new to the index."""
        self.add_packed(np.sort(packed(hashes, buckets)))

    def add_packed(self, part: np.ndarray) -> None:
        """Add hashes and buckets that are packed (see `packed`) and sorted already."""
        if not len(part):
            return
        counts = np.bincount(part & _BUCKET)
        for bucket in np.flatnonzero(counts).tolist():
            self.sizes[bucket] = self.sizes.get(bucket, 0) + int(counts[bucket])
        self.append((part,))

    def by_bucket(self, buckets: Collection[int] | None = None) -> dict[int, np.ndarray]:
        """Return the hashes by bucket. ``buckets``: the buckets to return; `None`: all."""
        if not len(self):
            return {}
        entries = np.concatenate([part for (part,) in self])
        if buckets is not None:
            selected = np.zeros(_BUCKET + 1, bool)
            selected[list(buckets)] = True
            entries = entries[selected[entries & _BUCKET]]
        codes = (entries & _BUCKET).astype(np.uint16)
        hashes = (entries >> _BITS).astype(np.int32)[np.argsort(codes, kind="stable")]  # 16-bit codes sort in one pass
        ends = np.cumsum(np.bincount(codes)).tolist()
        return {b: hashes[start:end] for b, (start, end) in enumerate(pairwise([0, *ends])) if end > start}


def packed(hashes: np.ndarray, buckets: np.ndarray | int) -> np.ndarray:
    """Pack each hash and its bucket into one number (int64); the numbers are ordered by hash."""
    numbers: np.ndarray = hashes.astype(np.int64) << _BITS | buckets
    return numbers


def unpacked(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes (int32) and buckets (int64) of packed numbers."""
    return (numbers >> _BITS).astype(np.int32), numbers & _BUCKET
