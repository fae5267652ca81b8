"""Remove rows from data files of a table without a primary key, by their positions.

With ``deletion-vectors.enabled`` the positions are added to deletion vectors; otherwise the files are rewritten without
the rows. A file that loses all its rows is removed, unless other files may hold columns of the same rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.publisher import Publisher
from paimon_core.datafile.deletion_vectors import (
    read_entries,
    single_index_per_bucket,
    vectors_by_bucket,
    write_vectors,
)
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CommitConflictError, UnsupportedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketLocation, BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import files_by_bucket
from paimon_core.memory import MemoryShares
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.jobs.task import BucketFiles
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import concatenate

_THREADS = 2  # files read in parallel; each also decodes its columns in parallel
Find = Callable[[DataFileMeta, DeletionVector | None], DeletionVector]
"""A function from a file and the vector of its deleted rows to the rows to remove."""


class RowPositions:
    """Row positions by the path of their data file. Picklable. Memory: a few bits for each row."""

    def __init__(self) -> None:
        self._files: dict[str, BitMap] = {}
        self.added = 0
        """The number of added positions, including repetitions."""

    @property
    def distinct(self) -> int:
        """The number of distinct positions."""
        return sum(map(len, self._files.values()))

    def add(self, paths: pa.Array, positions: pa.Array) -> None:
        """Add positions (``int64``, without NULL); ``paths[i]`` is the path of the file of ``positions[i]``."""
        self.added += len(positions)
        encoded = pc.dictionary_encode(paths)
        codes, rows = encoded.indices.to_numpy(), positions.to_numpy()
        if len(rows) and int(rows.max()) >> 32:
            raise UnsupportedError(f"a data file with more than {1 << 32} rows cannot be changed: it has {rows.max()}")
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        for number, path in enumerate(encoded.dictionary.to_pylist()):
            row_numbers = rows[order[bounds[number] : bounds[number + 1]]].astype(np.uint32)
            self._files.setdefault(path, BitMap()).update(BitMap(row_numbers))

    def update(self, other: "RowPositions") -> None:
        """Add the positions of ``other``."""
        self.added += other.added
        for path, rows in other._files.items():
            self._files.setdefault(path, BitMap()).update(rows)

    def by_name(self) -> dict[str, tuple[str, BitMap]]:
        """Return path and positions by file name; data file names are unique in a table."""
        return {path.rpartition("/")[2]: (path, rows) for path, rows in self._files.items()}

    def __bool__(self) -> bool:
        return bool(self._files)


@dataclass(frozen=True, slots=True)
class MarkedFiles:
    """A task: files of one bucket, and the rows to remove by file name."""

    files: BucketFiles
    marked: Mapping[str, BitMap]

    @property
    def bucket_ref(self) -> BucketRef:
        """The bucket of the files."""
        return self.files.bucket_ref

    @property
    def size(self) -> int:
        """The bytes of the files."""
        return self.files.size

    @property
    def rows(self) -> int:
        """The stored rows of the files."""
        return self.files.rows

    @property
    def keeps_rows(self) -> bool:
        """True if some rows of the files remain."""
        return any(len(self.marked[f.file_name]) < f.row_count for f in self.files.files)


def remove_rows(
    store: FileStore,
    snapshot: Snapshot,
    positions: RowPositions,
    *,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
) -> list[CommitMessage]:
    """Return messages that remove rows of a snapshot; after an error no new file remains.

    Args:
        store: a table without a primary key.
        snapshot: the snapshot in which the files are live.
        positions: the positions of the rows, which must not be deleted yet.
        runner: writes the files. This process handles files that need not be read.
        progress: called after every task of the runner with the bytes done and the total bytes; `None`: no reports.

    Raises CommitConflictError for a file that is not live in the snapshot, OutOfRangeError if it has expired.
    """
    with raise_if_expired(store, snapshot):
        tasks = _plan(store, snapshot, positions)
    run = partial(_remove, snapshot)
    marks = store.traits.deletion_vectors
    rewritten = [task for task in tasks if not marks and task.keeps_rows]
    remaining = [task for task in tasks if marks or not task.keeps_rows]
    messages = runner.run_all(store, rewritten, run, progress) if rewritten else []
    with Publisher(store).deleting_unless_published(messages):
        return [*messages, *LOCAL.run_all(store, remaining, run, None)]


def _plan(store: FileStore, snapshot: Snapshot, positions: RowPositions) -> list[MarkedFiles]:
    """Return a task for each file or, with deletion vectors, for each bucket, because its files share index files."""
    marks, positions_by_name = store.traits.deletion_vectors, positions.by_name()
    vectors = vectors_by_bucket(store, snapshot) if marks else {}
    buckets: dict[BucketLocation, list[DataFileMeta]] = {}
    for at, files in files_by_bucket(live_entries(store, snapshot).live).items():
        matching = [
            f
            for f in files
            if f.file_name in positions_by_name and store.file_path(at.ref, f) == positions_by_name[f.file_name][0]
        ]
        if matching:
            buckets[at] = matching
    missing = set(positions_by_name) - {f.file_name for files in buckets.values() for f in files}
    if missing:
        raise CommitConflictError(f"file {min(missing)} is not in snapshot {snapshot.id} of {store.root}")
    tasks = []
    for at, files in buckets.items():
        for group in [files] if marks else [[file] for file in files]:
            marked = {f.file_name: positions_by_name[f.file_name][1] for f in group}
            tasks.append(MarkedFiles(BucketFiles(*at, tuple(group), vectors.get(at.ref, ())), marked))
    return tasks


def _remove(planned: Snapshot, store: FileStore, task: MarkedFiles) -> CommitMessage:
    def find(file: DataFileMeta, _: DeletionVector | None) -> DeletionVector:
        return DeletionVector.of(np.array(task.marked[file.file_name].to_array(), np.int64))

    with raise_if_expired(store, planned):
        return without_rows(store, task.files, find)


def without_rows(store: FileStore, task: BucketFiles, find: Find) -> CommitMessage:
    """Remove the rows that ``find`` returns from the files of one bucket. After an error no new file remains."""
    message = CommitMessage(*task.location)
    old = read_entries(store, task.vectors)
    marked: dict[str, DeletionVector] = {}
    try:
        rows = parallel_map(
            lambda file: find(file, old.get(file.file_name)),
            task.files,
            MemoryShares.of(store.options).at_most(_THREADS),
        )
        for file, removed in zip(task.files, rows, strict=True):
            if not removed.cardinality:
                continue
            deleted = old[file.file_name].union(removed) if file.file_name in old else removed
            remains = deleted.cardinality < file.row_count or store.traits.data_evolution
            if remains and store.traits.deletion_vectors:
                marked[file.file_name] = deleted
                continue
            after: tuple[DataFileMeta, ...] = ()
            if deleted.cardinality < file.row_count:
                after = concatenate(store, task.bucket_ref, (file,), {file.file_name: deleted})
            message = replace(
                message, new_files=(*message.new_files, *after), deleted_files=(*message.deleted_files, file)
            )
        return _marking(store, task, message, old, marked)
    except BaseException:
        delete_written_files(store, [message])
        raise


def _marking(
    store: FileStore,
    task: BucketFiles,
    message: CommitMessage,
    old: Mapping[str, DeletionVector],
    marked: Mapping[str, DeletionVector],
) -> CommitMessage:
    """Return the message with the new deletion vectors of its bucket, and without vectors for deleted files."""
    removed = {f.file_name for f in message.deleted_files}
    touched = {*removed, *marked}
    if not marked and not any(name in old for name in removed):
        return message
    replaced = tuple(
        entry
        for entry in task.vectors
        if single_index_per_bucket(store) or any(r.data_file in touched for r in entry.deletion_ranges or ())
    )
    vectors = {r.data_file: old[r.data_file] for entry in replaced for r in entry.deletion_ranges or ()} | dict(marked)
    remaining = {name: vector for name, vector in vectors.items() if name not in removed}
    written = write_vectors(store, task.bucket_ref, remaining)
    return replace(message, new_indexes=written, deleted_indexes=replaced)
