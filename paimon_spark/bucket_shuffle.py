"""The shuffle that brings rows to the task that owns their bucket, before a write."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegerType

from paimon_core import Table
from paimon_core.errors import UnsupportedError
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import DataField
from paimon_spark.bucket_column import bucket_column
from paimon_spark.char_columns import padded_frame, pads_writes
from paimon_spark.internals import gateway_of
from paimon_spark.options import write_request
from paimon_spark.partitioner import BucketPartitioner, slots_for
from paimon_spark.report import reporting
from paimon_spark.types import spark_schema

TASK_COLUMN = "__paimon_task"
_SHUFFLE = re.compile(f"{TASK_COLUMN}_of_([1-9][0-9]*)(?:_by_([1-9][0-9]*))?_*")
typed_arrow_udf: Any = arrow_udf  # the type of arrow_udf requires an argument for which it prints a warning


def clustered(path: str, tasks: int | None = None, **options: str) -> Callable[[DataFrame], DataFrame]:
    """Return a function for ``df.transform(...)`` that shuffles the rows of a (partition, bucket) to one task.

    A write is correct without this shuffle. With it a bucket gets one file per job instead of one file per task, and
    with the default of `tasks` the task also compacts the bucket. On a table with dynamic buckets each task receives
    all rows of its keys and fills the buckets one by one; an extra column signals this to the writer, which drops the
    column. For a table without buckets and partitions the function returns the DataFrame unchanged.

    Args:
        path: the directory of the table.
        tasks: the number of tasks; `None`: the table's number of buckets, at least 8 if the table is partitioned.
        options: write options.

    Raises NotFoundError if the table does not exist; InvalidInputError if the DataFrame lacks a column of the
    bucket key or of the partition.
    """
    table = write_request({**options, "path": path}, ()).address.open()
    shuffle = shuffle_for(table, tasks)

    def padded(frame: DataFrame) -> DataFrame:
        fields = table.schema.fields
        return shuffle(padded_frame(frame, fields) if pads_writes(frame.sparkSession, fields) else frame)

    return padded


def shuffle_for(table: Table, tasks: int | None = None) -> Callable[[DataFrame], DataFrame]:
    """Return the function of `clustered` for an open table."""
    partitioner = BucketPartitioner.of(table.schema, tasks, slots_for(table))

    def shuffle(frame: DataFrame) -> DataFrame:
        if partitioner is None:
            return frame
        name = _name_of_column(partitioner, (*frame.columns, *table.schema.names))
        if not partitioner.fields:
            single = frame.repartition(1)
            return single.withColumn(name, F.lit(0)) if partitioner.column_suffix else single
        task = task_column(partitioner, frame)
        shuffled = frame.withColumn(name, task).repartitionById(partitioner.tasks, name)
        return shuffled if partitioner.column_suffix else shuffled.drop(name)

    return shuffle


def task_column(partitioner: BucketPartitioner, frame: DataFrame) -> Column:
    """Return a column with the task number of each row.

    Where a Spark expression can compute the hash, no row passes through Python.
    """
    names = [_column(frame, field) for field in partitioner.fields]
    columns = [F.col(f"`{name}`") for name in names]
    expression = _expression(partitioner, frame, dict(zip(partitioner.fields, names, strict=True)))
    return (
        typed_arrow_udf(reporting(partitioner.task_of), IntegerType())(*columns) if expression is None else expression
    )


def _expression(partitioner: BucketPartitioner, frame: DataFrame, names: Mapping[DataField, str]) -> Column | None:
    frame_types = {field.name.replace("`", "``"): field.dataType.simpleString() for field in frame.schema}
    fields = spark_schema(partitioner.fields).fields
    if any(
        frame_types[names[key_field]] != field.dataType.simpleString()
        for key_field, field in zip(names, fields, strict=True)
    ):
        return None  # the writer casts the column and takes the bucket of the cast value
    kinds = {key_field: frame_types[name].upper() for key_field, name in names.items()}
    parts = tuple(
        (tuple((names[field], kinds[field]) for field in hashed), count) for hashed, count in partitioner.hashed
    )
    return _sum_of_buckets(gateway_of(frame.sparkSession), parts, partitioner.tasks) if parts else None


@lru_cache(maxsize=64)
def _sum_of_buckets(
    gateway: object, parts: Sequence[tuple[Sequence[tuple[str, str]], int]], tasks: int
) -> Column | None:
    """Return the sum of the buckets of keys, modulo `tasks`; `None`: a type has no Spark expression for its bytes.

    The result is cached, because building the expression takes hundreds of JVM calls.

    Args:
        gateway: the gateway to the session's JVM; part of the cache key.
        parts: for each key, the (quoted name, type) of its columns, and its number of buckets.
        tasks: the number of tasks.
    """
    try:
        buckets = [
            bucket_column(count, [F.col(f"`{name}`") for name, _ in key], [kind for _, kind in key])
            for key, count in parts
        ]
    except UnsupportedError:
        return None
    return sum(buckets[1:], buckets[0]) % F.lit(tasks)


def _name_of_column(partitioner: BucketPartitioner, taken: Iterable[str]) -> str:
    """Return an unused name for the column of task numbers, with a suffix that describes the partitioner."""
    lower, name = {column.lower() for column in taken}, TASK_COLUMN + partitioner.column_suffix
    while name.lower() in lower:
        name += "_"
    return name


def find_shuffle(columns: Sequence[str], of_table: Iterable[str]) -> tuple[str, int, int] | None:
    """Return the name of the column that `clustered` added, the number of tasks, and the slots per partition.

    0 slots: keys may move between partitions. Return `None` if `clustered` added no column.

    Args:
        columns: the column names of a DataFrame.
        of_table: the column names of the table, which are never taken for the added column.
    """
    stored = {name.lower() for name in of_table}
    extra = (name for name in reversed(columns) if name.lower() not in stored)
    shuffles = ((name, int(match[1]), int(match[2] or 0)) for name in extra if (match := _SHUFFLE.fullmatch(name)))
    return next(shuffles, None)


def _column(frame: DataFrame, field: DataField) -> str:
    """Return the quoted name of the DataFrame column that matches a field of the table."""
    fields = [DataField(i, name, field.type) for i, name in enumerate(frame.columns)]
    return find_column(fields, field.name, "the DataFrame").name.replace("`", "``")
