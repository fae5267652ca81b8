"""Data files and index files: whether they exist with their sizes, and whether those of a bucket go together."""

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
    """The files of a branch in the store. ``faults`` and ``files``, their number, grow with each check."""

    store: FileStore
    faults: list[Fault] = field(default_factory=list)
    files: int = 0
    _seen: set[str] = field(default_factory=set)

    def check_existence(self, entries: Iterable[ManifestEntry]) -> None:
        """Compare the data files of entries, and the files beside them, with what is in the store."""
        buckets: dict[BucketRef, dict[str, int | None]] = {}
        for entry in entries:
            paths = self.store.file_paths(entry.bucket_ref, entry.file)
            known = buckets.setdefault(entry.bucket_ref, {})
            for path, size in zip(paths, (entry.file.file_size, *(None for _ in paths[1:])), strict=True):
                if path not in self._seen:
                    self._seen.add(path)
                    known[path] = size
        for wanted, stored in zip(buckets.values(), parallel_map(self._sizes, buckets.values()), strict=True):
            self.files += len(wanted)
            for path, size in wanted.items():
                found = stored.get(path)
                if found is None:
                    self._found("missing-data-file", path, "the file is missing")
                elif size is not None and found != size:
                    self._found("wrong-size", path, f"the file has {found} bytes, its manifest says {size}")

    def _sizes(self, wanted: dict[str, int | None]) -> dict[str, int]:
        """Return the bytes of files by their paths, as far as they exist: one listing for each directory."""
        directories = {path.rpartition("/")[0] for path in wanted}
        listed = (one for directory in directories for one in self.store.io.list(directory))
        return {one.path: one.size for one in listed if not one.is_directory}

    def check_state(self, state: State) -> None:
        """Compare the files of a snapshot with each other, and with its index files."""
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
        for partition, found in numbers.items():
            if len(found) > 1:
                message = f"snapshot {state.snapshot.id}: files of one partition say {sorted(found)} buckets"
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
        """Return the index files of a snapshot; none if they are unknown, which was found already."""
        name = state.snapshot.index_manifest
        try:
            return [] if name is None else self.store.manifests.read_index(name)
        except CorruptedError:
            return []

    def check_indexes(self, state: State, entries: Sequence[IndexManifestEntry]) -> None:
        """Compare index files with the store, and with the data files of a snapshot."""
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
        for found in entry.deletion_ranges or ():
            of = rows.get((entry.bucket_ref, found.data_file))
            if of is None:
                yield f"a deletion vector is of {found.data_file}, which the snapshot does not have", "stray-vector"
            elif found.cardinality is not None and found.cardinality > of:
                yield f"{found.cardinality} of {of} rows of {found.data_file} are deleted", "wrong-vector"
            if found.offset + found.length > entry.file_size:
                yield f"the vector of {found.data_file} ends behind the file", "wrong-vector"

    def check_vectors(self, state: State) -> None:
        """Decode the deletion vectors of a snapshot: checksums, numbers of rows, positions."""
        rows = {(e.bucket_ref, e.file.file_name): e.file.row_count for e in state.live}
        for entry in self._indexes(state):
            if entry.index_type != DELETION_VECTORS:
                continue
            path = self.store.index_path(entry)
            for found in entry.deletion_ranges or ():
                try:
                    vector = read_vectors(self.store.io, path, [found])[found.data_file]
                except (PaimonError, OSError) as error:
                    self._found("unreadable-vector", path, str(error))
                    continue
                of = rows.get((entry.bucket_ref, found.data_file))
                if of is not None and vector.cardinality and int(vector.positions().max()) >= of:
                    message = f"rows behind the {of} of {found.data_file} are deleted"
                    self._found("wrong-vector", path, message)

    def _found(self, kind: str, path: str, message: str, data_file: str | None = None) -> None:
        self.faults.append(Fault(kind, path, message, data_file))
