"""What one writer did to one bucket, on its way to the committer."""

import io
from dataclasses import dataclass
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

_MAGIC: Final = b"PCM\x02"
_FILES: Final = (
    "new_files",
    "deleted_files",
    "changelog_files",
    "compact_before",
    "compact_after",
    "compact_changelog",
)
_INDEXES: Final = ("new_indexes", "deleted_indexes", "compact_new_indexes", "compact_deleted_indexes")


@dataclass(frozen=True, slots=True)
class CommitMessage(InCountedBucket):
    """New and deleted files of one bucket, and what compaction replaced there; changelog and index files of both.

    Of a deleted file of deletion vectors those ranges are named that new ones, or the rewriting of their data files,
    take the place of: whoever replaces a file with a vector, or its vector, names the one that is known.
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
    compact_beside: tuple[str, ...] = ()
    """Names of files above level 0 that a compaction which looks keys up knew of and left, near the keys it changed."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not any(getattr(self, name) for name in (*_FILES, *_INDEXES))

    def to_bytes(self) -> bytes:
        """For engines that carry nothing but bytes; what `from_bytes` of the same version of this engine reads."""
        sink = io.BytesIO(_MAGIC)
        sink.seek(len(_MAGIC))
        files = {name: [DATA_FILE.to_record(file) for file in getattr(self, name)] for name in _FILES}
        indexes = {name: [INDEX_ENTRY.to_record(entry) for entry in getattr(self, name)] for name in _INDEXES}
        names = {"compact_beside": list(self.compact_beside)}
        fastavro.schemaless_writer(sink, _SCHEMA, {**self.location._asdict(), **files, **indexes, **names})
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
            lists: dict[str, Any] = {name: tuple(map(DATA_FILE.from_record, record[name])) for name in _FILES}
            lists |= {name: tuple(map(INDEX_ENTRY.from_record, record[name])) for name in _INDEXES}
            lists["compact_beside"] = tuple(record["compact_beside"])
        except Exception as cause:
            raise InvalidInputError(f"a CommitMessage was cut or damaged on its way: {cause!r}") from cause
        if source.read(1):
            raise InvalidInputError("a CommitMessage was damaged on its way: there are bytes behind its end")
        return CommitMessage(record["partition"], record["bucket"], record["total_buckets"], **lists)


def _lists(names: tuple[str, ...], item: Any) -> list[dict[str, Any]]:
    """Fields that are lists of one record: defined once, then by name."""
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
            *_lists(_FILES, DATA_FILE_SCHEMA),
            *_lists(_INDEXES, INDEX_MANIFEST_SCHEMA),
            {"name": "compact_beside", "type": {"type": "array", "items": "string"}},
        ],
    }
)
