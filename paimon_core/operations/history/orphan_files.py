"""Remove orphan files: files in a table's directories that no live metadata refers to (behaviour 7.14).

Crashes, failed writes, rollbacks and deleted branches leave orphan files. The order of the steps makes the removal safe
while writers, compactions and expiries are active:

1. List the files that were last modified before ``older_than``.
2. Read all names that live metadata refers to: `referenced_names`. This includes files committed after step 1. In the
   reverse order, a file committed between the two steps would look like an orphan.
3. Read the names again (only new metadata), and delete the listed files without a reference. Thus a commit that is
   published while step 2 reads the metadata of a large table is also respected.

A commit published after step 3 refers to files written earlier. Step 1 listed none of them if the write began after
``older_than``. Therefore ``older_than`` must be before the start of every running write; the default, a day ago, is in
practice. The store's clock counts if it is behind the clock of this machine. While an idempotent commit is open (an
intent without known outcome, younger than a day), a later ``older_than`` counts as a day ago.

The removal touches no referenced file and starts from the listing, so it can be killed and run again at any point.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.commit.intents import newest_open
from paimon_core.datafile.blob_references import MANAGED_BLOB
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.fileio.fileio import FileStatus, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.iceberg.listed import leftover_files
from paimon_core.operations.history.blobs_in_use import blobs_in_use
from paimon_core.operations.history.referenced_names import ReferencedNames, contains, name_hashes
from paimon_core.operations.history.snapshot_deletion import remove_empty_directories
from paimon_core.operations.jobs.runner import LOCAL, Runner
from paimon_core.options.file import DATA_FILE_PATH_DIRECTORY, FILE_OPERATION_THREAD_NUM
from paimon_core.snapshot.branches import MAIN, branch_root, list_branches
from paimon_core.store.clock import earlier_clock
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import index_directory, is_bucket_name, manifest_directory, statistics_directory

_log = logging.getLogger(__name__)
_DAY = timedelta(days=1) // timedelta(milliseconds=1)
_TEMPORARY = re.compile(r"\..+\.tmp")
_DIRECTORIES, _PATHS = 64, 1000  # per task
_OWN_FILES = {"snapshot": "snapshot-", "changelog": "changelog-"}
_FILES = pa.schema([("path", pa.string()), ("size", pa.int64())])
_LISTED = pa.schema([("directory", pa.int64()), ("name", pa.string()), ("size", pa.int64())])


@dataclass(frozen=True, slots=True)
class OrphanFiles:
    """Unreferenced files: a table with the columns ``path`` and ``size`` (bytes)."""

    files: pa.Table

    def __repr__(self) -> str:
        return f"OrphanFiles(files: {self.count}, bytes: {self.bytes})"

    @property
    def count(self) -> int:
        """The number of files."""
        return int(self.files.num_rows)

    @property
    def bytes(self) -> int:
        """The total size of all files in bytes."""
        total = pc.sum(self.files.column("size")).as_py()
        return int(total or 0)

    @property
    def paths(self) -> list[str]:
        """The paths of all files."""
        return list(self.files.column("path").to_pylist())


@dataclass(frozen=True, slots=True)
class _Directories:
    """Directories to search; ``removable``: True for directories to remove, with their parents, once they are empty.

    ``buckets``: the number of directories of buckets, which are the first; ``unfinished``: old files of interrupted
    writes in the directories of partitions.
    """

    paths: list[str]
    buckets: int
    removable: list[bool]
    unfinished: list[FileStatus]


def remove_orphan_files(
    store: FileStore, older_than: int | None = None, *, dry_run: bool = False, runner: Runner = LOCAL
) -> OrphanFiles:
    """Delete unreferenced files, and data directories that become empty; return the files.

    The search covers the directories of data, manifests, indexes and statistics, and unfinished files next to
    snapshots, schemas, tags, consumers and buckets. Files outside the table's directory stay, because other tables may
    have files there. Files of blobs named ``.managed.blob`` go under the conditions of `blobs_in_use`.
    Memory: about 100 bytes for each old file and 10 bytes for each manifest entry.

    Args:
        store: the table to clean; all its branches are respected.
        older_than: epoch milliseconds; newer files stay. `None`: a day ago, by the clock of this machine or of the
            store, whichever is earlier (``dry_run``: of this machine). REQUIRES: no running write began earlier.
        dry_run: True to delete nothing.
        runner: lists directories, reads manifests and deletes files.

    Raises InvalidInputError if ``older_than`` is not in the past; CorruptedError (nothing changed) if needed metadata
    cannot be read; OutOfRangeError if snapshots expire faster than they are read.
    """
    now = store.now()
    if older_than is not None and older_than > now:
        raise InvalidInputError(
            f"older_than is {older_than}, but the time is {now}: files of running writes are not referenced yet, so "
            "use a time before these writes began"
        )
    if older_than is None and not dry_run:
        now = earlier_clock(store)
    limit = _limit(store, now, older_than)
    directories = _data_directories(store, limit)
    listed, counts = _old_files(store, directories.paths, limit, runner)
    is_blob = pc.ends_with(listed.column("name"), MANAGED_BLOB)
    old_files, blobs = listed.filter(pc.invert(is_blob)), listed.filter(is_blob)
    unfinished = [file for branch in _roots(store) for file in _unfinished(store, branch, limit)]
    unfinished += [*directories.unfinished, *leftover_files(store, limit)]
    names = ReferencedNames(store, runner)
    hashes = name_hashes(old_files.column("name").to_pylist())
    old_files = old_files.filter(pa.array(~contains(names.read(), hashes)))
    if not dry_run and old_files.num_rows:
        hashes = name_hashes(old_files.column("name").to_pylist())
        old_files = old_files.filter(pa.array(~contains(names.read(), hashes)))
    if blobs.num_rows:
        in_use = blobs_in_use(store, _roots(store), directories.paths[: directories.buckets], limit, names, runner)
        hashes = name_hashes(blobs.column("name").to_pylist())
        unused = np.zeros(len(hashes), bool) if in_use is None else ~contains(in_use, hashes)
        old_files = pa.concat_tables([old_files, blobs.filter(pa.array(unused))])
    orphans = OrphanFiles(_with_paths(old_files, directories.paths, unfinished))
    if not dry_run:
        _delete(store, orphans.paths, runner)
        remaining = counts - np.bincount(old_files.column("directory").to_numpy(), minlength=len(counts))
        _remove_empty(store, directories, remaining.tolist())
    return orphans


def _limit(store: FileStore, now: int, older_than: int | None) -> int:
    """Return the time (epoch ms) from which files are too new to be removed."""
    limit = now - _DAY if older_than is None else older_than
    opened = [newest_open(store.io, root) for root in _roots(store)]
    if limit > now - _DAY and any(when is not None and when > now - _DAY for when in opened):
        _log.warning(
            "an idempotent commit to %s is open: files younger than a day are not removed", hide_secrets(store.root)
        )
        return now - _DAY
    return limit


def _roots(store: FileStore) -> list[str]:
    return [branch_root(store.root, branch) for branch in (MAIN, *list_branches(store.io, store.root))]


def _data_directories(store: FileStore, limit: int) -> _Directories:
    """Return the directories of all buckets of the table and of its metadata files."""
    level = [join(store.root, store.options.value(DATA_FILE_PATH_DIRECTORY) or "")]
    statuses, unfinished = _listed(store, level), []
    for _ in store.schema.partition_keys:
        statuses = _listed(store, [status.path for status in statuses if status.is_directory and "=" in status.name])
        unfinished += [status for status in statuses if _is_unfinished(status, limit)]
    buckets = [status for status in statuses if status.is_directory and is_bucket_name(status.name)]
    metadata = [
        directory_of(store.root) for directory_of in (manifest_directory, index_directory, statistics_directory)
    ]
    paths = [*(bucket.path for bucket in buckets), *metadata]
    removable = [*(bucket.modified_ms < limit for bucket in buckets), *(False for _ in metadata)]
    return _Directories(paths, len(buckets), removable, unfinished)


def _listed(store: FileStore, directories: Sequence[str]) -> list[FileStatus]:
    return [status for listing in parallel_map(store.io.list, directories, _threads(store)) for status in listing]


def _threads(store: FileStore) -> int | None:
    return store.options.value(FILE_OPERATION_THREAD_NUM)


def _is_unfinished(file: FileStatus, limit: int) -> bool:
    """Return True for an old file of a write that was interrupted before it renamed the file."""
    return _TEMPORARY.fullmatch(file.name) is not None and not file.is_directory and file.modified_ms < limit


def _old_files(
    store: FileStore, directories: Sequence[str], limit: int, runner: Runner
) -> tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the files older than a limit with their directory's index, and the number of entries per directory."""
    numbers = range(0, len(directories), _DIRECTORIES)
    parts = [(start, directories[start : start + _DIRECTORIES], limit) for start in numbers]
    results = list(runner.map(store, _list_old, parts))
    counts = np.array([count for _, several in results for count in several], np.int64)
    return pa.concat_tables([table for table, _ in results]), counts


def _list_old(store: FileStore, part: tuple[int, Sequence[str], int]) -> tuple[pa.Table, list[int]]:
    """List directories, numbered from a start; return the files older than a limit and the numbers of entries."""
    first, directories, limit = part
    tables, counts = [_LISTED.empty_table()], []
    for number, entries in enumerate(parallel_map(store.io.list, directories, _threads(store)), first):
        old = [entry for entry in entries if not entry.is_directory and entry.modified_ms < limit]
        columns = [[number] * len(old), [entry.name for entry in old], [entry.size for entry in old]]
        tables.append(pa.table([pa.array(c, f.type) for c, f in zip(columns, _LISTED, strict=True)], schema=_LISTED))
        counts.append(len(entries))
    return pa.concat_tables(tables), counts


def _unfinished(store: FileStore, root: str, limit: int) -> Iterator[FileStatus]:
    """Yield old files of interrupted writes next to the metadata of a branch.

    In the directories of snapshots and changelogs, these are all files except snapshots, changelogs and hints.
    """
    for name, prefix in _OWN_FILES.items():
        for file in store.io.list(join(root, name)):
            is_final = file.name.removeprefix(prefix).isdigit() or file.name in ("EARLIEST", "LATEST")
            if not is_final and not file.is_directory and file.modified_ms < limit:
                yield file
    for name in ("schema", "tag", "tag/tag-success-file", "consumer"):
        yield from (file for file in store.io.list(join(root, name)) if _is_unfinished(file, limit))


def _with_paths(old_files: pa.Table, directories: Sequence[str], unfinished: Sequence[FileStatus]) -> pa.Table:
    """Return the paths and sizes of old and of unfinished files."""
    parents = pa.array([join(path, "x")[:-1] for path in directories], pa.string()).take(old_files.column("directory"))
    paths = pc.binary_join_element_wise(parents, old_files.column("name"), "")
    more = pa.table([[file.path for file in unfinished], [file.size for file in unfinished]], schema=_FILES)
    return pa.concat_tables([pa.table([paths, old_files.column("size")], schema=_FILES), more])


def _delete(store: FileStore, paths: Sequence[str], runner: Runner) -> None:
    parts = [paths[start : start + _PATHS] for start in range(0, len(paths), _PATHS)]
    for _ in runner.map(store, _delete_all, parts):
        pass


def _delete_all(store: FileStore, paths: Sequence[str]) -> int:
    for _ in parallel_map(store.io.delete, paths, _threads(store)):
        pass
    return len(paths)


def _remove_empty(store: FileStore, directories: _Directories, remaining: Sequence[int]) -> None:
    """Remove old bucket directories without entries, then the directories of partitions that become empty."""
    for path, removable, count in zip(directories.paths, directories.removable, remaining, strict=True):
        if removable and not count:
            remove_empty_directories(store, path)
