"""A snapshot: one published state of a table, in the file ``snapshot/snapshot-<id>`` (format 2)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.fileio.paths import is_file_name
from paimon_core.types.json_text import parse_json

NO_WATERMARK: Final = -(2**63)
"""The value of ``watermark`` in the file of a snapshot without a watermark."""

LONGEST: Final = 2**63
"""One more than the largest number that a file may hold."""

_LARGE: Final = LONGEST // 1000  # the largest time in milliseconds that can be converted to microseconds
BATCH_COMMIT_IDENTIFIER: Final = LONGEST - 1
"""The commit identifier of every batch commit; streams count upwards instead."""


class CommitKind:
    """The kind of change from one snapshot to the next."""

    APPEND: Final = "APPEND"
    COMPACT: Final = "COMPACT"
    OVERWRITE: Final = "OVERWRITE"
    ANALYZE: Final = "ANALYZE"


class Operation:
    """The logical operation of a commit, by the names of the Java engine, which refuses other names."""

    WRITE: Final = "WRITE"
    OVERWRITE: Final = "OVERWRITE"
    DELETE: Final = "DELETE"
    TRUNCATE: Final = "TRUNCATE"
    UPDATE: Final = "UPDATE"
    MERGE: Final = "MERGE"
    CREATE: Final = "CREATE_TABLE_AS_SELECT"
    REPLACE: Final = "REPLACE_TABLE_AS_SELECT"
    CREATE_OR_REPLACE: Final = "CREATE_OR_REPLACE_TABLE_AS_SELECT"


NEWEST_VERSION: Final = 3
"""The newest version of the format of snapshot files that this engine reads.

In newer versions the same keys may have another meaning.
"""

STATEMENT = "paimon.row-level-statement"
"""The property that marks the snapshot of a DELETE, UPDATE or MERGE INTO on a table without a primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot, with its fields in the order of the file. `None`: the key is absent.

    ``extra`` holds the keys of the file that this engine does not know. ``total_record_count`` and
    ``delta_record_count`` are `None` only in files of Paimon versions before 0.4. A new snapshot copies
    ``next_row_id`` and ``watermark`` from its predecessor. ``parent_delta_manifest_list`` is the fingerprint of the
    snapshot that this one was built on; only this engine writes it.

    Examples:
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> [(snapshot.id, snapshot.commit_kind, snapshot.delta_record_count) for snapshot in table.snapshots()]
        [(1, 'APPEND', 2), (2, 'APPEND', 1)]
    """

    version: int = 3
    uuid: str | None = None
    id: int
    schema_id: int
    base_manifest_list: str
    base_manifest_list_size: int | None = None
    delta_manifest_list: str
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    commit_user: str
    writer_version: str | None = None
    commit_identifier: int
    commit_kind: str
    time_millis: int
    log_offsets: Mapping[str, int] | None = field(default=None, hash=False)
    total_record_count: int | None = None
    delta_record_count: int | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = field(default=None, hash=False)
    next_row_id: int | None = 0
    operation: str | None = None
    parent_delta_manifest_list: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def fingerprint(self) -> str:
        """Return a text that differs for another snapshot that reuses the id after a rollback."""
        return self.delta_manifest_list

    def was_built_on(self, other: "Snapshot | None") -> bool:
        """Return False if this snapshot provably was not built on ``other``; `None`: it had no predecessor.

        The result is True for a snapshot of an engine that does not record the parent.
        """
        parent = self.parent_delta_manifest_list
        return parent is None or (other is not None and parent == other.fingerprint)

    def __repr__(self) -> str:
        """Return the most important fields; `to_json` has every field."""
        total, delta = self.total_record_count, self.delta_record_count
        rows = "" if total is None else f", {total:,} rows stored" + ("" if delta is None else f" ({delta:+,})")
        return f"Snapshot({self.id}, {self.commit_kind}, {_utc(self.time_millis)}{rows}, schema {self.schema_id})"

    def __post_init__(self) -> None:
        """Raise CorruptedError for a number that no reader would accept, such as the id after the largest one."""
        if not -LONGEST <= self.commit_identifier < LONGEST:
            raise InvalidInputError(
                f"commit identifier {self.commit_identifier} is not from {-LONGEST} to {LONGEST - 1}"
            )
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None and not -_LARGE < value < _LARGE:
                _check_value(f"snapshot {self.id}, which was not written", name, value)

    def to_json(self) -> bytes:
        """Return the content of the file, in the layout of the Java writer. Empty properties are omitted."""
        record = {key: getattr(self, name) for name, (key, _, _) in _KEYS.items()}
        if not record["properties"]:
            del record["properties"]
        present = {key: value for key, value in record.items() if value is not None}
        return json.dumps({**present, **self.extra}, indent=2, separators=(",", " : "), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes, path: str, snapshot_id: int | None = None) -> "Snapshot":
        """Parse the content of a snapshot or tag file; a JSON null is an absent key.

        Args:
            data: the content.
            path: the file, for error messages.
            snapshot_id: the id in the file's name, which must equal the id in the content; `None`: not checked.

        Raises CorruptedError naming ``path``, UnsupportedError for a newer version of the format.
        """
        return cls.from_record(load_object(data, path), path, snapshot_id)

    @classmethod
    def from_record(cls, record: dict[str, Any], path: str, snapshot_id: int | None = None) -> "Snapshot":
        """Return the snapshot of a parsed file.

        Args:
            record: the keys and values of the file; keys that no snapshot has become `extra`.
            path: the file, for error messages.
            snapshot_id: the id in the file's name, as for `from_json`.

        Raises the errors of `from_json`.
        """
        values: dict[str, Any] = {}
        for name, (key, kind, required) in _KEYS.items():
            values[name] = value = record.pop(key, None)
            if value is not None:
                is_large = isinstance(value, int) and not -_LARGE < value < _LARGE
                if is_large or type(value) is not kind or name in _FILES:
                    _check_value(path, name, value)
            elif required:
                raise CorruptedError(f"{path}: a snapshot needs {key!r}, and it is missing")
        if values["version"] is None:
            values["version"] = 1  # the file is older than the key
        if values["version"] > NEWEST_VERSION:
            raise UnsupportedError(
                f"{path}: a snapshot of version {values['version']}, but this engine reads versions up to "
                f"{NEWEST_VERSION}: upgrade it"
            )
        if snapshot_id is not None and values["id"] != snapshot_id:
            raise CorruptedError(f"{path}: 'id' is {values['id']}, but the file belongs to snapshot {snapshot_id}")
        return cls(**values, extra=record)


def _utc(epoch_millis: int) -> str:
    """Return an instant as text in UTC, or as a number for years that Python does not support."""
    try:
        return f"{datetime(1970, 1, 1) + timedelta(milliseconds=epoch_millis):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{epoch_millis} ms"


def _check_value(path: str, name: str, value: object) -> None:
    key, kind, _ = _KEYS[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise CorruptedError(f"{path}: {key!r} must be {_KIND_NAMES[kind]}, found {value!r}")
    if name in _FILES and not is_file_name(str(value)):
        raise CorruptedError(f"{path}: {key!r} must be the name of a file, found {value!r}")
    most = _LARGE if name == "time_millis" else LONGEST
    if isinstance(value, int) and not -most <= value < most:
        raise CorruptedError(f"{path}: {key!r} must be from {-most} to {most - 1}, found {value}")


def load_object(data: bytes, path: str) -> dict[str, Any]:
    """Return the JSON object in a metadata file. Raises CorruptedError for any other content."""
    try:
        record = parse_json(data)
    except ValueError as error:
        raise CorruptedError(f"{path}: not JSON ({len(data)} bytes): {error}") from error
    if not isinstance(record, dict):
        raise CorruptedError(f"{path}: expected a JSON object, found {type(record).__name__}")
    return record


_KIND_NAMES = {int: "a whole number", str: "a string", dict: "an object"}
_OBJECTS = {"log_offsets", "properties"}
_FILES = {
    "base_manifest_list",
    "delta_manifest_list",
    "changelog_manifest_list",
    "index_manifest",
    "statistics",
    "parent_delta_manifest_list",
}
_STRINGS = {
    "uuid",
    "base_manifest_list",
    "delta_manifest_list",
    "changelog_manifest_list",
    "index_manifest",
    "commit_user",
    "writer_version",
    "commit_kind",
    "statistics",
    "operation",
    "parent_delta_manifest_list",
}
_REQUIRED = {
    "id",
    "schema_id",
    "base_manifest_list",
    "delta_manifest_list",
    "commit_user",
    "commit_identifier",
    "commit_kind",
    "time_millis",
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _kind(name: str) -> type:
    if name in _OBJECTS:
        return dict
    return str if name in _STRINGS else int


_KEYS: dict[str, tuple[str, type, bool]] = {
    f.name: (_camel(f.name), _kind(f.name), f.name in _REQUIRED) for f in fields(Snapshot) if f.name != "extra"
}
"""Per field name: key on disk, JSON type, and whether the key is required."""
_NUMBERS = [name for name, (_, kind, _) in _KEYS.items() if kind is int]
