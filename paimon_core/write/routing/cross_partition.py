"""The router of cross-partition tables: an index of all keys has their locations (behaviour 6.3).

The merge engine decides about a row whose key is stored in another partition (`KeyMove`): the old row is deleted
(deduplicate), the new row goes to the old partition (partial-update, aggregation), or it is dropped (first-row).
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from paimon_core.datafile.writer import local_millis
from paimon_core.errors import InvalidInputError, OutOfRangeError, UnsupportedError
from paimon_core.merge import KeyMove, engine_type, merge_engine
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
from paimon_core.write.key_locations import Fingerprints, KeyLocationIndex, fingerprints
from paimon_core.write.restore import Restore
from paimon_core.write.routing.bucket_assigner import BucketAssigner, slots_of
from paimon_core.write.routing.dynamic import groups, index_memory
from paimon_core.write.routing.router import Batch, Indexes, KeyShard, Router

__all__ = ["cross_partition"]

_BUCKETS = 1 << 16  # a place is the number of a partition times this, plus a bucket


def cross_partition(store: FileStore, share: KeyShard | None) -> Router:
    """Return a router by the index of keys. Raises InvalidInputError if ``share`` is `None`."""
    if share is None:
        raise InvalidInputError(
            f"keys of {store.root} may move between partitions, so a writer must get all rows of its keys: write with "
            "one writer, give each its keys (WriterRole.shard), or stage the rows (paimon_core.distributed_write)"
        )
    return _CrossPartition(store, share)


class _CrossPartition:
    """A router with the locations of all keys of its shard in memory."""

    def __init__(self, store: FileStore, share: KeyShard) -> None:
        schema, options = store.schema, store.options
        self._store, self._share = store, share
        self._key_move = engine_type(options).key_move
        if self._key_move is KeyMove.DELETE_OLD and options.value(IGNORE_DELETE):
            raise UnsupportedError(
                f"cannot write to {store.root}: with 'ignore-delete' a row that moves to another partition would stay "
                "in the old one too; take the option away, or put the partition columns into the primary key"
            )
        self._skips_level_0 = merge_engine(options, schema.fields, schema.primary_keys).skips_level_0
        self._rule = BucketAssigner.of(options, shared=False)
        self._limit = index_memory(options)
        self._restore: Restore | None = None
        self._forget()

    def _forget(self) -> None:
        self._index = KeyLocationIndex()
        self._partitions: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._sizes: dict[int, dict[int, int]] = {}  # keys of each bucket, by the number of the partition

    # ---- what the table holds

    def _load(self, restore: Restore) -> None:
        self._forget()
        self._restore = restore
        if restore.snapshot is None:
            return
        store = self._store
        self._check_all_show(restore.snapshot)
        fields = tuple(store.schema.field(key) for key in store.schema.primary_keys)
        read = TableRead(store, fields)
        known: list[tuple[Fingerprints, np.ndarray]] = []
        held = keys = 0
        for split in TableScan(store, restore.snapshot).plan().splits:
            if self._forgotten(split):
                continue
            for batch in read.to_batches(split):
                wide, narrow = fingerprints(batch)
                places = np.full(batch.num_rows, self._number(split.partition) * _BUCKETS + split.bucket)
                self._count(places, 1)
                mine = slots_of(narrow, self._share.of) == self._share.number
                known.append(((wide[mine], narrow[mine]), places[mine]))
                held += sum(column.nbytes for column in (*known[-1][0], known[-1][1]))
                keys += len(known[-1][1])
                self._check_memory(keys, held)
        self._index = KeyLocationIndex(known)

    def _forgotten(self, split: DataSplit) -> bool:
        """Return True if all files are older than the index TTL: their keys then count as new."""
        ttl = self._store.options.value(CROSS_PARTITION_UPSERT_INDEX_TTL)
        if ttl is None:
            return False
        oldest = local_millis(self._store.now()) - ttl.total_seconds() * 1000
        return all(file.creation_time is not None and file.creation_time <= oldest for file in split.files)

    def _check_all_show(self, snapshot: Snapshot) -> None:
        if not self._skips_level_0:
            return
        hidden = sum(e.file.level == 0 for e in live_entries(self._store, snapshot, with_stats=False).live)
        if hidden:
            raise UnsupportedError(
                f"cannot write to {self._store.root}: {hidden} files of level 0 hold keys that do not show before they "
                "are compacted, and may live in other partitions; compact() the table first"
            )

    def _check_memory(self, keys: int, held: int) -> None:
        if held > self._limit:
            raise OutOfRangeError(
                f"writing to {self._store.root}, whose keys may move between partitions, needs an index of more than "
                f"{keys} keys, which takes {held} bytes where {self._limit} are allowed: "
                f"raise the option {LOOKUP_CACHE_MAX_MEMORY_SIZE.key!r}, or let the index forget old keys "
                f"({CROSS_PARTITION_UPSERT_INDEX_TTL.key!r})"
            )

    def _number(self, partition: bytes) -> int:
        if partition not in self._numbers:
            self._numbers[partition] = len(self._partitions)
            self._partitions.append(partition)
        return self._numbers[partition]

    def _count(self, places: np.ndarray, by: int) -> None:
        for place, count in zip(*np.unique(places, return_counts=True), strict=True):
            partition, bucket = divmod(int(place), _BUCKETS)
            sizes = self._sizes.setdefault(partition, {})
            sizes[bucket] = max(0, sizes.get(bucket, 0) + by * int(count))

    # ---- rows

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        if restore is not self._restore:
            self._load(restore)
        numbers = np.array([self._number(partition) for partition in batch.found], np.int64)
        keys = fingerprints(batch.rows.select(list(self._store.schema.primary_keys)))
        order, first, group = _by_key(keys)
        marks = (keys[0][order][first], keys[1][order][first])  # of every key, once
        wanted = numbers[batch.partitions][order]
        known = self._index.find(marks)
        dealt = self._moving if self._key_move is KeyMove.DELETE_OLD else self._staying
        result = dealt(batch, (order, first, group), wanted, known, marks)
        self._check_memory(len(self._index), self._index.nbytes)
        return result

    def _moving(
        self, batch: Batch, grouped: tuple[np.ndarray, np.ndarray, np.ndarray], wanted: np.ndarray, known: np.ndarray,
        marks: Fingerprints,
    ) -> tuple[Batch, np.ndarray]:  # fmt: skip
        """Route every row to its own partition, and add a delete before it if its key was in another partition."""
        order, first, group = grouped
        before = np.empty(len(order), np.int64)  # the partition the key lived in, -1 for none
        before[1:] = wanted[:-1]
        before[first] = np.where(known < 0, -1, known // _BUCKETS)
        comes = before != wanted
        # Each stay of a key in a partition begins with a row that comes, or with the row that finds it there.
        begins = comes.copy()
        begins[first] = True
        stay = np.cumsum(begins) - 1
        buckets = np.where(comes, -1, known[group] % _BUCKETS)[begins]
        new = np.flatnonzero(comes[begins])
        buckets[new] = self._assigned(wanted[begins][new], marks[1][group[begins]][new], order[begins][new])
        places = (wanted[begins] * _BUCKETS + buckets)[stay]
        left = np.empty(len(order), np.int64)  # the place the key lived in
        left[1:] = places[:-1]
        left[first] = known
        gone = np.flatnonzero(comes & (before >= 0))
        last = np.append(first[1:] - 1, len(order) - 1)
        self._index.put(marks, places[last])
        self._count(places[np.flatnonzero(begins)[new]], 1)
        self._count(left[gone], -1)
        return self._with_deletes(batch, order, places, gone, left[gone])

    def _staying(
        self, batch: Batch, grouped: tuple[np.ndarray, np.ndarray, np.ndarray], wanted: np.ndarray, known: np.ndarray,
        marks: Fingerprints,
    ) -> tuple[Batch, np.ndarray]:  # fmt: skip
        """Route all rows of a key to its first partition; ``first-row`` drops the rows of other partitions."""
        order, first, group = grouped
        places = known.copy()
        new = np.flatnonzero(known < 0)
        partitions = wanted[first][new]
        places[new] = partitions * _BUCKETS + self._assigned(partitions, marks[1][new], order[first][new])
        self._index.put((marks[0][new], marks[1][new]), places[new])
        self._count(places[new], 1)
        rows = np.empty(len(order), np.int64)
        rows[order] = places[group]
        if self._key_move is KeyMove.DROP_ROW:
            kept = np.empty(len(order), bool)
            kept[order] = places[group] // _BUCKETS == wanted
            batch = replace(
                batch,
                rows=batch.rows.filter(pa.array(kept)),
                kinds=None if batch.kinds is None else batch.kinds.filter(pa.array(kept)),
                partitions=batch.partitions[kept],
            )
            return batch, (rows[kept] % _BUCKETS).astype(np.int32)
        return self._at(batch.rows, batch.kinds, rows)

    def _assigned(self, partitions: np.ndarray, narrow: np.ndarray, arrival: np.ndarray) -> np.ndarray:
        """Assign buckets to keys that are new in partitions, in order of arrival."""
        buckets = np.empty(len(partitions), np.int64)
        by_arrival = np.argsort(arrival)
        found, codes = np.unique(partitions[by_arrival], return_inverse=True)
        for code, members in groups(codes, len(found)):
            mine = by_arrival[members]
            buckets[mine] = self._rule.assign_in_order(narrow[mine], self._sizes.get(int(found[code]), {}))
        return buckets

    def _with_deletes(
        self, batch: Batch, order: np.ndarray, places: np.ndarray, gone: np.ndarray, left: np.ndarray
    ) -> tuple[Batch, np.ndarray]:
        at_row = np.empty(len(order), np.int64)
        at_row[order] = places
        if not len(gone):
            return batch, (at_row % _BUCKETS).astype(np.int32)
        sources = np.concatenate([order[gone], np.arange(len(order))])
        turn = np.argsort(np.concatenate([2 * order[gone], 2 * np.arange(len(order)) + 1]))
        taken = pa.array(sources[turn])
        given = np.zeros(len(order), np.int8) if batch.kinds is None else batch.kinds.to_numpy()
        kinds = np.concatenate([np.full(len(gone), DELETE, np.int8), given])[turn]
        return self._at(batch.rows.take(taken), pa.array(kinds), np.concatenate([left, at_row])[turn])

    def _at(self, rows: pa.RecordBatch, kinds: pa.Array | None, places: np.ndarray) -> tuple[Batch, np.ndarray]:
        """Set the partition columns of the rows to the partitions of their locations."""
        schema = self._store.schema
        numbers, codes = np.unique(places // _BUCKETS, return_inverse=True)
        found = [self._partitions[number] for number in numbers.tolist()]
        values = decode_rows(found, schema.partition_arrow).take(pa.array(codes))
        for column in schema.partition_keys:
            at = rows.schema.get_field_index(column)
            rows = rows.set_column(at, rows.schema.field(at), values.column(column))
        return Batch(rows, kinds, codes, found), (places % _BUCKETS).astype(np.int32)

    def total_buckets(self, partition: bytes) -> int:
        return -1

    def write_indexes(self) -> dict[tuple[bytes, int], Indexes]:
        return {}

    def close(self) -> None:
        self._forget()


def _by_key(marks: Fingerprints) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows by key, those of one key in order of arrival; where each key begins; and the number of each row's key."""
    order = np.argsort(marks[0])
    wide = marks[0][order]
    same = wide[1:] == wide[:-1]
    if same.any():  # only where keys come more than once the order of arrival has to be seen to
        several = np.flatnonzero(np.append(False, same) | np.append(same, False))
        rows = order[several]
        order[several] = rows[np.lexsort((rows, marks[1][rows], marks[0][rows]))]
    narrow = marks[1][order]
    begins = np.append(True, (wide[1:] != wide[:-1]) | (narrow[1:] != narrow[:-1]))
    return order, np.flatnonzero(begins), np.cumsum(begins) - 1
