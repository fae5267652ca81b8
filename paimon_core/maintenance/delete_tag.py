"""Deletion of a tag, and of the files that only this tag needs (behaviour 7.12)."""

from paimon_core.fileio.fileio import join
from paimon_core.iceberg.listed import forget_expired
from paimon_core.maintenance.snapshot_deletion import (
    DeletedFile,
    DeletionPlan,
    delete_files,
    metadata_files,
    names_of_timelines,
)
from paimon_core.options.snapshot import TAG_CREATE_SUCCESS_FILE
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.store.file_store import FileStore


def delete_tag(store: FileStore, tag: Tag) -> int:
    """Delete a tag, and the files that no snapshot, tag, changelog or branch needs any more; return their number.

    While the tagged snapshot exists, only the tag's own file is deleted: the expiry of the snapshot deletes the others.
    A crash leaves files that nothing names, never a name without its file. Cost without the snapshot: the metadata of
    all snapshots, tags and branches is read.

    Raises CorruptedError if metadata cannot be read; then the tag is deleted, and no other file.
    """
    if store.options.value(TAG_CREATE_SUCCESS_FILE):
        store.io.delete(success_file_of(store, tag.name))
    plan = None if is_in_timeline(store, tag.snapshot) else _files_of(store, tag.snapshot)
    store.tags.delete(tag.name)
    forget_expired(store)
    if plan is None:
        return 0
    store.sync([store.tags.path(tag.name)])  # no tag reappears without its files
    return _delete(store, plan)


def delete_files_of(store: FileStore, snapshot: Snapshot) -> int:
    """Delete what `delete_tag` would, of a snapshot whose tag was deleted or replaced before; return their number."""
    return 0 if is_in_timeline(store, snapshot) else _delete(store, _files_of(store, snapshot))


def _files_of(store: FileStore, snapshot: Snapshot) -> DeletionPlan:
    live = live_entries(store, snapshot, with_stats=False).live
    data = {entry.file.file_name: DeletedFile(entry, snapshot.id) for entry in live}
    return DeletionPlan(data, metadata_files(store, snapshot, strict=False))


def _delete(store: FileStore, plan: DeletionPlan) -> int:
    paths = plan.paths(store, names_of_timelines(store, plan))
    delete_files(store, paths)
    return len(paths)


def success_file_of(store: FileStore, name: str) -> str:
    """Return the path of the file that says that a tag is there, for the option ``tag.create-success-file``."""
    return join(store.tags.path(name).rpartition("/")[0], "tag-success-file", f"{name}_SUCCESS")


def is_in_timeline(store: FileStore, snapshot: Snapshot) -> bool:
    """Return True if the snapshot has not expired, and no rollback has given its id to another snapshot."""
    found = store.snapshots.find(snapshot.id)
    return found is not None and found.fingerprint == snapshot.fingerprint
