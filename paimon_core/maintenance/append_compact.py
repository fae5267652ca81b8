"""Compaction of append tables: a plan of tasks, each a group of small files of one bucket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paimon_core.datafile.deletion_vectors import deleted_rows, read_entries, restrict_to_files, vector_entries
from paimon_core.maintenance.task import BucketFiles, Buckets, live_files, partition_choice
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.predicate.expr import Predicate
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import append_compaction_policy, concatenate
from paimon_core.write.routing import BucketMode, bucket_mode


@dataclass(frozen=True, slots=True)
class AppendCompactTask(BucketFiles):
    """A task that compacts files of one bucket into fewer ones."""


def plan_append(
    store: FileStore,
    *,
    full: bool = False,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
    buckets: Buckets | None = None,
    snapshot: Snapshot | None = None,
) -> list[AppendCompactTask]:
    """Return the tasks that are due.

    In fixed buckets, whose rows are ordered, only adjacent files are compacted together.

    Args:
        store: of a table without a primary key (REQUIRES).
        full: also compact fewer than ``compaction.min.file-num`` small files, and files with few deleted rows.
        partitions: the partitions to compact, each as {column: value}; ``None``: all.
        filter: a bound predicate on partition columns.
        buckets: the buckets to compact; ``None``: all.
        snapshot: the snapshot to compact; ``None``: the newest.

    Raises InvalidInputError for a filter on other columns.
    """
    check_writable(store.schema)
    chosen = partition_choice(store, partitions, filter)
    snapshot = snapshot or store.snapshots.latest()
    if snapshot is None:
        return []
    found = live_files(store, snapshot, partition=chosen, buckets=buckets)
    picks = append_compaction_policy(store)
    pick = picks.unordered if bucket_mode(store.schema) is BucketMode.BUCKET_UNAWARE else picks.ordered
    entries = vector_entries(store, snapshot)
    return [
        AppendCompactTask(*at, group, restrict_to_files(entries, {f.file_name for f in group}))
        for at, files in found.items()
        for group in pick(files, full=full, deleted=deleted_rows(entries, files))
    ]


def run(store: FileStore, task: AppendCompactTask) -> CommitMessage:
    """Write the new files; no reader sees them until the message is committed. After an error no file is left."""
    after = concatenate(store, task.bucket_ref, task.files, read_entries(store, task.vectors))
    return CommitMessage(
        *task.location,
        compact_before=task.files,
        compact_after=after,
        compact_deleted_indexes=task.vectors,
    )
