"""Restore an old snapshot as a new one, without losing the snapshots in between (behaviour 7.13).

The rows of the old snapshot are written again. Its files cannot be added again under the same names: expiry deletes a
file when the snapshot that removed it expires, even if newer snapshots refer to the file.
"""

from collections import defaultdict
from functools import partial

from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.retry import retry_on_conflict
from paimon_core.commit.schema_check import check_knows_columns
from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.operations.compaction.rescale import rewritten
from paimon_core.options.file import ROW_TRACKING_ENABLED
from paimon_core.options.lsm import FULL_COMPACTION_DELTA_COMMITS, WRITE_ONLY
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.scan.read_rules import check_same_rules
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore

_ATTEMPTS = 5


def restore(store: FileStore, target: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Publish the rows of ``target`` as a new snapshot; return the previous and the new newest snapshot.

    These are the rows that a batch read of ``target`` shows, with the current columns. Partitions with the same files
    stay as they are; if all are the same, no snapshot is created. The other partitions are overwritten in one commit,
    which streams skip. Cost: this process reads and writes the rows of these partitions.

    Raises InvalidInputError for a table without snapshots, and UnsupportedError for a table with row ids or postponed
    buckets. Raises CommitConflictError if other commits change the rows in every attempt, and OutOfRangeError if
    ``target`` expires during the call.
    """
    check_writable(store.schema)
    if store.options.value(ROW_TRACKING_ENABLED):
        raise UnsupportedError(
            f"{store.root} cannot be restored as a new snapshot: its rows would get new ids. Use rollback_to"
        )
    if store.schema.bucket == -2:
        raise UnsupportedError(
            f"{store.root} cannot be restored as a new snapshot: its rows would be invisible in postponed buckets. Use "
            "rollback_to"
        )
    return retry_on_conflict(partial(_restore, store, target), _ATTEMPTS)


def _restore(store: FileStore, target: Snapshot) -> tuple[Snapshot, Snapshot]:
    base = store.snapshots.latest()
    if base is None:
        raise InvalidInputError(f"{store.branch_root} has no snapshots: there is nothing to restore")
    for snapshot in (target, base):
        check_knows_columns(store, snapshot)
        check_same_rules(store, snapshot)
    old_contents, new_contents = (_contents(store, snapshot) for snapshot in (target, base))
    differing = {
        partition
        for partition in old_contents.keys() | new_contents.keys()
        if old_contents.get(partition) != new_contents.get(partition)
    }
    if not differing:
        return base, base
    where = None if store.schema.is_cross_partition else partitions_predicate(store, differing)
    settings = {WRITE_ONLY.key: "false"}
    if store.traits.changelog_producer == "full-compaction":
        settings[FULL_COMPACTION_DELTA_COMMITS.key] = "1"  # else the next full compaction would emit each row as new
    writing = store.with_options(settings)
    messages = rewritten(writing, where, TableScan(store, target, where).plan().splits)
    restored = Publisher(writing).publish_or_delete(replace_files, messages, where, read_at=base).snapshot
    return base, restored or base


def _contents(store: FileStore, snapshot: Snapshot) -> dict[bytes, set[object]]:
    """Return, for each partition, the identities of its data files and the names of its deletion vector files."""
    contents: dict[bytes, set[object]] = defaultdict(set)
    with raise_if_expired(store, snapshot):
        for entry in live_entries(store, snapshot, with_stats=False).live:
            contents[entry.partition].add(entry.identity)
        for index in vector_entries(store, snapshot):
            contents[index.partition].add(index.file_name)
    return contents
