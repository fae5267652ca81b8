"""Writes of a DataFrame that this process commits: one Spark job, without extra processes to plan or commit.

A task returns an error of the engine as its result instead of failing. So Spark does not retry the task, all tasks
finish, and the files of all tasks are deleted. If Spark itself fails or is interrupted, an accumulator (classic
sessions only) has the files of the finished tasks. Tasks that Spark kills, and all tasks over Connect, leave orphan
files.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import BinaryType, StructField, StructType

from paimon_core import Table
from paimon_core.errors import PaimonError, hide_secrets
from paimon_spark.distribute import SparkRunner
from paimon_spark.internals import collected, is_classic, map_in_arrow, optimized, renamed
from paimon_spark.interruption import check_interrupted
from paimon_spark.write_job import TaskWrites
from paimon_spark.writer import PaimonWriter

FEW_ROWS = 10_000
"""The driver writes up to this many rows itself, which takes less time than Spark needs to start a Python worker."""
_SMALL = 1 << 22  # the largest estimate, in bytes, of a small result
_TOO_LARGE = "spark.driver.maxResultSize"
_RESULT = StructType([StructField("written", BinaryType(), False)])
Results = list[WriterCommitMessage | None]


def runner_for(frame: DataFrame, table: Table) -> SparkRunner:
    """Return a runner for the compactions that follow a write of `frame` to `table`."""
    return SparkRunner(frame.sparkSession, hide_secrets(f"compact {table.path}"))


def write_frame(frame: DataFrame, writer: PaimonWriter, table: Table) -> None:
    """Write the rows of a DataFrame in one commit. After an error the table is unchanged.

    Args:
        frame: the rows to write.
        writer: a writer into the table, for the columns of the frame.
        table: the table to write.
    """
    writer.commit(run_tasks(frame, writer.write, writer.abort), runner_for(frame, table))


def is_small(frame: DataFrame) -> bool:
    """Return True if Spark estimates that a DataFrame of a classic session is small. The estimate may be wrong."""
    return int(optimized(frame).stats().sizeInBytes()) <= _SMALL


def few_rows(frame: DataFrame) -> pa.Table | None:
    """Return the rows of a DataFrame of a classic session; `None`: it has more than `FEW_ROWS` rows, or too many bytes.

    Raises the errors of the Spark query.
    """
    if not is_small(frame):
        return None
    try:
        rows = collected(frame.limit(FEW_ROWS + 1))
    except Exception as error:  # the class is Spark's
        if is_too_large(error):
            return None
        raise
    return rows if rows.num_rows <= FEW_ROWS else None


def is_too_large(error: Exception) -> bool:
    """Return True if Spark rejected a result because it is too large for the driver."""
    return _TOO_LARGE in str(error)


def write_rows(rows: pa.Table, writer: PaimonWriter, runner: SparkRunner) -> None:
    """Write rows in this process, in one commit. After an error the table is unchanged.

    Args:
        rows: the rows to write.
        writer: a writer into the table, for the columns of the rows.
        runner: runs the compactions that follow.
    """
    check_interrupted()
    writer.commit([writer.write(iter(rows.to_batches()))], runner)


def run_tasks(
    frame: DataFrame,
    write: Callable[[Iterator[pa.RecordBatch]], TaskWrites],
    abort: Callable[[Results], None],
) -> Results:
    """Run `write` on the rows of each partition of a DataFrame; return the results.

    After an error, call `abort` with the results received so far and a `None`, and raise the error: the engine's error
    of a task, or Spark's.
    """
    check_interrupted()
    spark = frame.sparkSession
    ended = spark.sparkContext.accumulator([], _Ended()) if is_classic(spark) else None
    names = frame.columns
    numbered = renamed(frame, [f"c{n}" for n in range(len(names))])  # mapInArrow fails for a name with a dot

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        result: object
        try:
            result = write(batch.rename_columns(names) for batch in batches)
        except PaimonError as error:
            result = _unreported(error)
        pickled = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        if ended is not None:
            ended.add([pickled])
        yield pa.RecordBatch.from_arrays([pa.array([pickled], pa.binary())], names=["written"])

    try:
        results = [pickle.loads(bytes(row.written)) for row in map_in_arrow(numbered, task, _RESULT).collect()]
        for result in results:
            if isinstance(result, PaimonError):
                raise result
        check_interrupted()
    except BaseException:
        with suppress(OSError, PaimonError):  # report the first error
            received = [] if ended is None else map(pickle.loads, ended.value)
            abort([*(r for r in received if isinstance(r, TaskWrites)), None])
        raise
    return results


def _unreported(error: PaimonError) -> PaimonError:
    """Return an error that pickles: the engine's error, which is the cause of the classes that `reporting` raises."""
    cause = error.__cause__
    return cause if isinstance(cause, PaimonError) else error


class _Ended(AccumulatorParam[Any]):
    """An accumulator of the results of finished tasks."""

    def zero(self, value: Any) -> Any:
        return []

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        value1 += value2
        return value1
