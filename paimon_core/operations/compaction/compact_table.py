"""Compact a table of any kind: plan the tasks, run them with a runner, commit once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paimon_core.errors import InvalidInputError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.compaction import append_compact
from paimon_core.operations.compaction.append_compact import plan_append
from paimon_core.operations.compaction.compact import plan_compaction, run_task
from paimon_core.operations.compaction.compact_postponed import compact_postponed
from paimon_core.operations.compaction.request import CompactionRequest
from paimon_core.operations.jobs.execute import run_plan
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.jobs.task import Buckets, CompactionTask, PlanRequest, partition_choice
from paimon_core.operations.partitions.expire_partitions import partitions_not_due
from paimon_core.operations.row_changes import data_evolution
from paimon_core.operations.row_changes.data_evolution import plan_row_ranges
from paimon_core.options.lsm import COMPACTION_SKIP_EXPIRED_PARTITIONS
from paimon_core.predicate.expr import Predicate, conjunction
from paimon_core.predicate.filter import bound_filter
from paimon_core.scan.entries import live_entries, live_in_parts
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import POSTPONE_BUCKET
from paimon_core.write.routing import BucketMode, bucket_mode


def compact_table(
    store: FileStore, request: CompactionRequest, *, runner: Runner = LOCAL, progress: Progress | None = None
) -> Snapshot | None:
    """Compact a table and commit once as COMPACT; return the last snapshot, ``None`` if nothing was due.

    Postponed rows are routed to buckets first. If another commit replaces files of a bucket at the same time (and
    expiry may already have deleted the old files), the bucket is planned and compacted again in another commit. A
    bucket that other processes keep replacing is left to them.

    Args:
        store: the table to compact.
        request: the files to compact; its sort order is ignored.
        runner: runs the tasks.
        progress: called after every task with the bytes done and the total bytes; ``None``: no progress reports.

    Raises CorruptedError for a file that is missing although its snapshot exists, OutOfRangeError if snapshots expire
    faster than they are planned. After an error, except CommitUnknownError, no new file remains.
    """
    check_writable(store.schema)
    planned, routed = _plan_request(store, request), None
    if bucket_mode(store.schema) is BucketMode.POSTPONE:
        routed = compact_postponed(store, planned.partitions)
    plan, run = _plan_and_run(store)
    snapshot, _ = run_plan(store, plan, run, planned, runner=runner, progress=progress)
    return snapshot or routed


def plan_table(store: FileStore, request: CompactionRequest) -> tuple[Sequence[CompactionTask], int]:
    """Return the tasks that `compact_table` would run now, and the number of postponed files.

    Tasks that become due only after postponed rows are routed are not included. Arguments and errors: see
    `compact_table`. Nothing is changed.
    """
    check_writable(store.schema)
    planned = _plan_request(store, request).at_snapshot(store)
    if planned.snapshot is None:
        return [], 0
    plan, _ = _plan_and_run(store)
    postponed = 0
    if bucket_mode(store.schema) is BucketMode.POSTPONE:
        entries = live_entries(store, planned.snapshot, partition=planned.partitions)
        postponed = sum(entry.bucket == POSTPONE_BUCKET for entry in entries.live)
    return plan(store, planned), postponed


def _plan_request(store: FileStore, request: CompactionRequest) -> PlanRequest:
    """Return the plan request: partitions become a predicate, bucket numbers the buckets that have files."""
    predicate = bound_filter(request.filter, store.schema.fields)
    partitions = _choice(store, request.partitions, predicate)
    return PlanRequest(request.full, partitions, _numbered(store, partitions, request.buckets))


def _choice(
    store: FileStore, partitions: Sequence[Mapping[str, object]] | None, filter: Predicate | None
) -> Predicate | None:
    """Return a predicate for the selected partitions, without partitions due for expiry if an option excludes them."""
    partition_filter = partition_choice(store, partitions, filter)
    if not store.options.value(COMPACTION_SKIP_EXPIRED_PARTITIONS):
        return partition_filter
    return conjunction([part for part in (partition_filter, partitions_not_due(store)) if part is not None])


def _numbered(store: FileStore, partitions: Predicate | None, numbers: Sequence[int] | None) -> Buckets | None:
    """Return the buckets with these numbers that have files; `None`: all buckets.

    Raises InvalidInputError for a table without a fixed number of buckets, and for a number out of range.
    """
    if numbers is None:
        return None
    if bucket_mode(store.schema) is not BucketMode.HASH_FIXED:
        raise InvalidInputError(
            f"{store.root} has no fixed number of buckets ('bucket' = {store.schema.bucket}), so buckets cannot be "
            "selected: select partitions"
        )
    snapshot, requested = store.snapshots.latest(), set(numbers)
    refs: set[BucketRef] = set()
    most = store.schema.bucket
    if snapshot is not None:
        with raise_if_expired(store, snapshot):
            for entries in live_in_parts(store, snapshot, partition=partitions, with_stats=False):
                most = max([most, *(entry.total_buckets for entry in entries)])
                refs |= {entry.bucket_ref for entry in entries if entry.bucket in requested}
    if not requested or min(requested) < 0 or max(requested) >= most:
        raise InvalidInputError(
            f"{store.root} has the buckets 0 to {most - 1}, got {'none' if not requested else sorted(requested)[:20]}"
        )
    return refs


def _plan_and_run(
    store: FileStore,
) -> tuple[Callable[[FileStore, PlanRequest], Sequence[CompactionTask]], Callable[[FileStore, Any], CommitMessage]]:
    """Return the functions that plan and run the tasks for the table's kind."""
    if store.traits.keyed:
        return plan_compaction, run_task
    if store.traits.data_evolution:
        return plan_row_ranges, data_evolution.run
    return plan_append, append_compact.run
