"""The message from a writer to the committer: the files that the writer added to a bucket or deleted from it."""

import io
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro

from paimon_core.errors import InvalidInputError
from paimon_core.manifest.bucket import InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.manifest.serializers import (
    DATA_FILE,
    DATA_FILE_SCHEMA,
    INDEX_ENTRY,
    INDEX_MANIFEST_SCHEMA,
    plain,
)

_MAGIC: Final = b"PCM\x04"
_FILES: Final = (
    "new_files",
    "deleted_files",
    "changelog_files",
    "compact_before",
    "compact_after",
    "compact_changelog",
)
_INDEXES: Final = ("new_indexes", "deleted_indexes", "compact_new_indexes", "compact_deleted_indexes")
_NAMES: Final = ("compact_lookup_files", "managed_blobs")
_MEASURED: Final = {"rows_received": "long", "write_seconds": "double", "compact_seconds": "double"}


@dataclass(frozen=True, slots=True)
class CommitMessage(InCountedBucket):
    """The changes of one bucket by one writer: its new and deleted files, and the files that it compacted.

    A deleted deletion vector file lists only the ranges whose vectors are replaced, or whose data files are rewritten.
    A writer that replaces a vector, or a data file with a vector, lists the range that it has read.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFileMeta, ...] = ()
    deleted_files: tuple[DataFileMeta, ...] = ()
    changelog_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    compact_changelog: tuple[DataFileMeta, ...] = ()
    new_indexes: tuple[IndexManifestEntry, ...] = ()
    deleted_indexes: tuple[IndexManifestEntry, ...] = ()
    compact_new_indexes: tuple[IndexManifestEntry, ...] = ()
    compact_deleted_indexes: tuple[IndexManifestEntry, ...] = ()
    compact_lookup_files: tuple[str, ...] = ()
    """Names of files above level 0 that a lookup compaction read and did not replace, near the keys that it changed."""
    managed_blobs: tuple[str, ...] = ()
    """Names of the files of blobs to which the new files refer, and which this writer wrote (format 11.4)."""
    rows_received: int = field(default=0, compare=False)
    """Rows that the bucket's writer received. Like the times, it is for metrics, and messages compare without it."""
    write_seconds: float = field(default=0.0, compare=False)
    """Seconds that the writer spent on rows and files. A single message of the writer has all of its seconds."""
    compact_seconds: float = field(default=0.0, compare=False)
    """Seconds spent on compactions of the bucket."""

    @property
    def is_empty(self) -> bool:
        """True if the message has no file."""
        return not any(getattr(self, name) for name in (*_FILES, *_INDEXES))

    def to_bytes(self) -> bytes:
        """Return the message as bytes, to send it to the committer. `from_bytes` of the same version reads them."""
        sink = io.BytesIO(_MAGIC)
        sink.seek(len(_MAGIC))
        files = {name: [DATA_FILE.to_record(file) for file in getattr(self, name)] for name in _FILES}
        indexes = {name: [INDEX_ENTRY.to_record(entry) for entry in getattr(self, name)] for name in _INDEXES}
        names = {name: list(getattr(self, name)) for name in _NAMES}
        measured = {name: getattr(self, name) for name in _MEASURED}
        record = {**self.location._asdict(), **files, **indexes, **names, **measured}
        fastavro.schemaless_writer(sink, _SCHEMA, record)
        return sink.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> "CommitMessage":
        """Return the message that `to_bytes` encoded as ``data``; safe on bytes of unknown origin.

        Raises InvalidInputError for other bytes.
        """
        if not data.startswith(_MAGIC):
            raise InvalidInputError("these bytes are not a CommitMessage: expected the result of to_bytes()")
        source = io.BytesIO(data)
        source.seek(len(_MAGIC))
        try:
            record = fastavro.schemaless_reader(source, _SCHEMA)
            lists: dict[str, Any] = {name: tuple(map(DATA_FILE.from_record, record[name])) for name in _FILES}
            lists |= {name: tuple(map(INDEX_ENTRY.from_record, record[name])) for name in _INDEXES}
            lists |= {name: tuple(record[name]) for name in _NAMES}
            lists |= {name: record[name] for name in _MEASURED}
        except Exception as cause:
            raise InvalidInputError(f"a CommitMessage was truncated or damaged in transit: {cause!r}") from cause
        if source.read(1):
            raise InvalidInputError("a CommitMessage was damaged on its way: there are bytes after its end")
        return CommitMessage(record["partition"], record["bucket"], record["total_buckets"], **lists)


def _list_fields(names: tuple[str, ...], item: Any) -> list[dict[str, Any]]:
    """Return schemas of fields that are lists of the record ``item``, which Avro defines only once, then by name."""
    name = ".".join(item[part] for part in ("namespace", "name") if part in item)
    kinds = [plain(item), *[name] * (len(names) - 1)]
    return [{"name": n, "type": {"type": "array", "items": k}} for n, k in zip(names, kinds, strict=True)]


_SCHEMA: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "commit_message",
        "fields": [
            {"name": "partition", "type": "bytes"},
            {"name": "bucket", "type": "int"},
            {"name": "total_buckets", "type": "int"},
            *_list_fields(_FILES, DATA_FILE_SCHEMA),
            *_list_fields(_INDEXES, INDEX_MANIFEST_SCHEMA),
            *({"name": name, "type": {"type": "array", "items": "string"}} for name in _NAMES),
            *({"name": name, "type": kind} for name, kind in _MEASURED.items()),
        ],
    }
)
