"""Staged rows: tasks that cannot route rows to buckets store them, and the commit routes them.

In a cross-partition table the result of a row depends on all other rows of its key. If several tasks may receive rows
of one key, they write their rows, in order, to files that no snapshot ever refers to.
"""

from collections.abc import Sequence
from dataclasses import replace

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.compaction.compact_postponed import waiting_rows
from paimon_core.options.bucket import BUCKET, POSTPONE_BATCH_WRITE_FIXED_BUCKET, POSTPONED
from paimon_core.store.file_store import FileStore
from paimon_core.write.table_write import TableWrite


def staging(store: FileStore) -> FileStore:
    """Return a table for writers of staged rows: without partitions, and with a single bucket that is never read.

    The messages of these writers are for `route_staged` and `drop_staged`; they must never be committed.
    """
    options = {BUCKET.key: str(POSTPONED), POSTPONE_BATCH_WRITE_FIXED_BUCKET.key: "false"}
    return store.with_schema(replace(store.schema.copy(options), partition_keys=()))


def route_staged(writer: TableWrite, store: FileStore, staged: Sequence[CommitMessage]) -> list[CommitMessage]:
    """Write staged rows with a writer, in task order; return the writer's messages.

    Args:
        writer: the only writer of the job.
        store: the table to write.
        staged: the messages of all tasks.
    """
    staging_table = staging(store)
    for message in staged:
        for rows, kinds in waiting_rows(staging_table, message.bucket_ref, message.new_files):
            writer.write(rows, kinds, fills_defaults=False)
    return writer.prepare_commit()


def drop_staged(store: FileStore, staged: Sequence[CommitMessage]) -> None:
    """Delete the files of staged rows. REQUIRES: the rows were routed, or the job will not be committed."""
    delete_written_files(staging(store), staged)
