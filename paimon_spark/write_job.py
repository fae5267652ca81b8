"""The Spark tasks of one write: every task passes an iterator of Arrow batches to a writer of the engine.

`paimon_core.operations.distributed_write` defines a distributed write, its tasks and its commit. This module adds
Spark's part: task numbers, the column of `clustered`, the streaming query, and event time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core import Table
from paimon_core.engine import (
    LOCAL,
    BucketMode,
    DistributedWrite,
    KeyShard,
    PreparedWrite,
    Runner,
    TaskWrite,
    bucket_mode,
    column_positions,
)
from paimon_core.errors import InvalidInputError
from paimon_core.types.columns import find_column
from paimon_core.types.row_kind import INSERT, SHORT_NAMES
from paimon_core.types.system_fields import ROW_ID
from paimon_spark.bucket_shuffle import find_shuffle
from paimon_spark.char_columns import has_char, padded_batch
from paimon_spark.event_time import EventTime, later
from paimon_spark.options import WriteRequest
from paimon_spark.partitioner import BucketPartitioner, shuffle_targets
from paimon_spark.types import paimon_fields


@dataclass(frozen=True)
class TaskWrites(WriterCommitMessage):
    """The result of one task: its write, the id of its streaming query, and its watermark (epoch ms)."""

    write: TaskWrite = field(default_factory=TaskWrite)
    query: str | None = None
    watermark: int | None = None


class WriteJob:
    """One write job of Spark. It pickles: each task runs with a copy.

    Raises InvalidInputError if the columns of `schema` do not fit the table; the tasks check values row by row.
    `single`: the job has one task. `keeps_row_ids`: rows have an extra column ``_ROW_ID``; NULL: the row is new.
    `pads`: CHAR values are padded to their length before they are written.
    """

    def __init__(
        self,
        table: Table,
        request: WriteRequest,
        schema: StructType,
        overwrite: bool,
        single: bool = False,
        *,
        keeps_row_ids: bool = False,
        pads: bool = False,
    ) -> None:
        self._single = single
        kind = request.row_kind_column
        self._row_kind = None if kind is None else row_kind_name(kind, schema)
        self._mode = bucket_mode(table.schema)
        self._shuffle = _shuffle(self._mode, schema, table.schema.names)
        self._changes = request.changes_column
        extra = dict.fromkeys((self._row_kind, self._shuffle and self._shuffle[0], self._changes))
        self._extra = [name for name in extra if name is not None]
        hidden = {*self._extra, *((ROW_ID.name,) if keeps_row_ids else ())}
        column_positions(tuple(name for name in schema.names if name not in hidden), table.schema)
        self.table, self.overwrite = table, overwrite
        columns = [field for field in table.schema.fields if has_char(field.type)] if pads else []
        self._padded = {field.name.lower(): field for field in columns}
        self._partitioner = BucketPartitioner.of(table.schema, None) if shuffle_targets(table.schema) else None
        self._event_time = EventTime.of(schema)
        self._write = DistributedWrite(
            table.store,
            overwrite=overwrite,
            user=request.commit_user,
            sharded=self._shuffle is not None,
            started_from=request.started_from,
            keeps_row_ids=keeps_row_ids,
        )

    def write(self, iterator: Iterator[pa.RecordBatch], number: int | None = None) -> TaskWrites:
        """Write the rows of one task. An error leaves no file.

        `number`: the commit identifier; `None`: not an idempotent commit.
        """
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return TaskWrites(query=query_id())
        watermark = None
        with self._write.task_writer(task, exclusive=self._owns(task, first), shard=self._shard(task)) as writer:
            for given in chain([first], iterator):
                batch = padded_batch(given, [self._padded.get(name.lower()) for name in given.schema.names])
                self._check_shuffled(batch, task)
                if self._event_time is not None:
                    watermark = later(watermark, self._event_time.watermark(batch))
                kinds = None if self._row_kind is None else batch.column(self._row_kind)
                new = True if self._changes is None else pc.equal(batch.column(self._changes), SHORT_NAMES[INSERT])
                rows = batch.drop_columns(self._extra) if self._extra else batch
                writer.write(rows, kinds, fills_defaults=new)
            written = TaskWrite(tuple(writer.prepare_commit(number)), writer.started_from)
        return TaskWrites(written, query_id(), watermark)

    def _owns(self, task: int, first: pa.RecordBatch) -> bool:
        """Return True if this task has all rows of its buckets, judging by its first rows."""
        if self._single or self._shuffle is not None:
            return True
        return self._partitioner is not None and self._partitioner.owns(task, first)

    def _shard(self, task: int) -> KeyShard | None:
        """Return the keys of this task; `None`: `clustered` did not shuffle the rows by key."""
        if self._shuffle is None:
            return None
        _, tasks, slots = self._shuffle
        return KeyShard(task, tasks, slots if self._mode is BucketMode.HASH_DYNAMIC else 0)

    def _check_shuffled(self, batch: pa.RecordBatch, task: int) -> None:
        """Raise InvalidInputError if `clustered` assigned a row of the batch to another task."""
        if self._shuffle is not None and not pc.all(pc.equal(batch.column(self._shuffle[0]), task)).as_py():
            raise InvalidInputError(
                f"task {task} got rows that clustered() has sent to other tasks: write directly after "
                "df.transform(clustered(path)), without an operation in between that moves rows"
            )

    def prepare(self, messages: Sequence[WriterCommitMessage | None]) -> PreparedWrite:
        """Collect the commit messages from the results of all tasks."""
        return self._write.prepare([message.write for message in task_results(messages)])

    def finish(self, prepared: PreparedWrite, number: int | None = None, runner: Runner = LOCAL) -> None:
        """Compact and expire after the commit of `prepared`.

        `number`: the commit identifier, as in `write`; `runner`: runs the compactions.
        """
        self._write.finish(prepared, number, runner)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of tasks whose job will not be committed."""
        self._write.abort([message.write for message in task_results(messages)])


def task_results(messages: Sequence[WriterCommitMessage | None]) -> list[TaskWrites]:
    """Return the results of the finished tasks."""
    return [message for message in messages if isinstance(message, TaskWrites)]


def watermark_of(messages: Sequence[WriterCommitMessage | None]) -> int | None:
    """Return the latest watermark of the tasks of a job; `None`: no task has a watermark."""
    return reduce(later, (message.watermark for message in task_results(messages)), None)


def query_id() -> str | None:
    """Return the id of the streaming query that this task belongs to; `None` outside of queries.

    Spark keeps the id in the checkpoint, so every run from that checkpoint has the same id.
    """
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("sql.streaming.queryId")


def row_kind_name(column: str, schema: StructType) -> str:
    """Return the name of the DataFrame's column of row kinds, in the case of the DataFrame."""
    return find_column(paimon_fields(schema), column, "the DataFrame (option 'row-kind-column')").name


def _shuffle(mode: BucketMode, schema: StructType, of_table: Sequence[str]) -> tuple[str, int, int] | None:
    """Return the shuffle by `clustered`, if the columns show one for this bucket mode; else `None`."""
    dynamic = mode in (BucketMode.KEY_DYNAMIC, BucketMode.HASH_DYNAMIC)
    shuffle = find_shuffle(schema.names, of_table) if dynamic else None
    return shuffle if shuffle is not None and bool(shuffle[2]) == (mode is BucketMode.HASH_DYNAMIC) else None
