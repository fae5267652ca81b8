"""The router of cross-partition tables, which keeps an index of the locations of all keys (behaviour 6.3).

The merge engine decides what happens to a row whose key is stored in another partition (`KeyMove`): the old row is
deleted (deduplicate), the new row goes to the old partition (partial-update, aggregation), or the new row is dropped
(first-row).
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from paimon_core.datafile.writer import local_millis
from paimon_core.errors import InvalidInputError, OutOfRangeError, UnsupportedError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.memory import MemoryShares
from paimon_core.merge import KeyMove
from paimon_core.options.bucket import CROSS_PARTITION_UPSERT_INDEX_TTL
from paimon_core.options.lsm import LOOKUP_CACHE_MAX_MEMORY_SIZE
from paimon_core.options.merge import IGNORE_DELETE
from paimon_core.read.table_read import TableRead
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import live_entries
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import TableScan
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.row_kind import DELETE
from paimon_core.types.sorted_values import run_starts
from paimon_core.write.bucket_state import Restore
from paimon_core.write.key_locations import Fingerprints, KeyLocationIndex, fingerprints
from paimon_core.write.routing.bucket_assigner import BucketAssigner, check_bucket, slots_of
from paimon_core.write.routing.dynamic import groups
from paimon_core.write.routing.router import Batch, Indexes, KeyShard, Router

_BUCKETS = 1 << 16  # the location of a key is its partition's number times this, plus its bucket


def cross_partition(store: FileStore, shard: KeyShard | None) -> Router:
    """Return a router that looks keys up in an index. Raises InvalidInputError if ``shard`` is `None`."""
    if shard is None:
        raise InvalidInputError(
            f"keys of {store.root} may move between partitions, so a writer must get all rows of its keys: write with "
            "one writer, give each its keys (WriterRole.shard), or stage the rows "
            "(paimon_core.operations.distributed_write)"
        )
    return _CrossPartition(store, shard)


@dataclass(frozen=True, slots=True)
class KeyGrouping:
    """The rows of a batch, sorted by key; rows of one key stay in order of arrival."""

    order: np.ndarray
    """For each sorted row its index in the batch."""
    starts: np.ndarray
    """For each key the position of its first row in the sorted rows."""
    group: np.ndarray
    """For each sorted row the number of its key."""
    keys: Fingerprints
    """The fingerprint of each key."""

    @staticmethod
    def of(rows: Fingerprints) -> "KeyGrouping":
        """Return the grouping of rows with these fingerprints."""
        order = np.argsort(rows.hash64)
        sorted64 = rows.hash64[order]
        same = sorted64[1:] == sorted64[:-1]
        if same.any():  # restore the order of arrival, which matters only for keys with several rows
            repeated = np.flatnonzero(np.append(False, same) | np.append(same, False))
            members = order[repeated]
            order[repeated] = members[np.lexsort((members, *reversed(rows.take(members))))]
        hash64, hash32 = rows.take(order)
        is_first = run_starts(hash64) | run_starts(hash32)
        return KeyGrouping(order, np.flatnonzero(is_first), np.cumsum(is_first) - 1, rows.take(order[is_first]))


class _CrossPartition:
    """A router with the locations of all keys of its shard in memory."""

    def __init__(self, store: FileStore, shard: KeyShard) -> None:
        self._store, self._shard, options = store, shard, store.options
        self._key_move = store.traits.engine_type.key_move
        if self._key_move is KeyMove.DELETE_OLD and options.value(IGNORE_DELETE):
            raise UnsupportedError(
                f"cannot write to {store.root}: with 'ignore-delete' a row that moves to another partition would also "
                "stay in the old one; remove the option, or add the partition columns to the primary key"
            )
        self._assigner = BucketAssigner.of(options, shared=False)
        self._limit = MemoryShares.of(options).key_index
        self._restore: Restore | None = None
        self._forget()

    def _forget(self) -> None:
        self._index = KeyLocationIndex()
        self._partitions: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._sizes: dict[int, dict[int, int]] = {}  # keys of each bucket, by the number of the partition

    # ---- the keys of the table

    def _load(self, restore: Restore) -> None:
        self._forget()
        self._restore = restore
        if restore.snapshot is None:
            return
        store = self._store
        self._check_level_0(restore.snapshot)
        fields = tuple(store.schema.field(key) for key in store.schema.primary_keys)
        read = TableRead(store, fields)
        entries: list[tuple[Fingerprints, np.ndarray]] = []
        nbytes = count = 0
        for split in TableScan(store, restore.snapshot).plan().splits:
            if self._is_forgotten(split):
                continue
            check_bucket(split.bucket, store.partition_path(split.partition))
            for batch in read.to_batches(split):
                keys = fingerprints(batch)
                locations = np.full(batch.num_rows, self._number(split.partition) * _BUCKETS + split.bucket)
                self._count(locations, 1)
                in_shard = slots_of(keys.hash32, self._shard.of) == self._shard.number
                entries.append((keys.take(in_shard), locations[in_shard]))
                nbytes += sum(column.nbytes for column in (*entries[-1][0], entries[-1][1]))
                count += len(entries[-1][1])
                self._check_memory(count, nbytes)
        self._index = KeyLocationIndex(entries)

    def _is_forgotten(self, split: DataSplit) -> bool:
        """Return True if all files are older than the index TTL: their keys then count as new."""
        ttl = self._store.options.value(CROSS_PARTITION_UPSERT_INDEX_TTL)
        if ttl is None:
            return False
        oldest = local_millis(self._store.now()) - ttl.total_seconds() * 1000
        return all(file.creation_time is not None and file.creation_time <= oldest for file in split.files)

    def _check_level_0(self, snapshot: Snapshot) -> None:
        """Raise UnsupportedError if level-0 files hold keys that readers do not see."""
        if not self._store.traits.engine_type.skips_level_0:
            return
        hidden = sum(e.file.level == 0 for e in live_entries(self._store, snapshot, with_stats=False).live)
        if hidden:
            raise UnsupportedError(
                f"cannot write to {self._store.root}: {hidden} files of level 0 hold keys that readers do not see "
                "before a compaction, and that may be stored in other partitions; compact() the table first"
            )

    def _check_memory(self, keys: int, nbytes: int) -> None:
        if nbytes > self._limit:
            raise OutOfRangeError(
                f"writing to {self._store.root}, whose keys may move between partitions, needs an index of more than "
                f"{keys} keys, which takes {nbytes} bytes (limit: {self._limit}): raise the option "
                f"{LOOKUP_CACHE_MAX_MEMORY_SIZE.key!r}, or set {CROSS_PARTITION_UPSERT_INDEX_TTL.key!r} to remove old "
                "keys from the index"
            )

    def _number(self, partition: bytes) -> int:
        if partition not in self._numbers:
            self._numbers[partition] = len(self._partitions)
            self._partitions.append(partition)
        return self._numbers[partition]

    def _count(self, locations: np.ndarray, change: int) -> None:
        """Add ``change`` to the size of the bucket at each location, once per key."""
        for location, keys in zip(*np.unique(locations, return_counts=True), strict=True):
            partition, bucket = divmod(int(location), _BUCKETS)
            sizes = self._sizes.setdefault(partition, {})
            sizes[bucket] = max(0, sizes.get(bucket, 0) + change * int(keys))

    # ---- rows

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        if restore is not self._restore:
            self._load(restore)
        numbers = np.array([self._number(partition) for partition in batch.partitions], np.int64)
        grouping = KeyGrouping.of(fingerprints(batch.rows.select(list(self._store.schema.primary_keys))))
        partitions, indexed = numbers[batch.codes][grouping.order], self._index.find(grouping.keys)
        route = self._route_to_own if self._key_move is KeyMove.DELETE_OLD else self._route_to_first
        result = route(batch, grouping, partitions, indexed)
        self._check_memory(len(self._index), self._index.nbytes)
        return result

    def _route_to_own(
        self, batch: Batch, grouping: KeyGrouping, partitions: np.ndarray, indexed: np.ndarray
    ) -> tuple[Batch, np.ndarray]:
        """Route every row to its own partition, and add a delete before it if its key was in another partition.

        Args:
            batch: the rows to route.
            grouping: the grouping of the rows by key.
            partitions: the number of the partition of each sorted row.
            indexed: the location of each key in the index; -1: a new key.
        """
        order, starts, group = grouping.order, grouping.starts, grouping.group
        before = np.empty(len(order), np.int64)  # the partition of the row's key before the row; -1: a new key
        before[1:] = partitions[:-1]
        before[starts] = np.where(indexed < 0, -1, indexed // _BUCKETS)
        arrives = before != partitions
        # Each stay of a key in a partition begins with a row that arrives, or with the first row of the key.
        begins = arrives.copy()
        begins[starts] = True
        stay = np.cumsum(begins) - 1
        buckets = np.where(arrives, -1, indexed[group] % _BUCKETS)[begins]
        new = np.flatnonzero(arrives[begins])
        hash32 = grouping.keys.hash32[group[begins]]
        buckets[new] = self._assign(partitions[begins][new], hash32[new], order[begins][new])
        locations = (partitions[begins] * _BUCKETS + buckets)[stay]
        old = np.empty(len(order), np.int64)  # the location of the row's key before the row
        old[1:] = locations[:-1]
        old[starts] = indexed
        moved = np.flatnonzero(arrives & (before >= 0))
        self._index.put(grouping.keys, locations[np.append(starts[1:] - 1, len(order) - 1)])
        self._count(locations[begins][new], 1)
        self._count(old[moved], -1)
        by_row = np.empty(len(order), np.int64)
        by_row[order] = locations
        if not len(moved):
            return batch, (by_row % _BUCKETS).astype(np.int32)
        return self._with_deletes(batch, by_row, order[moved], old[moved])

    def _with_deletes(
        self, batch: Batch, locations: np.ndarray, moved: np.ndarray, old: np.ndarray
    ) -> tuple[Batch, np.ndarray]:
        """Return the rows at their locations, with a delete at location ``old[i]`` before row ``moved[i]``."""
        rows = np.arange(len(locations))
        order = np.argsort(np.concatenate([2 * moved, 2 * rows + 1]))
        old_kinds = np.zeros(len(rows), np.int8) if batch.kinds is None else batch.kinds.to_numpy()
        kinds = np.concatenate([np.full(len(moved), DELETE, np.int8), old_kinds])[order]
        reordered = batch.rows.take(pa.array(np.concatenate([moved, rows])[order]))
        return self._relocated(reordered, pa.array(kinds), np.concatenate([old, locations])[order])

    def _route_to_first(
        self, batch: Batch, grouping: KeyGrouping, partitions: np.ndarray, indexed: np.ndarray
    ) -> tuple[Batch, np.ndarray]:
        """Route all rows of a key to its first partition; ``first-row`` drops the rows of other partitions.

        The arguments are the same as for `_route_to_own`.
        """
        locations = indexed.copy()
        new = np.flatnonzero(indexed < 0)
        keys, starts = grouping.keys.take(new), grouping.starts[new]
        assigned = self._assign(partitions[starts], keys.hash32, grouping.order[starts])
        locations[new] = partitions[starts] * _BUCKETS + assigned
        self._index.put(keys, locations[new])
        self._count(locations[new], 1)
        by_row = np.empty(len(partitions), np.int64)
        by_row[grouping.order] = locations[grouping.group]
        if self._key_move is not KeyMove.DROP_ROW:
            return self._relocated(batch.rows, batch.kinds, by_row)
        at_home = np.empty(len(partitions), bool)
        at_home[grouping.order] = locations[grouping.group] // _BUCKETS == partitions
        batch = replace(
            batch,
            rows=batch.rows.filter(pa.array(at_home)),
            kinds=None if batch.kinds is None else batch.kinds.filter(pa.array(at_home)),
            codes=batch.codes[at_home],
        )
        return batch, (by_row[at_home] % _BUCKETS).astype(np.int32)

    def _assign(self, partitions: np.ndarray, hash32: np.ndarray, arrival: np.ndarray) -> np.ndarray:
        """Return the buckets (int64) of keys that are new in their partitions, assigned in order of arrival."""
        buckets = np.empty(len(partitions), np.int64)
        by_arrival = np.argsort(arrival)
        numbers, codes = np.unique(partitions[by_arrival], return_inverse=True)
        for code, positions in groups(codes, len(numbers)):
            members = by_arrival[positions]
            buckets[members] = self._assigner.assign_in_order(hash32[members], self._sizes.get(int(numbers[code]), {}))
        return buckets

    def _relocated(
        self, rows: pa.RecordBatch, kinds: pa.Array | None, locations: np.ndarray
    ) -> tuple[Batch, np.ndarray]:
        """Return the rows with the partition columns of their locations, and their buckets."""
        schema = self._store.schema
        numbers, codes = np.unique(locations // _BUCKETS, return_inverse=True)
        partitions = [self._partitions[number] for number in numbers.tolist()]
        values = decode_rows(partitions, schema.partition_arrow).take(pa.array(codes))
        for column in schema.partition_keys:
            at = rows.schema.get_field_index(column)
            rows = rows.set_column(at, rows.schema.field(at), values.column(column))
        return Batch(rows, kinds, codes, partitions), (locations % _BUCKETS).astype(np.int32)

    def total_buckets(self, partition: bytes) -> int:
        return -1

    def write_indexes(self) -> dict[BucketRef, Indexes]:
        return {}

    def close(self) -> None:
        self._forget()
