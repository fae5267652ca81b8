"""The files that only expired snapshots need: find them, and delete them.

A deleted data file is still needed by tags between the snapshot that added it and the one that deleted it. If any such
tag exists, the nearest tag below the deleting snapshot is one. Other branches may need it too, because they share its
directory. Metadata, indexes and changelog files are deleted unless a kept snapshot, tag or branch names them.
"""

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from paimon_core.errors import CorruptedError, hide_secrets
from paimon_core.fileio.fileio import join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.options.file import DATA_FILE_EXTERNAL_PATHS_ALLOWED, FILE_OPERATION_THREAD_NUM
from paimon_core.options.snapshot import SNAPSHOT_CLEAN_EMPTY_DIRECTORIES
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.branches import MAIN, branch_root, list_branches
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tag, Tags
from paimon_core.store.expired import is_missing
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import is_bucket_name, statistics_directory

Paths = dict[str, Sequence[str]]
"""The paths of each file by its name, with those of files that are deleted with it."""
_log = logging.getLogger(__name__)
_DELTAS = 4  # snapshots whose entries are in memory at a time


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A data file, or an index file of one by itself, and the id of the snapshot that deleted it."""

    entry: ManifestEntry
    at: int


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """The files to delete unless they are still needed: data files by name, and the paths of other files by name."""

    data: Mapping[str, DeletedFile]
    others: Paths

    def paths(self, store: FileStore, needed: Collection[str]) -> list[str]:
        """Return the paths to delete, without the files named in ``needed``, and with the indexes beside data files.

        Files outside of the table's directory are left out with a warning, unless an option allows their root.
        """
        data = [deleted.entry for name, deleted in self.data.items() if name not in needed]
        found: list[Sequence[str]] = [store.deletable_paths(e.bucket_ref, e.file) for e in data]
        found += [several for name, several in self.others.items() if name not in needed]
        outside = sum(not several for several in found)
        if outside:
            _log.warning(
                "%d files of %s are outside of its directory and are not deleted: to have such files deleted, name "
                "their roots in the option %r",
                outside,
                hide_secrets(store.root),
                DATA_FILE_EXTERNAL_PATHS_ALLOWED.key,
            )
        return [path for several in found for path in several]


def deleted_files(store: FileStore, snapshots: Sequence[Snapshot], *, spare_appended: bool) -> dict[str, DeletedFile]:
    """Return the data files that consecutive snapshots delete, by name.

    Manifests that an interrupted expiry has already deleted are ignored. ``spare_appended``: leave out the files that
    writers flushed, because these files are the changelog.
    """
    deleted: dict[str, DeletedFile] = {}

    def entries(snapshot: Snapshot) -> list[ManifestEntry]:
        return _entries(store, snapshot.delta_manifest_list, strict=False)

    for snapshot, found in zip(snapshots, parallel_map(entries, snapshots, _DELTAS), strict=True):
        for entry in found:
            if entry.kind == ADD:
                again = deleted.pop(entry.file.file_name, None)  # moved to another level, or given other indexes
                deleted |= {} if again is None else _replaced_indexes(again, entry.file)
            elif not spare_appended or entry.file.file_source == FileSource.COMPACT:
                deleted[entry.file.file_name] = DeletedFile(entry, snapshot.id)
    return deleted


def _replaced_indexes(deleted: DeletedFile, again: DataFileMeta) -> dict[str, DeletedFile]:
    """Return the index files of a deleted data file that the same file, added again, no longer names."""
    entry = deleted.entry
    dropped = [name for name in entry.file.extra_files if name not in again.extra_files]
    return {name: DeletedFile(replace(entry, file=entry.file.extra_file(name)), deleted.at) for name in dropped}


def changelog_files(store: FileStore, snapshot: Snapshot, *, strict: bool = False) -> Paths:
    """Return the changelog files of a snapshot, and the metadata files that name them. ``strict``: `metadata_files`."""
    name = snapshot.changelog_manifest_list
    if name is None:
        return {}
    entries = [e for e in _entries(store, name, strict=strict) if e.kind == ADD]
    files: Paths = {e.file.file_name: store.deletable_paths(e.bucket_ref, e.file) for e in entries}
    return files | _listed(store, name, strict=strict)


def metadata_files(store: FileStore, snapshot: Snapshot, *, strict: bool = True) -> Paths:
    """Return the files that a snapshot refers to, except data and changelog files.

    ``strict``: raise CorruptedError for a missing file. Otherwise missing files are ignored: an interrupted expiry has
    deleted them, or a changelog does not need them.
    """
    return data_lists(store, snapshot, strict=strict) | indexes(store, snapshot, strict=strict)


def data_lists(store: FileStore, snapshot: Snapshot, *, strict: bool = False) -> Paths:
    """Return the base and delta manifest lists of a snapshot, and their manifests. ``strict``: `metadata_files`."""
    lists = snapshot.base_manifest_list, snapshot.delta_manifest_list
    return {name: path for one in lists for name, path in _listed(store, one, strict=strict).items()}


def indexes(store: FileStore, snapshot: Snapshot, *, strict: bool = False) -> Paths:
    """Return the index manifest of a snapshot, its indexes, and its statistics. ``strict``: `metadata_files`."""
    found = {} if snapshot.statistics is None else statistics_file(store, snapshot.statistics)
    if snapshot.index_manifest is not None:
        found[snapshot.index_manifest] = [store.manifests.path(snapshot.index_manifest)]
        with _ignore_missing(missing=not strict):
            found |= index_files(store, snapshot.index_manifest)
    return found


def index_files(store: FileStore, index_manifest: str) -> Paths:
    """Return the indexes that an index manifest names."""
    return {one.file_name: store.deletable_index_paths(one) for one in store.manifests.read_index(index_manifest)}


def statistics_file(store: FileStore, name: str) -> Paths:
    """Return the file of a snapshot's statistics."""
    return {name: [join(statistics_directory(store.root), name)]}


def adjacent_tags(tags: Iterable[Tag], first: int, end: int) -> list[Snapshot]:
    """Return the tagged snapshots that can share metadata with the snapshots ``first <= id < end``.

    These are the tags in the range, and the nearest one before it. A file shared with an older tag is shared with that
    one too; a file shared with a younger tag, with snapshot ``end``.
    """
    before = sorted((tag.snapshot for tag in tags if tag.snapshot.id < end), key=lambda snapshot: snapshot.id)
    return before[max(0, bisect_left([s.id for s in before], first + 1) - 1) :]


def referenced_names(store: FileStore, plan: DeletionPlan, tags: Sequence[Tag]) -> set[str]:
    """Return the names of planned files that are still needed: data files by tags, all files by other branches.

    Raises CorruptedError if a tag or branch cannot be read, so that its files are unknown.
    """
    names = _tagged(store, plan.data, tags)
    for branch in (MAIN, *list_branches(store.io, store.root)):
        if branch != store.branch:
            with _explain_unreadable(store, f"branch {branch!r}"):
                names |= _of_branch(store, branch_root(store.root, branch), plan)
    return names


def delete_files(store: FileStore, paths: Sequence[str]) -> None:
    """Delete all files that can be deleted, in parallel; then raise the first OSError, if any.

    With ``snapshot.clean-empty-directories`` remove the directories of buckets and partitions that become empty.
    """

    def delete(path: str) -> OSError | None:
        try:
            store.io.delete(path)
        except OSError as error:
            return error
        return None

    threads = store.options.value(FILE_OPERATION_THREAD_NUM)
    errors = [error for error in parallel_map(delete, paths, threads) if error is not None]
    if errors:
        raise errors[0]
    if store.options.value(SNAPSHOT_CLEAN_EMPTY_DIRECTORIES):
        for directory in {path.rpartition("/")[0] for path in paths}:
            if is_bucket_name(directory.rpartition("/")[2]):
                remove_empty_directories(store, directory)


def remove_empty_directories(store: FileStore, bucket: str) -> None:
    """Remove the directory of a bucket and those of its partition, as far as they are empty."""
    for _ in range(len(store.schema.partition_keys) + 1):
        if not store.io.delete_empty_directory(bucket):
            return
        bucket = bucket.rpartition("/")[0]


def _tagged(store: FileStore, deleted: Mapping[str, DeletedFile], tags: Sequence[Tag]) -> set[str]:
    """Return the names of deleted files that are live in the nearest tag below their deletion.

    If that tag does not have the file, no older tag has it.
    """
    ordered = sorted(tags, key=lambda tag: tag.snapshot.id)
    ids = [tag.snapshot.id for tag in ordered]
    by_tag: dict[int, list[DeletedFile]] = defaultdict(list)
    for one in deleted.values():
        by_tag[bisect_left(ids, one.at) - 1].append(one)
    by_tag.pop(-1, None)
    names: set[str] = set()
    for index, ones in by_tag.items():
        with _explain_unreadable(store, f"tag {ordered[index].name!r}"):
            names |= _live_names(store, ordered[index].snapshot, ones)
    return names


def _of_branch(store: FileStore, root: str, plan: DeletionPlan) -> set[str]:
    """Return the names of files that another branch needs.

    These are the live files of its oldest snapshot and of tags whose snapshots expired, all files added since, and
    their metadata. Changelog files of tags expire with their snapshots, so those of the oldest snapshot, which may be
    made of a tag, may be missing.
    """
    snapshots = list(Snapshots(store.io, root).all())
    listed = {s.delta_manifest_list for s in snapshots}
    expired = [t.snapshot for t in Tags(store.io, root).list() if t.snapshot.delta_manifest_list not in listed]
    changelogs = list(Changelogs(store.io, root).all())
    deleted, names = list(plan.data.values()), set[str]()
    for whole in (*snapshots[:1], *expired):
        names |= _live_names(store, whole, deleted)
    for timeline, strict in ((snapshots, True), (expired, True), (changelogs, False)):
        for snapshot in timeline:
            names |= metadata_files(store, snapshot, strict=strict).keys()
            changed = _entries(store, snapshot.delta_manifest_list, strict=strict) if deleted else []
            names |= _names(e for e in changed if e.kind == ADD) & plan.data.keys()
            if timeline is not expired and snapshot.changelog_manifest_list in plan.others:
                names |= changelog_files(store, snapshot, strict=strict and snapshot is not snapshots[0]).keys()
    return names


def _live_names(store: FileStore, snapshot: Snapshot, deleted: Sequence[DeletedFile]) -> set[str]:
    """Return the names of a snapshot's live files, and of their index files, in the buckets of deleted files."""
    if not deleted:
        return set()
    buckets = {one.entry.bucket_ref for one in deleted}
    found = live_entries(store, snapshot, buckets=buckets, with_stats=False)
    return _names(found.live)


def _names(entries: Iterable[ManifestEntry]) -> set[str]:
    """Return the names of data files and of their index files."""
    return {name for e in entries for name in (e.file.file_name, *e.file.extra_files)}


def _entries(store: FileStore, name: str, *, strict: bool) -> list[ManifestEntry]:
    found: list[ManifestEntry] = []
    for meta in _metas(store, name, strict=strict):
        with _ignore_missing(missing=not strict):
            found += store.manifests.read(meta.file_name, meta.file_size, with_stats=False)
    return found


def _listed(store: FileStore, name: str, *, strict: bool) -> Paths:
    names = [name, *(meta.file_name for meta in _metas(store, name, strict=strict))]
    return {one: [store.manifests.path(one)] for one in names}


def _metas(store: FileStore, name: str, *, strict: bool) -> list[ManifestFileMeta]:
    with _ignore_missing(missing=not strict):
        return store.manifests.read_list(name)
    return []


@contextmanager
def _ignore_missing(*, missing: bool) -> Iterator[None]:
    try:
        yield
    except CorruptedError as error:
        if not (missing and is_missing(error)):
            raise


@contextmanager
def _explain_unreadable(store: FileStore, what: str) -> Iterator[None]:
    """Explain a CorruptedError of the block, which reads the files that ``what`` needs."""
    try:
        yield
    except CorruptedError as error:
        raise CorruptedError(
            f"nothing of {store.root} can expire: {what} cannot be read, so the files it needs are unknown ({error}). "
            "Delete it, or restore its files"
        ) from error
