"""The router of dynamic buckets: a hash index finds the buckets of known keys; new keys go to buckets with room."""

from collections.abc import Iterator, Sequence

import numpy as np

from paimon_core.datafile.hash_index import read_hashes, write_hashes
from paimon_core.errors import CorruptedError, InvalidInputError, OutOfRangeError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.index_entry import HASH, HASH_PART, IndexManifestEntry
from paimon_core.memory import MemoryShares
from paimon_core.options.lsm import LOOKUP_CACHE_MAX_MEMORY_SIZE
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes as hash_rows
from paimon_core.store.file_store import FileStore
from paimon_core.types.sorted_values import distinct, run_starts
from paimon_core.write.bucket_state import Restore
from paimon_core.write.hash_bucket_index import PartitionIndex, packed, unpacked
from paimon_core.write.routing.bucket_assigner import BucketAssigner, check_bucket
from paimon_core.write.routing.router import ALL_KEYS, Batch, Indexes, KeyShard, Router

_SLICE = 1 << 16  # rows encoded and hashed at a time, which bounds memory


def dynamic(store: FileStore, shard: KeyShard | None) -> Router:
    """Return a router by the hash of the key within the partition."""
    return _Dynamic(store, shard)


class _Dynamic:
    """A router with the hash index of each partition it has seen. Over the memory limit, it drops unchanged indexes.

    Writers that share partitions assign a new key by its hash and their common snapshot only, so all of them choose
    the same bucket. Only a writer that gets all new keys of a slot counts the keys of buckets.
    """

    def __init__(self, store: FileStore, shard: KeyShard | None) -> None:
        self._store, self._shared = store, shard != ALL_KEYS
        self._counts = shard is not None and (shard == ALL_KEYS or shard.slots > 0)
        assigner = BucketAssigner.of(store.options, shared=self._shared)
        self._assigner = assigner.with_slots(shard.slots) if shard is not None and shard.slots else assigner
        self._limit = MemoryShares.of(store.options).key_index
        self._partitions: dict[bytes, _Partition] = {}  # most recently used last
        self._restore: Restore | None = None

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        hashes = np.empty(batch.rows.num_rows, np.int32)
        keys = batch.rows.select(list(self._store.schema.trimmed_primary_keys))
        for start in range(0, len(hashes), _SLICE):
            hashes[start : start + _SLICE] = hash_rows(encode(keys.slice(start, _SLICE)))
        restore.load_partitions(batch.partitions)
        if restore is not self._restore:
            self._refresh(restore)
        buckets = np.empty(len(hashes), np.int32)
        for code, members in groups(batch.codes, len(batch.partitions)):
            key = batch.partitions[code]
            assigner = self._assigner if self._counts else self._assigner.expecting(restore.expected_keys(key))
            buckets[members] = self._partition(key, restore).assign(hashes[members], assigner, counts=self._counts)
            self._make_room()
        return batch, buckets

    def total_buckets(self, partition: bytes) -> int:
        return -1

    def _partition(self, key: bytes, restore: Restore) -> "_Partition":
        partition = self._partitions.pop(key, None)
        if partition is None:
            partition = _Partition()
            partition.load(self._store, key, restore)
        self._partitions[key] = partition
        return partition

    def _refresh(self, restore: Restore) -> None:
        """Reload the indexes: other writers may have added keys."""
        self._restore = restore
        restore.load_partitions(self._partitions)
        for key, partition in self._partitions.items():
            partition.load(self._store, key, restore)

    def _make_room(self) -> None:
        """Drop the least recently used unchanged indexes until the others are within the limit."""
        nbytes = sum(p.index.nbytes for p in self._partitions.values())
        unchanged = [key for key, p in self._partitions.items() if not p.touched][:-1] if nbytes > self._limit else []
        for key in unchanged:
            nbytes -= self._partitions.pop(key).index.nbytes
            if nbytes <= self._limit:
                return
        if nbytes > self._limit:
            keys = sum(len(p.index) for p in self._partitions.values())
            raise OutOfRangeError(
                f"writing to {len(self._partitions)} partitions of {self._store.root} needs an index of {keys} keys, "
                f"which takes {nbytes} bytes (limit: {self._limit}): raise the option "
                f"{LOOKUP_CACHE_MAX_MEMORY_SIZE.key!r}, or write to fewer partitions at a time"
            )

    def write_indexes(self) -> dict[BucketRef, Indexes]:
        changes: dict[BucketRef, Indexes] = {}
        try:
            for key, partition in self._partitions.items():
                partition.write(self._store, key, changes, shared=self._shared)
        except BaseException:
            for indexes in changes.values():
                for entry in indexes.new:
                    self._store.delete_index(entry)
            raise
        return changes

    def close(self) -> None:
        self._partitions = {}


class _Partition:
    """The hash index of one partition: the table's hashes, and the hashes that this writer adds."""

    def __init__(self) -> None:
        self.index = PartitionIndex()
        self.touched: set[int] = set()
        """Buckets that got rows since the last write of the indexes."""
        self._added = PartitionIndex()
        self._entries: dict[int, IndexManifestEntry] = {}
        self._sizes: dict[int, int] = {}  # hashes per bucket in the loaded index

    def load(self, store: FileStore, key: bytes, restore: Restore) -> None:
        """Load the table's index. Added keys keep their buckets, unless the table now has them."""
        entries = restore.hash_indexes(key)
        check_bucket(max(entries, default=0), store.partition_path(key) or store.root)
        unindexed = sorted(restore.filled(key) - set(entries))
        if unindexed:
            raise InvalidInputError(
                f"bucket {unindexed[0]} of {store.partition_path(key) or store.root} has files but no hash index, so "
                "its keys are unknown: an engine without hash indexes wrote it. Overwrite the partition"
            )
        if self._entries == entries and len(self.index):
            return
        added = self._added.by_bucket()
        self.index, self._entries = PartitionIndex(), entries
        self.index.add_packed(_joined([(b, read_hashes(store, entry)) for b, entry in entries.items()], store, key))
        self.index.sizes.update((bucket, 0) for bucket in entries if bucket not in self.index.sizes)
        self._sizes = dict(self.index.sizes)
        for bucket, hashes in added.items():
            new = hashes[self.index.find(hashes) < 0]
            self.index.add(new, np.full(len(new), bucket))

    def assign(self, hashes: np.ndarray, assigner: BucketAssigner, *, counts: bool) -> np.ndarray:
        """Return the bucket of each key, and add the new keys to the index.

        ``counts``: True if no other writer gets new keys of these slots, so their buckets are filled to the target.
        """
        both = np.sort(hashes.astype(np.int64) << 32 | np.arange(len(hashes)))  # much faster than sorting positions
        order, ordered = both & 0xFFFFFFFF, (both >> 32).astype(np.int32)
        first = run_starts(ordered)
        keys = ordered[first]
        buckets = self.index.find(keys)
        missing = buckets < 0
        if missing.any():
            new = keys[missing]
            if counts:
                arrival = np.argsort(order[first][missing])
                assigned = np.empty(len(new), np.int32)
                assigned[arrival] = assigner.assign_in_order(new[arrival], self.index.sizes)
            else:
                assigned = assigner.assign_by_hash(new, self._sizes)
            self.index.add(new, assigned)
            self._added.add(new, assigned)
            buckets[missing] = assigned
        self.touched |= set(np.flatnonzero(np.bincount(buckets)).tolist())
        result = np.empty(len(hashes), np.int32)
        result[order] = buckets[np.cumsum(first) - 1]
        return result

    def write(self, store: FileStore, key: bytes, changes: dict[BucketRef, Indexes], *, shared: bool) -> None:
        """Write the index of each touched bucket and record it in ``changes``.

        ``shared``: True to write only the added hashes, False for the complete index.
        """
        added = self._added.by_bucket()
        hashes = added if shared or not added else self.index.by_bucket(added)
        for bucket in sorted(self.touched):
            old, new, at = self._entries.get(bucket), None, BucketRef(key, bucket)
            if bucket in added:
                new = write_hashes(store, at, hashes[bucket], HASH_PART if shared else HASH)
            changes[at] = Indexes(() if old is None else (old,), () if new is None else (new,))
            if new is not None and not shared:
                self._entries[bucket] = new
        self.touched = set()
        if not shared:
            self._added = PartitionIndex()


def groups(codes: np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray | slice]]:
    """Yield each code that occurs, in order, with its positions."""
    if count == 1:
        yield 0, slice(None)
        return
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=count))
    for code, end in enumerate(ends.tolist()):
        members = order[ends[code - 1] if code else 0 : end]
        if len(members):
            yield code, members


def _joined(hashes_by_bucket: Sequence[tuple[int, np.ndarray]], store: FileStore, key: bytes) -> np.ndarray:
    """Return all hashes of a partition with their buckets, packed and sorted.

    Raises CorruptedError if a hash is in two buckets.
    """
    entries = distinct(np.sort(np.concatenate([packed(h, b) for b, h in hashes_by_bucket] or [np.empty(0, np.int64)])))
    hashes, buckets = unpacked(entries)
    repeated = np.flatnonzero(hashes[1:] == hashes[:-1])
    if len(repeated):
        first, second = buckets[repeated[0]], buckets[repeated[0] + 1]
        raise CorruptedError(
            f"the hash indexes of buckets {first} and {second} of {store.partition_path(key) or store.root} both have "
            f"a key of hash {hashes[repeated[0]]}: two writers put it into both. Overwrite the partition with its rows"
        )
    return entries
