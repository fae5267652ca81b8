"""Compaction after a write in which several writers wrote to one bucket.

A snapshot after the rows compacts each bucket as an exclusive writer would have done.
"""

from collections.abc import Callable, Sequence
from functools import partial

from paimon_core.datafile.deletion_vectors import vectors_by_bucket
from paimon_core.datafile.writer import local_millis
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import UniversalCompaction, num_levels
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.operations.jobs.execute import run_plan
from paimon_core.operations.jobs.runner import LOCAL, Runner
from paimon_core.operations.jobs.task import BucketFiles, Buckets, PlanRequest, live_files
from paimon_core.options.lsm import WRITE_ONLY
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import InlineAppend, append_compaction_policy
from paimon_core.write.bucket_compaction import BucketCompaction
from paimon_core.write.bucket_state import BucketState
from paimon_core.write.routing import BucketMode, bucket_mode
from paimon_core.write.writer_plan import runs_full_compaction


def compact_written_buckets(
    store: FileStore,
    touched: Buckets,
    *,
    writes_changelog: bool = True,
    number: int | None = None,
    runner: Runner = LOCAL,
) -> Snapshot | None:
    """Compact the due buckets of the newest snapshot; return the COMPACT snapshot, or `None`.

    A table that is ``write-only`` or has no buckets is not compacted.

    Args:
        store: the table that was written.
        touched: the buckets that were written.
        writes_changelog: True to write the changelog of the table's producer; False after an overwrite.
        number: the commit's number if its user numbers commits, else `None`. With ``full-compaction.delta-commits``
            = n, a full compaction of all buckets follows if ``number % n == 0``, because earlier commits' buckets are
            also due.
        runner: runs the compactions.

    Raises the errors of the commit; the rows are already committed. Memory: two compactions, for any bucket sizes.
    """
    touched = {at for at in touched if at.bucket >= 0}  # postponed buckets are routed later
    if not touched or store.options.value(WRITE_ONLY) or bucket_mode(store.schema) is BucketMode.BUCKET_UNAWARE:
        return None
    full = runs_full_compaction(store.options, number)
    request = PlanRequest(buckets=None if full and number is not None else touched)
    run = partial(_compact_bucket, full=full, writes_changelog=writes_changelog)
    return run_plan(store, partial(_plan, full=full), run, request, runner=runner)[0]


def _plan(store: FileStore, request: PlanRequest, *, full: bool) -> list[BucketFiles]:
    keyed = bool(store.schema.primary_keys)  # only files with keys are upgraded
    vectors = vectors_by_bucket(store, request.snapshot) if keyed else {}
    live = live_files(store, request, with_stats=keyed)
    due = _is_due_with_key(store) if keyed else _is_due_without_key(store)
    return [
        BucketFiles(*bucket, tuple(files), vectors.get(bucket.ref, ()))
        for bucket, files in live.items()
        if full or due(files)
    ]


def _is_due_with_key(store: FileStore) -> Callable[[Sequence[DataFileMeta]], bool]:
    """Return a predicate: True if the policy would compact these files, so that no task starts in vain."""
    policy, levels = UniversalCompaction.of(store.options), num_levels(store.options)
    clock = local_millis(store.now())
    return lambda files: policy.pick(Levels.of(files, store.schema.key_arrow, levels), clock) is not None


def _is_due_without_key(store: FileStore) -> Callable[[Sequence[DataFileMeta]], bool]:
    if store.traits.deletion_vectors:  # the policy needs the number of deleted rows of each file
        return lambda files: True
    policy = append_compaction_policy(store)
    return lambda files: bool(policy.ordered(files, full=False))


def _compact_bucket(store: FileStore, task: BucketFiles, *, full: bool, writes_changelog: bool) -> CommitMessage:
    if store.schema.primary_keys:
        return _compact_keyed(store, task, full=full, writes_changelog=writes_changelog)
    return _compact_appended(store, task, full=full)


def _compact_keyed(store: FileStore, task: BucketFiles, *, full: bool, writes_changelog: bool) -> CommitMessage:
    state = BucketState(vectors=task.vectors)
    compaction = BucketCompaction(store, task.location, state, writes_changelog=writes_changelog)
    compaction.add(task.files)
    try:
        if full:
            compaction.full()
        else:
            compaction.compact_if_due()
        compaction.write_deletion_vectors()
    except BaseException:
        compaction.abort()
        raise
    return compaction.release()


def _compact_appended(store: FileStore, task: BucketFiles, *, full: bool) -> CommitMessage:
    compaction = InlineAppend(store, task.location, task.files)
    try:
        message = compaction.run((), full=full)
    except BaseException:
        compaction.abort()
        raise
    compaction.release()
    return message.message(task.location)
