"""Batch reads: planned once in the process that plans the query, read in Spark's tasks, each of several splits.

Filters reach a reader only when ``spark.sql.python.filterPushdown.enabled`` is on, and a reader that could take them
makes the query fail when it is off. The setting itself is not visible here; which of Spark's two planning programs is
running is, and that tells.
"""

import gc
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import pyarrow as pa
from pyspark.sql import datasource as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.predicate.expr import And
from paimon_core.predicate.rewrite import bind
from paimon_core.read.table_read import TableRead
from paimon_core.scan.split import DataSplit
from paimon_core.scan.task_plan import packing_of_tasks, plan_tasks
from paimon_core.table import Table
from paimon_spark.filters import predicate_of
from paimon_spark.option_names import names_columns, with_case
from paimon_spark.options import ReadRequest, StreamRequest
from paimon_spark.report import message_first
from paimon_spark.types import expected_arrow_schema, finer_than_spark, for_spark, projected

BATCH_BYTES = 16 << 20  # a batch for Spark is not larger, however few rows that leaves
_CLOSE_ENOUGH = 64 << 10  # bytes of buffers that are not worth asking which part of them is in use
_PUSHDOWN = "pyspark.sql.worker.data_source_pushdown_filters"


def open_table(request: ReadRequest | StreamRequest) -> Table:
    """Open the table of a request, under its options."""
    options = request.options
    plain = {key: value for key, value in options.items() if not names_columns(key)}
    table = request.place.open(plain)
    return table.with_options(with_case(options, table.schema.names)) if len(plain) < len(options) else table


def reader_of(table: Table, request: ReadRequest, schema: StructType) -> "PaimonReader":
    """A reader of the columns of `schema`; one that takes filters exactly when Spark is going to offer some.

    InvalidInputError for columns the table does not have like that.
    """
    return (FilteringReader if _filters_come() else PaimonReader)(table, request, schema)


def _filters_come() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN in sys.modules or (main is not None and main.name == _PUSHDOWN)


class TaskPartition(InputPartition):
    """The splits that one Spark task reads: a second attempt reads the same files of the same snapshot."""

    def __init__(self, splits: tuple[DataSplit, ...]) -> None:
        super().__init__(None)
        self.splits = splits


@message_first
class PaimonReader(DataSourceReader):
    """Rows of one snapshot, the columns of `schema` in its order. Pickles: tasks read with a copy of it."""

    def __init__(self, table: Table, request: ReadRequest, schema: StructType) -> None:
        self._scan = table.scan(filter=request.filter, limit=request.limit, **request.when)
        there = self._scan.store.schema
        self._fields = projected((*there.fields, *tracking_fields(there)), schema, table.path)
        self._arrow = expected_arrow_schema(schema)
        self._batch_rows, self._min_tasks = request.batch_rows, request.min_tasks

    def partitions(self) -> list[InputPartition]:
        """Plan the read: a Spark partition for each task. The manifests are read here and nowhere else."""
        store = self._scan.store
        packing = packing_of_tasks(store.options, store.root)
        return [TaskPartition(task) for task in plan_tasks(self._scan.plan().splits, packing, self._min_tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the splits of one task, in batches of about the number of rows asked for."""
        if not isinstance(partition, TaskPartition):
            return  # Spark's stand-in for "no partitions"
        spare_collections()
        read = TableRead(self._scan.store, self._fields, self._scan.predicate, forgiving=True)
        rows = (batch for split in partition.splits for batch in read.to_batches(split))
        for batch in resized(rows, self._batch_rows):
            yield for_spark(batch, self._arrow)


@message_first
class FilteringReader(PaimonReader):
    """A reader that uses the filters of the query to leave out files and rows."""

    def pushFilters(self, filters: list[spark.Filter]) -> Iterable[spark.Filter]:
        """Narrow the scan; every filter is handed back, so Spark checks the rows that come all the same."""
        fields = self._scan.store.schema.fields
        pushed = predicate_of(filters, finer_than_spark(fields))
        if pushed is not None:
            bound = bind(pushed, fields)
            given = self._scan.predicate
            self._scan = replace(self._scan, predicate=bound if given is None else And((given, bound)))
        yield from filters


@cache
def spare_collections() -> None:
    """Exempt the loaded modules of this process from garbage collection, once.

    Spark's Python processes collect garbage after every task. Going through all modules each time takes half of the
    time of a small task. `gc.get_freeze_count` goes through them as well: 10 ms with pyarrow and pyspark loaded.
    """
    gc.freeze()


def resized(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at most `rows` rows and about BATCH_BYTES bytes; small neighbours are joined."""
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
    """Return the bytes of a batch, of a small one those of all its buffers: the exact number costs 20 times as much."""
    most: int = batch.get_total_buffer_size()
    return most if most <= _CLOSE_ENOUGH else int(batch.nbytes)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
