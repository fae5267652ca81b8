"""Find the ``.managed.blob`` files to which rows of a table may refer (format 11.4): the removal of orphans keeps them.

Failed writes, updates and deletes leave them. The ``.blobref`` files of data files say which of them are in use. A file
of blobs is an orphan only if all of this holds:

- It is older than a limit, before which no running write began. So its writer has committed it or given it up.
- No ``.blobref`` file refers to it, of all data files to which metadata refers, and of all files newer than the limit.
- All data files have their ``.blobref`` file, unless they were written while the table had no managed blobs.
- In each branch, the oldest snapshot is not newer than the limit. A running write may refer to blobs of the snapshot
  that it has read, such as an UPDATE that changes other columns; that snapshot still exists, and was searched, too.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from paimon_core.datafile.blob_references import SUFFIX, referenced_names
from paimon_core.datafile.indexes import INDEX_SUFFIX
from paimon_core.errors import CorruptedError, UnsupportedError, hide_secrets
from paimon_core.fileio.fileio import join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format import FORMATS, TEXT_FORMATS
from paimon_core.operations.history.referenced_names import Hashes, ReferencedNames, contains, name_hashes, union
from paimon_core.operations.jobs.runner import Runner
from paimon_core.options.file import FILE_OPERATION_THREAD_NUM
from paimon_core.schema.blob_columns import in_managed_files
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)
_TRIES = 5
_DIRECTORIES, _PATHS = 64, 1000  # per task
_ENDLESS = 2**63 - 1
_FORMATS = {*FORMATS, *TEXT_FORMATS}


class _UnknownError(Exception):
    """The references of a data file are not known."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """Files of one directory, with their names and times (epoch ms).

    ``lists``: ``.blobref`` files; ``without``: data files without a ``.blobref`` file.
    """

    lists: list[tuple[str, int]]
    without: list[tuple[str, int]]


def blobs_in_use(
    store: FileStore,
    roots: Sequence[str],
    directories: Sequence[str],
    limit: int,
    names: ReferencedNames,
    runner: Runner,
) -> Hashes | None:
    """Return the hashes of the names of files of blobs that are in use; `None`: they are not known, so all stay.

    A warning says why they are not known. Costs a listing of the directories, and a read of each ``.blobref`` file.

    Args:
        store: the table.
        roots: the directories of all branches.
        directories: the directories of all buckets.
        limit: epoch milliseconds. REQUIRES: no running write began earlier.
        names: reads the names of all files to which metadata refers.
        runner: lists directories and reads files.
    """
    try:
        found = _in_use(store, roots, directories, limit, names, runner)
        _check_snapshots(store, roots, limit)
    except (_UnknownError, CorruptedError, UnsupportedError) as error:
        _log.warning("files of managed blobs in %s without references stay: %s", hide_secrets(store.root), error)
        return None
    return found


def _in_use(
    store: FileStore,
    roots: Sequence[str],
    directories: Sequence[str],
    limit: int,
    names: ReferencedNames,
    runner: Runner,
) -> Hashes:
    period = _period(store, roots)
    parts = [directories[start : start + _DIRECTORIES] for start in range(0, len(directories), _DIRECTORIES)]
    for _ in range(_TRIES):
        listed = [one for several in runner.map(store, _list, parts) for one in several]
        referenced = names.read()
        for directory, one in zip(directories, listed, strict=True):
            for name, modified in _live(one.without, referenced, _ENDLESS):
                if period[0] <= modified <= period[1]:
                    raise _UnknownError(f"data file {join(directory, name)} has no list of its blobs ({SUFFIX})")
        paths = [
            join(directory, name)
            for directory, one in zip(directories, listed, strict=True)
            for name, _ in _live(one.lists, referenced, limit)
        ]
        groups = [paths[start : start + _PATHS] for start in range(0, len(paths), _PATHS)]
        results = list(runner.map(store, _read, groups))
        if all(hashes is not None for hashes in results):
            return union(hashes for hashes in results if hashes is not None)
    raise _UnknownError(f"lists of blobs disappeared {_TRIES} times while being read: try again after the expiry")


def _live(files: Sequence[tuple[str, int]], referenced: Hashes, limit: int) -> Iterator[tuple[str, int]]:
    """Yield the files to which metadata refers, or that were modified from a limit (epoch ms) on."""
    known = contains(referenced, name_hashes([name for name, _ in files]))
    return (file for file, is_known in zip(files, known.tolist(), strict=True) if is_known or file[1] >= limit)


def _period(store: FileStore, roots: Sequence[str]) -> tuple[int, int]:
    """Return the time (epoch ms) from which a branch has had managed blobs, and the time until which one had them."""
    begins, ends = [], []
    for root in roots:
        schemas = Schemas(store.io, root)
        versions = [schemas.get(number) for number in schemas.ids()]
        has = [bool(in_managed_files(version)) for version in versions]
        if any(has):
            first, last = has.index(True), len(has) - 1 - has[::-1].index(True)
            begins.append(versions[first].time_millis if first else 0)
            ends.append(_ENDLESS if last == len(has) - 1 else versions[last + 1].time_millis)
    return min(begins, default=0), max(ends, default=_ENDLESS)


def _check_snapshots(store: FileStore, roots: Sequence[str], limit: int) -> None:
    """Raise _UnknownError if a snapshot that was the newest of its branch at the limit, or later, has expired."""
    for root in roots:
        snapshots = Snapshots(store.io, root)
        oldest = snapshots.earliest_id()
        snapshot = None if oldest is None else snapshots.find(oldest)
        if oldest is not None and oldest > 1 and (snapshot is None or snapshot.time_millis > limit):
            raise _UnknownError(
                f"snapshot {oldest}, the oldest of {hide_secrets(root)}, is newer than 'older_than', so a running "
                "write may have read their names from a snapshot that has expired. Name a later 'older_than', before "
                "which no running write began, or retain snapshots longer"
            )


def _list(store: FileStore, directories: Sequence[str]) -> list[_Listed]:
    found = []
    for entries in parallel_map(store.io.list, directories, store.options.value(FILE_OPERATION_THREAD_NUM)):
        times = {entry.name: entry.modified_ms for entry in entries if not entry.is_directory}
        lists = [(name, time) for name, time in times.items() if name.endswith(SUFFIX)]
        data = [name for name in times if _is_data(name) and name + SUFFIX not in times]
        without = [(name, times[name]) for name in data]
        found.append(_Listed(lists, without))
    return found


def _is_data(name: str) -> bool:
    """Return True for the name of a data file in the directory of a bucket."""
    return not name.endswith((SUFFIX, INDEX_SUFFIX)) and not _FORMATS.isdisjoint(name.split("."))


def _read(store: FileStore, paths: Sequence[str]) -> Hashes | None:
    """Return the hashes of the names in ``.blobref`` files; `None`: one of the files disappeared."""

    def read(path: str) -> bytes | None:
        try:
            return store.io.read(path)
        except FileNotFoundError:
            return None

    names: set[str] = set()
    for path, data in zip(
        paths, parallel_map(read, paths, store.options.value(FILE_OPERATION_THREAD_NUM)), strict=True
    ):
        if data is None:
            return None
        names |= referenced_names(data, path)
    return np.unique(name_hashes(sorted(names)))
