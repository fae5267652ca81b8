"""Rows shuffled to the task that owns their bucket, before they are written."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegerType

from paimon_core.errors import InvalidInputError
from paimon_core.options.bucket import BUCKET, BUCKET_FUNCTION_TYPE
from paimon_core.row.bucket import buckets
from paimon_core.schema.table_schema import TableSchema
from paimon_core.table import Table
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.cast import store_array
from paimon_core.types.datatype import DataField
from paimon_spark.options import write_request
from paimon_spark.types import named

TASK_COLUMN = "__paimon_task"
_arrow_udf: Any = arrow_udf  # typed to need an argument that it warns about when given


def clustered(path: str, tasks: int | None = None, **options: str) -> Callable[[DataFrame], DataFrame]:
    """For ``df.transform(...)`` before a write to the table at `path`: rows of a (partition, bucket) go to one task.

    A write is right without it; with it a bucket gets one file per job instead of one per task. `tasks` defaults to
    the table's number of buckets, and for tables partitioned besides to the greater of that and 8. `options` are
    those of the write. NotFoundError when there is no table yet; InvalidInputError when it has neither buckets nor
    partitions, or the DataFrame lacks a column that decides.
    """
    request = write_request({**options, "path": path}, ())
    table = Table.open(path, request.place.storage_options, branch=request.place.branch)
    placing = Placing.of(table.schema, tasks, path)

    def shuffle(frame: DataFrame) -> DataFrame:
        if not placing.fields:
            return frame.repartition(1)
        columns = [F.col(f"`{_column(frame, field)}`") for field in placing.fields]
        task = _arrow_udf(placing.task_of, IntegerType())(*columns)
        return frame.withColumn(TASK_COLUMN, task).repartitionById(placing.tasks, TASK_COLUMN).drop(TASK_COLUMN)

    return shuffle


def _column(frame: DataFrame, field: DataField) -> str:
    fields = [DataField(i, name, field.type) for i, name in enumerate(frame.columns)]
    return named(fields, field.name, "the DataFrame").name.replace("`", "``")


class Placing:
    """Which task a row goes to: its bucket, moved on by its partition's hash, modulo the number of tasks."""

    def __init__(self, schema: TableSchema, tasks: int) -> None:
        self.tasks = tasks
        self._buckets = max(1, schema.options.value(BUCKET))
        self._function = schema.options.value(BUCKET_FUNCTION_TYPE)
        self._partition = schema.partition_fields
        self._key = tuple(schema.field(name) for name in schema.bucket_keys) if self._buckets > 1 else ()
        self.fields = (*self._partition, *(f for f in self._key if f not in self._partition))

    @staticmethod
    def of(schema: TableSchema, tasks: int | None, path: str) -> "Placing":
        """The placing for a table; InvalidInputError when its rows belong nowhere in particular."""
        count = schema.options.value(BUCKET)
        if count < 1 and not schema.partition_keys:
            raise InvalidInputError(f"the table at {path} has neither buckets nor partitions: write to it as it is")
        if tasks is not None and tasks < 1:
            raise InvalidInputError(f"tasks must be 1 or more, got {tasks}")
        return Placing(schema, tasks or max(count, 8 if schema.partition_keys else 1))

    def task_of(self, *columns: pa.Array) -> pa.Array:
        """Task numbers of rows given as the columns of `fields`, in their order."""
        stored = {
            field.name: store_array(column, field.type, field.name)
            for field, column in zip(self.fields, columns, strict=True)
        }
        task = np.zeros(len(columns[0]), dtype=np.int64)
        if self._partition:
            task += buckets(_rows(stored, self._partition), self.tasks)
        if self._key:
            task += buckets(_rows(stored, self._key), self._buckets, self._function)
        return pa.array(np.mod(task, self.tasks).astype(np.int32))


def _rows(columns: dict[str, pa.Array], fields: tuple[DataField, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[f.name] for f in fields], schema=arrow_schema(fields))
