"""Tags and branches as other engines make them, and every file that what is kept refers to."""

from contextlib import nullcontext, suppress
from dataclasses import replace

from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.manifest.entry import ADD
from paimon_core.options.merge import CHANGELOG_PRODUCER
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.branches import MAIN, branch_root, list_branches
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags
from paimon_core.store.file_store import FileStore


def make_tag(store: FileStore, name: str, snapshot_id: int) -> None:
    """A tag is a copy of a snapshot under a name."""
    store.io.write(store.tags.path(name), store.snapshots.get(snapshot_id).to_json())


def make_branch(store: FileStore, name: str, tag: str) -> None:
    """A branch starts with copies of a tag, of its snapshot and of the schemas there are."""
    root = branch_root(store.root, name)
    snapshot = store.tags.get(tag).snapshot
    store.io.write(Tags(store.io, root).path(tag), snapshot.to_json())
    store.io.write(Snapshots(store.io, root).path(snapshot.id), snapshot.to_json())
    for number in store.schemas.ids():
        place = f"schema/schema-{number}"
        store.io.write(join(root, place), store.io.read(join(store.root, place)))


def prolong(store: FileStore, count: int) -> None:
    """Give a table ``count`` snapshots: the later ones are its newest one, but for their ids and their users."""
    newest = store.snapshots.latest()
    for number in range(newest.id + 1, count + 1):
        copy = replace(newest, id=number, commit_user=f"user-{number}")
        store.io.write(store.snapshots.path(number), copy.to_json())
    store.snapshots.write_hint("LATEST", count)


def all_files(io: FileIO, directory: str) -> set[str]:
    """Return every file below a directory, except hints and marker files."""
    found = set()
    for status in io.list(directory):
        if status.is_directory:
            found |= all_files(io, status.path)
        elif status.name not in ("EARLIEST", "LATEST"):
            found.add(status.path)
    return found


def needed_files(store: FileStore) -> set[str]:
    """Return the files that snapshots, tags and changelogs of all branches refer to, without their own files.

    Changelogs of tags do not count: they are deleted with their snapshots.
    """
    found, told = set(), store.options.value(CHANGELOG_PRODUCER) != "none"
    for branch in (MAIN, *list_branches(store.io, store.root)):
        root = branch_root(store.root, branch)
        snapshots = list(Snapshots(store.io, root).all())
        for snapshot in (*snapshots, *(tag.snapshot for tag in Tags(store.io, root).list())):
            found |= _of_state(store, snapshot)
        for snapshot in snapshots:
            with suppress(CorruptedError) if snapshot is snapshots[0] else nullcontext():  # it may be made of a tag
                found |= _of_list(store, snapshot.changelog_manifest_list)
        for changelog in Changelogs(store.io, root).all():
            if told:
                found |= _of_list(store, changelog.changelog_manifest_list)
            elif changelog.commit_kind == CommitKind.APPEND:
                found |= _of_list(store, changelog.delta_manifest_list)
    return found


def _of_state(store: FileStore, snapshot: Snapshot) -> set[str]:
    manifests = store.manifests
    lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
    names = [*lists, *(meta.file_name for name in lists for meta in manifests.read_list(name))]
    found = {manifests.path(name) for name in names}
    for entry in live_entries(store, snapshot).live:
        found |= set(store.deletable_paths(entry.bucket_ref, entry.file))
    if snapshot.index_manifest is not None:
        found.add(manifests.path(snapshot.index_manifest))
        found |= {store.index_path(entry) for entry in manifests.read_index(snapshot.index_manifest)}
    return found


def _of_list(store: FileStore, name: str | None) -> set[str]:
    if name is None:
        return set()
    found, manifests = {store.manifests.path(name)}, store.manifests
    for meta in manifests.read_list(name):
        found.add(manifests.path(meta.file_name))
        for entry in manifests.read(meta.file_name):
            if entry.kind == ADD:
                found |= set(store.deletable_paths(entry.bucket_ref, entry.file))
    return found
