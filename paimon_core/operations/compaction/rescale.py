"""Rescale: rewrite partitions whose number of buckets differs from the table's current number.

Changing the option ``bucket`` changes no file. A partition with rows keeps the number of buckets it was written with,
and refuses new rows until it is rewritten. Each partition is rewritten in a separate commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd

import pyarrow as pa

from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.retry import retry_on_conflict
from paimon_core.errors import CommitConflictError, InvalidInputError
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.bucket import InCountedBucket
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.operations.compaction.compact import plan_compaction, run_task
from paimon_core.operations.compaction.request import RescaleRequest
from paimon_core.operations.jobs.execute import run_plan
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.jobs.task import PlanRequest, partition_choice
from paimon_core.options.lsm import FULL_COMPACTION_DELTA_COMMITS, WRITE_ONLY
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.filter import bound_filter
from paimon_core.read.table_read import TableRead
from paimon_core.row.bucket import buckets
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import check_no_newer
from paimon_core.write.table_write import TableWrite

_ATTEMPTS = 5  # attempts for a partition that other commits keep changing


def rescale(
    store: FileStore,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
    progress: Progress | None = None,
    runner: Runner = LOCAL,
) -> Snapshot | None:
    """Rewrite the partitions whose number of buckets differs from the option ``bucket``.

    Rows do not change, and no changelog is written for them. Return the last new snapshot, or ``None`` if no partition
    differs. Memory: one read and one writer in each task.

    Args:
        store: the table to rescale.
        partitions: the partitions to rewrite, each as {column: value}; ``None``: all.
        filter: a bound predicate on partition columns; ``None``: all partitions.
        progress: called after every partition with the bytes done and the total bytes; ``None``: no progress reports.
        runner: runs a task for each new bucket of a partition. The local runner instead reads a partition once.

    Raises InvalidInputError for a table without a fixed number of buckets, CommitConflictError if other commits changed
    a partition in every attempt, OutOfRangeError if its snapshot had also expired. Finished partitions stay rescaled.
    """
    outdated = outdated_partitions(store, store.schema.bucket, partitions=partitions, filter=filter)
    sizes = {partition: sum(file.file_size for file in files) for partition, files in outdated.items()}
    total, bytes_done, snapshot = sum(sizes.values()), 0, None
    for partition in sorted(outdated, key=store.partition_path):
        snapshot = retry_on_conflict(partial(_rewrite, store, partition, runner), _ATTEMPTS) or snapshot
        bytes_done += sizes[partition]
        if progress is not None:
            progress(bytes_done, total)
    return snapshot


def check_rescale(store: FileStore, buckets: int) -> None:
    """Raise InvalidInputError if ``buckets`` or the table's number of buckets is not a fixed number."""
    if min(buckets, store.schema.bucket) <= 0:
        raise InvalidInputError(
            f"{store.root} has 'bucket' = {store.schema.bucket} and cannot be given {buckets}: only one fixed number "
            "of buckets can take the place of another; make a new table and copy the rows"
        )


def outdated_files(store: FileStore, request: RescaleRequest) -> dict[bytes, list[DataFileMeta]]:
    """Return the partitions that a rescale would rewrite now, with their data files. Nothing is changed.

    Raises InvalidInputError if the old or the new number of buckets is not fixed.
    """
    predicate = bound_filter(request.filter, store.schema.fields)
    buckets = store.schema.bucket if request.buckets is None else request.buckets
    if buckets != store.schema.bucket:
        check_rescale(store, buckets)
    return outdated_partitions(store, buckets, partitions=request.partitions, filter=predicate)


def outdated_partitions(
    store: FileStore,
    buckets: int,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
) -> dict[bytes, list[DataFileMeta]]:
    """Return the partitions that a rescale to a number of buckets would rewrite, with their data files.

    Args:
        store: the table to rescale.
        buckets: the number of buckets to compare with.
        partitions: the partitions to look at, each as {column: value}; ``None``: all.
        filter: a bound predicate on partition columns; ``None``: all partitions.

    Raises InvalidInputError for a table without a fixed number of buckets.
    """
    check_writable(store.schema)
    if store.schema.bucket <= 0:
        raise InvalidInputError(
            f"{store.root} has no fixed number of buckets (its option 'bucket' is {store.schema.bucket}): there is "
            "nothing to rescale"
        )
    partition_filter = partition_choice(store, partitions, filter)
    files: dict[bytes, list[DataFileMeta]] = {}
    outdated = set()
    for entry in retry_on_conflict(partial(_live, store, partition_filter), _ATTEMPTS):
        files.setdefault(entry.partition, []).append(entry.file)
        if entry.total_buckets != buckets:
            outdated.add(entry.partition)
    return {partition: files[partition] for partition in outdated}


def _live(store: FileStore, where: Predicate | None) -> list[ManifestEntry]:
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return []
    with raise_if_expired(store, snapshot):
        return live_entries(store, snapshot, partition=where, with_stats=False).live


def _rewrite(store: FileStore, partition: bytes, runner: Runner) -> Snapshot | None:
    where = partitions_predicate(store, {partition})
    producer, settings = store.traits.changelog_producer, {WRITE_ONLY.key: "false"}
    hidden = store.traits.hides_level_0 or (store.traits.keyed and producer in ("lookup", "full-compaction"))
    if hidden:  # an overwrite would not show these rows
        run_plan(store, plan_compaction, run_task, PlanRequest(full=True, partitions=where), runner=runner)
    if producer == "full-compaction":
        settings[FULL_COMPACTION_DELTA_COMMITS.key] = "1"  # else the next full compaction would emit each row as new
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return None
    if hidden and _hidden(store, snapshot, where):
        raise CommitConflictError(f"{store.partition_path(partition) or store.root} is being written continuously")
    store = store.with_options(settings)
    splits = TableScan(store, snapshot, where).plan().splits
    if runner is LOCAL:
        messages = rewritten(store, where, splits)
    else:
        tasks = plan_rescale(partition, store.schema.bucket, splits)
        results = runner.run_all(store, tasks, partial(_run_rescale, where, snapshot), None)
        messages = [message for message in results if not message.is_empty]
    publisher = Publisher(store)
    return publisher.publish_or_delete(replace_files, messages, where, only={partition}, read_at=snapshot).snapshot


@dataclass(frozen=True, slots=True)
class RescaleTask(InCountedBucket):
    """A task that writes one new bucket of a partition, with the splits that hold its rows."""

    partition: bytes
    bucket: int
    total_buckets: int
    splits: tuple[DataSplit, ...]

    @property
    def size(self) -> int:
        """The total bytes of the files that the task reads."""
        return sum(file.file_size for split in self.splits for file in split.files)

    @property
    def rows(self) -> int:
        """The stored rows of these files."""
        return sum(file.row_count for split in self.splits for file in split.files)


def plan_rescale(partition: bytes, count: int, splits: Sequence[DataSplit]) -> list[RescaleTask]:
    """Return a task for each of the `count` new buckets that may get rows.

    A bucket is ``h % n``, where ``h`` does not depend on ``n``. Therefore a row of bucket ``b`` of ``n`` moves to a
    bucket that equals ``b`` modulo ``gcd(n, count)``, and a task reads no other buckets.
    """
    tasks = []
    for bucket in range(count):
        splits_of_bucket = tuple(split for split in splits if _may_hold(split, bucket, count))
        if splits_of_bucket:
            tasks.append(RescaleTask(partition, bucket, count, splits_of_bucket))
    return tasks


def _may_hold(split: DataSplit, bucket: int, count: int) -> bool:
    old = split.location
    common = gcd(old.total_buckets, count) if old.bucket >= 0 and old.total_buckets > 0 else 1
    return old.bucket % common == bucket % common


def _run_rescale(where: Predicate | None, planned: Snapshot, store: FileStore, task: RescaleTask) -> CommitMessage:
    """Write the rows of one new bucket; the message is empty if the bucket gets no rows."""
    with raise_if_expired(store, planned):
        messages = rewritten(store, where, task.splits, task.bucket)
    return messages[0] if messages else CommitMessage(*task.location)


def rewritten(
    store: FileStore, where: Predicate | None, splits: Sequence[DataSplit], bucket: int | None = None
) -> list[CommitMessage]:
    """Write the rows of splits, or only the rows of one new ``bucket``; return the messages.

    Raises TableChangedError if the rows may have columns that ``store.schema`` does not have.
    """
    schema, read = store.schema, TableRead(store, store.schema.fields, where, keeps_descriptors=True)
    key = list(schema.bucket_keys)
    check_no_newer(store, [file for split in splits for file in split.files])
    with TableWrite(store, overwrite=True) as writer:
        for split in splits:
            for batch in read.to_batches(split):
                if bucket is not None:
                    row_buckets = buckets(batch.select(key), schema.bucket, store.bucket_function)
                    batch = batch.filter(pa.array(row_buckets == bucket))
                writer.write(batch, fills_defaults=False)
        return writer.prepare_commit()


def _hidden(store: FileStore, snapshot: Snapshot, where: Predicate | None) -> bool:
    """Return True if there are rows that reads do not show yet or that are not in the changelog yet."""
    with raise_if_expired(store, snapshot):
        levels = {e.file.level for e in live_entries(store, snapshot, partition=where, with_stats=False).live}
    full = store.traits.changelog_producer == "full-compaction"
    return bool(levels - {num_levels(store.options) - 1}) if full else 0 in levels
