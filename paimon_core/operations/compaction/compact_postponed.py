"""Compaction of postponed buckets: route the rows of bucket -2 to real buckets, in one COMPACT snapshot.

Only this snapshot makes the rows visible.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_core.commit.commit_messages import commit_compactions
from paimon_core.commit.publisher import Publisher
from paimon_core.datafile.reader import read_file
from paimon_core.errors import OutOfRangeError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import files_by_bucket
from paimon_core.options.bucket import POSTPONE_BATCH_WRITE_FIXED_BUCKET, POSTPONED
from paimon_core.options.lsm import WRITE_ONLY
from paimon_core.options.merge import ROWKIND_FIELD
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.row_kind import kind_names
from paimon_core.types.system_fields import VALUE_KIND
from paimon_core.write.append_compactor import check_no_newer
from paimon_core.write.table_write import TableWrite

_ATTEMPTS = 5  # if other compactions route the rows each time, no further attempt is needed


def compact_postponed(store: FileStore, choice: Predicate | None = None) -> Snapshot | None:
    """Route the postponed rows of partitions that match ``choice`` (bound; ``None``: all) to buckets.

    The files of a writer are replayed in creation order. The target buckets are compacted if due. Rows that another
    compaction routes at the same time are left to it. Return the last new snapshot, or ``None`` without postponed rows.

    Raises OutOfRangeError if every snapshot expired before its rows were read, CorruptedError for a file that is
    missing although its snapshot exists. After an error, except CommitUnknownError, no new file remains. Memory: one
    writer.
    """
    publisher = Publisher(store)
    last = None
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            messages = _route_postponed(store, choice)
        except OutOfRangeError:
            if attempts_left:
                continue
            raise
        if not messages:
            break
        snapshot, obsolete = publisher.publish_or_delete(commit_compactions, messages)
        last = snapshot or last
        if not obsolete:
            break
    return last


def _route_postponed(store: FileStore, choice: Predicate | None) -> list[CommitMessage]:
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return []
    with raise_if_expired(store, snapshot):
        return _replay(store, snapshot, choice)


def _replay(store: FileStore, snapshot: Snapshot, choice: Predicate | None) -> list[CommitMessage]:
    live = live_entries(store, snapshot, partition=choice).live
    postponed = files_by_bucket(entry for entry in live if entry.bucket == POSTPONED)
    if not postponed:
        return []
    settings = {POSTPONE_BATCH_WRITE_FIXED_BUCKET.key: "true", WRITE_ONLY.key: "false"}
    messages = []
    with TableWrite(store.with_options(settings), started_from=StartedFrom.of(snapshot)) as writer:
        for bucket, unordered in postponed.items():
            check_no_newer(store, unordered)
            files = sorted(unordered, key=lambda file: file.creation_time or 0)
            for rows, kinds in waiting_rows(store, bucket.ref, files):
                writer.write(rows, kinds, fills_defaults=False)
            messages.append(CommitMessage(*bucket, compact_before=tuple(files)))
        messages += [_as_compaction(message) for message in writer.prepare_commit()]
    return messages


def waiting_rows(
    store: FileStore, bucket: BucketRef, files: Sequence[DataFileMeta]
) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
    """Yield the rows of files in bucket -2 as they were written, with their row kinds as texts.

    The kinds are ``None`` if a column of the rows holds them (``rowkind.field``).
    """
    fields = (*store.schema.fields, VALUE_KIND)
    in_column = store.options.value(ROWKIND_FIELD) is not None
    for file in files:
        for batch in read_file(store, bucket, file, fields):
            kinds = None if in_column else kind_names(batch.column(VALUE_KIND.name).to_numpy())
            yield batch.drop_columns([VALUE_KIND.name]), kinds


def _as_compaction(message: CommitMessage) -> CommitMessage:
    """Return the message as a compaction: its new files become compacted ones.

    Files that the writer wrote and replaced itself were never part of the table and are left out.
    """
    new = {file.file_name: file for file in message.new_files}
    replaced = [file for file in message.compact_before if new.pop(file.file_name, None) is None]
    return CommitMessage(
        *message.location,
        compact_before=tuple(replaced),
        compact_after=(*new.values(), *message.compact_after),
        compact_changelog=(*message.changelog_files, *message.compact_changelog),
        compact_new_indexes=(*message.new_indexes, *message.compact_new_indexes),
        compact_deleted_indexes=(*message.deleted_indexes, *message.compact_deleted_indexes),
        compact_lookup_files=message.compact_lookup_files,
        compact_seconds=message.write_seconds,
    )
