"""Compaction of primary-key tables: one task for each bucket that is due for compaction."""

from dataclasses import replace

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.datafile.deletion_vectors import read_entries, stored_vectors, vectors_by_bucket, write_vectors
from paimon_core.datafile.writer import local_millis
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import UniversalCompaction, num_levels
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.jobs.task import ALL_DUE, PlanRequest, live_files
from paimon_core.store.file_store import FileStore
from paimon_core.write.compactor import CompactTask, compact, expiring, overlapping_names

__all__ = ["CompactTask", "plan_compaction", "run_task"]


def plan_compaction(store: FileStore, request: PlanRequest = ALL_DUE) -> list[CompactTask]:
    """Return the tasks that are due, at most one for each bucket. REQUIRES: a table with a primary key.

    The option ``write-only`` is ignored. A full request compacts all files of a bucket to the highest level.
    """
    request, full = request.at_snapshot(store), request.full
    policy, clock, old = UniversalCompaction.of(store.options), local_millis(store.now()), expiring(store)
    vectors = vectors_by_bucket(store, request.snapshot)
    tasks = []
    for bucket, files in live_files(store, request, with_stats=True).items():
        levels = Levels.of(files, store.schema.key_arrow, num_levels(store.options))
        entries = vectors.get(bucket.ref, ())
        marked = stored_vectors(store, entries)
        past = {f.file_name for f in files if full and (f.file_name in marked or old(f))}
        unit = policy.full(levels, past) if full else policy.pick(levels, clock)
        if unit is not None:
            tasks.append(CompactTask.of(store, bucket, levels, unit, entries))
    return tasks


def run_task(store: FileStore, task: CompactTask) -> CommitMessage:
    """Write the new files, which are invisible until the message is committed. After an error no file remains."""
    vectors_before = read_entries(store, task.vectors)
    done = compact(store, task, vectors_before)
    message = CommitMessage(
        *task.location,
        compact_before=done.before,
        compact_after=done.after,
        compact_changelog=done.changelog,
        compact_lookup_files=overlapping_names(store, task.unit.files, task.higher),
    )
    vectors_after = done.vectors(vectors_before)
    if vectors_after == vectors_before:
        return message
    try:
        new = write_vectors(store, task.bucket_ref, vectors_after)
    except BaseException:
        delete_written_files(store, [message])
        raise
    return replace(message, compact_new_indexes=new, compact_deleted_indexes=task.vectors)
