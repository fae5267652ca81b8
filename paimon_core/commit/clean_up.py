"""Deletion of files that a commit does not need."""

from collections.abc import Sequence
from dataclasses import replace

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.compaction import RejectedCompaction, written_files
from paimon_core.fileio.fileio import join
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.store.file_store import FileStore


def delete_written_files(store: FileStore, messages: Sequence[CommitMessage]) -> None:
    """Delete every file that was written for the messages.

    REQUIRES: the messages were not committed, and will not be.
    """
    for message in messages:
        for file in (*message.new_files, *message.changelog_files):
            store.delete_file(message.bucket_ref, file)
        for entry in message.new_indexes:
            store.delete_index(entry)
        for name in message.managed_blobs:
            store.io.delete(join(store.bucket_path(message.bucket_ref), name))
    delete_compacted_files(store, messages)


def delete_compacted_files(store: FileStore, messages: Sequence[CommitMessage]) -> None:
    """Delete the files that the compactions of the messages wrote. REQUIRES: the compactions were not committed."""
    for message in messages:
        for file in written_files(message):
            store.delete_file(message.bucket_ref, file)
        for entry in message.compact_new_indexes:
            store.delete_index(entry)


def delete_rejected(store: FileStore, rejected: Sequence[RejectedCompaction]) -> None:
    """Delete the files of rejected compactions. Errors of the storage are only logged: the commit itself succeeded."""
    with best_effort("deleting the files of rejected compactions"):
        delete_compacted_files(store, [compaction.message for compaction in rejected])


def without_compaction(store: FileStore, message: CommitMessage) -> CommitMessage:
    """Return the message without its compaction, whose files are deleted. REQUIRES: it was not committed."""
    with best_effort("deleting the files of a compaction that is not committed"):
        delete_compacted_files(store, [message])
    return replace(
        message,
        compact_before=(),
        compact_after=(),
        compact_changelog=(),
        compact_new_indexes=(),
        compact_deleted_indexes=(),
        compact_lookup_files=(),
        compact_seconds=0.0,
    )
