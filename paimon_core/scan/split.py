"""Splits: the files that one reader reads, as a value that can be sent to other processes."""

import pickle
from dataclasses import dataclass

from paimon_core.deletion.vector_files import StoredVector
from paimon_core.errors import InvalidInputError
from paimon_core.manifest.bucket import InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta

_MAGIC = b"PSP2"


@dataclass(frozen=True, slots=True)
class DataSplit(InCountedBucket):
    """Files of one (partition, bucket) at one snapshot.

    ``raw_convertible``: the files are read one after another, without a merge. Otherwise the files are whole sections,
    in key order, and are merged. ``vectors`` are the locations of the files' deletion vectors; their rows are left out
    before a merge. ``part`` (row positions; `None`: all rows) makes the split a part of a single raw file: the row
    groups whose middle row is in ``part``. The parts of a file hold each row once.
    """

    snapshot_id: int
    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    raw_convertible: bool
    vectors: tuple[StoredVector, ...] = ()
    part: range | None = None

    def __post_init__(self) -> None:
        if self.part is not None and (len(self.files) != 1 or not self.raw_convertible):
            raise InvalidInputError(
                f"part {self.part} of {len(self.files)} files: only a split of one raw file can have a part"
            )

    @property
    def row_count(self) -> int:
        """Number of rows stored in the files; deletes and merges return fewer rows.

        For a part of a file this is an estimate; the sum over all parts is exact.
        """
        return sum(f.row_count for f in self.files) if self.part is None else len(self.part)

    @property
    def certain_row_count(self) -> int | None:
        """Number of rows that a read without a filter returns; `None`: unknown before the read."""
        deleted = [vector.range.cardinality for vector in self.vectors]
        if not self.raw_convertible or self.part is not None or None in deleted:
            return None
        return self.row_count - sum(d for d in deleted if d is not None)

    @property
    def size(self) -> int:
        """Bytes of the files; for a part of a file, in proportion to its rows."""
        return sum(part_size(f, self.part) for f in self.files)

    def to_bytes(self) -> bytes:
        """Return the split as bytes for :meth:`from_bytes`."""
        return _MAGIC + pickle.dumps(self, protocol=5)

    @staticmethod
    def from_bytes(data: bytes) -> "DataSplit":
        """Return the split that :meth:`to_bytes` wrote as ``data``.

        REQUIRES: the bytes come from a trusted source, because they are unpickled. Raises InvalidInputError if they are
        not a split.
        """
        split = pickle.loads(data[4:]) if data[:4] == _MAGIC else None
        if not isinstance(split, DataSplit):
            raise InvalidInputError("these bytes are not a DataSplit: pass the result of DataSplit.to_bytes()")
        return split


def part_size(file: DataFileMeta, part: range | None) -> int:
    """Return the bytes of a part (row positions) of a file, in proportion to its rows; `None`: the whole file."""
    if part is None:
        return file.file_size
    return file.file_size * part.stop // file.row_count - file.file_size * part.start // file.row_count
