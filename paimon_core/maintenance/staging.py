"""Rows put aside by writers that cannot know where keys live, and dealt out by the one who commits them.

Where keys may move between partitions, what becomes of a row depends on all other rows of its key. Tasks among which
the rows of a key are scattered keep them, in order, in files that no snapshot ever names.
"""

from collections.abc import Sequence
from dataclasses import replace

from paimon_core.commit.table_commit import TableCommit
from paimon_core.maintenance.compact_postponed import waiting_rows
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.options.bucket import BUCKET, POSTPONE_BATCH_WRITE_FIXED_BUCKET, POSTPONED
from paimon_core.store.file_store import FileStore
from paimon_core.write.table_write import TableWrite

__all__ = ["drop_staged", "route_staged", "staging"]


def staging(store: FileStore) -> FileStore:
    """The table as writers see it who put their rows aside: without partitions, its only bucket one that nobody reads.

    Their messages are for `route_staged` and `drop_staged`, never for a commit.
    """
    aside = {BUCKET.key: str(POSTPONED), POSTPONE_BATCH_WRITE_FIXED_BUCKET.key: "false"}
    return store.with_schema(replace(store.schema.copy(aside), partition_keys=()))


def route_staged(writer: TableWrite, store: FileStore, staged: Sequence[CommitMessage]) -> list[CommitMessage]:
    """Write the rows of ``staged``, task after task, with ``writer``, which gets all rows of the job."""
    aside = staging(store)
    for message in staged:
        for rows, kinds in waiting_rows(aside, message.partition, message.new_files):
            writer.write(rows, kinds)
    return writer.prepare_commit()


def drop_staged(store: FileStore, staged: Sequence[CommitMessage]) -> None:
    """Delete what was put aside. REQUIRES: the rows were dealt out, or are not wanted."""
    TableCommit(staging(store)).abort(staged)
