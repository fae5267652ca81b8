"""The JSON files of Iceberg metadata: ``v<n>.metadata.json``, and the hint that names the newest one."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.iceberg.manifest_files import SPEC_ID, Record
from paimon_core.schema.iceberg import (
    FIRST_PARTITION_ID,
    FORMAT_VERSION,
    highest_id,
    iceberg_schema,
    partition_fields,
)
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.types.json_text import parse_object

_HINT: Final = "version-hint.text"
_VERSION: Final = re.compile(r"v(\d+)\.metadata\.json")
_IDENTITY: Final = "paimon-commit-identity"  # newer Java engines write and compare it
_FINGERPRINT: Final = "paimon-snapshot"
_TOP_LEVEL: Final = "paimon-level"


@dataclass(frozen=True, slots=True)
class Metadata:
    """The content of one version of the metadata, as far as this engine uses it."""

    uuid: str
    location: str
    last_column_id: int
    snapshots: tuple[Record, ...]
    """The snapshots as in the JSON, oldest first."""
    refs: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict)
    """The whole JSON."""

    @staticmethod
    def from_json(data: bytes, path: str) -> "Metadata":
        """Parse a file of any engine. Raises CorruptedError naming ``path``."""
        try:
            document = parse_object(data)
            snapshots = tuple(sorted(document.get("snapshots") or (), key=lambda record: int(record["snapshot-id"])))
            if not all(isinstance(record.get("summary") or {}, dict) for record in snapshots):
                raise ValueError("the summary of a snapshot is not an object")
            if not isinstance(document.get("refs") or {}, dict):
                raise ValueError("'refs' is not an object")
            return Metadata(
                str(document["table-uuid"]),
                str(document["location"]),
                int(document["last-column-id"]),
                snapshots,
                document.get("refs") or {},
                document,
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise CorruptedError(f"Iceberg metadata {path} cannot be read: {error}") from error

    def with_snapshots(self, snapshots: Sequence[Record], refs: Mapping[str, Any]) -> bytes:
        """Return the file with other snapshots and references."""
        return _dump({**self.document, "snapshots": list(snapshots), "refs": dict(refs)})


def dump(
    former: Metadata, schemas: Sequence[TableSchema], snapshots: Sequence[Record], refs: Mapping[str, Any], now: int
) -> bytes:
    """Return a file of metadata.

    Args:
        former: the previous metadata, whose uuid, location and highest column id are kept.
        schemas: the schema versions to list; the last one is the current one.
        snapshots: the snapshots as in the JSON, oldest first; the last one is the current one.
        refs: the tags as Iceberg's references.
        now: the time in epoch milliseconds.
    """
    listed, newest = [iceberg_schema(schema) for schema in schemas], snapshots[-1]
    fields = partition_fields(schemas[-1])
    document = {
        "format-version": FORMAT_VERSION,
        "table-uuid": former.uuid,
        "location": former.location,
        "last-sequence-number": newest["sequence-number"],
        "last-updated-ms": max(now, newest["timestamp-ms"]),
        "last-column-id": max(former.last_column_id, *map(highest_id, listed)),
        "schemas": listed,
        "current-schema-id": schemas[-1].id,
        "partition-specs": [{"spec-id": SPEC_ID, "fields": fields}],
        "default-spec-id": SPEC_ID,
        "last-partition-id": FIRST_PARTITION_ID - 1 + len(fields),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "snapshots": list(snapshots),
        "current-snapshot-id": newest["snapshot-id"],
        "properties": {},
        "refs": dict(refs),
    }
    return _dump(document)


def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


# ---- snapshots in the metadata


def snapshot_record(
    snapshot: Snapshot, parent: int | None, manifest_list: str, operation: str, counts: Mapping[str, int]
) -> Record:
    """Return a snapshot as Iceberg's JSON. Its summary has ``counts`` and the identity of the snapshot."""
    identity = snapshot.uuid or f"{snapshot.commit_user}:{snapshot.commit_identifier}:{snapshot.time_millis}"
    summary = {name: str(count) for name, count in counts.items()}
    record = {
        "sequence-number": snapshot.id,
        "snapshot-id": snapshot.id,
        "timestamp-ms": snapshot.time_millis,
        "summary": {"operation": operation, **summary, _IDENTITY: identity, _FINGERPRINT: snapshot.fingerprint},
        "manifest-list": manifest_list,
        "schema-id": snapshot.schema_id,
    }
    return record if parent is None else {**record, "parent-snapshot-id": parent}


def with_level(record: Record, level: int | None) -> Record:
    """Return a snapshot of the metadata that records the level of its files. ``level``: `None`: all levels."""
    return {**record, "summary": {**record["summary"], _TOP_LEVEL: _shown_level(level)}}


def is_of(record: Record, snapshot: Snapshot | None, level: int | None) -> bool:
    """Return True if a snapshot of the metadata shows exactly the files of ``snapshot`` at this level."""
    summary = record.get("summary") or {}
    if snapshot is None or record.get("snapshot-id") != snapshot.id or "manifest-list" not in record:
        return False
    return bool(summary.get(_FINGERPRINT) == snapshot.fingerprint and summary.get(_TOP_LEVEL) == _shown_level(level))


def _shown_level(level: int | None) -> str:
    return "all" if level is None else str(level)


# ---- files


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """The versions of the metadata in a directory."""

    io: FileIO
    directory: str

    def path(self, version: int) -> str:
        """Return the path of a version."""
        return join(self.directory, f"v{version}.metadata.json")

    def versions(self) -> list[int]:
        """Return the versions that exist, ascending, by listing the directory."""
        names = (_VERSION.fullmatch(file.name) for file in self.io.list(self.directory) if not file.is_directory)
        return sorted(int(name[1]) for name in names if name)

    def read(self, version: int) -> Metadata | None:
        """Return a version; `None`: it does not exist. Raises CorruptedError."""
        path = self.path(version)
        try:
            return Metadata.from_json(self.io.read(path), path)
        except FileNotFoundError:
            return None

    def hint(self) -> int | None:
        """Return the version that the hint names; `None`: no readable hint."""
        try:
            return int(self.io.read(join(self.directory, _HINT)))
        except (FileNotFoundError, ValueError):
            return None

    def write_hint(self, version: int) -> None:
        """Replace the hint."""
        self.io.write(join(self.directory, _HINT), str(version).encode())
