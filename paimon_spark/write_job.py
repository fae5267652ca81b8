"""One job that writes: every task writes files and says which, and all of them are committed at once.

Spark may run a task twice and may stop a job at any point; files that no committed message names are never seen by a
reader.

Compaction. Where the rows were shuffled by `clustered`, a task has its buckets for itself, and compacts them while it
writes. Spark does not say so: a task takes it from its first rows, and the driver, who sees which task wrote where,
drops the compaction of every bucket that another task wrote to as well. What is then still due in the buckets written
to is compacted after the commit; what becomes of that never makes the write fail.

Dynamic and postponed buckets. A key must get the same bucket in whichever task it turns up. So the snapshot that says
where keys are, and how many buckets partitions have, is chosen once for all tasks, and a new key's bucket follows from
its hash and that snapshot alone; the commit joins what the tasks add to the index of each bucket. Where `clustered` has
sent all rows of a key to one task, the task counts the keys of its buckets and fills one after the other.

Keys that may move between partitions. What becomes of a row depends on all others of its key. Tasks put the rows aside,
and the commit deals them out; where `clustered` has sent all rows of a key to one task, the tasks do that themselves.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core.commit.compaction import has_compaction, without_compaction
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.maintenance.compact_after_write import compact_written_buckets
from paimon_core.maintenance.expire import expire_after_commit
from paimon_core.maintenance.staging import drop_staged, route_staged, staging
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.scan.table_scan import passes_over_level_0
from paimon_core.table import Table
from paimon_core.write.align import column_positions
from paimon_core.write.routing import BucketMode, bucket_mode
from paimon_spark.clustered import shares_in
from paimon_spark.event_time import EventTime, later
from paimon_spark.options import WriteRequest
from paimon_spark.partitioner import BucketPartitioner, shuffle_targets
from paimon_spark.types import named, paimon_fields

_log = logging.getLogger(__name__)
STRIDE = 1 << 20
"""Tasks number their rows in steps of this, each from its own partition number on: no two rows of a job share a
sequence number, whichever tasks meet in a bucket, and a task that runs again gives the same numbers."""


@dataclass(frozen=True)
class TaskWrites(WriterCommitMessage):
    """What one task wrote, the snapshot it had looked at before, the streaming query it is of, and its watermark."""

    messages: tuple[CommitMessage, ...] = ()
    base_id: int | None = None
    query: str | None = None
    watermark: int | None = None


Publish: TypeAlias = Callable[[list[CommitMessage], int | None, int | None], object]
"""Commits messages of tasks that had looked at this snapshot, and a watermark; deletes their files where nothing can
come of them."""


class WriteJob:
    """One write job. Pickles: tasks run with copies of it.

    InvalidInputError when the columns of `schema` do not fit the table; values are checked row by row in the tasks.
    """

    def __init__(self, table: Table, request: WriteRequest, schema: StructType, overwrite: bool) -> None:
        kind = request.row_kind_column
        self._row_kind = None if kind is None else row_kind_name(kind, schema)
        mode = bucket_mode(table.schema)
        self._share = _share(mode, schema)
        self._extra = [name for name in (self._row_kind, self._share and self._share[0]) if name is not None]
        column_positions(tuple(name for name in schema.names if name not in self._extra), table.schema)
        self._aside = mode is BucketMode.KEY_DYNAMIC and self._share is None
        self._keeps_count = mode is BucketMode.HASH_DYNAMIC and self._share is not None
        self.table = table
        self._placing = BucketPartitioner.of(table.schema, None) if shuffle_targets(table.schema) else None
        decided = mode not in (BucketMode.HASH_FIXED, BucketMode.BUCKET_UNAWARE)
        self._base_id = request.read_at if request.read_at is not None else _newest(table) if decided else None
        self._event_time = EventTime.of(schema)
        self._user = request.commit_user
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch], number: int | None = None) -> TaskWrites:
        """Write the rows of one task, for a commit of this number if it has one. Whatever goes wrong, the files written
        so far are deleted."""
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        if task >= STRIDE:
            raise InvalidInputError(f"a write may have {STRIDE} tasks at most, this is number {task}: coalesce first")
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return TaskWrites(query=query_id())
        alone: bool | tuple[int, ...] = self._placing is not None and self._placing.owns(task, first)
        if self._share is not None:
            alone = (task, *self._share[1:]) if self._keeps_count else (task, self._share[1])
        settings: dict[str, Any] = {"sequence": (task, STRIDE), "alone": alone, "base_id": self._base_id}
        table = Table(staging(self.table.store)) if self._aside else self.table
        watermark = None
        with table.writer(self._user, overwrite=self.overwrite, **settings) as writer:
            for batch in chain([first], iterator):
                self._check_share(batch, task)
                if self._event_time is not None:
                    watermark = later(watermark, self._event_time.watermark(batch))
                kinds = None if self._row_kind is None else batch.column(self._row_kind)
                writer.write(batch.drop_columns(self._extra) if self._extra else batch, kinds)
            return TaskWrites(tuple(writer.prepare_commit(number)), writer.base_id, query_id(), watermark)

    def _check_share(self, batch: pa.RecordBatch, task: int) -> None:
        """The rows must be in the task that `clustered` sent them to."""
        if self._share is not None and not pc.all(pc.equal(batch.column(self._share[0]), task)).as_py():
            raise InvalidInputError(
                f"rows that clustered() has sent to other tasks came to task {task}: write right after "
                "df.transform(clustered(path)), nothing may move rows in between"
            )

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], publish: Publish, number: int | None = None
    ) -> None:
        """Make everything visible in one snapshot, by `publish`, and bring the buckets written to into shape."""
        written = [message for message in messages if isinstance(message, TaskWrites)]
        staged = [change for message in written for change in message.messages]
        if not self._aside:
            self._publish(written, publish, number)
            return
        try:
            with self.table.writer(self._user, overwrite=self.overwrite, base_id=self._base_id) as writer:
                dealt_out = tuple(route_staged(writer, self.table.store, staged))
                base_id = writer.base_id
            self._publish([TaskWrites(dealt_out, base_id, watermark=_watermark(written))], publish, number)
        finally:
            drop_staged(self.table.store, staged)

    def _publish(self, written: Sequence[TaskWrites], publish: Publish, number: int | None) -> None:
        changes = self._drop_shared_compactions(written)
        base_id = min((m.base_id for m in written if m.base_id is not None), default=None)
        publish(changes, base_id, _watermark(written))
        self._compact(changes, number)
        expire_after_commit(self.table.store)

    def _drop_shared_compactions(self, written: Sequence[TaskWrites]) -> list[CommitMessage]:
        """All messages, without compactions of buckets that several tasks wrote to: one did not see all there is."""
        changes = [change for message in written for change in message.messages]
        tasks = Counter((change.partition, change.bucket) for change in changes)
        store = self.table.store
        return [
            without_compaction(store, change)
            if has_compaction(change) and tasks[change.partition, change.bucket] > 1
            else change
            for change in changes
        ]

    def _compact(self, changes: Sequence[CommitMessage], number: int | None = None) -> None:
        """What is due in the buckets written to. The rows are in: whatever goes wrong here is only told."""
        try:
            touched = {(change.partition, change.bucket) for change in changes}
            compact_written_buckets(self.table.store, touched, writes_changelog=not self.overwrite, number=number)
        except Exception as error:
            _log.warning(
                "the rows are committed to %s, but not compacted; the next write or compact() does it%s: %s: %s",
                hide_secrets(self.table.path),
                ", and only then do they show" if passes_over_level_0(self.table.store) else "",
                type(error).__name__,
                error,
            )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what tasks have written for a commit that there will not be."""
        changes = [change for message in messages if isinstance(message, TaskWrites) for change in message.messages]
        if self._aside:
            drop_staged(self.table.store, changes)
        else:
            self.table.committer(self._user).abort(changes)


def _share(mode: BucketMode, schema: StructType) -> tuple[str, int, int] | None:
    """Return what the columns tell of a shuffle by `clustered`, if it was one for a table of this mode."""
    share = shares_in(schema.names) if mode in (BucketMode.KEY_DYNAMIC, BucketMode.HASH_DYNAMIC) else None
    return share if share is not None and bool(share[2]) == (mode is BucketMode.HASH_DYNAMIC) else None


def _watermark(written: Sequence[TaskWrites]) -> int | None:
    return reduce(later, (m.watermark for m in written), None)


def query_id() -> str | None:
    """The streaming query this task is of. It is kept in the checkpoint: the same in every run that starts from it."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("sql.streaming.queryId")


def _newest(table: Table) -> int:
    snapshot = table.snapshot()
    return 0 if snapshot is None else snapshot.id


def row_kind_name(column: str, schema: StructType) -> str:
    """The column of the DataFrame that carries row kinds, as it is spelled there."""
    return named(paimon_fields(schema), column, "the DataFrame (option 'row-kind-column')").name
