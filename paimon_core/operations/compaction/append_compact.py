"""Compaction of append tables: a plan of tasks, each a group of small files of one bucket."""

from dataclasses import dataclass

from paimon_core.datafile.deletion_vectors import deleted_rows, read_entries, restrict_to_files, vector_entries
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.jobs.task import ALL_DUE, BucketFiles, PlanRequest, live_files
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import append_compaction_policy, concatenate
from paimon_core.write.routing import BucketMode, bucket_mode


@dataclass(frozen=True, slots=True)
class AppendCompactTask(BucketFiles):
    """A task that compacts files of one bucket into fewer files."""


def plan_append(store: FileStore, request: PlanRequest = ALL_DUE) -> list[AppendCompactTask]:
    """Return the tasks that are due. REQUIRES: a table without a primary key.

    In fixed buckets, whose rows are ordered, only adjacent files are compacted together. A full request also compacts
    groups of fewer than ``compaction.min.file-num`` small files, and files with few deleted rows.
    """
    request = request.at_snapshot(store)
    policy = append_compaction_policy(store)
    pick = policy.unordered if bucket_mode(store.schema) is BucketMode.BUCKET_UNAWARE else policy.ordered
    entries = vector_entries(store, request.snapshot)
    return [
        AppendCompactTask(*bucket, group, restrict_to_files(entries, {f.file_name for f in group}))
        for bucket, files in live_files(store, request).items()
        for group in pick(files, full=request.full, deleted=deleted_rows(entries, files))
    ]


def run(store: FileStore, task: AppendCompactTask) -> CommitMessage:
    """Write the new files, which are invisible until the message is committed. After an error no file remains."""
    return task.message(concatenate(store, task.bucket_ref, task.files, read_entries(store, task.vectors)))
