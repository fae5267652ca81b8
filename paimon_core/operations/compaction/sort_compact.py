"""Cluster append tables: sort the rows of a partition by columns, or along a curve, into new files.

Rows that match a filter on these columns are then in few files, and statistics prune the rest. Every partition is a
task, which may be divided into key ranges to run in several processes. The result is committed as a compaction that
replaces exactly the files that were read. Thus rows appended at the same time stay as they are, and a concurrent
overwrite of the partition is a conflict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from paimon_core.datafile.deletion_vectors import read_entries, restrict_to_files, rows_left, vector_entries
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.datafile.spec import DataFileSpec, target_size
from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import FileSource
from paimon_core.operations.compaction.cluster_key import ClusterKey, bound_ranks, distinct, quantiles
from paimon_core.operations.compaction.external_sort import SortLimits, sample_rows, sort_stream
from paimon_core.operations.jobs.execute import run_plan
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.jobs.task import ALL_DUE, BucketFiles, PlanRequest, live_files, partition_choice
from paimon_core.options.lsm import CLUSTERING_COLUMNS, CLUSTERING_STRATEGY
from paimon_core.predicate.expr import Predicate
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField
from paimon_core.write.append_compactor import check_no_newer, stored_fields, write_rows
from paimon_core.write.routing import BucketMode, bucket_mode


@dataclass(frozen=True, slots=True)
class SortCompactTask(BucketFiles):
    """A partition to sort, or one of its key ranges: the rows with ``part`` bounds at or below their keys."""

    key: ClusterKey = field(kw_only=True)
    bounds: pa.Table | None = None
    part: int = 0

    @property
    def parts(self) -> int:
        """The number of tasks into which the partition is divided."""
        return 1 if self.bounds is None else self.bounds.num_rows + 1

    @property
    def size(self) -> int:
        """The total bytes of the files, divided by the number of parts."""
        return sum(f.file_size for f in self.files) // self.parts

    @property
    def rows(self) -> int:
        """The rows of the files, divided by the number of parts."""
        return sum(f.row_count for f in self.files) // self.parts


def cluster_key(store: FileStore, order_by: Sequence[str] | None, strategy: str | None) -> ClusterKey:
    """Return the key to sort by.

    Args:
        store: the table to sort.
        order_by: column names; ``None``: the option ``clustering.columns``.
        strategy: "order", "zorder", "hilbert", or "auto": order for one column, zorder for up to four, else hilbert.
            ``None``: order for ``order_by``, else the option ``clustering.strategy``.

    Raises InvalidInputError for columns that the table does not have or that have no order.
    """
    clustering: tuple[str, ...] = store.options.value(CLUSTERING_COLUMNS)
    columns = clustering if order_by is None else order_by
    curve = strategy or (store.options.value(CLUSTERING_STRATEGY) if order_by is None else "order")
    if not columns:
        raise InvalidInputError("no columns to sort by: pass order_by, or set 'clustering.columns'")
    if curve.lower() == "auto":
        curve = "order" if len(columns) == 1 else "zorder" if len(columns) <= 4 else "hilbert"
    return ClusterKey.over(store.schema, columns, curve.lower())


def plan_sort(
    store: FileStore, key: ClusterKey, request: PlanRequest = ALL_DUE, *, parts: int = 1, part_size: int = 1
) -> list[SortCompactTask]:
    """Return the tasks for the requested partitions.

    Cost of a division: one read of the key columns during planning, and every part reads all files of its partition. It
    pays off if sorting and encoding take more time than reading.

    Args:
        store: the table to sort.
        key: the key to sort by.
        request: the partitions to sort, each as a whole.
        parts: maximum number of tasks into which a partition is divided.
        part_size: approximate minimum size of a part in bytes.

    Raises InvalidInputError for a table with a primary key or fixed buckets, whose rows already have an order.
    """
    _check_sortable(store)
    request = request.at_snapshot(store)
    entries = vector_entries(store, request.snapshot)
    tasks = [
        SortCompactTask(*bucket, tuple(files), restrict_to_files(entries, {f.file_name for f in files}), key=key)
        for bucket, files in live_files(store, request).items()
    ]
    return [part for task in tasks if task.rows for part in _divide(store, task, min(parts, task.size // part_size))]


def _check_sortable(store: FileStore) -> None:
    check_writable(store.schema)
    if store.traits.data_evolution:
        raise InvalidInputError(
            f"{store.root} cannot be sorted: with 'data-evolution.enabled' rows are ordered by their ids"
        )
    if bucket_mode(store.schema) is not BucketMode.BUCKET_UNAWARE:
        raise InvalidInputError(
            f"{store.root} cannot be sorted: sorting needs a table without a primary key and with bucket = -1, because "
            "other tables determine the order of rows"
        )


def run(store: FileStore, task: SortCompactTask) -> CommitMessage:
    """Sort and write new files, which are invisible until the message is committed. After an error no file remains.

    The messages of all parts of a partition must be joined by `join_parts` and committed together, because only the
    first part lists the replaced files. Memory: `SortLimits`; further rows are spilled to local disk.
    """
    check_no_newer(store, task.files)
    key = task.key if task.key.is_ready else task.key.learned(_sample(store, task))
    rows = _rows(store, task, stored_fields(store))
    ordered = sort_stream(rows, task.rows, key, lambda: _sample(store, task), SortLimits.of(store.options))
    expected = rows_left(task.files, task.vectors) if task.parts == 1 else None
    spec = replace(DataFileSpec.of(store, 0, FileSource.COMPACT), ordered=True)
    after = write_rows(store, task.bucket_ref, spec, ordered, expected)
    return (task if task.part == 0 else replace(task, files=(), vectors=())).message(after)


def sort_table(
    store: FileStore,
    key: ClusterKey,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
) -> Snapshot | None:
    """Sort partitions and commit once; return the last snapshot, ``None`` if there are no rows.

    A partition is divided among the runner's processes if every part fills a file of the target size. A partition that
    is rewritten at the same time is sorted again.

    Args:
        store: the table to sort.
        key: the key to sort by.
        partitions: the partitions to sort, each as {column: value}; ``None``: all.
        filter: a bound predicate on partition columns; ``None``: all partitions.
        runner: runs the tasks.
        progress: called after every task with the bytes done and the total bytes; ``None``: no progress reports.

    Raises InvalidInputError as `plan_sort`; CommitConflictError, naming the partitions, if other commits rewrote
    partitions in every attempt (these partitions stay unsorted); CorruptedError and OutOfRangeError as `run_plan`.
    """
    _check_sortable(store)
    request = PlanRequest(partitions=partition_choice(store, partitions, filter))

    def plan(store: FileStore, request: PlanRequest) -> list[SortCompactTask]:
        return plan_sort(store, key, request, parts=runner.parts, part_size=target_size(store))

    snapshot, obsolete = run_plan(store, plan, run, request, runner=runner, progress=progress, join=join_parts)
    if obsolete:
        paths = [store.partition_path(message.partition) or store.root for message in obsolete]
        raise CommitConflictError(
            f"{', '.join(paths)} could not be sorted, because other commits rewrote it in every attempt: sort it again "
            "when they have finished"
        )
    return snapshot


def join_parts(messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """Join the messages of parts into one for each partition, in the order of the parts.

    The rows of the files get sequence numbers in the same order. Raises CorruptedError if rows would be lost or
    duplicated because a part is missing or was run twice.
    """
    joined: dict[BucketRef, CommitMessage] = {}
    for message in messages:
        at = message.bucket_ref
        earlier = joined.get(at)
        joined[at] = (
            message
            if earlier is None
            else replace(
                earlier,
                compact_before=(*earlier.compact_before, *message.compact_before),
                compact_after=(*earlier.compact_after, *message.compact_after),
                compact_deleted_indexes=(*earlier.compact_deleted_indexes, *message.compact_deleted_indexes),
                compact_seconds=earlier.compact_seconds + message.compact_seconds,
            )
        )
    for message in joined.values():
        before = rows_left(message.compact_before, message.compact_deleted_indexes)
        after = sum(f.row_count for f in message.compact_after)
        if before not in (after, None):
            raise CorruptedError(
                f"sorting would replace {before} rows by {after}: commit the messages of all tasks of one plan, each "
                "once; the table was not changed"
            )
    return [_numbered(message) for message in joined.values()]


def _numbered(message: CommitMessage) -> CommitMessage:
    if any(file.write_cols is not None for file in message.compact_after):
        return message  # tracked rows keep their sequence numbers
    files, rows = [], 0
    for file in message.compact_after:
        files.append(replace(file, min_sequence_number=rows, max_sequence_number=rows + file.row_count - 1))
        rows += file.row_count
    return replace(message, compact_after=tuple(files))


def _divide(store: FileStore, task: SortCompactTask, parts: int) -> list[SortCompactTask]:
    if parts < 2:
        return [task]
    sample = _sample(store, task)
    key = task.key.learned(sample)
    bounds = distinct(quantiles(key.of(sample), parts - 1))
    return [replace(task, key=key, bounds=bounds, part=part) for part in range(bounds.num_rows + 1)]


def _sample(store: FileStore, task: SortCompactTask) -> pa.Table:
    """Return a sample of the task's rows, with the columns of its key."""
    fields = [store.schema.field(name) for name in task.key.columns]
    return sample_rows(_rows(store, task, fields), task.rows, SortLimits.of(store.options).sample_bytes)


def _rows(store: FileStore, task: SortCompactTask, fields: Sequence[DataField]) -> Iterator[pa.Table]:
    """Yield the rows of the task. REQUIRES: ``fields`` has the columns of its key."""
    deleted = read_entries(store, task.vectors)
    for file in task.files:
        how = ReadOptions(deletions=deleted.get(file.file_name))
        for batch in read_file(store, task.bucket_ref, file, fields, how):
            rows = pa.Table.from_batches([batch])
            if task.bounds is not None:
                rows = rows.filter(pa.array(bound_ranks(task.bounds, task.key.of(rows)).through == task.part))
            yield rows
