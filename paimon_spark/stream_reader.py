"""Streams of changes, micro-batch by micro-batch; and a part of one as a batch of its own.

One process per run of a query is asked how far a batch may go and what it consists of; tasks read with a reader of
their own. Spark keeps the offsets as text: a position of the engine and, under ``from``, the one the query started at.
That one Spark does not keep, and asks for it anew when it has to repeat the first batch.

Spark 4.1 asks for the newest offset without saying behind which one, so the reader remembers that. Nor does it say
that it will not ask again: there a query with ``availableNow`` ends where limits end its first batch.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StringType, StructType

from paimon_core.errors import InvalidInputError, OutOfRangeError
from paimon_core.options.scan import CONSUMER_ID
from paimon_core.predicate import rewrite
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.parse import parse_predicate
from paimon_core.read.changes import ChangeRead
from paimon_core.scan.position import ALL, Position
from paimon_core.scan.starting_scanner import incremental_bounds
from paimon_core.scan.stream_scan import NO_LIMITS, ChangeSplit, StreamScan
from paimon_core.scan.task_plan import pack_tasks, packing_of_tasks, weight
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.options import StreamRequest
from paimon_spark.reader import resized, spare_collections
from paimon_spark.report import message_first
from paimon_spark.types import expected_arrow_schema, for_spark, projected

try:
    from pyspark.sql.streaming import datasource as read_limits
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark 4.1 asks for nothing of the kind."""


PAUSE_SECONDS = 0.1, 2.0  # before the next look at a table that had nothing new: Spark asks every 10 ms
PAUSE_LOOKS = 5  # as long as so many looks take, within these bounds: looking costs an object store requests
CONSUMER_SECONDS = 60.0
"""After which an idle query says again how far it is: a table may forget a consumer that falls silent. Spark 4.1 tells
what has been read only when it goes on reading, so there it does fall silent."""
_FROM = "from"

Offset = dict[str, Any]


class ChangePartition(InputPartition):
    """The splits that one task reads of a batch, and the schema they were planned with."""

    def __init__(self, splits: tuple[ChangeSplit, ...], schema_id: int) -> None:
        super().__init__(None)
        self.splits, self.schema_id = splits, schema_id


@message_first
class PaimonStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The changes of a table, the columns of `schema` in its order; ``rowkind`` among them if the request says so."""

    def __init__(self, store: FileStore, request: StreamRequest, schema: StructType) -> None:
        self._request, self._schema = request, schema
        self._scan = _scan(store, request, schema)
        self._arrow = expected_arrow_schema(schema)
        self._started: Offset | None = None
        self._reached: Offset | None = None
        self._target: Position | None = None
        self._newest: Offset | None = None
        self._last_batch = self._next_look = -float("inf")
        self._too_few: tuple[Position, Position] | None = None
        self._recorded: tuple[int, float] | None = None

    # ---- how far

    def initialOffset(self) -> Offset:
        """Where a new query starts."""
        if self._started is None:
            position = self._scan.start().to_json()
            self._started = {**position, _FROM: position}
        return self._started

    def getDefaultReadLimit(self) -> "read_limits.ReadLimit":
        """One of the limits in the options, for Spark to hand back; all of them are kept to."""
        limits, least = self._request.limits, self._request.min_rows
        if limits.files is not None:
            return read_limits.ReadMaxFiles(limits.files)
        if limits.bytes is not None:
            return read_limits.ReadMaxBytes(limits.bytes)
        if limits.rows is not None:
            return read_limits.ReadMaxRows(limits.rows)
        return read_limits.ReadAllAvailable() if least is None else read_limits.ReadMinRows(least)

    def latestOffset(self, start: Offset | None = None, limit: "read_limits.ReadLimit | None" = None) -> Offset:
        """How far the next batch goes; `start` itself where there is nothing to read, or too little yet."""
        behind = start or self._reached or self.initialOffset()
        time.sleep(max(0.0, self._next_look - time.monotonic()))
        looked = time.monotonic()
        after = Position.from_json(behind)
        everything = limit is not None and isinstance(limit, read_limits.ReadAllAvailable)
        self._newest = None
        through = self._scan.advance(after, NO_LIMITS if everything else self._request.limits, self._target)
        if start is not None:
            self._record(after)
        if through == after or not (everything or self._is_enough(after, through)):
            now, (least, most) = time.monotonic(), PAUSE_SECONDS
            self._next_look = now + min(most, max(least, PAUSE_LOOKS * (now - looked)))
            self._newest = behind if through == after and self._target is None else None
            return behind
        self._next_look = -float("inf")
        return {**through.to_json(), _FROM: behind[_FROM]}

    def reportLatestOffset(self) -> Offset:
        """The end of all there is now, as Spark's progress shows it; Spark asks after every look for a batch."""
        return self._newest or self._scan.latest().to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from now on is left to another run."""
        self._target = self._scan.latest()

    def _is_enough(self, after: Position, through: Position) -> bool:
        """Whether the batch has as many rows as it is to wait for, or has waited long enough."""
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

    # ---- what there is

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan the tasks that read what lies between the offsets: the same ones whenever Spark repeats the batch."""
        self._reached = end
        first_batch = Position.from_json(start) == Position.from_json(start[_FROM])
        after, through = Position.from_json(end[_FROM] if first_batch else start), Position.from_json(end)
        if after == through:
            return []
        self._last_batch = time.monotonic()
        return self._planned(after, through)

    def between_snapshots(self) -> list[InputPartition]:
        """Plan the tasks that read what lies between the two snapshots of the options, for a batch read."""
        store, bounds = self._scan.store, incremental_bounds(self._scan.store)
        latest = store.snapshots.latest_id() or 0
        if bounds is not None and bounds[1] > latest:
            raise OutOfRangeError(
                f"{store.root} has no changes through snapshot {bounds[1]} yet: its newest snapshot is {latest}"
            )
        return self._planned(self._scan.start(), self._scan.latest())

    def _planned(self, after: Position, through: Position) -> list[InputPartition]:
        store, splits = self._scan.store, self._scan.plan(after, through)
        packing = packing_of_tasks(store.options)

        def weigh(split: ChangeSplit) -> int:
            return sum(weight(piece.split.files, packing) for piece in split.pieces)

        tasks = pack_tasks(splits, weigh, packing, self._request.min_tasks)
        return [ChangePartition(task, store.schema.id) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one task's splits, in batches of about the number of rows asked for."""
        if not isinstance(partition, ChangePartition):
            raise TypeError(f"a partition of {type(partition).__name__} is none of this stream")
        spare_collections()
        request, store = self._request, self._scan.store
        if partition.schema_id != store.schema.id:  # the table was altered while Spark made its two readers
            store = store.at_schema(partition.schema_id)
        fields, predicate = _fields(store, request, self._schema), _predicate(store, request)
        read = ChangeRead(store, fields, predicate, kinds=request.changelog, ignore_deletes=request.ignore_deletes)
        order = _order(self._schema)
        changes = (batch for split in partition.splits for batch in read.to_batches(split))
        for batch in resized(changes, request.batch_rows):
            yield for_spark(batch if order is None else batch.select(order), self._arrow)

    # ---- what has been read

    def commit(self, end: Offset) -> None:
        """Everything up to `end` has been worked up: the query's consumer, if it has one, says so in the table."""
        self._record(Position.from_json(end))

    def _record(self, position: Position) -> None:
        """Tell the consumer of a query that is through the rows it starts with: before, none could go on from there."""
        store = self._scan.store
        consumer = store.options.value(CONSUMER_ID)
        if consumer is None or (position.scan_snapshot and position.index != ALL):
            return
        following, now = position.next_snapshot, time.monotonic()
        if self._recorded is None or self._recorded[0] != following or now - self._recorded[1] >= CONSUMER_SECONDS:
            Consumers(store.io, store.branch_root).record(consumer, following)
            self._recorded = following, now


@message_first
class PaimonChangesReader(DataSourceReader):
    """What a stream from one snapshot to another would read, in one batch."""

    def __init__(self, store: FileStore, request: StreamRequest, schema: StructType) -> None:
        store = store.with_options({"consumer.ignore-progress": "true"})  # of a consumer that the table itself names
        self._stream = PaimonStreamReader(store, request, schema)

    def partitions(self) -> list[InputPartition]:
        """A task for each split. OutOfRangeError for snapshots that are not there."""
        return self._stream.between_snapshots()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """As a stream reads it."""
        if isinstance(partition, ChangePartition):  # not Spark's stand-in for "no partitions"
            yield from self._stream.read(partition)


def _scan(store: FileStore, request: StreamRequest, schema: StructType) -> StreamScan:
    """The scan; the columns count as chosen where they are not simply all that the table has."""
    fields, predicate = _fields(store, request, schema), _predicate(store, request)
    if {f.id for f in fields} == {f.id for f in store.schema.fields}:
        return StreamScan(store, None, predicate)
    asked = set() if predicate is None else rewrite.columns(predicate) - {f.name for f in fields}
    return StreamScan(store, (*fields, *(f for f in store.schema.fields if f.name in asked)), predicate)


def _predicate(store: FileStore, request: StreamRequest) -> Predicate | None:
    return None if request.filter is None else rewrite.bind(parse_predicate(request.filter), store.schema.fields)


def _fields(store: FileStore, request: StreamRequest, schema: StructType) -> tuple[DataField, ...]:
    """The table's columns that the schema asks for."""
    if not request.changelog:
        return projected(store.schema.fields, schema, store.root)
    kinds = [column for column in schema if column.name == ROW_KIND.name]
    if [column.dataType for column in kinds] != [StringType()]:
        raise InvalidInputError(
            f"the schema given for {store.root} lacks the column {ROW_KIND.name!r}, a string, which tells apart what "
            "option 'read.changelog' lets through: add it, or leave the option out"
        )
    columns = StructType([column for column in schema if column.name != ROW_KIND.name])
    return projected(store.schema.fields, columns, store.root)


def _order(schema: StructType) -> list[int] | None:
    """Where the columns of the schema are in a batch, which has ``rowkind`` first; None where it does so as well."""
    names = schema.names
    at = names.index(ROW_KIND.name) if ROW_KIND.name in names else 0
    return [*range(1, at + 1), 0, *range(at + 1, len(names))] if at else None
