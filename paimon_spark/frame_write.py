"""Writes of a DataFrame that this process commits: one job of Spark, and no process for planning or committing.

An error of the engine in a task is the task's result, not its failure: Spark does not repeat the task, all tasks end,
and the files of all are deleted. If Spark itself fails or is interrupted, an accumulator of classic sessions knows the
files of the tasks that have ended; tasks that Spark stops by force, and over Connect all, leave files that no snapshot
names.
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
"""So many rows the driver writes itself: a Python worker of Spark takes longer to begin than they take to write."""
_SMALL = 1 << 22  # bytes that Spark expects of a small result
_TOO_LARGE = "spark.driver.maxResultSize"
_RESULT = StructType([StructField("written", BinaryType(), False)])
Results = list[WriterCommitMessage | None]


def runner_for(frame: DataFrame, table: Table) -> SparkRunner:
    """Return the runner of compactions that follow a write of the frame."""
    return SparkRunner(frame.sparkSession, hide_secrets(f"compact {table.path}"))


def write_frame(frame: DataFrame, writer: PaimonWriter, table: Table) -> None:
    """Write the rows of a DataFrame in one commit. After an error the table is unchanged.

    Args:
        frame: the rows.
        writer: of the table, for the columns of the frame.
        table: the table.
    """
    writer.commit(run_tasks(frame, writer.write, writer.abort), runner_for(frame, table))


def is_small(frame: DataFrame) -> bool:
    """Return True if Spark expects few bytes of a DataFrame of a classic session. Its estimate may be wrong."""
    return int(optimized(frame).stats().sizeInBytes()) <= _SMALL


def few_rows(frame: DataFrame) -> pa.Table | None:
    """Return the rows of a DataFrame of a classic session; `None`: there are more than `FEW_ROWS`, or large ones.

    Raises Spark's errors of the query.
    """
    if not is_small(frame):
        return None
    try:
        rows = collected(frame.limit(FEW_ROWS + 1))
    except Exception as error:  # a class of Spark
        if is_too_large(error):
            return None
        raise
    return rows if rows.num_rows <= FEW_ROWS else None


def is_too_large(error: Exception) -> bool:
    """Return True if Spark has refused to hand a result to the driver because of its size."""
    return _TOO_LARGE in str(error)


def write_rows(rows: pa.Table, writer: PaimonWriter, runner: SparkRunner) -> None:
    """Write rows in this process, in one commit. After an error the table is unchanged.

    Args:
        rows: the rows.
        writer: of the table, for the columns of the rows.
        runner: of compactions that follow.
    """
    check_interrupted()
    writer.commit([writer.write(iter(rows.to_batches()))], runner)


def run_tasks(
    frame: DataFrame,
    write: Callable[[Iterator[pa.RecordBatch]], TaskWrites],
    abort: Callable[[Results], None],
) -> Results:
    """Run `write` for the rows of each partition of a DataFrame; return the results.

    After an error `abort` gets the results that are known, and a None. Raises the engine's error of a task, or Spark's.
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
        with suppress(OSError, PaimonError):  # the first error is the one to report
            known = [] if ended is None else map(pickle.loads, ended.value)
            abort([*(r for r in known if isinstance(r, TaskWrites)), None])
        raise
    return results


def _unreported(error: PaimonError) -> PaimonError:
    """Return an error that pickles: `reporting` raises classes of its own, whose cause is the engine's error."""
    cause = error.__cause__
    return cause if isinstance(cause, PaimonError) else error


class _Ended(AccumulatorParam[Any]):
    """A list to which the tasks add their results."""

    def zero(self, value: Any) -> Any:
        return []

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        value1 += value2
        return value1
