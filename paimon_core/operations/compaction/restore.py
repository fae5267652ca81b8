"""An old moment as a new snapshot, which loses no snapshot in between (behaviour 7.13).

The rows of the moment are written again. Its files cannot come back by name: expiry deletes a file once the snapshot
that removed it expires, whatever newer snapshots say.
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
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore

_ATTEMPTS = 5


def restore(store: FileStore, target: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Make the rows of ``target`` those of a new snapshot; return the newest snapshot before, and the newest one now.

    These are the rows that a batch read of ``target`` shows, with the columns of now. Partitions with the same files
    stay as they are; without another one no snapshot is made. The others are overwritten in one commit, which streams
    do not show. Cost: the rows of these partitions are read and written, here.

    Raises InvalidInputError without a snapshot, UnsupportedError for a table whose rows have ids or wait for buckets,
    CommitConflictError if others change the rows in every attempt, OutOfRangeError if ``target`` expires meanwhile.
    """
    check_writable(store.schema)
    if store.options.value(ROW_TRACKING_ENABLED):
        raise UnsupportedError(
            f"{store.root} cannot be restored as a new snapshot: its rows would get new ids. Use rollback_to"
        )
    if store.schema.bucket == -2:
        raise UnsupportedError(
            f"{store.root} cannot be restored as a new snapshot: its rows would wait for their buckets, unseen. Use "
            "rollback_to"
        )
    return retry_on_conflict(partial(_restore, store, target), _ATTEMPTS)


def _restore(store: FileStore, target: Snapshot) -> tuple[Snapshot, Snapshot]:
    base = store.snapshots.latest()
    if base is None:
        raise InvalidInputError(f"{store.branch_root} has no snapshots: there is nothing to restore")
    for snapshot in (target, base):
        check_knows_columns(store, snapshot)
    then, now = (_contents(store, snapshot) for snapshot in (target, base))
    differing = {partition for partition in then.keys() | now.keys() if then.get(partition) != now.get(partition)}
    if not differing:
        return base, base
    where = None if store.schema.is_cross_partition else partitions_predicate(store, differing)
    settings = {WRITE_ONLY.key: "false"}
    if store.traits.changelog_producer == "full-compaction":
        settings[FULL_COMPACTION_DELTA_COMMITS.key] = "1"  # else the next one would emit every row as new
    writing = store.with_options(settings)
    messages = rewritten(writing, where, TableScan(store, target, where).plan().splits)
    publisher = Publisher(writing)
    with publisher.publishing(messages):
        made = replace_files(publisher, where, messages, read_at=base).snapshot
    return base, made or base


def _contents(store: FileStore, snapshot: Snapshot) -> dict[bytes, set[object]]:
    """Return the identities of the files, and the names of the files of deletion vectors, of each partition."""
    found: dict[bytes, set[object]] = defaultdict(set)
    with raise_if_expired(store, snapshot):
        for entry in live_entries(store, snapshot, with_stats=False).live:
            found[entry.partition].add(entry.identity)
        for index in vector_entries(store, snapshot):
            found[index.partition].add(index.file_name)
    return found
