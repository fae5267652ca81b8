"""Writes of changed rows, in one commit that conflicts with concurrent changes of the same rows."""

import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from paimon_core import CommitMessage, RowChanges, Snapshot, Table
from paimon_core.engine import (
    EXPIRED,
    RETRIES,
    SEVERAL,
    BucketMode,
    Guard,
    Progress,
    RowRanges,
    StartedFrom,
    after_commit,
    bucket_mode,
    check_knows_columns,
    collect,
    commit_messages,
    remove_rows,
)
from paimon_core.errors import (
    CommitConflictError,
    InvalidInputError,
    OutOfRangeError,
    TableChangedError,
    hide_secrets,
)
from paimon_core.types.system_fields import ROW_ID, ROW_KIND
from paimon_spark.bucket_shuffle import shuffle_for
from paimon_spark.distribute import DRIVER_BYTES, SparkRunner
from paimon_spark.frame_write import Results, run_tasks
from paimon_spark.options import WriteRequest, write_request
from paimon_spark.row_level.column_updates import ColumnTask, by_range
from paimon_spark.row_level.rows import DELETED, INSERTED, UPDATED, Changes
from paimon_spark.row_level.target import Target
from paimon_spark.row_level.tasks import NOT_WRITTEN, ChangeCounts, ChangeTask, total
from paimon_spark.row_level.turns import retry_in_turn
from paimon_spark.write_job import WriteJob

_WRITE_ONLY = {"write-only": "true"}


@dataclass(frozen=True)
class RowStatement:
    """The changes that a statement makes to the rows of a table.

    Args:
        operation: the keyword of the statement, for errors.
        changes: a function from the rows of the table to the rows to write.
        columns: the names of the columns that change in existing rows.
        may_repeat: False if several changes of one row are an InvalidInputError.
    """

    operation: str
    changes: Changes
    columns: Collection[str] = ()
    may_repeat: bool = True

    @property
    def logged(self) -> str:
        """The operation to store in the snapshot: DELETE, UPDATE or MERGE."""
        return self.operation.removesuffix(" INTO")


def change_rows(target: Target, statement: RowStatement, progress: Progress | None = None) -> RowChanges:
    """Change the rows of the newest snapshot in one commit; return the numbers of changed rows and the snapshot.

    If a concurrent commit changes the same rows, the statement starts again. After several conflicts, other statements
    of this process on the table wait for it.

    Args:
        target: the table to change.
        statement: the changes to make.
        progress: called with the bytes of rewritten files so far, and the total bytes; `None`: no reports.

    Raises CommitConflictError if every attempt had a conflict, OutOfRangeError if the snapshot of the last attempt has
    expired. After an error the table is unchanged.
    """
    options = {**target.options, **target.commit}
    request = write_request(options, [field.name for field in target.table.schema.fields])
    target.table.committer()  # refuse a table that cannot be committed to before any work
    target = replace(target, table=target.table.with_store(target.table.store.remembering()))
    traits = target.table.store.traits
    attempt = _change_keyed if traits.keyed else _change_columns if traits.data_evolution else _change_files

    def run() -> RowChanges:
        with _engine_errors(f"{statement.operation} on {hide_secrets(target.table.path)}"):
            return attempt(target, statement, request, progress)

    with collect() as metrics:
        done = retry_in_turn(target.table.path, run, RETRIES)
    return replace(done, metrics=metrics)


def _change_keyed(
    target: Target, statement: RowStatement, request: WriteRequest, progress: Progress | None
) -> RowChanges:
    """Write rows with their kinds; no file is rewritten."""
    table, snapshot = target.table, target.table.snapshot()
    started_from = StartedFrom.of(snapshot, Guard.ROWS | Guard.KEYS)
    if statement.operation != "DELETE":  # of a deleted row, only the key matters to the merge
        check_knows_columns(table.store, snapshot)
    rows = statement.changes(target.rows(snapshot))
    few = None if bucket_mode(table.schema) is BucketMode.KEY_DYNAMIC else target.access.few_changes(rows)
    if few is None:
        rows = rows.transform(shuffle_for(table))
    request = replace(request, row_kind_column=ROW_KIND.name, changes_column=ROW_KIND.name, started_from=started_from)
    job = WriteJob(table, request, rows.schema, overwrite=False, single=few is not None)
    results = _written(rows, few, ChangeTask(job, positions=False), job.abort)
    counts, prepared = total(results), job.prepare(results)
    publisher = table.committer(request.commit_user or uuid.uuid4().hex).publisher
    identity = replace(publisher.identity(None, request.properties or None), operation=statement.logged)
    started_from = started_from.joined(prepared.started_from)
    committed = publisher.publish_or_delete(commit_messages, prepared.messages, identity, started_from).snapshot
    job.finish(prepared, runner=_runner(target, "compact"))
    return _changes(counts, counts.kinds[DELETED], committed)


def _change_files(
    target: Target, statement: RowStatement, request: WriteRequest, progress: Progress | None
) -> RowChanges:
    """Add the new rows, and remove the old rows from their files."""
    table, snapshot = target.table, target.table.snapshot()
    check_knows_columns(table.store, snapshot)
    old = target.rows(snapshot)
    rows, job = statement.changes(old), None
    few = target.access.few_changes(rows)
    if set(old.columns) <= set(rows.columns):
        rows = _gathered(rows, table) if few is None else rows
        written = rows.drop(*NOT_WRITTEN).schema
        keeps, single = ROW_ID.name in old.positions, few is not None
        writes = table.with_options(_WRITE_ONLY)
        given = replace(request, changes_column=ROW_KIND.name)
        job = WriteJob(writes, given, written, overwrite=False, single=single, keeps_row_ids=keeps)
    results = _written(rows, few, ChangeTask(job, positions=True), _no_files if job is None else job.abort)
    counts, messages = total(results), () if job is None else job.prepare(results).messages
    publisher = table.committer(request.commit_user).publisher
    identity = replace(publisher.identity(None, request.properties or None), operation=statement.logged)
    removing: list[CommitMessage] = []
    with publisher.deleting_unless_published(messages):
        if not statement.may_repeat and counts.repeated:
            raise InvalidInputError(SEVERAL)
        if counts.removed and snapshot is not None:
            runner = _runner(target, "rewrite files of")
            removing = remove_rows(table.store, snapshot, counts.removed, runner=runner, progress=progress)
        with publisher.deleting_unless_published(removing):
            started_from = StartedFrom.of(snapshot, Guard.STATEMENT)
            committed = commit_messages(publisher, [*removing, *messages], identity, started_from).snapshot
    buckets = {message.bucket_ref for message in (*removing, *messages)}
    after_commit(table.store, buckets, writes_changelog=False, runner=_runner(target, "compact"))
    return _changes(counts, counts.removed.distinct - counts.kinds[UPDATED], committed)


def _change_columns(
    target: Target, statement: RowStatement, request: WriteRequest, progress: Progress | None
) -> RowChanges:
    """Add the new rows, for each changed range a file with the changed columns of all its rows, and delete rows."""
    table, snapshot = target.table, target.table.snapshot()
    check_knows_columns(table.store, snapshot)
    ranges = RowRanges(()) if snapshot is None else RowRanges.of(table.store, snapshot)
    old = target.rows(snapshot)
    rows, job = by_range(statement.changes(old), ranges), None
    if set(old.columns) & set(rows.columns):
        written = rows.drop(ROW_ID.name, ROW_KIND.name).schema
        job = WriteJob(table.with_options(_WRITE_ONLY), request, written, overwrite=False)
    changed = tuple(f for f in table.schema.fields if f.name in statement.columns)
    task = ColumnTask(job, table.store, ranges, changed, statement.may_repeat)
    results = run_tasks(rows, task, _no_files if job is None else job.abort)
    counts, messages = total(results), () if job is None else job.prepare(results).messages
    publisher = table.committer(request.commit_user).publisher
    identity = replace(publisher.identity(None, request.properties or None), operation=statement.logged)
    with publisher.deleting_unless_published(messages):
        removing = remove_rows(table.store, snapshot, counts.removed) if counts.removed and snapshot is not None else []
        with publisher.deleting_unless_published(removing):
            started_from = StartedFrom.of(snapshot, Guard.LAYOUT | Guard.STATEMENT)
            committed = commit_messages(publisher, [*removing, *messages], identity, started_from).snapshot
    buckets = {message.bucket_ref for message in (*removing, *messages)}
    after_commit(table.store, buckets, runner=_runner(target, "compact"))
    return _changes(counts, counts.removed.distinct, committed)


def _written(rows: DataFrame, few: pa.Table | None, task: ChangeTask, abort: Callable[[Results], None]) -> Results:
    """Return the results of the task, which runs on Spark, or in this process for the rows in `few`."""
    return run_tasks(rows, task, abort) if few is None else [task(iter(few.to_batches()))]


def _no_files(results: object) -> None:
    """Abort tasks that wrote no file."""


def _changes(counts: ChangeCounts, deleted: int, committed: Snapshot | None) -> RowChanges:
    return RowChanges(counts.kinds[UPDATED], deleted, counts.kinds[INSERTED], committed)


def _gathered(rows: DataFrame, table: Table) -> DataFrame:
    """Return the rows in tasks of a sensible size: one task per bucket, or balanced by Spark without buckets."""
    if bucket_mode(table.schema) is not BucketMode.BUCKET_UNAWARE:
        return rows.transform(shuffle_for(table))
    keys = (F.col("`" + key.replace("`", "``") + "`") for key in table.schema.partition_keys)
    return rows.hint("rebalance", *keys)


def _runner(target: Target, job: str) -> SparkRunner:
    return SparkRunner(target.spark, hide_secrets(f"{job} {target.table.path}"), driver_bytes=DRIVER_BYTES)


@contextmanager
def _engine_errors(what: str) -> Iterator[None]:
    """Convert an error that a Python worker reported to Spark back to the engine's error."""
    try:
        yield
    except (CommitConflictError, OutOfRangeError):
        raise
    except Exception as error:  # Spark's class replaces the class that the worker raised
        for kind in (TableChangedError, CommitConflictError, OutOfRangeError):
            if kind.__name__ in str(error) or (kind is OutOfRangeError and EXPIRED in str(error)):
                raise kind(f"cannot run {what}: {error}") from error
        raise
