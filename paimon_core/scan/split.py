"""What one reader must read: a value that travels."""

import pickle
from dataclasses import dataclass

from paimon_core.deletion.files import StoredVector
from paimon_core.errors import InvalidInputError
from paimon_core.manifest.bucket import InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta

_MAGIC = b"PSP2"


@dataclass(frozen=True, slots=True)
class DataSplit(InCountedBucket):
    """Files of one (partition, bucket) at one snapshot.

    ``raw_convertible``: the files may be read one after another, with no merge and no row to drop. Otherwise they are
    whole sections, in key order, to be merged. ``vectors``: where the deletion vectors of the files lie, of those that
    have one; their rows are left out before anything else. ``part``, positions of rows, makes the split one of several
    parts of a single raw file: it holds the row groups whose middle row lies in ``part``, so those of all parts of the
    file hold each row once. ``None``: all rows of all files.
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
            raise InvalidInputError("only a split of one file that is read without merging can be a part of its file")

    @property
    def row_count(self) -> int:
        """Rows stored in the files; some may be deleted, and after a merge there may be fewer.

        A part of a file holds about so many: only all parts together have exactly the sum.
        """
        return sum(f.row_count for f in self.files) if self.part is None else len(self.part)

    @property
    def certain_row_count(self) -> int | None:
        """How many rows a read without a filter gives; None where that is only known by reading."""
        deleted = [vector.range.cardinality for vector in self.vectors]
        if not self.raw_convertible or self.part is not None or None in deleted:
            return None
        return self.row_count - sum(d for d in deleted if d is not None)

    @property
    def size(self) -> int:
        """Bytes of the files; of a part of a file its share of them, by rows."""
        return sum(part_size(f, self.part) for f in self.files)

    def to_bytes(self) -> bytes:
        """This split as bytes, for engines that carry nothing else; only :meth:`from_bytes` reads them."""
        return _MAGIC + pickle.dumps(self, protocol=5)

    @staticmethod
    def from_bytes(data: bytes) -> "DataSplit":
        """The inverse of :meth:`to_bytes`. Give it bytes you made yourself only: they are unpickled."""
        if data[:4] != _MAGIC:
            raise InvalidInputError("these bytes are no DataSplit: expected what DataSplit.to_bytes() gives")
        split = pickle.loads(data[4:])
        assert isinstance(split, DataSplit)
        return split


def part_size(file: DataFileMeta, part: range | None) -> int:
    """Return the bytes of these rows of a file, as if all rows were alike; of all rows where ``part`` is ``None``."""
    if part is None:
        return file.file_size
    return file.file_size * part.stop // file.row_count - file.file_size * part.start // file.row_count
