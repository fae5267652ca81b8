"""Rows shuffled to the task that owns their bucket, before they are written."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegerType

from paimon_core.types.datatype import DataField
from paimon_spark.options import write_request
from paimon_spark.partitioner import BucketPartitioner, slots_for
from paimon_spark.report import reporting
from paimon_spark.types import named

TASK_COLUMN = "__paimon_task"
_SHARES = re.compile(f"{TASK_COLUMN}_of_([1-9][0-9]*)(?:_by_([1-9][0-9]*))?")
_arrow_udf: Any = arrow_udf  # typed to need an argument that it warns about when given


def clustered(path: str, tasks: int | None = None, **options: str) -> Callable[[DataFrame], DataFrame]:
    """For ``df.transform(...)`` before a write to the table at `path`: rows of a (partition, bucket) go to one task.

    A write is right without it; with it a bucket gets one file per job instead of one per task, and with the default
    of `tasks` its task compacts it too. That default is the table's number of buckets, for tables partitioned besides
    the greater of that and 8. Where buckets are dynamic each task gets all rows of its keys, and fills one bucket after
    the other; the writer is told so by a column that it leaves out. Rows of a table with neither buckets nor partitions
    belong nowhere in particular: the DataFrame comes back as it is. `options` are those of the write. NotFoundError
    when there is no table yet; InvalidInputError when the DataFrame lacks a column that decides.
    """
    request = write_request({**options, "path": path}, ())
    table = request.place.open()
    placing = BucketPartitioner.of(table.schema, tasks, slots_for(table))

    def shuffle(frame: DataFrame) -> DataFrame:
        if placing is None:
            return frame
        name = TASK_COLUMN + placing.told
        if not placing.fields:
            alone = frame.repartition(1)
            return alone.withColumn(name, F.lit(0)) if placing.told else alone
        columns = [F.col(f"`{_column(frame, field)}`") for field in placing.fields]
        task = _arrow_udf(reporting(placing.task_of), IntegerType())(*columns)
        shuffled = frame.withColumn(name, task).repartitionById(placing.tasks, name)
        return shuffled if placing.told else shuffled.drop(name)

    return shuffle


def shares_in(columns: Sequence[str]) -> tuple[str, int, int] | None:
    """Find the column that tells which task a row was sent to; ``None`` where no column does.

    Returns its name, the number of tasks, and the slots of a partition (0: keys may move between partitions).
    """
    found = [(name, int(match[1]), int(match[2] or 0)) for name in columns if (match := _SHARES.fullmatch(name))]
    return found[0] if found else None


def _column(frame: DataFrame, field: DataField) -> str:
    fields = [DataField(i, name, field.type) for i, name in enumerate(frame.columns)]
    return named(fields, field.name, "the DataFrame").name.replace("`", "``")
