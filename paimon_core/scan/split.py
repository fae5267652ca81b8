"""Splits: the files that one reader reads, as a value that can be sent to other processes."""

import io
from dataclasses import dataclass
from typing import Any, Final

import fastavro

from paimon_core.deletion.vector_files import StoredVector
from paimon_core.errors import InvalidInputError
from paimon_core.manifest.bucket import InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import DeletionRange
from paimon_core.manifest.serializers import DATA_FILE, DATA_FILE_SCHEMA, plain

_MAGIC: Final = b"PSP3"


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
        """Return the split as bytes for :meth:`from_bytes` of the same version."""
        sink = io.BytesIO()
        sink.write(_MAGIC)
        vectors = [
            (v.path, v.range.data_file, v.range.offset, v.range.length, v.range.cardinality) for v in self.vectors
        ]
        record = {
            **{name: getattr(self, name) for name in _PLAIN},
            "files": list(map(DATA_FILE.to_record, self.files)),
            "vectors": [dict(zip(_VECTOR, vector, strict=True)) for vector in vectors],
            "part": None if self.part is None else [self.part.start, self.part.stop, self.part.step],
        }
        fastavro.schemaless_writer(sink, _SCHEMA, record)
        return sink.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> "DataSplit":
        """Return the split that :meth:`to_bytes` wrote as ``data``. Forged bytes run no code, but may name any file.

        Raises InvalidInputError for other bytes.
        """
        if not data.startswith(_MAGIC):
            raise InvalidInputError("these bytes are not a DataSplit: pass the result of DataSplit.to_bytes()")
        source = io.BytesIO(data)
        source.seek(len(_MAGIC))
        try:
            record: Any = fastavro.schemaless_reader(source, _SCHEMA, None)
            files = tuple(map(DATA_FILE.from_record, record["files"]))
            vectors = tuple(
                StoredVector(v["path"], DeletionRange(*(v[name] for name in _VECTOR[1:]))) for v in record["vectors"]
            )
            part = None if record["part"] is None else range(*record["part"])
            split = DataSplit(files=files, vectors=vectors, part=part, **{name: record[name] for name in _PLAIN})
        except Exception as cause:
            raise InvalidInputError(f"a DataSplit was truncated or damaged in transit: {cause!r}") from cause
        if source.read(1):
            raise InvalidInputError("a DataSplit was damaged in transit: there are bytes after its end")
        return split


_PLAIN: Final = ("snapshot_id", "partition", "bucket", "total_buckets", "raw_convertible")
_VECTOR: Final = ("path", "data_file", "offset", "length", "cardinality")
_SCHEMA: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "data_split",
        "fields": [
            {"name": "snapshot_id", "type": "long"},
            {"name": "partition", "type": "bytes"},
            {"name": "bucket", "type": "int"},
            {"name": "total_buckets", "type": "int"},
            {"name": "raw_convertible", "type": "boolean"},
            {"name": "files", "type": {"type": "array", "items": plain(DATA_FILE_SCHEMA)}},
            {
                "name": "vectors",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "vector",
                        "fields": [
                            {"name": "path", "type": "string"},
                            {"name": "data_file", "type": "string"},
                            {"name": "offset", "type": "long"},
                            {"name": "length", "type": "long"},
                            {"name": "cardinality", "type": ["null", "long"]},
                        ],
                    },
                },
            },
            {"name": "part", "type": ["null", {"type": "array", "items": "long"}]},
        ],
    }
)


def part_size(file: DataFileMeta, part: range | None) -> int:
    """Return the bytes of a part (row positions) of a file, in proportion to its rows; `None`: the whole file."""
    if part is None:
        return file.file_size
    return file.file_size * part.stop // file.row_count - file.file_size * part.start // file.row_count
