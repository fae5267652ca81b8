"""Batch writes: every task writes files and says which, the driver commits them all at once.

Spark may run a task twice and may stop a job at any point; files that no committed message names are never seen by a
reader. After a failed commit Spark calls `abort` with every message, also when the commit may have landed: then
nothing may be deleted, so what a failed commit leaves is cleaned up by the commit itself, where the outcome is known.

Compaction. Where the rows were shuffled by `clustered`, a task has its buckets for itself, and compacts them while it
writes. Spark does not say so: a task takes it from its first rows, and the driver, who sees which task wrote where,
drops the compaction of every bucket that another task wrote to as well. What is then still due in the buckets written
to is compacted after the commit; what becomes of that never makes the write fail.

Dynamic and postponed buckets. A key must get the same bucket in whichever task it turns up. So the snapshot that says
where keys are, and how many buckets partitions have, is chosen here, once, and a new key's bucket follows from its hash
and that snapshot alone; the commit joins what the tasks add to the index of each bucket.

Keys that may move between partitions. What becomes of a row depends on all others of its key. Tasks put the rows aside,
and the commit deals them out; where `clustered` has sent all rows of a key to one task, the tasks do that themselves.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from paimon_core.commit.compaction import compacts, without_compaction
from paimon_core.commit.overwrite import DYNAMIC
from paimon_core.errors import CommitConflictError, InvalidInputError, NotFoundError
from paimon_core.maintenance.after_write import compact_touched
from paimon_core.maintenance.staging import deal_out_staged, drop_staged, staging
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.options.bucket import BUCKET, BUCKET_KEY
from paimon_core.options.option import Option
from paimon_core.scan.table_scan import passes_over_level_0
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.write.align import column_positions
from paimon_core.write.routing import BucketMode, bucket_mode
from paimon_spark.clustered import shares_in
from paimon_spark.options import WriteRequest
from paimon_spark.placing import Placing, places_of
from paimon_spark.types import named, paimon_fields

_log = logging.getLogger(__name__)
STRIDE = 1 << 20
"""Tasks number their rows in steps of this, each from its own partition number on: no two rows of a job share a
sequence number, whichever tasks meet in a bucket, and a task that runs again gives the same numbers."""


def table_to_write(request: WriteRequest, schema: StructType) -> Table:
    """The table a job writes to, made if there is none; the job's table options lie over the table's own.

    InvalidInputError when options ask for other keys, partitions or buckets than the table has.
    """
    place = request.place
    try:
        table = Table.open(place.path, place.storage_options, branch=place.branch)
    except NotFoundError:
        if place.branch is not None:
            raise
        wish = _wished(request, schema)
        table = Table.create(place.path, wish, place.storage_options, ignore_if_exists=True)
    _check_same_layout(table, request)
    stored = table.schema.options
    return table.with_options({key: value for key, value in request.options.items() if stored.get(key) != value})


def _wished(request: WriteRequest, schema: StructType) -> Schema:
    hidden = () if request.row_kind_column is None else (_row_kind_name(request.row_kind_column, schema),)
    fields = paimon_fields(schema, without=hidden)
    for key in (*(request.primary_keys or ()), *(request.partition_keys or ())):
        named(fields, key, "the DataFrame")
    return Schema(fields, request.primary_keys or (), request.partition_keys or (), request.options)


def _check_same_layout(table: Table, request: WriteRequest) -> None:
    schema = table.schema
    _check_same("primary-key", request.primary_keys, schema.primary_keys, table.path)
    _check_same("partition", request.partition_keys, schema.partition_keys, table.path)
    _check_option(BUCKET, request, table)
    _check_option(BUCKET_KEY, request, table)


def _check_option(option: Option[Any], request: WriteRequest, table: Table) -> None:
    asked, has = request.options.get(option.key), table.schema.options.value(option)
    if asked is not None and option.parse(asked) != has:
        raise _changed(option.key, asked, str(has), table.path)


def _check_same(key: str, asked: tuple[str, ...] | None, has: tuple[str, ...], path: str) -> None:
    if asked is not None and [name.lower() for name in asked] != [name.lower() for name in has]:
        raise _changed(key, ",".join(asked), ",".join(has), path)


def _changed(key: str, asked: str, has: str, path: str) -> InvalidInputError:
    return InvalidInputError(
        f"option {key!r} = {asked!r}, but the table at {path} has {has!r}, and a write cannot change that: "
        "leave the option out, or write to a new table"
    )


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task wrote, and the snapshot it had looked at before."""

    messages: tuple[CommitMessage, ...]
    base_id: int | None


class PaimonWriter(DataSourceArrowWriter):
    """One write job. Pickles: tasks and the commit run with copies of it.

    InvalidInputError when the columns of `schema` do not fit the table; values are checked row by row in the tasks.
    """

    def __init__(self, table: Table, request: WriteRequest, schema: StructType, overwrite: bool) -> None:
        kind = request.row_kind_column
        self._row_kind = None if kind is None else _row_kind_name(kind, schema)
        mode = bucket_mode(table.schema)
        self._share = shares_in(schema.names) if mode is BucketMode.KEY_DYNAMIC else None
        self._extra = [name for name in (self._row_kind, self._share and self._share[0]) if name is not None]
        column_positions(tuple(name for name in schema.names if name not in self._extra), table.schema)
        self._aside = mode is BucketMode.KEY_DYNAMIC and self._share is None
        self._table = table
        self._placing = Placing.of(table.schema, None, table.path) if places_of(table.schema) else None
        decided = mode not in (BucketMode.HASH_FIXED, BucketMode.BUCKET_UNAWARE)
        self._base_id = _newest(table) if decided else None
        self._user = request.commit_user
        self._overwrite = overwrite
        self._dynamic = request.dynamic

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task. Whatever goes wrong, the files written so far are deleted."""
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        if task >= STRIDE:
            raise InvalidInputError(f"a write may have {STRIDE} tasks at most, this is number {task}: coalesce first")
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return Written((), None)
        alone: bool | tuple[int, int] = self._placing is not None and self._placing.owned_by(task, first)
        if self._share is not None:
            alone = (task, self._share[1])
        settings: dict[str, Any] = {"sequence": (task, STRIDE), "alone": alone, "base_id": self._base_id}
        table = Table(staging(self._table.store)) if self._aside else self._table
        with table.writer(self._user, overwrite=self._overwrite, **settings) as writer:
            for batch in chain([first], iterator):
                self._check_share(batch, task)
                kinds = None if self._row_kind is None else batch.column(self._row_kind)
                writer.write(batch.drop_columns(self._extra) if self._extra else batch, kinds)
            return Written(tuple(writer.prepare_commit()), writer.base_id)

    def _check_share(self, batch: pa.RecordBatch, task: int) -> None:
        """The rows must be in the task that `clustered` sent them to."""
        if self._share is not None and not pc.all(pc.equal(batch.column(self._share[0]), task)).as_py():
            raise InvalidInputError(
                f"rows that clustered() has sent to other tasks came to task {task}: write right after "
                "df.transform(clustered(path)), nothing may move rows in between"
            )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make everything visible in one snapshot; after a conflict nothing is, and the files are deleted."""
        written = [message for message in messages if isinstance(message, Written)]
        if not self._aside:
            self._publish(written)
            return
        store, staged = self._table.store, [change for message in written for change in message.messages]
        try:
            with self._table.writer(self._user, overwrite=self._overwrite, base_id=self._base_id) as writer:
                dealt_out = Written(tuple(deal_out_staged(writer, store, staged)), writer.base_id)
            self._publish([dealt_out])
        finally:
            drop_staged(store, staged)

    def _publish(self, written: Sequence[Written]) -> None:
        changes = self._surely_alone(written)
        bases = [message.base_id for message in written if message.base_id is not None]
        committer = self._table.committer(self._user)
        try:
            if self._overwrite:
                committer.overwrite(changes, DYNAMIC if self._dynamic else None)
            else:
                committer.commit(changes, base_id=min(bases, default=None) if self._base_id is None else self._base_id)
        except CommitConflictError:  # provably lost; any other failure leaves the outcome open
            committer.abort(changes)
            raise
        self._compact(changes)

    def _surely_alone(self, written: Sequence[Written]) -> list[CommitMessage]:
        """All messages, without compactions of buckets that several tasks wrote to: one did not see all there is."""
        changes = [change for message in written for change in message.messages]
        tasks = Counter((change.partition, change.bucket) for change in changes)
        store = self._table.store
        return [
            without_compaction(store, change)
            if compacts(change) and tasks[change.partition, change.bucket] > 1
            else change
            for change in changes
        ]

    def _compact(self, changes: Sequence[CommitMessage]) -> None:
        """What is due in the buckets written to. The rows are in: whatever goes wrong here is only told."""
        try:
            touched = {(change.partition, change.bucket) for change in changes}
            compact_touched(self._table.store, touched, tells=not self._overwrite)
        except Exception as error:
            _log.warning(
                "the rows are committed to %s, but not compacted; the next write or compact() does it%s: %s: %s",
                self._table.path,
                ", and only then do they show" if passes_over_level_0(self._table.store) else "",
                type(error).__name__,
                error,
            )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose tasks failed; when it was the commit that failed, it did so itself."""
        if all(message is not None for message in messages):
            return
        changes = [change for message in messages if isinstance(message, Written) for change in message.messages]
        if self._aside:
            drop_staged(self._table.store, changes)
        else:
            self._table.committer(self._user).abort(changes)


def _newest(table: Table) -> int:
    snapshot = table.snapshot()
    return 0 if snapshot is None else snapshot.id


def _row_kind_name(column: str, schema: StructType) -> str:
    """The column of the DataFrame that carries row kinds, as it is spelled there."""
    return named(paimon_fields(schema), column, "the DataFrame (option 'row-kind-column')").name
