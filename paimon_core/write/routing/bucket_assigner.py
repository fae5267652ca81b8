"""Buckets for keys that have none yet, in tables with dynamic buckets (behaviour 6.2).

A key's hash decides its *slot*, and slot i owns the buckets that are i modulo the number of slots, so that slots can be
assigned to tasks. A bucket takes keys until it has as many as ``dynamic-bucket.target-row-num`` rows. Several writers
that share a partition cannot count its new keys together: it gets more slots where many keys are to be expected.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from paimon_core.errors import OutOfRangeError
from paimon_core.options.bucket import (
    DYNAMIC_BUCKET_INITIAL_BUCKETS,
    DYNAMIC_BUCKET_MAX_BUCKETS,
    DYNAMIC_BUCKET_TARGET_ROW_NUM,
)
from paimon_core.options.option import Options

__all__ = ["SHARED_SLOTS", "BucketAssigner", "slots_of"]

SHARED_SLOTS = 8
"""Most slots of a partition that several writers share, where ``dynamic-bucket.initial-buckets`` does not say."""
_MOST = (1 << 15) - 1  # buckets: the last number of 16 bits is not used


@dataclass(frozen=True, slots=True)
class BucketAssigner:
    """The rule that assigns new keys of a partition to buckets."""

    slots: int
    target: int
    """The number of keys with which a bucket is full."""
    most: int | None
    """The maximum number of buckets. `None`: no limit."""
    given: bool = False
    """True if the table's options define the number of slots."""

    @staticmethod
    def of(options: Options, *, shared: bool) -> "BucketAssigner":
        """Return the rule of a table.

        ``shared``: several writers route keys that none of the others sees; the rule then has the most slots.
        """
        most = options.value(DYNAMIC_BUCKET_MAX_BUCKETS)
        bound = None if most < 1 else min(most, _MOST)
        given = options.value(DYNAMIC_BUCKET_INITIAL_BUCKETS)
        slots = given or (SHARED_SLOTS if shared else 1)
        target = max(1, options.value(DYNAMIC_BUCKET_TARGET_ROW_NUM))
        return BucketAssigner(min(slots, bound or _MOST), target, bound, bool(given))

    def expecting(self, keys: int | None) -> "BucketAssigner":
        """Return the rule with as many slots as buckets that so many new keys fill, up to its own number of slots.

        ``None``: nothing is known of their number, so all slots stay. What the table's options say stays, too.
        """
        if self.given or keys is None:
            return self
        return replace(self, slots=max(1, min(self.slots, -(-keys // self.target))))

    def with_slots(self, slots: int) -> "BucketAssigner":
        """Return the rule with this number of slots."""
        return replace(self, slots=min(slots, self.most or _MOST))

    def assign_in_order(self, hashes: np.ndarray, sizes: Mapping[int, int]) -> np.ndarray:
        """Buckets (int32) for new keys in order of arrival: of a slot the buckets with room, then new ones.

        ``sizes`` are those of the buckets there are. What a limited number of buckets has no room for is spread over
        the slot's. Raises OutOfRangeError when there are no more numbers for buckets.
        """
        found = np.empty(len(hashes), np.int32)
        for slot, mine in self._by_slot(hashes):
            rooms = self._rooms(slot, sizes, len(mine))
            ids = np.array([bucket for bucket, _ in rooms], np.int32)
            ends = np.cumsum([room for _, room in rooms], dtype=np.int64)
            at = np.searchsorted(ends, np.arange(len(mine)), side="right")
            placed = int(np.searchsorted(at, len(ids)))
            found[mine[:placed]] = ids[at[:placed]]
            if placed < len(mine):
                found[mine[placed:]] = self._overflow(slot, {*sizes, *ids.tolist()}, hashes[mine[placed:]])
        return found

    def assign_by_hash(self, hashes: np.ndarray, sizes: Mapping[int, int]) -> np.ndarray:
        """Buckets (int32) for new keys, each by itself: what writers find who know the same ``sizes`` and nothing of
        each other. All new keys of a slot go to its first bucket with room, so that one may get more than its target.
        """
        found = np.empty(len(hashes), np.int32)
        for slot, mine in self._by_slot(hashes):
            rooms = self._rooms(slot, sizes, 1)
            found[mine] = rooms[0][0] if rooms else self._overflow(slot, sizes, hashes[mine])
        return found

    def _by_slot(self, hashes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Slots, and where in ``hashes`` theirs are."""
        if self.slots == 1:
            yield 0, np.arange(len(hashes))
            return
        slots = slots_of(hashes, self.slots)
        for slot in np.unique(slots).tolist():
            yield slot, np.flatnonzero(slots == slot)

    def _rooms(self, slot: int, sizes: Mapping[int, int], needed: int) -> list[tuple[int, int]]:
        """Buckets of the slot to take so many keys, with the room in each; less room where there are no more."""
        rooms = [(b, self.target - n) for b, n in sorted(sizes.items()) if b % self.slots == slot and n < self.target]
        left = needed - sum(room for _, room in rooms)
        return rooms + [(b, self.target) for b in islice(self._unused(slot, sizes), max(0, -(-left // self.target)))]

    def _unused(self, slot: int, sizes: Mapping[int, int]) -> Iterator[int]:
        return (b for b in range(slot, self.most or _MOST, self.slots) if b not in sizes)

    def _overflow(self, slot: int, known: Iterable[int], hashes: np.ndarray) -> np.ndarray:
        """Full buckets of the slot for what is too much."""
        if self.most is None:
            raise OutOfRangeError(
                f"a partition would need more than {_MOST} buckets of {self.target} keys: raise the option "
                f"{DYNAMIC_BUCKET_TARGET_ROW_NUM.key!r}"
            )
        owned = np.array(sorted(b for b in known if b % self.slots == slot), np.int32)
        full: np.ndarray = owned[slots_of(hashes, self.slots * len(owned)) // self.slots]
        return full


def slots_of(hashes: np.ndarray, slots: int) -> np.ndarray:
    """Return the slot of each hash: ``abs(hash % slots)``, with the remainder truncated towards zero."""
    return np.abs(np.fmod(hashes.astype(np.int64), slots))
