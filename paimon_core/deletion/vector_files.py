"""Index files of deletion vectors: a version byte, then consecutive vectors, addressed by ranges (format 8.3)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.entry import ADD
from paimon_core.manifest.index_entry import DELETION_VECTORS, DeletionRange, IndexManifestEntry

_VERSION: Final = b"\1"
_FRAME: Final = 8  # bytes of size and checksum, which the length of the 32-bit form excludes


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A reference to the stored deletion vector of a data file: the index file, and the range in it."""

    path: str = field(repr=False)
    range: DeletionRange

    @property
    def data_file(self) -> str:
        """The name of the data file."""
        return self.range.data_file


@dataclass(frozen=True, slots=True)
class VectorWriter:
    """A writer of the deletion vectors of buckets.

    ``new_name`` returns the unique part of file names. ``target_size`` (bytes): a file that exceeds it is closed and a
    new file begun; ``None``: a bucket has a single file, which replaces its previous file.
    """

    io: FileIO
    new_name: Callable[[], str]
    bitmap64: bool = False
    target_size: int | None = None

    def write(
        self, directory: str, bucket: BucketRef, vectors: Mapping[str, DeletionVector]
    ) -> tuple[IndexManifestEntry, ...]:
        """Write the vectors of data files to new index files; return their entries.

        Empty vectors are left out; without any vector no file is written. After an error no file remains.

        Args:
            directory: the directory of the index files.
            bucket: the bucket of the data files.
            vectors: deletion vectors by the name of their data file.
        """
        written: list[IndexManifestEntry] = []
        name = self.new_name()
        try:
            for ranges, data in self._files(vectors):
                file_name = f"index-{name}-{len(written)}"
                entry = IndexManifestEntry(
                    ADD, *bucket, DELETION_VECTORS, file_name, len(data), len(ranges), tuple(ranges)
                )
                written.append(entry)
                self.io.write(join(directory, file_name), data)
        except BaseException:
            for entry in written:
                self.io.delete(join(directory, entry.file_name))
            raise
        return tuple(written)

    def _files(self, vectors: Mapping[str, DeletionVector]) -> Iterator[tuple[list[DeletionRange], bytes]]:
        ranges: list[DeletionRange] = []
        data = bytearray(_VERSION)
        for data_file, vector in vectors.items():
            if not vector.cardinality:
                continue
            stored = vector.to_bytes(self.bitmap64)
            length = len(stored) if self.bitmap64 else len(stored) - _FRAME
            ranges.append(DeletionRange(data_file, len(data), length, vector.cardinality))
            data += stored
            if self.target_size is not None and len(data) > self.target_size:
                yield ranges, bytes(data)
                ranges, data = [], bytearray(_VERSION)
        if ranges:
            yield ranges, bytes(data)


def load_vectors(io: FileIO, stored: Iterable[StoredVector]) -> dict[str, DeletionVector]:
    """Return the vectors by data file name; each index file is read once. Raises the errors of `read_vectors`."""
    files: dict[str, list[DeletionRange]] = {}
    for vector in stored:
        files.setdefault(vector.path, []).append(vector.range)
    return {name: v for path, ranges in files.items() for name, v in read_vectors(io, path, ranges).items()}


def read_vectors(io: FileIO, path: str, ranges: Iterable[DeletionRange]) -> dict[str, DeletionVector]:
    """Return the vectors at these ranges of an index file, by data file; one read covers all ranges.

    Raises CorruptedError, which names the file, if the file is missing, truncated or corrupt.
    """
    in_order = sorted(ranges, key=lambda r: r.offset)
    if not in_order:
        return {}
    first, last = in_order[0].offset, max(r.offset + r.length for r in in_order) + _FRAME
    try:
        with io.open(path) as source:
            size = source.size()
            for r in in_order:  # checked first: the numbers may be absurd
                if not 0 <= r.offset <= r.offset + r.length <= size:
                    raise CorruptedError(
                        f"{path}, of {r.data_file}: a deletion vector of {r.length} bytes at byte {r.offset} is not "
                        f"within its file of {size} bytes"
                    )
            source.seek(first)
            data = memoryview(source.read(min(last, size) - first))
    except FileNotFoundError as missing:
        raise CorruptedError(
            f"deletion vectors {path} are missing: their snapshot expired while it was read, or they were deleted"
        ) from missing
    return {r.data_file: _vector(data[r.offset - first :], r, f"{path}, of {r.data_file}") for r in in_order}


def _vector(data: memoryview, stored: DeletionRange, where: str) -> DeletionVector:
    size = int.from_bytes(data[:4], "big")
    if stored.length not in (size, size + _FRAME):
        raise CorruptedError(f"{where}: a deletion vector has {size} bytes, but its entry says {stored.length}")
    vector = DeletionVector.from_bytes(bytes(data[: size + _FRAME]), where)
    if stored.cardinality is not None and vector.cardinality != stored.cardinality:
        raise CorruptedError(
            f"{where}: a deletion vector deletes {vector.cardinality} rows, but its entry says {stored.cardinality}"
        )
    return vector
