"""Run the tasks of a plan on Spark: one DataFrame row per task, whose result is a commit message.

A DataFrame runs on classic Spark and over Connect. The store is pickled with the function, as in reads and writes, so
no plan and no log shows an option or a secret. Spark may retry a task or run two attempts at once. Only the message of
the attempt that Spark accepts is committed; no snapshot refers to the files of other attempts.
"""

import heapq
import os
import pickle
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from paimon_core import BucketRef, CommitMessage
from paimon_core.engine import LOCAL, CompactionTask, FileStore, Progress, parallel_map
from paimon_core.errors import PaimonError
from paimon_spark.internals import is_classic, map_in_arrow
from paimon_spark.interruption import check_interrupted
from paimon_spark.job import Job
from paimon_spark.types import expected_arrow_schema

Task = TypeVar("Task", bound=CompactionTask)
Run = Callable[[FileStore, Task], CommitMessage]
Part = TypeVar("Part")
Found = TypeVar("Found")
Encode = Callable[[Any], bytes]
MOST_SPARK_TASKS = 4096
_TASKS_PER_SLOT = 4  # small tasks share a Spark task beyond this number, because it costs 50 ms of CPU time to start
_SPARK_TASK_BYTES = 16 << 20  # tasks of this size in total do not share a Spark task
_FEW_PARTS = 8  # up to this many parts, driver threads are faster than a Spark job
DRIVER_BYTES = 8 << 20
"""The most bytes of files that the driver rewrites itself after or during a statement, instead of a Spark job."""

_GROUP_ROW = StructType([StructField("group", LongType(), False), StructField("tasks", BinaryType(), False)])
_RESULT_ROW = StructType(
    [
        StructField("number", LongType(), False),
        StructField("message", BinaryType(), True),
        StructField("error", BinaryType(), True),
        StructField("worker", StringType(), False),
    ]
)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of task `number`: its message or its error, and the process that ran it (host:pid)."""

    number: int
    message: CommitMessage | None
    error: PaimonError | None
    worker: str


class SparkRunner:
    """A runner of tasks on the executors of a session.

    Args:
        spark: the session.
        name: the name of the job in the Spark UI.
        driver_bytes: this process runs up to 8 tasks of at most this many bytes of files in total, if the session is
            classic, because they take less time than a Spark job.
    """

    def __init__(self, spark: SparkSession, name: str, *, driver_bytes: int = 0) -> None:
        self._spark, self._name, self._driver_bytes = spark, name, driver_bytes
        self._cores: int | None = None

    @property
    def parts(self) -> int:
        """The number of tasks that Spark runs at a time, as far as Spark reports it."""
        if self._cores is None:
            self._cores = parallelism(self._spark)
        return self._cores

    def run_all(
        self, store: FileStore, tasks: Sequence[Task], run: Run[Task], progress: Progress | None
    ) -> list[CommitMessage]:
        """Return the message of every task, in the order of the tasks.

        After an error the files of all attempts that have ended are deleted. An attempt that Spark has not stopped yet
        may leave files that no snapshot names.
        """
        if self._is_small(tasks):
            check_interrupted()
            return LOCAL.run_all(store, tasks, run, progress)
        names = JobNames(uuid.uuid4().hex[:16])
        try:
            done = self.results(replace(store, new_name=names), tasks, run, progress)
            for result in done:
                if result.error is not None:
                    raise result.error
        except BaseException:
            with suppress(OSError):  # report the first error
                delete_job_files(store, {task.bucket_ref for task in tasks}, names)
            raise
        return [result.message for result in done if result.message is not None]

    def _is_small(self, tasks: Sequence[CompactionTask]) -> bool:
        if len(tasks) > _FEW_PARTS or sum(task.size for task in tasks) > self._driver_bytes:
            return False
        return bool(self._driver_bytes) and is_classic(self._spark)

    def map(
        self,
        store: FileStore,
        function: Callable[[FileStore, Part], Found],
        parts: Sequence[Part],
        *,
        on_driver: int = _FEW_PARTS,
    ) -> Iterator[Found]:
        """Yield the result of a function for each part, in order.

        This process handles up to ``on_driver`` parts itself, because they take less time than a Spark job.
        """
        if len(parts) <= on_driver:
            yield from LOCAL.map(store, function, parts)
            return
        groups = balance([1] * len(parts), MOST_SPARK_TASKS)
        frame = task_frame(self._spark, store, parts, groups, function, _pickled)
        with Job(self._spark, self._name, [len(group) for group in groups], None):
            rows = frame.collect()
        rows_by_number = {row.number: row for row in rows}
        for number in range(len(parts)):
            row = rows_by_number.pop(number)
            if row.error is not None:
                raise pickle.loads(bytes(row.error))
            yield pickle.loads(bytes(row.message))

    def results(
        self, store: FileStore, tasks: Sequence[Task], run: Run[Task], progress: Progress | None = None
    ) -> list[TaskResult]:
        """Return the result of every task, in the order of the tasks."""
        sizes = [task.size for task in tasks]
        groups = balance(sizes, self._spark_tasks(sizes))
        frame = task_frame(self._spark, store, tasks, groups, run)
        check_interrupted()
        with Job(self._spark, self._name, [sum(sizes[i] for i in group) for group in groups], progress):
            rows = frame.collect()
        check_interrupted()
        results = sorted(map(_task_result, rows), key=lambda result: result.number)
        if [result.number for result in results] != list(range(len(tasks))):
            raise RuntimeError(f"Spark returned {len(results)} results for {len(tasks)} tasks of {self._name}")
        return results

    def _spark_tasks(self, sizes: Sequence[int]) -> int:
        """Return the number of Spark tasks for tasks of these sizes: enough for all slots, each large enough to pay."""
        if len(sizes) <= _FEW_PARTS:
            return len(sizes)
        return min(MOST_SPARK_TASKS, max(_TASKS_PER_SLOT * self.parts, sum(sizes) // _SPARK_TASK_BYTES))


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks Spark runs at a time, as far as Spark reports it; over Connect this runs a small job."""
    classic = is_classic(spark)
    return spark.sparkContext.defaultParallelism if classic else _parallelism_of_job(spark)


def _parallelism_of_job(spark: SparkSession) -> int:
    """Return the number of tasks of a job that does not set its number of partitions."""
    numbers = spark.range(1 << 16).select(F.spark_partition_id().alias("n")).agg(F.max("n")).first()
    return 1 if numbers is None or numbers[0] is None else int(numbers[0]) + 1


def task_frame(
    spark: SparkSession,
    store: FileStore,
    tasks: Sequence[Part],
    groups: Sequence[Sequence[int]],
    run: Callable[[FileStore, Part], Any],
    encode: Encode = CommitMessage.to_bytes,
) -> DataFrame:
    """Return a DataFrame of the results of all tasks.

    The tasks are joined to the partition numbers instead of shuffled: after a shuffle, Spark delays a task until the
    host that wrote the task's input is free.

    Args:
        spark: the session.
        store: the table; sent to the executors with `run`.
        tasks: all tasks of the plan.
        groups: indices into `tasks`; each group is a partition of the DataFrame, and groups start in this order.
        run: runs one task.
        encode: serializes a result for the column `message`.
    """
    pickled = [pickle.dumps([(i, tasks[i]) for i in group], pickle.HIGHEST_PROTOCOL) for group in groups]
    rows = pa.table([pa.array(range(len(groups)), pa.int64()), pa.array(pickled, pa.binary())], ["group", "tasks"])
    # Coalesced to one task, so that no other stage can have one task per group.
    inputs = F.broadcast(spark.createDataFrame(rows, _GROUP_ROW).coalesce(1))
    numbers = spark.range(0, len(groups), 1, len(groups))
    joined = numbers.join(inputs, F.col("id") == F.col("group")).select("tasks")
    return map_in_arrow(joined, partial(_run_group, store, run, encode), _RESULT_ROW)


@dataclass(frozen=True, slots=True)
class JobNames:
    """File names of one job: UUIDs whose first half, 16 hexadecimal digits, identifies the job."""

    job: str

    def __call__(self) -> str:
        """Return a new unique name of this job."""
        return str(uuid.UUID(self.job + uuid.uuid4().hex[16:]))

    def is_of_job(self, file_name: str) -> bool:
        """Return True if this job named the file."""
        return f"{self.job[:8]}-{self.job[8:12]}-{self.job[12:]}-" in file_name


def balance(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Distribute the indices of `sizes` over at most `most` groups of about equal total size.

    Groups, and the indices in each group, are ordered from largest to smallest.
    """
    groups: list[list[int]] = [[] for _ in range(min(most, len(sizes)))]
    lightest = [(0, n) for n in range(len(groups))]
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        weight, n = heapq.heappop(lightest)
        groups[n].append(i)
        heapq.heappush(lightest, (weight + max(1, sizes[i]), n))
    return sorted(groups, key=lambda group: -sum(sizes[i] for i in group))


def delete_job_files(store: FileStore, buckets: Iterable[BucketRef], names: JobNames) -> None:
    """Delete the files in these buckets whose names come from this job."""

    def clear(bucket: BucketRef) -> None:
        for file in store.io.list(store.bucket_path(bucket)):
            if names.is_of_job(file.name):
                store.io.delete(file.path)

    for _ in parallel_map(clear, buckets):
        pass


def _pickled(result: Any) -> bytes:
    return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)


def _run_group(
    store: FileStore, run: Callable[[FileStore, Any], Any], encode: Encode, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the tasks of one partition; yield each result as soon as it exists."""
    schema = expected_arrow_schema(_RESULT_ROW)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    for batch in batches:
        for pickled in batch.column("tasks"):
            for number, task in pickle.loads(pickled.as_py()):
                message, error = _outcome(store, run, encode, task)
                row = {"number": number, "message": message, "error": error, "worker": worker}
                yield pa.RecordBatch.from_pylist([row], schema)


def _outcome(
    store: FileStore, run: Callable[[FileStore, Any], Any], encode: Encode, task: Any
) -> tuple[bytes | None, bytes | None]:
    """Return the result or the engine's error, since a retry would fail in the same way. Raise any other error."""
    try:
        return encode(run(store, task)), None
    except PaimonError as error:
        return None, pickle.dumps(error)


def _task_result(row: Any) -> TaskResult:
    """Return the result in a row of the DataFrame of `task_frame`."""
    message = None if row.message is None else CommitMessage.from_bytes(bytes(row.message))
    error = None if row.error is None else pickle.loads(bytes(row.error))
    return TaskResult(row.number, message, error, row.worker)
