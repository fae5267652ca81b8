"""Clustering of append tables: sort the rows of a partition by columns, or along a curve, into new files.

Rows that match a filter on these columns are then in few files, and statistics prune the others. Every partition is a
task. A task may be divided into key ranges, to run in several processes. The result is committed as a compaction, which
replaces exactly the files that were read. So rows that others append meanwhile stay as they are, and an overwrite of
the partition meanwhile is a conflict.
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
from paimon_core.operations.jobs.execute import LOCAL, Progress, Runner, run_plan
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
    """A partition to sort, or one of its key ranges: the rows whose keys have ``part`` bounds at or below them."""

    key: ClusterKey = field(kw_only=True)
    bounds: pa.Table | None = None
    part: int = 0

    @property
    def parts(self) -> int:
        """The number of tasks that share the files."""
        return 1 if self.bounds is None else self.bounds.num_rows + 1

    @property
    def size(self) -> int:
        """The bytes of the files, divided by the number of parts."""
        return sum(f.file_size for f in self.files) // self.parts

    @property
    def rows(self) -> int:
        """The rows of the files, divided by the number of parts."""
        return sum(f.row_count for f in self.files) // self.parts


def cluster_key(store: FileStore, order_by: Sequence[str] | None, strategy: str | None) -> ClusterKey:
    """Return the key to sort by.

    Args:
        store: of the table.
        order_by: names of columns; ``None``: those of the option ``clustering.columns``.
        strategy: "order", "zorder", "hilbert", or "auto": order for one column, zorder for up to four, else hilbert.
            ``None``: order for ``order_by``, else that of the option ``clustering.strategy``.

    Raises InvalidInputError for columns that the table does not have, or that have no order.
    """
    clustering: tuple[str, ...] = store.options.value(CLUSTERING_COLUMNS)
    columns = clustering if order_by is None else order_by
    chosen = strategy or (store.options.value(CLUSTERING_STRATEGY) if order_by is None else "order")
    if not columns:
        raise InvalidInputError("no columns to be sorted by: give order_by, or set 'clustering.columns'")
    if chosen.lower() == "auto":
        chosen = "order" if len(columns) == 1 else "zorder" if len(columns) <= 4 else "hilbert"
    return ClusterKey.over(store.schema, columns, chosen.lower())


def plan_sort(
    store: FileStore, key: ClusterKey, request: PlanRequest = ALL_DUE, *, parts: int = 1, part_size: int = 1
) -> list[SortCompactTask]:
    """Return the tasks for the requested partitions.

    Cost of a division: one read of the key's columns now, and every part reads all files of its partition. It pays if
    sorting and encoding take more time than reading.

    Args:
        store: of the table.
        key: to sort by.
        request: the partitions to sort; all of them are sorted as a whole.
        parts: maximum number of tasks to divide a partition into.
        part_size: minimum size of a part, in bytes, approximately.

    Raises InvalidInputError for a table with a primary key or fixed buckets, whose rows have an order already.
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
            f"{store.root} cannot be sorted: with 'data-evolution.enabled' the order of rows is that of their ids"
        )
    if bucket_mode(store.schema) is not BucketMode.BUCKET_UNAWARE:
        raise InvalidInputError(
            f"{store.root} cannot be sorted: only tables without a primary key and with bucket = -1 can, the order of "
            "rows in all others is given"
        )


def run(store: FileStore, task: SortCompactTask) -> CommitMessage:
    """Sort and write; no reader sees the files until the message is committed. After an error no file is left.

    The messages of all parts of a partition belong into one commit, through `join_parts`: the first part names the
    replaced files. Memory: about ``write-buffer-size``; rows beyond it are spilled to local disk.
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
    """Sort partitions and commit once; return the last snapshot, ``None``: there is no row.

    A partition is divided among the runner's processes if every part makes a file of the target size. A partition that
    others rewrite meanwhile is sorted again.

    Args:
        store: of the table.
        key: to sort by.
        partitions: the partitions to sort, each as {column: value}; ``None``: all.
        filter: a bound predicate on partition columns.
        runner: runs the tasks.
        progress: called after every task with the bytes done and the bytes in all.

    Raises InvalidInputError as `plan_sort`, CommitConflictError with the partitions that others rewrote every time
    (these are as the others left them), CorruptedError and OutOfRangeError as `run_plan`.
    """
    _check_sortable(store)
    request = PlanRequest(partitions=partition_choice(store, partitions, filter))

    def plan(store: FileStore, request: PlanRequest) -> list[SortCompactTask]:
        return plan_sort(store, key, request, parts=runner.parts, part_size=target_size(store))

    made, obsolete = run_plan(store, plan, run, request, runner=runner, progress=progress, join=join_parts)
    if obsolete:
        paths = [store.partition_path(message.partition) or store.root for message in obsolete]
        raise CommitConflictError(
            f"{', '.join(paths)} could not be sorted: others rewrote it again and again meanwhile; "
            "sort it when they have finished"
        )
    return made


def join_parts(messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """Join the messages of parts into one for each partition, in the order of the parts.

    The rows of the files get sequence numbers in that order too. Raises CorruptedError if rows would be lost or
    duplicated: a part is missing, or was run twice.
    """
    whole: dict[BucketRef, CommitMessage] = {}
    for message in messages:
        at = message.bucket_ref
        earlier = whole.get(at)
        whole[at] = (
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
    for message in whole.values():
        before = rows_left(message.compact_before, message.compact_deleted_indexes)
        after = sum(f.row_count for f in message.compact_after)
        if before not in (after, None):
            raise CorruptedError(
                f"sorting would replace {before} rows by {after}: commit the messages of all tasks of one plan, each "
                "once; the table was not changed"
            )
    return [_numbered(message) for message in whole.values()]


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
    """Return some of the rows of the task, with the columns of its key."""
    fields = [store.schema.field(name) for name in task.key.columns]
    return sample_rows(_rows(store, task, fields), task.rows)


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
