"""What one writer did to one bucket, on its way to the committer."""

import io
from dataclasses import dataclass
from typing import Final

import fastavro

from paimon_core.errors import InvalidInputError
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.records import DATA_FILE_SCHEMA, data_file_of, plain, record_of_data_file

__all__ = ["CommitMessage"]

_MAGIC: Final = b"PCM\x01"
_LISTS: Final = (
    "new_files",
    "deleted_files",
    "changelog_files",
    "compact_before",
    "compact_after",
    "compact_changelog",
)


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """New and deleted files of one bucket, and what compaction replaced there; changelog files of both."""

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFileMeta, ...] = ()
    deleted_files: tuple[DataFileMeta, ...] = ()
    changelog_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    compact_changelog: tuple[DataFileMeta, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not any(getattr(self, name) for name in _LISTS)

    def to_bytes(self) -> bytes:
        """For engines that carry nothing but bytes; what `from_bytes` of the same version of this engine reads."""
        sink = io.BytesIO(_MAGIC)
        sink.seek(len(_MAGIC))
        files = {name: [record_of_data_file(file) for file in getattr(self, name)] for name in _LISTS}
        place = {"partition": self.partition, "bucket": self.bucket, "total_buckets": self.total_buckets}
        fastavro.schemaless_writer(sink, _SCHEMA, {**place, **files})
        return sink.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> "CommitMessage":
        """The inverse of `to_bytes`; safe on bytes of unknown origin. Raises InvalidInputError for other bytes."""
        if not data.startswith(_MAGIC):
            raise InvalidInputError("these bytes are no CommitMessage: expected what CommitMessage.to_bytes() gives")
        source = io.BytesIO(data)
        source.seek(len(_MAGIC))
        try:
            record = fastavro.schemaless_reader(source, _SCHEMA)
            files = {name: tuple(map(data_file_of, record[name])) for name in _LISTS}
        except Exception as cause:
            raise InvalidInputError(f"a CommitMessage was cut or damaged on its way: {cause!r}") from cause
        if source.read(1):
            raise InvalidInputError("a CommitMessage was damaged on its way: there are bytes behind its end")
        return CommitMessage(record["partition"], record["bucket"], record["total_buckets"], **files)


_FILES = [plain(DATA_FILE_SCHEMA), *[DATA_FILE_SCHEMA["name"]] * (len(_LISTS) - 1)]  # defined once, then by name
_SCHEMA: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "commit_message",
        "fields": [
            {"name": "partition", "type": "bytes"},
            {"name": "bucket", "type": "int"},
            {"name": "total_buckets", "type": "int"},
            *({"name": n, "type": {"type": "array", "items": file}} for n, file in zip(_LISTS, _FILES, strict=True)),
        ],
    }
)
