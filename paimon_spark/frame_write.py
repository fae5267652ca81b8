"""Writes of a DataFrame that this process commits: one Spark job, without extra processes to plan or commit.

A task returns an error of the engine as its result instead of failing. So Spark does not retry the task, all tasks
finish, and the files of all tasks are deleted. If Spark itself fails or is interrupted, an accumulator (classic
sessions only) has the files of the finished tasks. Tasks that Spark kills, and all tasks over Connect, leave orphan
files.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import BinaryType, StructField, StructType

from paimon_core import Snapshot, Table
from paimon_core.engine import BucketMode, Predicate, bucket_mode
from paimon_core.errors import PaimonError, hide_secrets
from paimon_spark.bucket_shuffle import find_shuffle, shuffle_for
from paimon_spark.char_columns import padded_frame, pads_writes
from paimon_spark.distribute import DRIVER_BYTES, SparkRunner
from paimon_spark.internals import collected, is_classic, local_bytes, map_in_arrow, optimized, renamed
from paimon_spark.interruption import check_interrupted
from paimon_spark.options import WriteRequest
from paimon_spark.write_job import TaskWrites
from paimon_spark.writer import PaimonWriter

FEW_ROWS = 10_000
"""The driver writes up to this many rows itself, which takes less time than Spark needs to start a Python worker."""
_SMALL = 1 << 22  # the largest estimate, in bytes, of a small result
_SMALL_LOCAL = 1 << 16  # the most bytes of pickled rows: if they are too many rows, computing them twice is cheap
_TOO_LARGE = "spark.driver.maxResultSize"
_OBSERVED = "CollectMetrics "  # the plan node of DataFrame.observe
_RESULT = StructType([StructField("written", BinaryType(), False)])
Results = list[WriterCommitMessage | None]
NativeResults = Callable[[DataFrame, Table, WriteRequest], list[TaskWrites] | None]


def runner_for(frame: DataFrame, table: Table) -> SparkRunner:
    """Return a runner for the compactions that follow a write of `frame` to `table`."""
    return SparkRunner(frame.sparkSession, hide_secrets(f"compact {table.path}"), driver_bytes=DRIVER_BYTES)


def write_table(
    frame: DataFrame,
    table: Table,
    request: WriteRequest,
    *,
    overwrite: bool = False,
    replaced: Mapping[str, object] | str | Predicate | None = None,
    shuffles: bool = True,
    native: NativeResults | None = None,
) -> Snapshot | None:
    """Write the rows of a DataFrame in one commit. After an error the table is unchanged.

    In classic sessions, this process writes few rows itself.

    Args:
        frame: the rows to write.
        table: the table to write, as `prepared_table` returns it.
        request: the write options.
        overwrite: True if the rows replace rows of the table.
        replaced: the partitions to replace, as for `PaimonWriter`.
        shuffles: False: the rows stay in the tasks of the DataFrame; True: the rows of a bucket go to one task.
        native: writes the rows without Python workers, and returns the results of the tasks; it returns `None` if
            Python workers must write the rows. `None`: Python workers always write them.

    Returns the snapshot of the rows; `None`: nothing to commit, or committed before.
    """
    table = table.with_store(table.store.remembering())
    pads = pads_writes(frame.sparkSession, table.schema.fields)
    frame = padded_frame(frame, table.schema.fields) if pads else frame
    few = few_rows(frame) if is_classic(frame.sparkSession) and may_use_driver(frame.columns, table, request) else None
    if few is not None:
        writer = PaimonWriter(table, request, frame.schema, overwrite, single=True, replaced=replaced, pads=pads)
        return _write_rows(few, writer, runner_for(frame, table))
    shuffled, single = _distributed(frame, table) if shuffles else (frame, False)
    writer = PaimonWriter(table, request, shuffled.schema, overwrite, single=single, replaced=replaced, pads=pads)
    results = native(shuffled, table, request) if native is not None and is_classic(frame.sparkSession) else None
    if results is not None:
        return writer.publish(list(results), runner_for(frame, table))
    return _write_frame(shuffled, writer, table)


def may_use_driver(columns: Sequence[str], table: Table, request: WriteRequest) -> bool:
    """Return True if this process may write few rows, which have these columns.

    The driver does not write a table whose new rows need an index of all its keys, rows that `clustered` assigned to
    tasks, or an idempotent commit: only tasks know the streaming query of a batch.
    """
    if request.version is not None or bucket_mode(table.schema) is BucketMode.KEY_DYNAMIC:
        return False
    return find_shuffle(columns, table.schema.names) is None


def _distributed(frame: DataFrame, table: Table) -> tuple[DataFrame, bool]:
    """Shuffle the rows of each bucket to one task; return the DataFrame, and True if it has only one task.

    The tasks of the query write a table without buckets; `rebalanced` groups the rows of its partitions.
    """
    if is_classic(frame.sparkSession) and has_few_literals(frame):
        return frame.coalesce(1), True
    if bucket_mode(table.schema) is not BucketMode.BUCKET_UNAWARE:
        return frame.transform(shuffle_for(table)), False
    return rebalanced(frame, table.schema.partition_keys), False


def rebalanced(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Group the rows of a partition, up to the size ``spark.sql.adaptive.advisoryPartitionSizeInBytes``.

    Without adaptive execution, they are in one task. A DataFrame that lacks a partition column stays as it is.
    """
    by_name = {name.lower(): name for name in frame.columns}
    columns = [by_name.get(key.lower()) for key in keys]
    if not keys or None in columns:
        return frame
    return frame.hint("rebalance", *(F.col("`" + str(name).replace("`", "``") + "`") for name in columns))


def has_few_literals(frame: DataFrame) -> bool:
    """Return True if the rows of a DataFrame of a classic session are a few literals."""
    return optimized(frame).getClass().getSimpleName() == "LocalRelation" and is_small(frame)


def _write_frame(frame: DataFrame, writer: PaimonWriter, table: Table) -> Snapshot | None:
    """Write the rows in tasks of Spark. `writer`: a writer into the table, for the columns of the frame."""
    return writer.publish(run_tasks(frame, writer.write, writer.abort), runner_for(frame, table))


def _write_rows(rows: pa.Table, writer: PaimonWriter, runner: SparkRunner) -> Snapshot | None:
    """Write the rows in this process. `runner`: runs the compactions that follow."""
    check_interrupted()
    return writer.publish([writer.write(iter(rows.to_batches()))], runner)


def is_small(frame: DataFrame) -> bool:
    """Return True if Spark estimates that a DataFrame of a classic session is small. The estimate may be wrong."""
    return int(optimized(frame).stats().sizeInBytes()) <= _SMALL


def _has_few_local_bytes(frame: DataFrame) -> bool:
    """Return True if the rows come from a small collection of the program, whose size Spark does not estimate."""
    size = local_bytes(frame)
    return size is not None and size <= _SMALL_LOCAL


def few_rows(frame: DataFrame) -> pa.Table | None:
    """Return the rows of a DataFrame of a classic session; `None`: it has more than `FEW_ROWS` rows, or too many bytes.

    A DataFrame with `observe` is not collected: the limit would change its metrics. Raises the errors of the Spark
    query.
    """
    if not (is_small(frame) or _has_few_local_bytes(frame)) or _OBSERVED in str(optimized(frame).toString()):
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


def run_tasks(
    frame: DataFrame,
    write: Callable[[Iterator[pa.RecordBatch]], WriterCommitMessage],
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
            abort([*(r for r in received if isinstance(r, WriterCommitMessage)), None])
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
