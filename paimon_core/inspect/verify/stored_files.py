"""Check that data files and index files exist with their sizes, and that the files of a bucket are consistent."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from paimon_core.deletion.vector_files import read_vectors
from paimon_core.errors import CorruptedError, PaimonError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.verify.branch_metadata import State
from paimon_core.inspect.verify.verify_report import Fault
from paimon_core.lsm.intervals import key_ranks
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.bucket import BucketRef, group_by_bucket
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, IndexManifestEntry
from paimon_core.options.file import ROW_TRACKING_ENABLED
from paimon_core.store.file_store import FileStore


@dataclass(slots=True)
class StoredFiles:
    """The stored files of a branch. Each check adds to ``faults`` and to ``files``, the number of checked files."""

    store: FileStore
    faults: list[Fault] = field(default_factory=list)
    files: int = 0
    _seen: set[str] = field(default_factory=set)

    def check_existence(self, entries: Iterable[ManifestEntry]) -> None:
        """Check that the data files of entries, and their extra files, exist with the recorded sizes."""
        buckets: dict[BucketRef, dict[str, int | None]] = {}
        files = [(entry.bucket_ref, entry.file) for entry in entries]
        for (bucket, file), paths in zip(files, self.store.paths_of_files(files), strict=True):
            sizes = buckets.setdefault(bucket, {})
            for path, size in zip(paths, (file.file_size, *(None for _ in paths[1:])), strict=True):
                if path not in self._seen:
                    self._seen.add(path)
                    sizes[path] = size
        for expected, stored in zip(buckets.values(), parallel_map(self._sizes, buckets.values()), strict=True):
            self.files += len(expected)
            for path, size in expected.items():
                actual = stored.get(path)
                if actual is None:
                    self._found("missing-data-file", path, "the file is missing")
                elif size is not None and actual != size:
                    self._found("wrong-size", path, f"the file has {actual} bytes, its manifest says {size}")

    def _sizes(self, expected: dict[str, int | None]) -> dict[str, int]:
        """Return the sizes in bytes of the existing files by path, with one listing for each directory."""
        directories = {path.rpartition("/")[0] for path in expected}
        infos = (info for directory in directories for info in self.store.io.list(directory))
        return {info.path: info.size for info in infos if not info.is_directory}

    def check_state(self, state: State) -> None:
        """Check the files of a snapshot against each other and against its index files."""
        self._check_bucket_numbers(state)
        for bucket, files in group_by_bucket(state.live).items():
            self._check_bucket(bucket, [entry.file for entry in files])
        if self.store.schema.options.value(ROW_TRACKING_ENABLED) and not self.store.traits.data_evolution:
            self._check_row_ids(state)
        self.check_indexes(state, self._indexes(state))

    def _check_bucket_numbers(self, state: State) -> None:
        numbers: dict[bytes, set[int]] = {}
        for entry in state.live:
            numbers.setdefault(entry.partition, set()).add(entry.total_buckets)
        for partition, bucket_numbers in numbers.items():
            if len(bucket_numbers) > 1:
                message = (
                    f"snapshot {state.snapshot.id}: files of one partition record {sorted(bucket_numbers)} buckets"
                )
                self._found("several-bucket-numbers", self.store.partition_path(partition), message)

    def _check_bucket(self, bucket: BucketRef, files: Sequence[DataFileMeta]) -> None:
        if not self.store.traits.keyed:
            return
        path, keys = self.store.bucket_path(bucket), self.store.schema.key_arrow
        try:
            low, high = key_ranks(files, keys)
            wrong = [file.file_name for file, a, b in zip(files, low, high, strict=True) if a > b]
        except (PaimonError, ValueError) as error:
            self._found("unreadable-key", path, f"the smallest and largest keys of files cannot be decoded: {error}")
            return
        for name in wrong:
            self._found("wrong-key-range", path, f"{name}: the smallest key is above the largest", name)
        if not wrong and bucket.bucket >= 0:
            try:
                Levels.of(files, keys, num_levels(self.store.options))
            except CorruptedError as error:
                self._found("overlapping-files", path, str(error))

    def _check_row_ids(self, state: State) -> None:
        path, following = self.store.snapshots.path(state.snapshot.id), state.snapshot.next_row_id
        last = ("", -1)
        numbered = [(e.file.first_row_id, e.file) for e in state.live if e.file.first_row_id is not None]
        for first, file in sorted(numbered, key=lambda pair: pair[0]):
            if first <= last[1]:
                message = f"{last[0]} and {file.file_name} both have row {first}"
                self._found("wrong-row-ids", path, message)
            last = (file.file_name, first + file.row_count - 1)
        if following is not None and last[1] >= following:
            self._found("wrong-row-ids", path, f"nextRowId is {following}, and {last[0]} has row {last[1]}")

    def _indexes(self, state: State) -> list[IndexManifestEntry]:
        """Return the index files of a snapshot; an empty list if they are unreadable, which is already a fault."""
        name = state.snapshot.index_manifest
        try:
            return [] if name is None else self.store.manifests.read_index(name)
        except CorruptedError:
            return []

    def check_indexes(self, state: State, entries: Sequence[IndexManifestEntry]) -> None:
        """Check index files against the stored files and against the data files of a snapshot."""
        if not entries:
            return
        rows = {(e.bucket_ref, e.file.file_name): e.file.row_count for e in state.live}
        for entry in entries:
            path = self.store.index_path(entry)
            for message, kind in self._wrong_index(entry, path, rows):
                self._found(kind, path, message)

    def _wrong_index(
        self, entry: IndexManifestEntry, path: str, rows: dict[tuple[BucketRef, str], int]
    ) -> Iterator[tuple[str, str]]:
        if path not in self._seen:
            self._seen.add(path)
            self.files += 1
            size = self._sizes({path: None}).get(path)
            if size is None:
                yield "the file is missing", "missing-index-file"
            elif size != entry.file_size:
                yield f"the file has {size} bytes, its index manifest says {entry.file_size}", "wrong-size"
        if entry.index_type == HASH and entry.file_size != 4 * entry.row_count:
            yield f"{entry.row_count} hashes cannot be in {entry.file_size} bytes", "wrong-index"
        if entry.index_type != DELETION_VECTORS:
            return
        for vector in entry.deletion_ranges or ():
            row_count = rows.get((entry.bucket_ref, vector.data_file))
            if row_count is None:
                yield f"a deletion vector refers to {vector.data_file}, which is not in the snapshot", "stray-vector"
            elif vector.cardinality is not None and vector.cardinality > row_count:
                yield f"{vector.cardinality} of {row_count} rows of {vector.data_file} are deleted", "wrong-vector"
            if vector.offset + vector.length > entry.file_size:
                yield f"the vector of {vector.data_file} ends beyond the end of the file", "wrong-vector"

    def check_vectors(self, state: State) -> None:
        """Decode the deletion vectors of a snapshot, and check checksums, cardinalities and positions."""
        rows = {(e.bucket_ref, e.file.file_name): e.file.row_count for e in state.live}
        for entry in self._indexes(state):
            if entry.index_type != DELETION_VECTORS:
                continue
            path = self.store.index_path(entry)
            for range_ in entry.deletion_ranges or ():
                try:
                    vector = read_vectors(self.store.io, path, [range_])[range_.data_file]
                except (PaimonError, OSError) as error:
                    self._found("unreadable-vector", path, str(error))
                    continue
                row_count = rows.get((entry.bucket_ref, range_.data_file))
                if row_count is not None and vector.cardinality and int(vector.positions().max()) >= row_count:
                    message = f"rows beyond the {row_count} rows of {range_.data_file} are deleted"
                    self._found("wrong-vector", path, message)

    def _found(self, kind: str, path: str, message: str, data_file: str | None = None) -> None:
        self.faults.append(Fault(kind, path, message, data_file))
