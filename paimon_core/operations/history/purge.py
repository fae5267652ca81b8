"""Remove all rows and all history of a table, or remove missing files from its metadata."""

from paimon_core.commit.changes import Changes
from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import DELETE, ManifestEntry
from paimon_core.operations.history.expire import expire_table
from paimon_core.operations.history.orphan_files import OrphanFiles, remove_orphan_files
from paimon_core.operations.history.table_branches import TableBranches
from paimon_core.operations.jobs.runner import LOCAL, Runner
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore


def purge(store: FileStore, runner: Runner = LOCAL) -> OrphanFiles:
    """Remove all rows, branches, tags, consumers, changelogs and old snapshots; return the unreferenced files.

    One snapshot without rows remains. REQUIRES: no writer is active, because concurrent writes are removed, too. A
    second call finishes an interrupted one.

    Raises InvalidInputError (nothing changed) if an option refers to a branch.
    """
    store.io.check_can_commit()
    branches, consumers = TableBranches(store), Consumers(store.io, store.branch_root)
    names = branches.list()
    for name in names:
        branches.check_deletable(name)
    for name in names:
        branches.delete(name)
    if store.snapshots.latest_id() is not None:
        replace_files(Publisher(store), ())
    for tag in store.tags.names():
        store.tags.delete(tag)
    for consumer in consumers.list():
        consumers.delete(consumer)
    expire_table(store, store.now() + 1, 1, 1)
    store.changelogs.remove(store.changelogs.ids())
    return remove_orphan_files(store, store.now(), runner=runner)


def remove_missing_files(store: FileStore, *, dry_run: bool = False) -> list[str]:
    """Remove missing data files from the newest snapshot in one OVERWRITE; return their names, sorted.

    Their rows were already lost; the other rows become readable again. ``dry_run``: True to only return the names.
    """
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return []
    buckets: dict[BucketRef, list[DataFileMeta]] = {}
    with raise_if_expired(store, snapshot):
        for entry in live_entries(store, snapshot, with_stats=False).live:
            buckets.setdefault(entry.bucket_ref, []).append(entry.file)

    def missing(bucket: tuple[BucketRef, list[DataFileMeta]]) -> list[str]:
        ref, files = bucket
        existing = {status.name for status in store.io.list(store.bucket_path(ref))}
        outside = {f.file_name for f in files if f.external_path and store.io.exists(store.file_path(ref, f))}
        return [file.file_name for file in files if file.file_name not in existing | outside]

    names = sorted(name for names_of_bucket in parallel_map(missing, buckets.items()) for name in names_of_bucket)
    if names and not dry_run:
        _remove(store, frozenset(names))
    return names


def _remove(store: FileStore, names: frozenset[str]) -> None:
    """Remove the live data files with these names from the table. REQUIRES: the files do not exist."""
    publisher = Publisher(store)

    def decide(base: Snapshot | None) -> Changes | None:
        live = [] if base is None else live_entries(store, base).live
        entries = tuple(ManifestEntry(DELETE, *e.location, e.file) for e in live if e.file.file_name in names)
        return Changes(CommitKind.OVERWRITE, entries, built_on_base=True) if entries else None

    publisher.publish(publisher.identity(), decide, CommitKind.OVERWRITE)
