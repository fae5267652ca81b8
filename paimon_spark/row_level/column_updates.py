"""Updates of columns and deletes in data evolution tables, with one task per range of row ids."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from paimon_core import CommitMessage
from paimon_core.engine import SEVERAL, FileStore, NewValues, RowRanges, TaskWrite
from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.coerce import coerce_array
from paimon_core.types.columns import free_name
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_ID, ROW_KIND
from paimon_spark.bucket_shuffle import TASK_COLUMN, typed_arrow_udf
from paimon_spark.report import reporting
from paimon_spark.row_level.rows import DELETED, INSERTED, UPDATED
from paimon_spark.row_level.tasks import ChangeCounts, TaskChanges
from paimon_spark.write_job import TaskWrites, WriteJob

_MOST_TASKS = 1024


def by_range(rows: DataFrame, ranges: RowRanges) -> DataFrame:
    """Shuffle the rows of each range to one task, in the order of their row ids; new rows go to any task."""
    tasks = max(1, min(len(ranges.ranges), _MOST_TASKS))

    def task_of(ids: pa.Array) -> pa.Array:
        row_ids = pc.fill_null(ids, 0).to_numpy(zero_copy_only=False)
        return pa.array(ranges.numbers(row_ids) % tasks, pa.int32())

    row_id = F.col(ROW_ID.name)
    owner = typed_arrow_udf(reporting(task_of), IntegerType())(row_id)
    task = F.when(row_id.isNotNull(), owner).otherwise(F.pmod(F.spark_partition_id(), F.lit(tasks)))
    name = free_name(TASK_COLUMN, rows.columns)
    shuffled = rows.withColumn(name, task).repartitionById(tasks, name).drop(name)
    return shuffled.sortWithinPartitions(ROW_ID.name)


@dataclass
class _Columns:
    """The new values of one task, which are written once all rows of a range have arrived."""

    store: FileStore
    ranges: RowRanges
    fields: tuple[DataField, ...]
    may_repeat: bool
    messages: list[CommitMessage] = field(default_factory=list)
    number: int = -1
    last: int = -1
    ids: list[np.ndarray] = field(default_factory=list)
    rows: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows of the table in the order of their row ids. Raise InvalidInputError for a repeated row."""
        ids = batch.column(ROW_ID.name).to_numpy()
        if not self.may_repeat and len(ids) and (np.diff(ids, prepend=self.last) == 0).any():
            raise InvalidInputError(SEVERAL)
        self.last = int(ids[-1]) if len(ids) else self.last
        chosen = pc.equal(batch.column(ROW_KIND.name), UPDATED)
        changed = batch.filter(chosen)
        if not changed.num_rows:
            return
        numbers = self.ranges.numbers(changed.column(ROW_ID.name).to_numpy())
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
            if int(numbers[start]) != self.number:
                self.write()
                self.number = int(numbers[start])
            self._collect(changed.slice(start, end - start))

    def _collect(self, rows: pa.RecordBatch) -> None:
        self.ids.append(rows.column(ROW_ID.name).to_numpy())
        columns = []
        for f in self.fields:
            column = coerce_array(rows.column(f.name), f.type, f.name)
            if column.null_count and not f.type.nullable:
                raise InvalidInputError(f"cannot write NULL to column {f.name!r}, which is NOT NULL")
            columns.append(column)
        self.rows.append(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self.fields)))

    def write(self) -> None:
        """Write the collected rows of one range."""
        if self.ids:
            new = NewValues(np.concatenate(self.ids), pa.Table.from_batches(self.rows))
            self.messages.append(self.ranges.replace_columns(self.store, self.number, self.fields, new))
            self.ids, self.rows = [], []


@dataclass(frozen=True)
class ColumnTask:
    """The function that each task runs. It pickles.

    Args:
        job: writes new rows; `None`: the statement deletes rows only.
        store: the table.
        ranges: the row ranges of the snapshot that was read.
        fields: the columns that change.
        may_repeat: False if a repeated row of the table is an error.
    """

    job: WriteJob | None
    store: FileStore
    ranges: RowRanges
    fields: tuple[DataField, ...]
    may_repeat: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> TaskChanges:
        """Write the rows of one task, and collect the positions of deleted rows. An error leaves no file."""
        counts, columns = ChangeCounts(), _Columns(self.store, self.ranges, self.fields, self.may_repeat)
        inserted = self._inserted(batches, counts, columns)
        if self.job is None:
            deque(inserted, maxlen=0)
            return TaskChanges(counts=counts)
        try:
            written = self.job.write(inserted)
            columns.write()
        except BaseException:
            self.job.abort([TaskWrites(TaskWrite(tuple(columns.messages)))])
            raise
        write = replace(written.write, messages=(*written.write.messages, *columns.messages))
        attributes = {f.name: getattr(written, f.name) for f in fields(TaskWrites)}
        return TaskChanges(**{**attributes, "write": write}, counts=counts)

    def _inserted(
        self, batches: Iterator[pa.RecordBatch], counts: ChangeCounts, columns: _Columns
    ) -> Iterator[pa.RecordBatch]:
        for batch in counts.added(batches, positions=False):
            stored = batch.column(ROW_ID.name).is_valid()
            columns.add(batch.filter(stored))
            self._collect_deleted(batch, counts)
            inserted = batch.filter(pc.equal(batch.column(ROW_KIND.name), INSERTED))
            yield inserted.drop_columns([ROW_ID.name, ROW_KIND.name])

    def _collect_deleted(self, batch: pa.RecordBatch, counts: ChangeCounts) -> None:
        deleted = batch.column(ROW_ID.name).filter(pc.equal(batch.column(ROW_KIND.name), DELETED))
        if len(deleted):
            counts.removed.add(*self.ranges.deletion_places(self.store, deleted.to_numpy()))
