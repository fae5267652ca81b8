"""Batch reads: Spark's planning process plans the splits, and each Spark task reads several splits.

No reader implements `pushFilters`. Spark keeps one reader per ``load()`` and reuses it, with the filters pushed by one
query, for all queries on that DataFrame: the other queries would lose rows.
"""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from paimon_core import DataSplit, SystemTable, Table, TableRead, TableScan, TableSchema
from paimon_core.engine import (
    AnyTable,
    FileStore,
    MatchLimits,
    Predicate,
    branch_splits,
    check_files_known,
    evolve,
    few_matches,
    group_by_bucket,
    packing_of_tasks,
    plan_tasks,
    protect_read,
    read_only,
    readable_fields,
    reads_branches,
)
from paimon_core.errors import NotFoundError, OutOfRangeError, hide_secrets
from paimon_core.types.system_fields import is_partition_field
from paimon_spark.option_names import names_columns, with_case
from paimon_spark.options import DEFAULT_BATCH_ROWS, DEFAULT_MIN_TASKS, AnyReadRequest, ReadRequest
from paimon_spark.report import message_first
from paimon_spark.types import expected_arrow_schema, for_spark, projected
from paimon_spark.worker_log import log_metrics

Splits: TypeAlias = Sequence[tuple[FileStore | None, Sequence[DataSplit]]]
"""Splits by the branch that reads them; `None`: the branch of the scan."""
BATCH_BYTES = 16 << 20  # the target size of a batch for Spark
_EXACT_ABOVE = 64 << 10  # above this many bytes of buffers, the bytes in use are counted exactly


def open_table(request: AnyReadRequest) -> Table:
    """Open the table of a request with its options. Raises UnsupportedError for a system table."""
    table = open_any(request)
    if isinstance(table, SystemTable):
        raise read_only(hide_secrets(str(table.location)))
    return table


def open_any(request: AnyReadRequest) -> AnyTable:
    """Open the table or the system table of a request with its options."""
    options = request.options
    plain = {key: value for key, value in options.items() if not names_columns(key)}
    table = request.address.open_any(plain)
    return table.with_options(with_case(options, table.schema.names)) if len(plain) < len(options) else table


def schema_at(table: Table, when: Mapping[str, Any]) -> TableSchema:
    """Return the schema of the snapshot that `when` chooses.

    If the snapshot has expired, return the newest schema: planning reports the expiry.
    """
    try:
        return table.scan(**when).store.schema
    except (OutOfRangeError, NotFoundError):
        return table.schema


def batch_reader(request: ReadRequest, schema: StructType) -> "PaimonReader":
    """Open the table of a request and return a reader of the columns of `schema`, with times in microseconds.

    Raises InvalidInputError for a column that the table does not have, or has with another type.
    """
    table = open_table(request)
    table = table.with_store(table.store.in_microseconds())
    scan = table.scan(filter=request.filter, limit=request.limit, **request.when)
    scan = scan.enforcing()
    if request.rows_of is not None:
        scan = replace(scan, snapshot=table.store.snapshots.get(request.rows_of))
    newest = not request.when and request.rows_of is None
    return PaimonReader(scan, schema, newest=newest, batch_rows=request.batch_rows, min_tasks=request.min_tasks)


class TaskPartition(InputPartition):
    """The splits that one Spark task reads; a second attempt reads the same files of the same snapshot."""

    def __init__(self, splits: tuple[DataSplit, ...], store: FileStore | None = None) -> None:
        super().__init__(None)
        self.splits = splits
        self.store = store
        """The branch of the splits; `None`: the branch of the reader."""


@message_first
class PaimonReader(DataSourceReader):
    """A reader of one snapshot: the columns of `schema`, in that order. It pickles: each task reads with a copy.

    Args:
        scan: the scan whose rows are read, with timestamps in microseconds.
        schema: the columns to read, as Spark sees them.
        newest: True if no option chose the snapshot: the read then includes the second branch, if the table has one.
        batch_rows: the most rows of a batch.
        min_tasks: the least number of tasks, if the read has enough splits.
        by_bucket: True if no task reads splits of two buckets.
    """

    def __init__(
        self,
        scan: TableScan,
        schema: StructType,
        *,
        newest: bool,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        min_tasks: int = DEFAULT_MIN_TASKS,
        by_bucket: bool = False,
    ) -> None:
        self._scan = scan
        self._by_bucket = by_bucket
        stored = scan.store.schema
        readable = readable_fields(stored)
        self._fields = projected(readable, schema, scan.store.root)
        whole = {field.id: field for field in readable}
        keyed = bool(stored.primary_keys)  # a merge may need struct fields that the query does not read
        self._read_fields = tuple(whole[f.id] if keyed or is_partition_field(f) else f for f in self._fields)
        self._arrow = expected_arrow_schema(schema)
        self._batch_rows, self._min_tasks = batch_rows, min_tasks
        self._newest = newest
        self._planned: Splits | None = None

    def partitions(self) -> list[InputPartition]:
        """Plan the read; return one Spark partition per task. Tasks read no manifests."""
        log_metrics()
        store = self._scan.store
        protect_read(store, self._scan.snapshot)
        packing = packing_of_tasks(store.options, store.root)
        return [
            TaskPartition(task, branch)
            for branch, splits in self._splits_of_branches()
            for group in (group_by_bucket(splits).values() if self._by_bucket else (splits,))
            for task in plan_tasks(group, packing, 1 if self._by_bucket else self._min_tasks)
        ]

    def tasks(self) -> Sequence[Sequence[DataSplit]]:
        """Return the splits of each task."""
        return [partition.splits for partition in self.partitions() if isinstance(partition, TaskPartition)]

    def of_splits(self, splits: Splits) -> "PaimonReader":
        """Return a reader of the given splits of the scan, which are already planned."""
        reader = copy(self)
        reader._planned = splits
        return reader

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for tasks, without the splits: each task gets them in its partition."""
        return {**vars(self), "_planned": None}

    @property
    def scan(self) -> TableScan:
        """The scan whose splits are read."""
        return self._scan

    @property
    def schema(self) -> TableSchema:
        """The schema of the scan: the snapshot's schema with time travel, else the newest."""
        return self._scan.store.schema

    @property
    def predicate(self) -> Predicate | None:
        """The predicate that all rows of the read satisfy; `None`: no filter."""
        return self._scan.predicate

    def splits(self) -> Sequence[DataSplit]:
        """Return all splits of the read."""
        return [split for _, splits in self._splits_of_branches() for split in splits]

    def _splits_of_branches(self) -> Splits:
        """Return the splits by the branch that reads them; `None`: the branch of the scan."""
        if self._planned is not None:
            planned = self._planned
        elif self._newest and reads_branches(self._scan.store):
            planned = branch_splits(self._scan)
        else:
            planned = [(None, self._scan.plan().splits)]
        for branch, splits in planned:
            for split in () if branch is not None else splits:
                check_files_known(self._scan.store, self._fields, split)
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the splits of one task, in batches of at most ``read.arrow-batch-rows`` rows."""
        if not isinstance(partition, TaskPartition):
            return  # for an empty plan, Spark passes a partition that is not ours
        freeze_modules()
        log_metrics()
        yield from self.batches(partition.splits, partition.store)

    def batches(self, splits: Sequence[DataSplit], store: FileStore | None = None) -> Iterator[pa.RecordBatch]:
        """Read splits, in batches of at most ``read.arrow-batch-rows`` rows.

        `store`: the branch of the splits; `None`: the branch of this reader.
        """
        read = TableRead(store or self._scan.store, self._read_fields, self._scan.predicate, skip_bad_files=True)
        yield from self._for_spark(batch for split in splits for batch in read.to_batches(split))

    def few_matches(self, limits: MatchLimits) -> Sequence[pa.RecordBatch] | None:
        """Return the rows if a filter for a few values leaves few of them, else `None`: see `engine.few_matches`.

        REQUIRES: splits without a merge, of the branch of this reader.
        """
        if self.predicate is None:
            return None
        rows = few_matches(self._scan.store, self.splits(), self._read_fields, self.predicate, limits)
        return None if rows is None else list(self._for_spark(rows.to_batches()))

    def _for_spark(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        narrowed = evolve(self._read_fields, self._fields)
        for batch in resized(map(narrowed.apply, batches), self._batch_rows):
            yield for_spark(batch, self._arrow)


@cache
def freeze_modules() -> None:
    """Exempt the loaded modules of this process from garbage collection, once.

    Spark's Python workers collect garbage after every task. Scanning all modules takes half of the time of a small
    task. `gc.get_freeze_count` scans them as well: 10 ms with pyarrow and pyspark loaded.
    """
    gc.freeze()


def resized(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of at most `rows` rows and about BATCH_BYTES bytes; join small batches."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        added = _bytes_of(batch)
        if waiting and (count + batch.num_rows > rows or size + added > BATCH_BYTES):
            yield _joined(waiting)
            waiting, count, size = [], 0, 0
        if batch.num_rows > rows or added > BATCH_BYTES:
            step = max(1, min(rows, batch.num_rows * BATCH_BYTES // max(1, added)))
            yield from (batch.slice(start, step) for start in range(0, batch.num_rows, step))
            continue
        waiting.append(batch)
        count, size = count + batch.num_rows, size + added
    if waiting:
        yield _joined(waiting)


def _bytes_of(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch; for a small batch the bytes of its buffers, because exact counting is slower."""
    most: int = batch.get_total_buffer_size()
    return most if most <= _EXACT_ABOVE else int(batch.nbytes)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
