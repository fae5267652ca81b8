"""The assignment of new keys to buckets, in tables with dynamic buckets (behaviour 6.2).

A key's hash decides its *slot*. Slot ``i`` owns the buckets with ``bucket % slots == i``, so slots can be assigned to
tasks. A bucket takes keys until it has ``dynamic-bucket.target-row-num`` keys. Several writers that share a partition
cannot count its new keys together: the partition then gets more slots if many keys are expected.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from paimon_core.errors import CorruptedError, OutOfRangeError
from paimon_core.options.bucket import (
    DYNAMIC_BUCKET_INITIAL_BUCKETS,
    DYNAMIC_BUCKET_MAX_BUCKETS,
    DYNAMIC_BUCKET_TARGET_ROW_NUM,
)
from paimon_core.options.option import Options

SHARED_SLOTS = 8
"""Maximum slots of a partition that several writers share, if ``dynamic-bucket.initial-buckets`` is not set."""
LARGEST_BUCKET = (1 << 15) - 1
"""The largest number of a dynamic bucket: the format has 16 bits for it. New buckets get smaller numbers."""
_MAX_BUCKETS = LARGEST_BUCKET


@dataclass(frozen=True, slots=True)
class BucketAssigner:
    """The rule that assigns new keys of a partition to buckets.

    In the methods, ``sizes`` maps each existing bucket to its number of keys, and ``hashes`` are hashes of new keys.
    """

    slots: int
    target: int
    """The number of keys that fills a bucket."""
    max_buckets: int | None
    """`None`: no limit."""
    fixed_slots: bool = False
    """True if the table's options define the number of slots."""

    @staticmethod
    def of(options: Options, *, shared: bool) -> "BucketAssigner":
        """Return the rule of a table.

        ``shared``: True if several writers route keys of a partition without seeing each other's keys. The rule then
        has the maximum number of slots.
        """
        limit = options.value(DYNAMIC_BUCKET_MAX_BUCKETS)
        max_buckets = None if limit < 1 else min(limit, _MAX_BUCKETS)
        initial = options.value(DYNAMIC_BUCKET_INITIAL_BUCKETS)
        slots = initial or (SHARED_SLOTS if shared else 1)
        target = max(1, options.value(DYNAMIC_BUCKET_TARGET_ROW_NUM))
        return BucketAssigner(min(slots, max_buckets or _MAX_BUCKETS), target, max_buckets, bool(initial))

    def expecting(self, keys: int | None) -> "BucketAssigner":
        """Return the rule with one slot per bucket that ``keys`` new keys fill, and at most its current slots.

        ``keys``: `None`: unknown, so the slots do not change. Slots that the table's options define do not change
        either.
        """
        if self.fixed_slots or keys is None:
            return self
        return replace(self, slots=max(1, min(self.slots, -(-keys // self.target))))

    def with_slots(self, slots: int) -> "BucketAssigner":
        """Return the rule with this number of slots."""
        return replace(self, slots=min(slots, self.max_buckets or _MAX_BUCKETS))

    def assign_in_order(self, hashes: np.ndarray, sizes: Mapping[int, int]) -> np.ndarray:
        """Return the buckets (int32) of new keys, assigned in order of arrival.

        The buckets of a slot are filled to the target first, then new buckets are opened. If no bucket may be opened,
        keys are spread over the slot's buckets. Raises OutOfRangeError if all bucket numbers are used.
        """
        buckets = np.empty(len(hashes), np.int32)
        for slot, members in self._by_slot(hashes):
            rooms = self._rooms(slot, sizes, len(members))
            ids = np.array([bucket for bucket, _ in rooms], np.int32)
            ends = np.cumsum([room for _, room in rooms], dtype=np.int64)
            at = np.searchsorted(ends, np.arange(len(members)), side="right")
            count = int(np.searchsorted(at, len(ids)))
            buckets[members[:count]] = ids[at[:count]]
            if count < len(members):
                buckets[members[count:]] = self._overflow(slot, {*sizes, *ids.tolist()}, hashes[members[count:]])
        return buckets

    def assign_by_hash(self, hashes: np.ndarray, sizes: Mapping[int, int]) -> np.ndarray:
        """Return the buckets (int32) of new keys; each depends only on the key's hash and ``sizes``.

        Writers with the same ``sizes`` therefore assign a key the same bucket. All new keys of a slot go to its first
        bucket that is not full, which may get more keys than the target. Raises OutOfRangeError if all bucket numbers
        are used.
        """
        buckets = np.empty(len(hashes), np.int32)
        for slot, members in self._by_slot(hashes):
            rooms = self._rooms(slot, sizes, 1)
            buckets[members] = rooms[0][0] if rooms else self._overflow(slot, sizes, hashes[members])
        return buckets

    def _by_slot(self, hashes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each slot with the indices of its hashes."""
        if self.slots == 1:
            yield 0, np.arange(len(hashes))
            return
        slots = slots_of(hashes, self.slots)
        for slot in np.unique(slots).tolist():
            yield slot, np.flatnonzero(slots == slot)

    def _rooms(self, slot: int, sizes: Mapping[int, int], keys: int) -> list[tuple[int, int]]:
        """Return buckets of the slot with room for ``keys`` keys, or all its buckets: (bucket, room in keys)."""
        rooms = [(b, self.target - n) for b, n in sorted(sizes.items()) if b % self.slots == slot and n < self.target]
        missing = keys - sum(room for _, room in rooms)
        unused = (b for b in range(slot, self.max_buckets or _MAX_BUCKETS, self.slots) if b not in sizes)
        return rooms + [(b, self.target) for b in islice(unused, max(0, -(-missing // self.target)))]

    def _overflow(self, slot: int, existing: Iterable[int], hashes: np.ndarray) -> np.ndarray:
        """Return full buckets of the slot for keys that no other bucket has room for."""
        if self.max_buckets is None:
            raise OutOfRangeError(
                f"a partition would need more than {_MAX_BUCKETS} buckets of {self.target} keys: raise the option "
                f"{DYNAMIC_BUCKET_TARGET_ROW_NUM.key!r}"
            )
        owned = np.array(sorted(b for b in existing if b % self.slots == slot), np.int32)
        full: np.ndarray = owned[slots_of(hashes, self.slots * len(owned)) // self.slots]
        return full


def slots_of(hashes: np.ndarray, slots: int) -> np.ndarray:
    """Return the slot of each hash: ``abs(hash % slots)``, with the remainder truncated towards zero."""
    return np.abs(np.fmod(hashes.astype(np.int64), slots))


def check_bucket(bucket: int, partition: str) -> None:
    """Raise CorruptedError unless a dynamic bucket can have this number. ``partition``: its path, for the error."""
    if bucket > LARGEST_BUCKET:
        raise CorruptedError(
            f"the metadata of {partition} names bucket {bucket}, but dynamic buckets have numbers up to "
            f"{LARGEST_BUCKET}: a manifest is damaged. Overwrite the partition"
        )
