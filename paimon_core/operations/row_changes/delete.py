"""Delete the rows that match a filter, in one commit.

- Without a primary key, with ``deletion-vectors.enabled``: add the positions of the rows to deletion vectors. With data
  evolution, the vector of the oldest file of a row range marks the rows, whichever files hold their columns.
- Without a primary key otherwise: rewrite the files that hold the rows without these rows.
- With a primary key: write a row of kind -D for each row.

If another commit changes the same files or buckets at the same time, the matching rows are searched again. Thus no
deleted row comes back, and no row is deleted that no longer matches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.retry import retry_on_conflict
from paimon_core.datafile.deletion_vectors import vectors_by_bucket
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CommitUnknownError, PaimonError, UnsupportedError
from paimon_core.lsm.row_ranges import RowRangeFiles, anchor, group_by_row_range, vector_of_range
from paimon_core.manifest.bucket import BucketLocation
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.operations.history.expire import expire_after_commit
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.jobs.task import BucketFiles
from paimon_core.operations.row_changes.remove_rows import without_rows
from paimon_core.options.merge import (
    DELETE_FORCE_PRODUCE_CHANGELOG,
    DELETION_VECTORS_MERGE_ON_READ,
    IGNORE_DELETE,
    ROWKIND_FIELD,
)
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns, restrict
from paimon_core.read.blob_views import check_no_view_tested
from paimon_core.read.data_evolution import read_row_range
from paimon_core.read.table_read import TableRead
from paimon_core.scan.entries import live_entries
from paimon_core.scan.metadata_aggregate import Function, aggregate
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.support import check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Operation, Snapshot
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.store.current_schema import check_opened
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.store.traits import TableTraits
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_ID, ROW_POSITION
from paimon_core.write.routing import BucketMode, bucket_mode
from paimon_core.write.table_write import TableWrite

RETRIES = 10  # attempts, if other commits change the same files each time


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """The result of a delete.

    Args:
        rows: the number of deleted rows; `None`: unknown, because whole partitions were dropped without reading them,
            or deletion vectors of another engine do not store their number of rows.
        snapshot: the last new snapshot; `None`: no row matched.
    """

    rows: int | None
    snapshot: Snapshot | None


_NO_ROWS = DeletedRows(0, None)


def delete_rows(
    store: FileStore,
    predicate: Predicate,
    *,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
    count_dropped: bool = True,
) -> DeletedRows:
    """Delete the rows that match a predicate; return their number and the last new snapshot.

    A predicate on partition columns only drops these partitions without reading them, also in tables whose single rows
    cannot be deleted. Exception: a table with a primary key and ``delete.force-produce-changelog`` gets a row of kind
    -D for each row.

    Args:
        store: the table to delete from.
        predicate: a bound predicate.
        runner: reads and rewrites the files of a table without a primary key.
        progress: called after every task with the bytes done and the total bytes; ``None``: no progress reports.
        count_dropped: True to count the rows of dropped partitions; this reads their metadata once more.

    Raises UnsupportedError if the table's options do not allow deletes, and CommitConflictError if every attempt met a
    conflict. Raises OutOfRangeError if the snapshot of the last attempt expired before it was read, and CorruptedError
    for a file that is missing although its snapshot exists. After an error, except CommitUnknownError, no new file
    remains.
    """
    check_writable(store.schema)
    if drops_partitions(store.schema, predicate):
        return retry_on_conflict(partial(_drop, store, predicate, count_dropped=count_dropped), RETRIES)
    check_deletes(store.schema)
    if store.schema.primary_keys:
        return retry_on_conflict(partial(_retract, store, predicate), RETRIES)
    return retry_on_conflict(partial(_delete_in_files, store, predicate, runner, progress), RETRIES)


def drops_partitions(schema: TableSchema, predicate: Predicate) -> bool:
    """Return True if the bound predicate selects whole partitions, which can be dropped without reading them."""
    row_by_row = schema.options.value(DELETE_FORCE_PRODUCE_CHANGELOG)
    if row_by_row and schema.primary_keys:
        return False
    names = columns(predicate)
    return bool(names) and names <= set(schema.partition_keys)


@dataclass(frozen=True, slots=True)
class Dropped:
    """The result of dropping whole partitions unread: number of rows, and the snapshot (`None` without rows).

    ``rows``: `None` if metadata does not determine their number.
    """

    rows: int | None
    snapshot: Snapshot | None


def drop_counted(
    store: FileStore,
    predicate: Predicate | None,
    user: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Dropped | None:
    """Remove the rows of whole partitions without reading them, and count them from metadata.

    Return `None` and do nothing if metadata does not determine the rows that a read would show, or if the table emits
    each deleted row in its changelog. In a table whose single rows cannot be deleted, the rows are removed uncounted.

    Args:
        store: the table to delete from.
        predicate: a bound predicate on partition columns; `None`: all partitions.
        user: the commit user; `None`: a new one.
        properties: texts to store in the snapshot; `None`: no texts.

    Raises the errors of `delete_rows`.
    """
    check_writable(store.schema)
    traits, by_row = store.traits, _takes_deletes(store.schema)
    emits = traits.changelog_producer != "none" or store.options.value(DELETE_FORCE_PRODUCE_CHANGELOG)
    if (traits.keyed and emits) or bucket_mode(store.schema) is BucketMode.POSTPONE:
        return None
    visible_store = store.with_options(shows_all(store.schema))

    def attempt() -> Dropped | None:
        snapshot = _newest(store)
        if snapshot is None:
            return Dropped(0, None)
        counted = aggregate(TableScan(visible_store, snapshot, predicate), (), [Function("count")])
        if counted is None and by_row:
            return None
        rows = None if counted is None else int(counted[0][0])
        if rows == 0:
            return Dropped(0, None)
        return Dropped(rows, _drop_unread(store, predicate, snapshot, user, properties))

    dropped = retry_on_conflict(attempt, RETRIES)
    if dropped is not None and dropped.snapshot is not None:
        expire_after_commit(store)
    return dropped


def _takes_deletes(schema: TableSchema) -> bool:
    try:
        check_deletes(schema)
    except UnsupportedError:
        return False
    return True


def check_deletes(schema: TableSchema) -> None:
    """Raise UnsupportedError, which suggests an alternative, for a table whose single rows cannot be deleted.

    These are tables with data evolution without deletion vectors, and tables with a primary key in which a row of kind
    -D deletes nothing.
    """
    options, traits = schema.options, TableTraits(schema)
    if traits.data_evolution and not traits.deletion_vectors:
        raise UnsupportedError(
            "rows of a table with 'data-evolution.enabled' can only be deleted with 'deletion-vectors.enabled' = "
            "'true': delete or overwrite their whole partition"
        )
    if not traits.keyed:
        return
    engine = traits.engine_type
    if not engine.deletes_rows(options):
        instead = (
            f"set {engine.delete_options[0].key!r} = 'true'"
            if engine.delete_options
            else "delete or overwrite its partition"
        )
        raise UnsupportedError(f"rows of merge engine {engine.name} cannot be deleted by a filter: {instead}")
    if options.value(IGNORE_DELETE):
        raise UnsupportedError("this table ignores deletes: set the option 'ignore-delete' to 'false' to delete rows")
    if options.value(ROWKIND_FIELD) is not None:
        raise UnsupportedError(
            f"this table takes row kinds from its column {options.value(ROWKIND_FIELD)!r}: write rows of kind -D"
        )


def _newest(store: FileStore) -> Snapshot | None:
    """Return the newest snapshot. Raises NotFoundError if the table was dropped or replaced since it was opened."""
    snapshot = store.snapshots.latest()
    check_opened(store.schemas, store.schema, snapshot)
    return snapshot


def _drop_unread(
    store: FileStore,
    predicate: Predicate | None,
    snapshot: Snapshot,
    user: str | None,
    properties: Mapping[str, str] | None,
) -> Snapshot | None:
    publisher = Publisher(store, user, operation=Operation.DELETE)
    identity = publisher.identity(None, properties)
    return replace_files(publisher, (), predicate, read_at=snapshot, identity=identity).snapshot


def _drop(store: FileStore, predicate: Predicate, *, count_dropped: bool) -> DeletedRows:
    """Drop whole partitions without reading them; count their rows if metadata determines the number."""
    latest = _newest(store)
    if latest is None:
        return _NO_ROWS
    with raise_if_expired(store, latest):
        live = live_entries(store, latest, partition=predicate, with_stats=False).live
    snapshot = replace_files(Publisher(store, operation=Operation.DELETE), (), predicate).snapshot if live else None
    if snapshot is None:
        return _NO_ROWS
    return DeletedRows(_dropped_rows(store, predicate, snapshot) if count_dropped else None, snapshot)


def _dropped_rows(store: FileStore, predicate: Predicate, snapshot: Snapshot) -> int | None:
    """Return the rows that matched just before a snapshot dropped them; `None`: metadata does not determine them."""
    if bucket_mode(store.schema) is BucketMode.POSTPONE:
        return None
    try:
        base = store.snapshots.get(snapshot.id - 1)
        if not snapshot.was_built_on(base):
            return None
        with raise_if_expired(store, base):
            scan = TableScan(store.with_options(shows_all(store.schema)), base, predicate)
            counted = aggregate(scan, (), [Function("count")])
    except (PaimonError, OSError):  # no error of counting may hide that the delete is done
        return None
    return None if counted is None else int(counted[0][0])


# ---- with a primary key


def shows_all(schema: TableSchema) -> dict[str, str]:
    """Return options with which a read also shows rows of level 0 that are otherwise invisible until a compaction."""
    return {DELETION_VECTORS_MERGE_ON_READ.key: "true"} if TableTraits(schema).deletion_vectors else {}


def _retract(store: FileStore, predicate: Predicate) -> DeletedRows:
    """Write a row of kind -D for every matching row of the newest snapshot; commit if these rows are unchanged."""
    snapshot, rows = _newest(store), 0
    if snapshot is None:
        return _NO_ROWS
    visible_store = store.with_options(shows_all(store.schema))  # with rows that only a compaction would show
    check_no_view_tested(store, predicate)
    read = TableRead(visible_store, store.schema.fields, predicate, keeps_descriptors=True)
    publisher = Publisher(store, operation=Operation.DELETE)
    started_from = StartedFrom.of(snapshot, Guard.LAYOUT | Guard.ROWS)
    with TableWrite(store, started_from=started_from) as writer:
        for split in TableScan(visible_store, snapshot, predicate).plan().splits:
            for batch in read.to_batches(split):
                writer.write(batch, pa.repeat("-D", batch.num_rows), fills_defaults=False)
                rows += batch.num_rows
        messages = writer.prepare_commit()
    result = publisher.publish_or_delete(commit_messages, messages, started_from=started_from)
    return DeletedRows(rows, result.snapshot)


# ---- without a primary key


def _delete_in_files(store: FileStore, predicate: Predicate, runner: Runner, progress: Progress | None) -> DeletedRows:
    snapshot = _newest(store)
    messages = _messages(store, snapshot, predicate, runner, progress)
    if not messages:
        return _NO_ROWS
    publisher = Publisher(store, operation=Operation.DELETE)
    started_from = StartedFrom.of(snapshot, Guard.HISTORY)
    committed = publisher.publish_or_delete(commit_messages, messages, started_from=started_from).snapshot
    return DeletedRows(_removed_rows(messages), committed)


def _removed_rows(messages: Sequence[CommitMessage]) -> int | None:
    """Return the rows that messages remove from files; `None` if a deletion vector does not store its number of rows.

    A vector holds the rows that were deleted before, too, so the rows of the vectors that it replaces are subtracted.
    """
    rows = 0
    for message in messages:
        rows += sum(f.row_count for f in message.deleted_files) - sum(f.row_count for f in message.new_files)
        for sign, indexes in ((1, message.new_indexes), (-1, message.deleted_indexes)):
            for stored in (r.cardinality for index in indexes for r in index.deletion_ranges or ()):
                if stored is None:
                    return None
                rows += sign * stored
    return rows


def _messages(
    store: FileStore,
    snapshot: Snapshot | None,
    predicate: Predicate,
    runner: Runner,
    progress: Progress | None = None,
) -> list[CommitMessage]:
    """Return messages that delete the matching rows of a snapshot; empty if no file can hold a matching row."""
    check_no_view_tested(store, predicate)
    if snapshot is None:
        return []
    with raise_if_expired(store, snapshot):
        tasks = _plan(store, snapshot, predicate)
    return runner.run_all(store, tasks, partial(_delete, predicate, snapshot), progress) if tasks else []


def replace_rows(
    store: FileStore,
    predicate: Predicate,
    inserted: Sequence[CommitMessage],
    *,
    user: str | None = None,
    properties: Mapping[str, str] | None = None,
    runner: Runner = LOCAL,
) -> Snapshot | None:
    """Delete the rows that match a predicate and add written rows in one commit; return its snapshot.

    If another statement changed rows after the newest snapshot was read, this is a conflict: search the rows again.

    Args:
        store: a table without a primary key.
        predicate: a bound predicate.
        inserted: the messages of the rows to add. After an error their files are deleted.
        user: the commit user; `None`: a new one.
        properties: texts to store in the snapshot; `None`: no texts.
        runner: reads and rewrites files.

    Raises the errors of `delete_rows`.
    """

    def attempt() -> Snapshot | None:
        snapshot = _newest(store)
        deleting = _messages(store, snapshot, predicate, runner)
        publisher = Publisher(store, user, operation=Operation.OVERWRITE)
        with publisher.deleting_unless_published(deleting):
            started_from = StartedFrom.of(snapshot, Guard.STATEMENT)
            identity = publisher.identity(None, properties)
            return commit_messages(publisher, [*deleting, *inserted], identity, started_from).snapshot

    try:
        check_deletes(store.schema)
        return retry_on_conflict(attempt, RETRIES)
    except CommitUnknownError:
        raise
    except BaseException:
        delete_written_files(store, inserted)
        raise


def _plan(store: FileStore, snapshot: Snapshot, predicate: Predicate) -> list[BucketFiles]:
    """Return tasks of files that may hold matching rows.

    With deletion vectors a task has all files of a bucket, because they share index files; otherwise it has one file.
    """
    vectors = vectors_by_bucket(store, snapshot)
    buckets: dict[BucketLocation, dict[str, DataFileMeta]] = {}
    for split in TableScan(store, snapshot, predicate).plan().splits:  # a large file is in several splits
        files = buckets.setdefault(split.location, {})
        files.update((file.file_name, file) for file in split.files)
    if store.traits.deletion_vectors:
        return [BucketFiles(*at, tuple(files.values()), vectors.get(at.ref, ())) for at, files in buckets.items()]
    return [BucketFiles(*at, (file,)) for at, files in buckets.items() for file in files.values()]


def _delete(predicate: Predicate, planned: Snapshot, store: FileStore, task: BucketFiles) -> CommitMessage:
    """Find and delete the matching rows in some files of snapshot ``planned``. After an error no new file remains."""
    with raise_if_expired(store, planned):
        if store.traits.data_evolution:
            stored = {marks.data_file: marks for entry in task.vectors for marks in entry.deletion_ranges or ()}
            ranges = {anchor(group).file_name: group for group in group_by_row_range(task.files)}
            for group in ranges.values():
                vector_of_range(group, stored)  # raises an error for a vector of another file
            anchors = replace(task, files=tuple(anchor(group) for group in ranges.values()))
            return without_rows(store, anchors, partial(_matching_in_range, store, task, predicate, ranges))
        return without_rows(store, task, partial(_matching, store, task, predicate))


def _matching_in_range(
    store: FileStore,
    task: BucketFiles,
    predicate: Predicate,
    ranges: Mapping[str, RowRangeFiles],
    file: DataFileMeta,
    old: DeletionVector | None,
) -> DeletionVector:
    """Return the positions of rows that match and are not deleted yet, in the row range with the anchor ``file``."""
    if len(group := ranges[file.file_name]) == 1:
        return _matching(store, task, predicate, file, old)
    fields, first = _tested_fields(store, predicate, ROW_ID), file.first_row_id or 0
    batches = read_row_range(store, task.bucket_ref, group, fields, deletions=old)
    row_ids = [batch.column(ROW_ID.name).filter(evaluate(predicate, batch)).to_numpy() for batch in batches]
    return DeletionVector.of(np.concatenate([np.zeros(0, np.int64), *row_ids]) - first)


def _matching(
    store: FileStore, task: BucketFiles, predicate: Predicate, file: DataFileMeta, old: DeletionVector | None
) -> DeletionVector:
    """Return the positions of the file's rows that match and are not deleted yet."""
    fields = _tested_fields(store, predicate, ROW_POSITION)
    how = ReadOptions(restrict(predicate, set(store.schema.names)), old)
    batches = read_file(store, task.bucket_ref, file, fields, how)
    positions = [batch.column(ROW_POSITION.name).filter(evaluate(predicate, batch)).to_numpy() for batch in batches]
    return DeletionVector.of(np.concatenate([np.zeros(0, np.int64), *positions]))


def _tested_fields(store: FileStore, predicate: Predicate, position: DataField) -> tuple[DataField, ...]:
    """Return the columns that a predicate tests, and the column with the position of a row."""
    names = columns(predicate) - {position.name}
    return (*(f for f in (*store.schema.fields, *tracking_fields(store.schema)) if f.name in names), position)
