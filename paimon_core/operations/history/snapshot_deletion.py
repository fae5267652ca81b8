"""Find and delete the files that only expired snapshots need.

Tags between the snapshot that added a data file and the snapshot that deleted it still need the file. If there is one,
the nearest tag below the deleting snapshot also needs it. Other branches may need the file, too, because they share its
directory. Metadata, indexes and changelog files are deleted unless a kept snapshot, tag or branch refers to them.
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

_log = logging.getLogger(__name__)
_DELTAS = 4  # snapshots whose entries are in memory at a time


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to delete.

    Args:
        paths: the paths of the file and of files that are deleted together with it; empty: it must not be deleted.
        size: the bytes of the file; 0: the metadata does not store its size.
    """

    paths: Sequence[str]
    size: int = 0


Paths = dict[str, PlannedFile]
"""The files to delete by name."""
ManifestLists = Mapping[str, Sequence[ManifestFileMeta]]
"""Manifests by the name of the manifest list that lists them."""


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A data file, or only an index file of a data file (``is_index``), and the id of the snapshot that deleted it."""

    entry: ManifestEntry
    at: int
    is_index: bool = False

    @property
    def size(self) -> int:
        """The bytes of the data file; 0 for an index file, whose size the metadata does not store."""
        return 0 if self.is_index else self.entry.file.file_size


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """The files to delete unless they are still needed: data files by name, and the paths of other files by name."""

    data: Mapping[str, DeletedFile]
    others: Paths

    def paths(self, store: FileStore, needed: Collection[str]) -> tuple[list[str], int]:
        """Return the paths to delete, including index files of data files, and the bytes of the files.

        Files outside the table's directory are left out with a warning, unless an option allows their root. The bytes
        leave out files whose size the metadata does not store, such as index files of data files and statistics.

        Args:
            store: the table to delete from.
            needed: the names of files to keep.
        """
        files = [
            PlannedFile(store.deletable_paths(deleted.entry.bucket_ref, deleted.entry.file), deleted.size)
            for name, deleted in self.data.items()
            if name not in needed
        ]
        files += [file for name, file in self.others.items() if name not in needed]
        outside = sum(not file.paths for file in files)
        if outside:
            _log.warning(
                "%d files of %s are outside its directory and are not deleted: to delete them, add their roots to the "
                "option %r",
                outside,
                hide_secrets(store.root),
                DATA_FILE_EXTERNAL_PATHS_ALLOWED.key,
            )
        return [path for file in files for path in file.paths], sum(file.size for file in files if file.paths)


def deleted_files(
    store: FileStore, snapshots: Sequence[Snapshot], *, spare_appended: bool, deltas: ManifestLists | None = None
) -> dict[str, DeletedFile]:
    """Return the data files that consecutive snapshots delete, by name.

    Manifests that an interrupted expiry has already deleted are ignored.

    Args:
        store: the table.
        snapshots: consecutive snapshots.
        spare_appended: True to leave out the files that writers flushed, because these files are the changelog.
        deltas: delta manifest lists that were read before; `None`: no list.
    """
    deleted: dict[str, DeletedFile] = {}

    def entries(snapshot: Snapshot) -> list[ManifestEntry]:
        name = snapshot.delta_manifest_list
        metas = deltas.get(name) if deltas is not None else None
        return _entries(store, _metas(store, name, strict=False) if metas is None else metas, strict=False)

    for snapshot, entries_of_snapshot in zip(snapshots, parallel_map(entries, snapshots, _DELTAS), strict=True):
        for entry in entries_of_snapshot:
            if entry.kind == ADD:
                again = deleted.pop(entry.file.file_name, None)  # upgraded to another level, or with new indexes
                deleted |= {} if again is None else _replaced_indexes(again, entry.file)
            elif not spare_appended or entry.file.file_source == FileSource.COMPACT:
                deleted[entry.file.file_name] = DeletedFile(entry, snapshot.id)
    return deleted


def _replaced_indexes(deleted: DeletedFile, again: DataFileMeta) -> dict[str, DeletedFile]:
    """Return the index files of a deleted data file that the file no longer has when it is added again."""
    entry = deleted.entry
    dropped = [name for name in entry.file.extra_files if name not in again.extra_files]
    return {
        name: DeletedFile(replace(entry, file=entry.file.extra_file(name)), deleted.at, is_index=True)
        for name in dropped
    }


def changelog_files(store: FileStore, snapshot: Snapshot, *, strict: bool = False) -> Paths:
    """Return the changelog files of a snapshot and the metadata files that list them. ``strict``: `metadata_files`."""
    name = snapshot.changelog_manifest_list
    if name is None:
        return {}
    entries = [e for e in _entries(store, _metas(store, name, strict=strict), strict=strict) if e.kind == ADD]
    files: Paths = {
        e.file.file_name: PlannedFile(store.deletable_paths(e.bucket_ref, e.file), e.file.file_size) for e in entries
    }
    return files | _listed(store, name, snapshot.changelog_manifest_list_size, strict=strict)


def metadata_files(store: FileStore, snapshot: Snapshot, *, strict: bool = True) -> Paths:
    """Return the files that a snapshot refers to, except data and changelog files.

    ``strict``: True to raise CorruptedError for a missing file, False to ignore missing files, which an interrupted
    expiry has deleted or a changelog does not need.
    """
    return data_lists(store, snapshot, strict=strict) | indexes(store, snapshot, strict=strict)


def data_lists(store: FileStore, snapshot: Snapshot, *, strict: bool = False) -> Paths:
    """Return the base and delta manifest lists of a snapshot and their manifests. ``strict``: see `metadata_files`."""
    base = _listed(store, snapshot.base_manifest_list, snapshot.base_manifest_list_size, strict=strict)
    return base | _listed(store, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size, strict=strict)


def data_lists_of_several(store: FileStore, snapshots: Sequence[Snapshot]) -> tuple[Paths, ManifestLists]:
    """Return the `data_lists` of snapshots, read in parallel, and the manifests of their delta manifest lists."""

    def of_one(snapshot: Snapshot) -> tuple[Paths, list[ManifestFileMeta]]:
        base = _listed(store, snapshot.base_manifest_list, snapshot.base_manifest_list_size, strict=False)
        delta = _metas(store, snapshot.delta_manifest_list, strict=False)
        size = snapshot.delta_manifest_list_size
        return base | _paths_of_list(store, snapshot.delta_manifest_list, size, delta), delta

    paths: Paths = {}
    deltas: dict[str, list[ManifestFileMeta]] = {}
    for snapshot, (of_snapshot, delta) in zip(snapshots, parallel_map(of_one, snapshots), strict=True):
        paths |= of_snapshot
        deltas[snapshot.delta_manifest_list] = delta
    return paths, deltas


def indexes(store: FileStore, snapshot: Snapshot, *, strict: bool = False) -> Paths:
    """Return the index manifest of a snapshot, its indexes and its statistics. ``strict``: see `metadata_files`."""
    files = {} if snapshot.statistics is None else statistics_file(store, snapshot.statistics)
    if snapshot.index_manifest is not None:
        files[snapshot.index_manifest] = PlannedFile([store.manifests.path(snapshot.index_manifest)])
        with _ignore_missing(missing=not strict):
            files |= index_files(store, snapshot.index_manifest)
    return files


def index_files(store: FileStore, index_manifest: str) -> Paths:
    """Return the index files of an index manifest."""
    return {
        index.file_name: PlannedFile(store.deletable_index_paths(index), index.file_size)
        for index in store.manifests.read_index(index_manifest)
    }


def statistics_file(store: FileStore, name: str) -> Paths:
    """Return the statistics file of this name."""
    return {name: PlannedFile([join(statistics_directory(store.root), name)])}


def adjacent_tags(tags: Iterable[Tag], first: int, end: int) -> list[Snapshot]:
    """Return the tagged snapshots that can share metadata with the snapshots ``first <= id < end``.

    These are the tags in the range and the nearest tag before it. A file shared with an older tag is also shared with
    this nearest tag; a file shared with a newer tag is also shared with snapshot ``end``.
    """
    before = sorted((tag.snapshot for tag in tags if tag.snapshot.id < end), key=lambda snapshot: snapshot.id)
    return before[max(0, bisect_left([s.id for s in before], first + 1) - 1) :]


def referenced_names(store: FileStore, plan: DeletionPlan, tags: Sequence[Tag]) -> set[str]:
    """Return the names of planned files that tags (data files) or other branches (all files) still need.

    Raises CorruptedError if a tag or branch cannot be read, because its files are then unknown.
    """
    names = _tagged(store, plan.data, tags)
    for branch in (MAIN, *list_branches(store.io, store.root)):
        if branch != store.branch:
            with _explain_unreadable(store, f"branch {branch!r}"):
                names |= _of_branch(store, branch_root(store.root, branch), plan)
    return names


def delete_files(store: FileStore, paths: Sequence[str]) -> None:
    """Delete files in parallel, continuing after errors; then raise the first OSError, if any.

    With ``snapshot.clean-empty-directories``, also remove directories of buckets and partitions that become empty.
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
    """Remove the directory of a bucket and the directories of its partition if they are empty."""
    for _ in range(len(store.schema.partition_keys) + 1):
        if not store.io.delete_empty_directory(bucket):
            return
        bucket = bucket.rpartition("/")[0]


def _tagged(store: FileStore, deleted: Mapping[str, DeletedFile], tags: Sequence[Tag]) -> set[str]:
    """Return the names of deleted files that are live in the nearest tag below the deleting snapshot.

    If this tag does not have the file, no older tag has it.
    """
    ordered = sorted(tags, key=lambda tag: tag.snapshot.id)
    ids = [tag.snapshot.id for tag in ordered]
    by_tag: dict[int, list[DeletedFile]] = defaultdict(list)
    for deleted_file in deleted.values():
        by_tag[bisect_left(ids, deleted_file.at) - 1].append(deleted_file)
    by_tag.pop(-1, None)
    names: set[str] = set()
    for index, deleted_files_of_tag in by_tag.items():
        with _explain_unreadable(store, f"tag {ordered[index].name!r}"):
            names |= _live_names(store, ordered[index].snapshot, deleted_files_of_tag)
    return names


def _of_branch(store: FileStore, root: str, plan: DeletionPlan) -> set[str]:
    """Return the names of files that another branch needs.

    These are the live files of its oldest snapshot and of tags whose snapshots have expired, all files added since, and
    their metadata. Changelog files of tagged snapshots expire with the snapshots. The oldest snapshot may come from a
    tag, so its changelog files may be missing.
    """
    snapshots = list(Snapshots(store.io, root).all())
    delta_lists = {s.delta_manifest_list for s in snapshots}
    expired = [t.snapshot for t in Tags(store.io, root).list() if t.snapshot.delta_manifest_list not in delta_lists]
    changelogs = list(Changelogs(store.io, root).all())
    deleted, names = list(plan.data.values()), set[str]()
    for full_state in (*snapshots[:1], *expired):
        names |= _live_names(store, full_state, deleted)
    for timeline, strict in ((snapshots, True), (expired, True), (changelogs, False)):
        for snapshot in timeline:
            names |= metadata_files(store, snapshot, strict=strict).keys()
            delta = _metas(store, snapshot.delta_manifest_list, strict=strict) if deleted else []
            changed = _entries(store, delta, strict=strict)
            names |= _names(e for e in changed if e.kind == ADD) & plan.data.keys()
            if timeline is not expired and snapshot.changelog_manifest_list in plan.others:
                names |= changelog_files(store, snapshot, strict=strict and snapshot is not snapshots[0]).keys()
    return names


def _live_names(store: FileStore, snapshot: Snapshot, deleted: Sequence[DeletedFile]) -> set[str]:
    """Return the names of a snapshot's live files, and of their index files, in the buckets of deleted files."""
    if not deleted:
        return set()
    buckets = {deleted_file.entry.bucket_ref for deleted_file in deleted}
    live = live_entries(store, snapshot, buckets=buckets, with_stats=False)
    return _names(live.live)


def _names(entries: Iterable[ManifestEntry]) -> set[str]:
    """Return the names of data files and of their index files."""
    return {name for e in entries for name in (e.file.file_name, *e.file.extra_files)}


def _entries(store: FileStore, metas: Iterable[ManifestFileMeta], *, strict: bool) -> list[ManifestEntry]:
    entries: list[ManifestEntry] = []
    for meta in metas:
        with _ignore_missing(missing=not strict):
            entries += store.manifests.read(meta.file_name, meta.file_size, with_stats=False)
    return entries


def _listed(store: FileStore, name: str, size: int | None, *, strict: bool) -> Paths:
    """Return a manifest list and its manifests. ``size``: the bytes of the list; `None`: unknown."""
    return _paths_of_list(store, name, size, _metas(store, name, strict=strict))


def _paths_of_list(store: FileStore, name: str, size: int | None, metas: Iterable[ManifestFileMeta]) -> Paths:
    sizes = {name: size or 0, **{meta.file_name: meta.file_size for meta in metas}}
    return {file: PlannedFile([store.manifests.path(file)], bytes_) for file, bytes_ in sizes.items()}


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
def _explain_unreadable(store: FileStore, owner: str) -> Iterator[None]:
    """Explain a CorruptedError of the block, which reads the files that ``owner`` needs."""
    try:
        yield
    except CorruptedError as error:
        raise CorruptedError(
            f"nothing of {store.root} can expire: {owner} cannot be read, so its files are unknown ({error}). Delete "
            "it, or restore its files"
        ) from error
