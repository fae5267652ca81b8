"""The routers of tables with postponed buckets: to real buckets, or to bucket -2 until a compaction (behaviour 6.5)."""

import numpy as np
import pyarrow as pa

from paimon_core.errors import CommitConflictError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.options.bucket import POSTPONE_BATCH_WRITE_FIXED_BUCKET, POSTPONE_DEFAULT_BUCKET_NUM, POSTPONED
from paimon_core.options.option import Options
from paimon_core.row.bucket import buckets
from paimon_core.store.file_store import FileStore
from paimon_core.write.bucket_state import Restore
from paimon_core.write.routing.router import Batch, Indexes, KeyShard, Router, RowRouter


def postpone(store: FileStore, shard: KeyShard | None) -> Router:
    """Return the router to real buckets or to bucket -2, by the option ``postpone.batch-write-fixed-bucket``."""
    if store.options.value(POSTPONE_BATCH_WRITE_FIXED_BUCKET):
        return _FixedPerPartition(store)
    return RowRouter(lambda rows: np.full(rows.num_rows, POSTPONED, np.int32), POSTPONED)


def default_buckets(options: Options) -> int:
    """Return the number of real buckets for a partition without buckets."""
    return options.value(POSTPONE_DEFAULT_BUCKET_NUM) or 1


class _FixedPerPartition:
    """A router by the hash of the key, modulo the number of buckets of the row's partition."""

    def __init__(self, store: FileStore) -> None:
        self._store, self._totals = store, dict[bytes, int]()
        self._restore: Restore | None = None
        self._keys = list(store.schema.bucket_keys)

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        if restore is not self._restore:
            self._check_again(restore)
        new = [partition for partition in batch.partitions if partition not in self._totals]
        restore.load_totals(new)
        for partition in new:
            self._totals[partition] = restore.total_buckets(partition) or default_buckets(self._store.options)
        totals = np.array([self._totals[partition] for partition in batch.partitions])[batch.codes]
        assigned = np.zeros(batch.rows.num_rows, np.int32)
        keys = batch.rows.select(self._keys)
        for total in np.unique(totals[totals > 1]).tolist():
            members = np.flatnonzero(totals == total)
            selected = keys if len(members) == len(totals) else keys.take(pa.array(members))
            assigned[members] = buckets(selected, total, self._store.bucket_function)
        return batch, assigned

    def _check_again(self, restore: Restore) -> None:
        """Raise CommitConflictError if another writer has changed the number of buckets of a known partition."""
        self._restore = restore
        restore.load_totals(self._totals)
        for partition, total in self._totals.items():
            current = restore.total_buckets(partition)
            if current not in (None, total):
                path = self._store.partition_path(partition) or "the table"
                raise CommitConflictError(
                    f"cannot continue writing to {self._store.root}: {path} was rewritten with {current} buckets, but "
                    f"this writer started with {total}: open a new writer"
                )

    def total_buckets(self, partition: bytes) -> int:
        return self._totals[partition]

    def write_indexes(self) -> dict[BucketRef, Indexes]:
        return {}

    def close(self) -> None:
        self._totals = {}
