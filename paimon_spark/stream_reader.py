"""Reads of changes: streams in micro-batches, and the changes between two snapshots in one batch.

For each run of a query, Spark keeps one process that plans the end of each batch and the batch's tasks. Each task reads
with a copy of the reader. Spark stores an offset as text. The text contains a position of the engine and, under
``from``, the position at which the query started: Spark requests the start again when it repeats the first batch.

Spark 4.1 does not pass the start of a batch to `latestOffset`, so the reader remembers it. Nor does Spark 4.1 announce
``availableNow``: with a limit, the query then ends after its first batch.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StringType, StructType

from paimon_core import StreamLag
from paimon_core.engine import (
    ALL_ROWS,
    NO_LIMITS,
    BatchSplit,
    ChangeRead,
    Consumers,
    FileStore,
    Interval,
    LagCounter,
    Predicate,
    StreamPosition,
    StreamScan,
    bound_filter,
    interval_of,
    listed_field,
    pack_tasks,
    packed_rows,
    packing_of_tasks,
    predicate_columns,
    row_fields,
    split_weight,
)
from paimon_core.errors import InvalidInputError, OutOfRangeError, PaimonError
from paimon_core.options.scan import CONSUMER_ID, SCAN_BOUNDED_WATERMARK, STREAMING_READ_SNAPSHOT_DELAY
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.char_columns import padded_batch
from paimon_spark.options import StreamRequest
from paimon_spark.reader import freeze_modules, resized
from paimon_spark.report import message_first
from paimon_spark.types import expected_arrow_schema, for_spark, projected
from paimon_spark.worker_log import log_metrics

try:
    from pyspark.sql.streaming import datasource as read_limits
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A placeholder for the class that Spark 4.1 lacks."""


PAUSE_SECONDS = (
    0.1,
    2.0,
)  # shortest and longest wait before an unchanged table is checked again; Spark calls every 10 ms
PAUSE_CHECKS = 5  # wait 5 times as long as the last check took: a check sends requests to the object store
CONSUMER_SECONDS = 60.0
"""Seconds after which an idle query records its progress again, because a table expires inactive consumers. Spark 4.1
reports progress only with the next batch, so an idle query there records none."""
_FROM = "from"
_LAG = "lag"
_COUNTED = 32  # the most snapshots whose changes one progress report counts
_SPARK_TERMS = (
    "In Spark the reader is the query, and its stream state is the checkpoint: start a new query with its own "
    "checkpointLocation, or restart the query to continue"
)

Offset = dict[str, Any]


class ChangePartition(InputPartition):
    """The splits of a batch that one task reads, and the id of the schema that planned them."""

    def __init__(self, splits: tuple[BatchSplit, ...], schema_id: int) -> None:
        super().__init__(None)
        self.splits, self.schema_id = splits, schema_id


@contextmanager
def spark_terms() -> Iterator[None]:
    """Add the Spark meaning of the engine's terms to an error of the stream."""
    try:
        yield
    except (InvalidInputError, OutOfRangeError) as error:
        error.args = (f"{error}. {_SPARK_TERMS}",)
        raise


@message_first
class PaimonStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader of the changes of a table: the columns of `schema`, in that order; with ``rowkind`` if requested."""

    def __init__(self, store: FileStore, request: StreamRequest, schema: StructType) -> None:
        self._request, self._schema = request, schema
        self._scan = _scan(store, request, schema)
        self._arrow = expected_arrow_schema(schema)
        self._started: Offset | None = None
        self._reached: Offset | None = None
        self._target: StreamPosition | None = None
        self._newest: Offset | None = None
        self._through: StreamPosition | None = None
        self._lag = LagCounter(self._scan)
        self._last_batch = self._next_check = -float("inf")
        self._too_few: tuple[StreamPosition, StreamPosition] | None = None
        self._recorded: tuple[int, float] | None = None

    # ---- offsets

    def initialOffset(self) -> Offset:
        """Return the offset at which a new query starts."""
        if self._started is None:
            position = self._scan.start().to_json()
            self._started = {**position, _FROM: position}
        return self._started

    def getDefaultReadLimit(self) -> "read_limits.ReadLimit":
        """Return one of the limits in the options, for Spark to pass back; the reader applies all limits."""
        limits, least = self._request.limits, self._request.min_rows
        if limits.files is not None:
            return read_limits.ReadMaxFiles(limits.files)
        if limits.bytes is not None:
            return read_limits.ReadMaxBytes(limits.bytes)
        if limits.rows is not None:
            return read_limits.ReadMaxRows(limits.rows)
        return read_limits.ReadAllAvailable() if least is None else read_limits.ReadMinRows(least)

    @spark_terms()
    def latestOffset(self, start: Offset | None = None, limit: "read_limits.ReadLimit | None" = None) -> Offset:
        """Return the end of the next batch; `start` if there are no new rows, or fewer than the batch waits for."""
        previous = start or self._reached or self.initialOffset()
        time.sleep(max(0.0, self._next_check - time.monotonic()))
        checked = time.monotonic()
        after = StreamPosition.from_json(previous)
        everything = limit is not None and isinstance(limit, read_limits.ReadAllAvailable)
        self._newest = None
        through = self._scan.advance(after, NO_LIMITS if everything else self._request.limits, self._target)
        if start is not None:
            self._record(after)
        if through == after or not (everything or self._is_enough(after, through)):
            now, (least, most) = time.monotonic(), PAUSE_SECONDS
            self._next_check = now + min(most, max(least, PAUSE_CHECKS * (now - checked)))
            unchanged = through == after and self._target is None and not self._holds_back()
            self._through, self._newest = after, previous if unchanged else None
            return previous
        self._next_check = -float("inf")
        self._through = through
        return {**through.to_json(), _FROM: previous[_FROM]}

    def reportLatestOffset(self) -> Offset:
        """Return the newest offset, for Spark's progress report; Spark calls this after each `latestOffset`.

        Its entry ``lag`` counts the changes that remain to be read after the next batch.
        """
        if self._newest is not None:
            return {**self._newest, _LAG: StreamLag().to_json()}
        newest = self._scan.latest().to_json()
        if self._through is None:
            return newest
        try:
            return {**newest, _LAG: self._lag.lag(self._through, _COUNTED).to_json()}
        except (OSError, PaimonError):  # a failure to compute the lag must not end the query
            return newest

    def _holds_back(self) -> bool:
        """Return True if the options may delay or exclude snapshots that exist."""
        options = self._scan.store.options
        bound, delay = options.value(SCAN_BOUNDED_WATERMARK), options.value(STREAMING_READ_SNAPSHOT_DELAY)
        return bound is not None or delay is not None

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of this run: later commits belong to the next run."""
        self._target = self._scan.latest()

    def _is_enough(self, after: StreamPosition, through: StreamPosition) -> bool:
        """Return True if the batch has `min_rows` rows, or has waited for the longest delay."""
        least = self._request.min_rows
        waited = (time.monotonic() - self._last_batch) * 1000
        if least is None or self._target is not None or waited >= self._request.max_delay_millis:
            return True
        if self._too_few == (after, through):
            return False
        cut_short = self._request.limits != NO_LIMITS and self._scan.advance(after) != through
        if cut_short or sum(split.row_count for split in self._scan.plan(after, through)) >= least:
            return True
        self._too_few = after, through
        return False

    # ---- tasks

    @spark_terms()
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan the tasks that read the changes between two offsets; a repeated batch gets the same tasks."""
        self._reached = end
        first_batch = StreamPosition.from_json(start) == StreamPosition.from_json(start[_FROM])
        after, through = StreamPosition.from_json(end[_FROM] if first_batch else start), StreamPosition.from_json(end)
        if after == through:
            return []
        self._last_batch = time.monotonic()
        return self._plan_tasks(after, through)

    def between(self, interval: Interval) -> list[InputPartition]:
        """Plan the tasks of a batch read of changes. REQUIRES: the table is the interval's source."""
        return self._as_tasks(self._scan.between(interval))

    def _plan_tasks(self, after: StreamPosition, through: StreamPosition) -> list[InputPartition]:
        return self._as_tasks(self._scan.plan(after, through))

    def _as_tasks(self, splits: Sequence[BatchSplit]) -> list[InputPartition]:
        store = self._scan.store
        packing = packing_of_tasks(store.options, store.root)
        tasks = pack_tasks(splits, lambda split: split_weight(split.files, packing), packing, self._request.min_tasks)
        return [ChangePartition(task, store.schema.id) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one task's splits, in batches of at most ``read.arrow-batch-rows`` rows."""
        if not isinstance(partition, ChangePartition):
            raise TypeError(f"a partition must be a ChangePartition of this stream, not a {type(partition).__name__}")
        freeze_modules()
        log_metrics()
        request, store = self._request, self._scan.store
        if partition.schema_id != store.schema.id:  # the table was altered after Spark created the planning reader
            store = store.at_schema(partition.schema_id)
        fields, predicate = _fields(store, request, self._schema), _predicate(store, request)
        read = ChangeRead(store, fields, predicate, kinds=request.changelog, ignore_deletes=request.ignore_deletes)
        order = _order(self._schema)
        changes: Iterator[pa.RecordBatch] = (b for split in partition.splits for b in read.to_batches(split))
        if request.packed:
            changes = self._packed(replace(read, fields=_with_key(store, fields)), partition.splits, fields)
        types = {} if request.packed else {field.name: field for field in fields}
        for batch in resized(changes, request.batch_rows):
            rows = batch if order is None else batch.select(order)
            rows = padded_batch(rows, [types.get(name) for name in rows.schema.names])  # Spark does not pad streams
            yield for_spark(rows, self._arrow)

    def _packed(
        self, read: ChangeRead, splits: Sequence[BatchSplit], fields: Sequence[DataField]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``$binlog``. REQUIRES: each split has all changes of its keys."""
        names = [ROW_KIND.name, *(field.name for field in fields)]
        for split in splits:
            for batch in packed_rows(read.to_batches(split), read.fields, read.store.schema.primary_keys):
                yield batch.select(names)

    # ---- progress

    def commit(self, end: Offset) -> None:
        """Record that the query has processed all changes up to `end`, if the query has a consumer."""
        self._record(StreamPosition.from_json(end))

    def _record(self, position: StreamPosition) -> None:
        """Record the position of the consumer, once the query has read all rows of its first snapshot."""
        store = self._scan.store
        consumer = store.options.value(CONSUMER_ID)
        if consumer is None or (position.scan_snapshot and position.index != ALL_ROWS):
            return
        following, now = position.next_snapshot, time.monotonic()
        if self._recorded is None or self._recorded[0] != following or now - self._recorded[1] >= CONSUMER_SECONDS:
            Consumers(store.io, store.branch_root).record(consumer, following)
            self._recorded = following, now


@message_first
class PaimonChangesReader(DataSourceReader):
    """A reader of the changes between two snapshots, tags or times, in one batch."""

    def __init__(self, store: FileStore, request: StreamRequest, schema: StructType) -> None:
        interval = interval_of(store)
        assert interval is not None
        self._interval = interval
        self._stream = PaimonStreamReader(interval.source(store), request, schema)

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks. Raises OutOfRangeError if a snapshot has expired."""
        return self._stream.between(self._interval)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one task's splits."""
        if isinstance(partition, ChangePartition):  # for an empty plan, Spark passes a partition that is not ours
            yield from self._stream.read(partition)


def _scan(store: FileStore, request: StreamRequest, schema: StructType) -> StreamScan:
    """Return a scan of all columns, or of the columns in `schema` and in the filter."""
    fields, predicate = _fields(store, request, schema), _predicate(store, request)
    if {f.id for f in fields} == {f.id for f in store.schema.fields}:
        return StreamScan(store, None, predicate)
    filtered = set() if predicate is None else predicate_columns(predicate) - {f.name for f in fields}
    return StreamScan(store, (*fields, *(f for f in store.schema.fields if f.name in filtered)), predicate)


def _predicate(store: FileStore, request: StreamRequest) -> Predicate | None:
    return bound_filter(request.filter, store.schema.fields)


def _fields(store: FileStore, request: StreamRequest, schema: StructType) -> tuple[DataField, ...]:
    """Return the table's columns that the schema names, without ``rowkind``."""
    if not request.changelog:
        return projected(store.schema.fields, schema, store.root)
    kinds = [column for column in schema if column.name == ROW_KIND.name]
    if [column.dataType for column in kinds] != [StringType()]:
        raise InvalidInputError(
            f"the schema given for {store.root} lacks the column {ROW_KIND.name!r}, a STRING, for the row kinds of "
            "option 'read.changelog': add it, or leave the option out"
        )
    columns = StructType([column for column in schema if column.name != ROW_KIND.name])
    if not request.packed:
        return projected(row_fields(store), columns, store.root)
    stored = {field.name: field for field in row_fields(store)}
    packed = tuple(map(listed_field, stored.values()))
    return tuple(stored[field.name] for field in projected(packed, columns, store.root))


def _with_key(store: FileStore, fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the columns, followed by the missing columns of the primary key."""
    names = {field.name for field in fields}
    return (*fields, *(store.schema.field(key) for key in store.schema.primary_keys if key not in names))


def _order(schema: StructType) -> list[int] | None:
    """Return the positions of the schema's columns in a batch that has ``rowkind`` first; `None`: the same order."""
    names = schema.names
    index = names.index(ROW_KIND.name) if ROW_KIND.name in names else 0
    return [*range(1, index + 1), 0, *range(index + 1, len(names))] if index else None
