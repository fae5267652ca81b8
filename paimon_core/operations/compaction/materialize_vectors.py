"""Rewrite files with deleted rows, so that no deletion vector remains."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from paimon_core.datafile.deletion_vectors import deleted_rows, restrict_to_files, vector_entries, vectors_by_bucket
from paimon_core.errors import UnsupportedError
from paimon_core.operations.compaction import append_compact
from paimon_core.operations.compaction.append_compact import AppendCompactTask
from paimon_core.operations.compaction.compact import CompactTask, plan_compaction, run_task
from paimon_core.operations.jobs.execute import run_plan
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.jobs.task import PlanRequest, live_files, partition_choice
from paimon_core.predicate.expr import Predicate
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


def materialize_vectors(
    store: FileStore,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
) -> Snapshot | None:
    """Rewrite the files that have deletion vectors in one commit; return `None` if no file has one.

    Without a primary key, each file with deleted rows is rewritten without them. With a primary key, all files of a
    bucket with vectors are compacted. Arguments and errors: see `compact_table`.

    Raises UnsupportedError for deletion vectors of a table with data evolution, whose rows would need new row ids.
    """
    check_writable(store.schema)
    request = PlanRequest(True, partition_choice(store, partitions, filter))
    if store.traits.keyed:
        return run_plan(store, plan_keyed, run_task, request, runner=runner, progress=progress)[0]
    return run_plan(store, plan_append, append_compact.run, request, runner=runner, progress=progress)[0]


def plan_keyed(store: FileStore, request: PlanRequest) -> list[CompactTask]:
    """Return a full compaction of each bucket with vectors. REQUIRES: a table with a primary key."""
    request = request.at_snapshot(store)
    buckets = set(vectors_by_bucket(store, request.snapshot))
    if request.buckets is not None:
        buckets &= set(request.buckets)
    return plan_compaction(store, replace(request, buckets=buckets)) if buckets else []


def plan_append(store: FileStore, request: PlanRequest) -> list[AppendCompactTask]:
    """Return a task for each file with a vector. REQUIRES: a table without a primary key.

    Raises UnsupportedError for vectors of a table with data evolution, in the very snapshot that is planned.
    """
    request = request.at_snapshot(store)
    entries = vector_entries(store, request.snapshot)
    if not entries:
        return []
    if store.traits.data_evolution:
        raise UnsupportedError(
            f"deletion vectors of {store.root} cannot be materialized: with 'data-evolution.enabled', the rows that "
            "remain would need new row ids; overwrite the partitions with their rows"
        )
    tasks: list[AppendCompactTask] = []
    for bucket, files in live_files(store, request).items():
        deleted = deleted_rows(entries, files)
        tasks.extend(
            AppendCompactTask(*bucket, (file,), restrict_to_files(entries, {file.file_name}))
            for file in files
            if file.file_name in deleted
        )
    return tasks
