"""Reads of Spark's change feed: ``CHANGES FROM VERSION`` in a batch, and streams of changes.

A batch of a stream contains whole commits, as Spark requires. An offset is a position of the engine; its entry ``from``
is the position at which the query started, which Spark requests again when it repeats the first batch.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from paimon_core.engine import (
    CHANGE_FIELDS,
    ChangeFeed,
    FeedRange,
    FeedRead,
    FeedSplit,
    FeedStream,
    FileStore,
    Predicate,
    StreamPosition,
    pack_tasks,
    packing_of_tasks,
    split_weight,
    time_range,
    version_range,
)
from paimon_spark.feed_request import FeedRequest, check_stream
from paimon_spark.options import DEFAULT_BATCH_ROWS, DEFAULT_MIN_TASKS
from paimon_spark.reader import freeze_modules, resized
from paimon_spark.report import message_first
from paimon_spark.stream_reader import PAUSE_CHECKS, PAUSE_SECONDS, SupportsTriggerAvailableNow, spark_terms
from paimon_spark.types import expected_arrow_schema, for_spark, projected
from paimon_spark.worker_log import log_metrics

_FROM = "from"

Offset = dict[str, Any]


class FeedPartition(InputPartition):
    """The splits that one task reads, and the id of the schema that planned them."""

    def __init__(self, splits: tuple[FeedSplit, ...], schema_id: int) -> None:
        super().__init__(None)
        self.splits, self.schema_id = splits, schema_id


@dataclass(frozen=True)
class _FeedTasks:
    """The tasks of a feed: how splits are packed and read. It pickles."""

    store: FileStore
    request: FeedRequest
    schema: StructType
    predicate: Predicate | None = None

    def pack(self, splits: Sequence[FeedSplit]) -> list[InputPartition]:
        """Return the tasks that read the splits."""
        packing = packing_of_tasks(self.store.options, self.store.root)
        tasks = pack_tasks(splits, lambda split: split_weight(split.files, packing), packing, DEFAULT_MIN_TASKS)
        return [FeedPartition(task, self.store.schema.id) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one task."""
        if not isinstance(partition, FeedPartition):
            return  # for an empty plan, Spark passes a partition that is not ours
        freeze_modules()
        log_metrics()
        store, arrow = self.store, expected_arrow_schema(self.schema)
        if partition.schema_id != store.schema.id:  # the table was altered after Spark created the planning reader
            store = store.at_schema(partition.schema_id)
        fields = projected((*store.schema.fields, *CHANGE_FIELDS), self.schema, store.root)
        read = FeedRead(store, fields, self.predicate, self.request.names_updates)
        changes = (batch for split in partition.splits for batch in read.to_batches(split))
        for batch in resized(changes, DEFAULT_BATCH_ROWS):
            yield for_spark(batch, arrow)


@message_first
class ChangeFeedReader(DataSourceReader):
    """A reader of the changes of some commits in one batch: the columns of `schema`, in that order."""

    def __init__(
        self,
        store: FileStore,
        request: FeedRequest,
        schema: StructType,
        predicate: Predicate | None = None,
        commits: FeedRange | None = None,
    ) -> None:
        self._tasks = _FeedTasks(store, request, schema, predicate)
        self._commits = commits_of(request, store) if commits is None else commits

    def splits(self) -> list[FeedSplit]:
        """Plan the splits. Raises OutOfRangeError if a snapshot that is needed has expired."""
        tasks = self._tasks
        return list(ChangeFeed(tasks.store, tasks.predicate, tasks.request.cancel).plan(self._commits))

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks."""
        return self._tasks.pack(self.splits())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one task."""
        return self._tasks.read(partition)


@message_first
class ChangeFeedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader of the changes of a table as a stream: the columns of `schema`, in that order."""

    def __init__(self, store: FileStore, request: FeedRequest, schema: StructType) -> None:
        check_stream(request, store.root)
        self._tasks = _FeedTasks(store, request, schema)
        self._stream = FeedStream(store, commits_of(request, store).first, cancel=request.cancel)
        self._target: StreamPosition | None = None
        self._started: Offset | None = None
        self._reached: Offset | None = None
        self._next_check = -float("inf")

    def initialOffset(self) -> Offset:
        """Return the offset at which a new query starts."""
        if self._started is None:
            position = self._stream.start().to_json()
            self._started = {**position, _FROM: position}
        return self._started

    @spark_terms()
    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """Return the offset after the newest commit; `start` if there is no new commit."""
        previous = start or self._reached or self.initialOffset()
        time.sleep(max(0.0, self._next_check - time.monotonic()))
        checked = time.monotonic()
        after = StreamPosition.from_json(previous)
        through = self._stream.advance(after, self._target)
        if through == after:
            now, (least, most) = time.monotonic(), PAUSE_SECONDS
            self._next_check = now + min(most, max(least, PAUSE_CHECKS * (now - checked)))
            return previous
        self._next_check = -float("inf")
        return {**through.to_json(), _FROM: previous[_FROM]}

    def reportLatestOffset(self) -> Offset:
        """Return the newest offset, for Spark's progress report."""
        return self._stream.latest().to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of this run: later commits belong to the next run."""
        self._target = self._stream.latest()

    @spark_terms()
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan the tasks that read the changes between two offsets; a repeated batch gets the same tasks."""
        self._reached = end
        first_batch = StreamPosition.from_json(start) == StreamPosition.from_json(start[_FROM])
        after = StreamPosition.from_json(end[_FROM] if first_batch else start)
        return self._tasks.pack(list(self._stream.plan(after, StreamPosition.from_json(end))))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one task."""
        return self._tasks.read(partition)


def commits_of(request: FeedRequest, store: FileStore) -> FeedRange:
    """Return the commits of a request. Raises the errors of `version_range` and `time_range`."""
    bounds = {"with_start": request.with_start, "with_end": request.with_end}
    if request.start_micros is not None:
        return time_range(store, request.start_micros, request.end_micros, **bounds)
    return version_range(store, request.start, request.end, **bounds)
