"""Delete tags and the files that only these tags need (behaviour 7.12).

While a tagged snapshot exists, only the tag's own file is deleted; the expiry of the snapshot deletes the other files.
For tags whose snapshots have expired, the steps have the same order as in expiry (decision 10):

1. Read the manifest lists and index manifests that the tags refer to.
2. Delete the files of the tags. A crash from here on leaves unreferenced files, never a reference to a missing file.
3. Read all names that live metadata refers to, once for all tags: `referenced_names`.
4. Read every manifest of the tags once, and delete the tags' files that are not among the names of step 3.

A tag needs the data files that its manifests add more often than they delete. Files with as many adds as deletes were
deleted with the snapshot that deleted them, or are deleted with an earlier tag. Changelog files were deleted with the
tagged snapshot, or are deleted with its changelog. A changelog without changelog files shows the written data files, so
step 3 includes all files that its manifest lists add. If nothing else needs one of these files, the changelog's expiry
deletes it, or later the removal of orphan files.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TypeVar

import numpy as np

from paimon_core.errors import CorruptedError, hide_secrets
from paimon_core.fileio.fileio import join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.iceberg.listed import forget_expired
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.operations.history.referenced_names import (
    Hashes,
    ManifestNames,
    ReferencedNames,
    contains,
    file_names,
    live_names,
    name_hashes,
    names_in,
    union,
)
from paimon_core.operations.history.remembered_names import RememberedNames
from paimon_core.operations.history.snapshot_deletion import (
    DeletionPlan,
    Paths,
    PlannedFile,
    delete_files,
    index_files,
    statistics_file,
)
from paimon_core.operations.jobs.runner import LOCAL
from paimon_core.options.file import FILE_OPERATION_THREAD_NUM
from paimon_core.options.snapshot import TAG_CREATE_SUCCESS_FILE
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.store.file_store import FileStore

Found = TypeVar("Found")
_READ_AHEAD = 4  # manifests that are loaded while earlier ones are decoded
_remembered = RememberedNames()  # tags expire every hour or day, and most manifests are the same each time
_log = logging.getLogger(__name__)


def delete_tags(store: FileStore, tags: Sequence[Tag]) -> int:
    """Delete tags, and the files that no snapshot, tag, changelog or branch still needs; return the number of files.

    The files of the tags themselves do not count. An unreadable metadata file of a deleted tag is logged, and the files
    that only it refers to stay until orphan files are removed. Cost, unless all tagged snapshots exist: all metadata of
    snapshots, tags and branches is read once, regardless of the number of deleted tags; manifests that this process has
    read for other deleted tags are not read again. Memory: 10 bytes for each manifest entry, the paths of the files to
    delete, and 16 MB for what is remembered.

    Raises CorruptedError if metadata that stays cannot be read, OutOfRangeError if snapshots expire faster than they
    are read; in both cases the tags are deleted, but no other file.
    """
    snapshots = list({tag.snapshot.fingerprint: tag.snapshot for tag in tags}.values())
    exist = parallel_map(partial(is_in_timeline, store), snapshots)
    expired = [snapshot for snapshot, exists in zip(snapshots, exist, strict=True) if not exists]
    metadata = _Metadata.read(store, expired)
    if store.options.value(TAG_CREATE_SUCCESS_FILE):
        _delete(store, [success_file_of(store, tag.name) for tag in tags])
    paths = [store.tags.path(tag.name) for tag in tags]
    _delete(store, paths)
    if tags:
        forget_expired(store)
    if not expired:
        return 0
    store.sync(paths)  # no tag reappears without its files
    return _delete_unneeded(store, metadata)


def delete_files_of(store: FileStore, snapshot: Snapshot) -> int:
    """Delete the files that `delete_tags` would delete for a snapshot whose tag is gone; return their number."""
    return 0 if is_in_timeline(store, snapshot) else _delete_unneeded(store, _Metadata.read(store, [snapshot]))


def success_file_of(store: FileStore, name: str) -> str:
    """Return the path of a tag's success file, for the option ``tag.create-success-file``."""
    return join(store.tags.path(name).rpartition("/")[0], "tag-success-file", f"{name}_SUCCESS")


def is_in_timeline(store: FileStore, snapshot: Snapshot) -> bool:
    """Return True if the snapshot has not expired, and no rollback has given its id to another snapshot."""
    existing = store.snapshots.find(snapshot.id)
    return existing is not None and existing.fingerprint == snapshot.fingerprint


def _delete(store: FileStore, paths: Sequence[str]) -> None:
    for _ in parallel_map(store.io.delete, paths, store.options.value(FILE_OPERATION_THREAD_NUM)):
        pass


@dataclass(frozen=True, slots=True)
class _Metadata:
    """The manifests of the snapshots of deleted tags, together and per snapshot, and all their files but data files."""

    manifests: Mapping[str, ManifestFileMeta]
    of_snapshots: Sequence[Sequence[str]]
    others: Paths

    @classmethod
    def read(cls, store: FileStore, snapshots: Sequence[Snapshot]) -> "_Metadata":
        """Read each manifest list and index manifest once. A file that cannot be read counts as empty."""
        sizes = {s.base_manifest_list: s.base_manifest_list_size for s in snapshots}
        sizes |= {s.delta_manifest_list: s.delta_manifest_list_size for s in snapshots}
        manifests: dict[str, ManifestFileMeta] = {}
        lists: dict[str, list[str]] = {}
        for name, metas in _read_all(
            store, list(sizes), lambda list_name: store.manifests.read_list(list_name, sizes[list_name])
        ):
            manifests |= {meta.file_name: meta for meta in metas or () if meta.file_name not in manifests}
            lists[name] = [manifests[meta.file_name].file_name for meta in metas or ()]  # one object for all lists
        indexes = list({s.index_manifest: None for s in snapshots if s.index_manifest is not None})
        named = (*lists, *manifests, *indexes)
        others: Paths = {name: PlannedFile([store.manifests.path(name)]) for name in named}
        for _, files in _read_all(store, indexes, partial(index_files, store)):
            others |= files or {}
        for statistics in {s.statistics for s in snapshots if s.statistics is not None}:
            others |= statistics_file(store, statistics)
        return cls(manifests, [lists[s.base_manifest_list] + lists[s.delta_manifest_list] for s in snapshots], others)


def _read_all(
    store: FileStore, names: Sequence[str], read: Callable[[str], Found], threads: int | None = None
) -> Iterator[tuple[str, Found | None]]:
    """Yield the name of each metadata file and the result of ``read``; `None` if the file cannot be read."""

    def one(name: str) -> Found | None:
        with _log_unreadable(store):
            return read(name)
        return None

    return zip(names, parallel_map(one, names, threads), strict=True)


@contextmanager
def _log_unreadable(store: FileStore) -> Iterator[None]:
    """Log a CorruptedError of the block, which reads metadata of a deleted tag."""
    try:
        yield
    except CorruptedError as error:
        _log.warning(
            "a deleted tag of %s cannot be read, so files that only it needs stay until orphan files are removed: %s",
            hide_secrets(store.root),
            hide_secrets(str(error)),
        )


def _delete_unneeded(store: FileStore, metadata: _Metadata) -> int:
    """Delete the files of deleted tags that no live metadata refers to; return their number."""
    alive = ReferencedNames(store, LOCAL, _remembered)
    try:
        needed = alive.read()
    except CorruptedError as error:
        raise CorruptedError(
            f"the files of deleted tags of {store.root} stay, because it is unknown which of them are still needed "
            f"({error}); once the remaining metadata is readable, remove_orphan_files deletes the unneeded ones"
        ) from error
    unneeded = ~contains(needed, name_hashes(list(metadata.others)))
    others = dict(compress(metadata.others.items(), unneeded.tolist()))
    paths, _ = DeletionPlan({}, _data_files(store, metadata, alive, needed) | others).paths(store, ())
    delete_files(store, paths)
    return len(paths)


def _data_files(store: FileStore, metadata: _Metadata, alive: ReferencedNames, needed: Hashes) -> Paths:
    """Return the data files (with their extra files) that are live in a deleted tag and not in ``needed``."""
    names: dict[str, ManifestNames] = {}
    paths: Paths = {}
    manifests_to_read = [name for name in metadata.manifests if _has_unknown(alive.of_manifest(name), needed)]

    def load(name: str) -> bytes:
        return store.manifests.load(name, metadata.manifests[name].file_size)

    for name, data in _read_all(store, manifests_to_read, load, _READ_AHEAD):
        with _log_unreadable(store):
            if data is not None:
                names[name] = _unknown(store, metadata.manifests[name], data, needed, paths)
    live = union(live_names([names[name] for name in several if name in names]) for several in metadata.of_snapshots)
    return dict(compress(paths.items(), contains(live, name_hashes(list(paths))).tolist()))


def _has_unknown(names: ManifestNames | None, needed: Hashes) -> bool:
    return names is None or not bool(contains(needed, names.hashes).all())


def _unknown(store: FileStore, meta: ManifestFileMeta, data: bytes, needed: Hashes, paths: Paths) -> ManifestNames:
    """Return the names in a manifest that are not in ``needed``; add the paths of added files to ``paths``."""
    parts = [names_in(())[1]]  # a manifest may have no entries
    for entries in store.manifests.decode_batches(meta, data, with_stats=False):
        origins, names = names_in(entries)
        unknown = ~contains(needed, names.hashes)
        parts.append(names.where(unknown))
        for at in np.flatnonzero(unknown & (names.signs > 0)).tolist():
            entry, index = origins[at]
            name = file_names(entry.file)[index]
            if name not in paths:  # a merged manifest repeats the entries of its sources
                paths[name] = PlannedFile(store.deletable_paths(entry.bucket_ref, entry.file)[index : index + 1])
    return ManifestNames(np.concatenate([p.hashes for p in parts]), np.concatenate([p.signs for p in parts]))
