"""Which dynamic bucket every key of a partition lives in, by the hash of the key; memory: 6 bytes a hash."""

import numpy as np

__all__ = ["KeyIndex"]

_GROWTH = 4  # a sorted part is joined with the one before it when it is no smaller than a quarter of it


class KeyIndex:
    """Hashes (int32, each once) and their buckets.

    Kept as sorted parts, each some times smaller than the one before it: adding costs little, looking up one binary
    search per part.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.sizes: dict[int, int] = {}
        """How many hashes each bucket has; buckets known to have none are there as well."""

    def __len__(self) -> int:
        return sum(self.sizes.values())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(hashes.nbytes + buckets.nbytes for hashes, buckets in self._parts)

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The bucket (int32) of each of these hashes, which are sorted; -1 where it is not known."""
        found = np.full(len(hashes), -1, np.int32)
        for known, buckets in self._parts:
            at = np.searchsorted(known, hashes)
            at[at == len(known)] = 0
            hit = known[at] == hashes
            found[hit] = buckets[at[hit]]
        return found

    def add(self, hashes: np.ndarray, buckets: np.ndarray) -> None:
        """Take in sorted hashes, each once, none of them known yet."""
        for bucket, count in zip(*np.unique(buckets, return_counts=True), strict=True):
            self.sizes[int(bucket)] = self.sizes.get(int(bucket), 0) + int(count)
        if not len(hashes):
            return
        self._parts.append((hashes.astype(np.int32), buckets.astype(np.int16)))
        while len(self._parts) > 1 and _GROWTH * len(self._parts[-1][0]) >= len(self._parts[-2][0]):
            one, other = self._parts[-2:]
            both = np.concatenate([one[0], other[0]])
            order = np.argsort(both, kind="stable")  # two sorted runs: the sort merges them
            self._parts[-2:] = [(both[order], np.concatenate([one[1], other[1]])[order])]

    def by_bucket(self) -> dict[int, np.ndarray]:
        """All hashes, apart by bucket."""
        if not self._parts:
            return {}
        hashes, buckets = (np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        order = np.argsort(buckets, kind="stable")
        found, starts = np.unique(buckets[order], return_index=True)
        return dict(zip(found.tolist(), np.split(hashes[order], starts[1:]), strict=True))
