"""Batch reads of system tables: one task reads metadata, several tasks read rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from paimon_core import DataSplit, SystemTable
from paimon_core.engine import Part, SystemRead, packing_of_tasks, plan_tasks
from paimon_spark.options import ReadRequest
from paimon_spark.reader import freeze_modules, resized
from paimon_spark.report import message_first
from paimon_spark.types import expected_arrow_schema, for_spark, projected

_MAX_TASKS = 64  # for reads of changes, which have one part per snapshot


class PartsPartition(InputPartition):
    """The parts that one Spark task reads."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__(None)
        self.parts = tuple(parts)


@message_first
class SystemTableReader(DataSourceReader):
    """A reader of a system table: the columns of `schema`, in that order. It pickles."""

    def __init__(self, table: SystemTable, request: ReadRequest, schema: StructType) -> None:
        whole = table.read(filter=request.filter, **request.when)
        self._read: SystemRead = replace(whole, fields=projected(whole.fields, schema, str(table.location)))
        self._arrow = expected_arrow_schema(schema)
        self._batch_rows, self._min_tasks, self._limit = request.batch_rows, request.min_tasks, request.limit

    def partitions(self) -> list[InputPartition]:
        """Return one Spark partition per task. Splits of rows are planned here; a task reads metadata itself."""
        parts, store = self._read.plan(), self._read.store
        splits = [part for part in parts if isinstance(part, DataSplit)]
        if parts and len(splits) == len(parts):
            tasks = plan_tasks(splits, packing_of_tasks(store.options, store.root), self._min_tasks)
            return [PartsPartition(task) for task in tasks]
        step = -(-len(parts) // _MAX_TASKS) or 1
        return [PartsPartition(parts[at : at + step]) for at in range(0, len(parts), step)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the parts of one task, in batches of at most ``read.arrow-batch-rows`` rows."""
        if not isinstance(partition, PartsPartition):
            return  # for an empty plan, Spark passes a partition that is not ours
        freeze_modules()
        rows = (batch for part in partition.parts for batch in self._read.to_batches(part))
        for batch in resized(_first(rows, self._limit), self._batch_rows):
            yield for_spark(batch, self._arrow)


def _first(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first `limit` rows of the batches; `None`: all rows."""
    left = limit
    for batch in batches:
        if left is not None and left <= 0:
            return
        yield batch if left is None else batch.slice(0, left)
        left = None if left is None else left - batch.num_rows
