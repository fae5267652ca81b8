"""Compaction of a table of any kind: plan the tasks, have a runner run them, commit once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paimon_core.maintenance import append_compact, data_evolution
from paimon_core.maintenance.append_compact import plan_append
from paimon_core.maintenance.compact import plan_compaction, run_task
from paimon_core.maintenance.compact_postponed import compact_postponed
from paimon_core.maintenance.data_evolution import plan_row_ranges
from paimon_core.maintenance.execute import LOCAL, Progress, Runner, run_plan
from paimon_core.maintenance.task import CompactionTask, PlanRequest, partition_choice
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.entries import live_entries
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import POSTPONE_BUCKET
from paimon_core.write.routing import BucketMode, bucket_mode


def compact_table(
    store: FileStore,
    *,
    full: bool = False,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
) -> Snapshot | None:
    """Compact a table and commit once as COMPACT; return the last snapshot, ``None``: nothing was due.

    Postponed rows are routed to buckets first. If others replaced files of a bucket meanwhile (and may have deleted
    them with their snapshot), the bucket is planned and compacted again, in another commit. A bucket that others keep
    replacing is left to them.

    Args:
        store: of the table.
        full: compact as much as possible, instead of what is due.
        partitions: the partitions to compact, each as {column: value}; ``None``: all.
        filter: a bound predicate on partition columns.
        runner: runs the tasks.
        progress: called after every task with the bytes done and the bytes in all.

    Raises CorruptedError for a file that is missing while its snapshot exists, OutOfRangeError if snapshots expire
    faster than they are planned. After an error no file is left, but for CommitUnknownError.
    """
    check_writable(store.schema)
    request, routed = PlanRequest(full, partition_choice(store, partitions, filter)), None
    if bucket_mode(store.schema) is BucketMode.POSTPONE:
        routed = compact_postponed(store, request.partitions)
    plan, run = _plan_and_run(store)
    made, _ = run_plan(store, plan, run, request, runner=runner, progress=progress)
    return made or routed


def plan_table(
    store: FileStore,
    *,
    full: bool = False,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
) -> tuple[Sequence[CompactionTask], int]:
    """Return the tasks that `compact_table` would run now, and the number of postponed files.

    The tasks that follow when postponed rows have got their buckets are not among them. Arguments and errors are those
    of `compact_table`; nothing is changed.
    """
    check_writable(store.schema)
    request = PlanRequest(full, partition_choice(store, partitions, filter)).at_snapshot(store)
    if request.snapshot is None:
        return [], 0
    plan, _ = _plan_and_run(store)
    postponed = 0
    if bucket_mode(store.schema) is BucketMode.POSTPONE:
        found = live_entries(store, request.snapshot, partition=request.partitions)
        postponed = sum(entry.bucket == POSTPONE_BUCKET for entry in found.live)
    return plan(store, request), postponed


def _plan_and_run(
    store: FileStore,
) -> tuple[Callable[[FileStore, PlanRequest], Sequence[CompactionTask]], Callable[[FileStore, Any], CommitMessage]]:
    """Return the functions that plan and run the tasks of the kind of the table."""
    if store.traits.keyed:
        return plan_compaction, run_task
    if store.traits.data_evolution:
        return plan_row_ranges, data_evolution.run
    return plan_append, append_compact.run
