"""The interface of routers, and the bucket mode of a table."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import pyarrow as pa

from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.options.bucket import BUCKET
from paimon_core.schema.table_schema import TableSchema
from paimon_core.write.bucket_state import Restore


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in order of arrival, their kinds (int8; `None`: all inserts), and their partitions."""

    rows: pa.RecordBatch
    kinds: pa.Array | None
    codes: np.ndarray
    """The index in ``partitions`` of each row's partition."""
    partitions: list[bytes]
    """Serialised BinaryRows, each once."""


@dataclass(frozen=True, slots=True)
class Indexes:
    """Changes of one bucket's hash index by a write."""

    routed_by: tuple[IndexManifestEntry, ...] = ()
    """The index file that the rows were routed by, if the bucket had one."""
    new: tuple[IndexManifestEntry, ...] = ()
    """New index files with the hashes of new keys."""


@dataclass(frozen=True, slots=True)
class KeyShard:
    """The keys whose rows all go to one writer: keys with ``hash % of == number``."""

    number: int = 0
    of: int = 1
    slots: int = 0
    """If keys stay in their partition: the number of slots of a partition; one writer gets all new keys of a slot."""


ALL_KEYS = KeyShard()
"""The shard of the only writer: it receives all keys. (`None`: several writers, and any may receive any key.)"""


class Router(Protocol):
    """A router of rows to the buckets of their partitions.

    All rows of a key belong to one bucket. The result does not depend on how rows are split into batches.
    """

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        """Return the rows to write and the bucket (int32) of each row.

        The rows are returned unchanged, unless keys move between partitions. The router loads the state that it needs
        into ``restore``.
        """

    def total_buckets(self, partition: bytes) -> int:
        """Return the number of buckets to record in the files of this partition."""

    def write_indexes(self) -> dict[BucketRef, Indexes]:
        """Write the index changes since the last call, by bucket. The files belong to the caller."""

    def close(self) -> None:
        """Release memory and local files."""


class RowRouter:
    """A stateless router: the bucket depends on the row only."""

    def __init__(self, bucket_of: Callable[[pa.RecordBatch], np.ndarray], total: int) -> None:
        self._bucket_of, self._total = bucket_of, total

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        """Return the unchanged rows and their buckets."""
        return batch, self._bucket_of(batch.rows)

    def total_buckets(self, partition: bytes) -> int:
        """Return the same number for all partitions."""
        return self._total

    def write_indexes(self) -> dict[BucketRef, Indexes]:
        """Return no indexes."""
        return {}

    def close(self) -> None:
        """Do nothing."""


class BucketMode(Enum):
    """The bucket mode of a table (behaviour 6)."""

    HASH_FIXED = "fixed buckets"
    HASH_DYNAMIC = "dynamic buckets"
    KEY_DYNAMIC = "cross-partition dynamic buckets"
    POSTPONE = "postponed buckets"
    BUCKET_UNAWARE = "no buckets"


def bucket_mode(schema: TableSchema) -> BucketMode:
    """Return the mode that the keys and the option ``bucket`` define."""
    buckets = schema.options.value(BUCKET)
    if buckets > 0:
        return BucketMode.HASH_FIXED
    if not schema.primary_keys:
        return BucketMode.BUCKET_UNAWARE
    if buckets == -2:
        return BucketMode.POSTPONE
    return BucketMode.HASH_DYNAMIC if set(schema.partition_keys) <= set(schema.primary_keys) else BucketMode.KEY_DYNAMIC
