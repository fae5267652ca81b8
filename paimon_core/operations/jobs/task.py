"""The common parts of all maintenance plans: picklable tasks, partition filters, and files grouped by bucket."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from paimon_core.commit.overwrite import partition_predicate
from paimon_core.errors import InvalidInputError, listed_names
from paimon_core.manifest.bucket import BucketLocation, BucketRef, InCountedBucket
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import files_by_bucket
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.predicate.expr import Predicate, conjunction
from paimon_core.predicate.rewrite import columns
from paimon_core.scan.entries import live_entries
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

Buckets: TypeAlias = Collection[BucketRef]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The scope of a plan: the files that it may use, and how much of them it compacts."""

    full: bool = False
    """True to compact as much as possible, False to compact only what is due."""
    partitions: Predicate | None = None
    """A bound predicate on partition columns (see `partition_choice`). `None`: all partitions."""
    buckets: Buckets | None = None
    """The buckets to plan; `None`: all buckets."""
    snapshot: Snapshot | None = None
    """The snapshot to plan; `None`: the newest one (see `at_snapshot`)."""

    def at_snapshot(self, store: FileStore) -> "PlanRequest":
        """Return the request with its snapshot resolved; `None` then means that the table has no snapshot."""
        check_writable(store.schema)
        return self if self.snapshot is not None else replace(self, snapshot=store.snapshots.latest())


ALL_DUE = PlanRequest()
"""The request for everything that is due in the newest snapshot of the whole table."""


class CompactionTask(Protocol):
    """A part of a plan; frozen and picklable, so that any process with the same table can run it."""

    @property
    def bucket_ref(self) -> BucketRef:
        """The bucket that the task writes to."""

    @property
    def size(self) -> int:
        """The total bytes of the files that the task replaces."""

    @property
    def rows(self) -> int:
        """The number of stored rows in these files."""


@dataclass(frozen=True, slots=True)
class BucketFiles(InCountedBucket):
    """A task on files of one bucket, with the index files that hold their deletion vectors."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    vectors: tuple[IndexManifestEntry, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of the files."""
        return sum(f.file_size for f in self.files)

    @property
    def rows(self) -> int:
        """The stored rows of the files."""
        return sum(f.row_count for f in self.files)

    def message(self, after: tuple[DataFileMeta, ...]) -> CommitMessage:
        """Return the message of a compaction that replaced the files by ``after`` and applied the deletion vectors."""
        return CommitMessage(
            *self.location, compact_before=self.files, compact_after=after, compact_deleted_indexes=self.vectors
        )


def partition_choice(
    store: FileStore, partitions: Sequence[Mapping[str, object]] | None, predicate: Predicate | None
) -> Predicate | None:
    """Return a bound predicate for the partitions {column: value} that also match ``predicate`` (bound).

    ``None``: all partitions. Raises InvalidInputError if either uses columns other than partition columns, because
    compaction replaces whole files.
    """
    if predicate is not None:
        other_columns = sorted(columns(predicate) - set(store.schema.partition_keys))
        if other_columns:
            raise InvalidInputError(
                f"the filter of a compaction selects partitions, but {other_columns[0]!r} is no partition column of "
                f"{store.root}: its partition columns are "
                f"{listed_names(other_columns[0], store.schema.partition_keys)}"
            )
    predicates = [] if partitions is None else [partition_predicate(store, partitions)]
    return conjunction([*predicates, *([] if predicate is None else [predicate])])


def live_files(
    store: FileStore, request: PlanRequest, *, with_stats: bool = False
) -> dict[BucketLocation, list[DataFileMeta]]:
    """Return the requested live files by bucket, without postponed buckets; empty if the table has no snapshot.

    ``with_stats``: True to read column statistics, too. REQUIRES: True if a file may be upgraded, because the new entry
    of an upgraded file keeps its statistics.
    """
    if request.snapshot is None:
        return {}
    live = live_entries(
        store, request.snapshot, partition=request.partitions, buckets=request.buckets, with_stats=with_stats
    )
    return files_by_bucket(entry for entry in live.live if entry.bucket >= 0)
