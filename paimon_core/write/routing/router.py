"""The routing seam: what a router is, and which mode a table is in."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import pyarrow as pa

from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.options.bucket import BUCKET
from paimon_core.schema.table_schema import TableSchema
from paimon_core.write.restore import Restore


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in order of arrival, their kinds (int8; None: all inserts), and their partitions."""

    rows: pa.RecordBatch
    kinds: pa.Array | None
    partitions: np.ndarray
    """For every row the index of its partition in ``found``."""
    found: list[bytes]


@dataclass(frozen=True, slots=True)
class Indexes:
    """What became of the index of keys of one bucket that rows were written to."""

    routed_by: tuple[IndexManifestEntry, ...] = ()
    """The index file that said which of its keys were there, if it had one."""
    new: tuple[IndexManifestEntry, ...] = ()
    """Files with keys that came."""


@dataclass(frozen=True, slots=True)
class KeyShard:
    """Which keys a writer gets all rows of: those whose hash is ``number`` modulo ``of``."""

    number: int = 0
    of: int = 1
    slots: int = 0
    """Where keys stay in their partition: the slots of a partition, each of which one writer gets all new keys of."""


ALL_KEYS = KeyShard()
"""The share of a writer without others. None stands for that of writers any of which may meet any key."""


class Router(Protocol):
    """Deals rows out to the buckets of their partitions.

    Laws: all rows of a key go to one bucket; cutting the rows into batches differently changes nothing.
    """

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        """The rows to be written, and the bucket (int32) of each: those given, unless the mode says otherwise.

        What the mode must know of the partitions is loaded into ``restore``.
        """

    def total_buckets(self, partition: bytes) -> int:
        """What files of this partition are to say about its number of buckets."""

    def write_indexes(self) -> dict[tuple[bytes, int], Indexes]:
        """Write what was learned since the last call; the files are the caller's, also to delete. By bucket."""

    def close(self) -> None:
        """Let go of memory and local files."""


class RowRouter:
    """A router that looks at nothing but the row."""

    def __init__(self, bucket_of: Callable[[pa.RecordBatch], np.ndarray], total: int) -> None:
        self._bucket_of, self._total = bucket_of, total

    def route(self, batch: Batch, restore: Restore) -> tuple[Batch, np.ndarray]:
        """The rows as they are."""
        return batch, self._bucket_of(batch.rows)

    def total_buckets(self, partition: bytes) -> int:
        """The same for all."""
        return self._total

    def write_indexes(self) -> dict[tuple[bytes, int], Indexes]:
        """There are none."""
        return {}

    def close(self) -> None:
        """There is nothing to let go of."""


class BucketMode(Enum):
    """How a table deals rows out to buckets (behaviour 6)."""

    HASH_FIXED = "fixed buckets"
    HASH_DYNAMIC = "dynamic buckets"
    KEY_DYNAMIC = "cross-partition dynamic buckets"
    POSTPONE = "postponed buckets"
    BUCKET_UNAWARE = "no buckets"


def bucket_mode(schema: TableSchema) -> BucketMode:
    """The mode that keys and the option ``bucket`` put the table in."""
    buckets = schema.options.value(BUCKET)
    if buckets > 0:
        return BucketMode.HASH_FIXED
    if not schema.primary_keys:
        return BucketMode.BUCKET_UNAWARE
    if buckets == -2:
        return BucketMode.POSTPONE
    return BucketMode.HASH_DYNAMIC if set(schema.partition_keys) <= set(schema.primary_keys) else BucketMode.KEY_DYNAMIC
