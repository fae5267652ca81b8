"""What all plans of upkeep have in common: tasks are values, and partitions are chosen the same way."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from paimon_core.commit.overwrite import partition_predicate
from paimon_core.errors import InvalidInputError
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.predicate.expr import Predicate, conjunction
from paimon_core.predicate.rewrite import columns
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

__all__ = ["BucketFiles", "Buckets", "CompactionTask", "Place", "files_by_bucket", "partition_choice"]

Buckets: TypeAlias = Collection[tuple[bytes, int]]
Place: TypeAlias = tuple[bytes, int, int]
"""Partition, bucket and number of buckets."""


class CompactionTask(Protocol):
    """A part of a plan: frozen and picklable, so that it may run in any process that has the same table open."""

    @property
    def partition(self) -> bytes:
        """Where it writes: the partition, serialised."""

    @property
    def bucket(self) -> int:
        """Where it writes: the bucket."""

    @property
    def size(self) -> int:
        """Bytes of the files it replaces."""

    @property
    def rows(self) -> int:
        """Rows stored in these files."""


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """Files of one bucket, as the whole of a task, and the index files that say which of their rows are deleted."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    vectors: tuple[IndexManifestEntry, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(f.file_size for f in self.files)

    @property
    def rows(self) -> int:
        """Rows of the files."""
        return sum(f.row_count for f in self.files)


def partition_choice(
    store: FileStore, partitions: Sequence[Mapping[str, object]] | None, predicate: Predicate | None
) -> Predicate | None:
    """A bound predicate for partitions given as {column: value} that also match ``predicate`` (bound); None: all.

    Raises InvalidInputError where either names something other than partition columns: compaction replaces whole files.
    """
    if predicate is not None:
        others = sorted(columns(predicate) - set(store.schema.partition_keys))
        if others:
            raise InvalidInputError(
                f"the filter of a compaction chooses partitions, but {others[0]!r} is no partition column of "
                f"{store.root}: its partition columns are {list(store.schema.partition_keys)}"
            )
    chosen = [] if partitions is None else [partition_predicate(store, partitions)]
    return conjunction([*chosen, *([] if predicate is None else [predicate])])


def files_by_bucket(
    store: FileStore,
    snapshot: Snapshot,
    *,
    partition: Predicate | None = None,
    buckets: Buckets | None = None,
    with_stats: bool = False,
) -> dict[Place, list[DataFileMeta]]:
    """The live files of each bucket, in partitions that match (bound) and among ``buckets``; rows that have yet to be
    dealt out to a bucket are in none. Files that may move as they are have to take their statistics along."""
    found: dict[Place, list[DataFileMeta]] = {}
    for entry in live_entries(store, snapshot, partition=partition, buckets=buckets, with_stats=with_stats).live:
        if entry.bucket >= 0:
            found.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append(entry.file)
    return found
