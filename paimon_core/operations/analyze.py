"""Statistics of a table and its columns for query optimisers: one JSON file per ANALYZE (format 10.4)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.changes import Changes
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitUnknownError, CorruptedError, UnsupportedError
from paimon_core.fileio.fileio import join
from paimon_core.snapshot.snapshot import CommitKind, Snapshot, load_object
from paimon_core.store.file_store import FileStore, fresh_name
from paimon_core.store.layout import statistics_directory
from paimon_core.types.datatype import AtomicType, DataType

_EPOCH = date(1970, 1, 1)
_COLUMN_KEYS: Final = {
    "colId": "column_id",
    "distinctCount": "distinct_count",
    "min": "min",
    "max": "max",
    "nullCount": "null_count",
    "avgLen": "avg_len",
    "maxLen": "max_len",
}
_TABLE_KEYS: Final = {
    "snapshotId": "snapshot_id",
    "schemaId": "schema_id",
    "mergedRecordCount": "record_count",
    "mergedRecordSize": "size",
}
_TEXTS = {"min", "max"}


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of one column; `None`: unknown.

    ``min`` and ``max`` are texts in the form of `to_text`. Lengths are in bytes.
    """

    column_id: int
    distinct_count: int | None = None
    min: str | None = None
    max: str | None = None
    null_count: int | None = None
    avg_len: int | None = None
    max_len: int | None = None


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """The statistics of the rows that one snapshot shows: number of rows, bytes, and column statistics by name."""

    snapshot_id: int
    schema_id: int
    record_count: int | None = None
    size: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return the content of the file."""
        columns = {name: _present(column, _COLUMN_KEYS) for name, column in self.columns.items()}
        return json.dumps({**_present(self, _TABLE_KEYS), "colStats": columns}, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes, path: str) -> "TableStatistics":
        """Parse the content of a file. Raises CorruptedError naming ``path``."""
        record = load_object(data, path)
        columns = record.get("colStats") or {}
        if not isinstance(columns, dict) or not all(isinstance(column, dict) for column in columns.values()):
            raise CorruptedError(f"{path}: 'colStats' must be an object of objects, found {columns!r}")
        statistics = {name: ColumnStatistics(**_values(column, _COLUMN_KEYS, path)) for name, column in columns.items()}
        return cls(**_values(record, _TABLE_KEYS, path), columns=statistics)


def read_statistics(store: FileStore, snapshot: Snapshot) -> TableStatistics | None:
    """Return the statistics that a snapshot refers to, for its own or earlier rows; `None` without statistics.

    A user who may not see all rows and values sees no statistics.
    """
    if snapshot.statistics is None or store.is_restricted:
        return None
    path = join(statistics_directory(store.root), snapshot.statistics)
    return TableStatistics.from_json(store.io.read(path), path)


def commit_statistics(store: FileStore, statistics: TableStatistics) -> Snapshot | None:
    """Publish statistics as a snapshot of kind ANALYZE and return it; `None` if the table has no snapshot.

    Raises CommitConflictError if the table's schema differs from the schema of the statistics.
    """
    publisher = Publisher(store)
    if store.snapshots.latest_id() is None:
        return None
    name = f"stat-{fresh_name()}-0"
    path = join(statistics_directory(store.root), name)
    store.io.write(path, statistics.to_json())
    try:
        store.sync([path])
        return _publish(publisher, name, statistics.schema_id)
    except CommitUnknownError:
        raise  # the snapshot may refer to the file
    except Exception:
        with best_effort("deleting statistics that were not committed"):
            store.io.delete(path)
        raise


def _publish(publisher: Publisher, statistics: str, schema_id: int) -> Snapshot | None:
    """Publish the statistics file of this name in a snapshot with the same rows; `None` without a snapshot."""
    store = publisher.store

    def decide(base: Snapshot | None) -> Changes | None:
        latest = store.schemas.latest()
        if latest is not None and latest.id != schema_id:
            raise publisher.conflict(
                f"the statistics belong to schema {schema_id}, but the table has schema {latest.id}"
            )
        changes = Changes(CommitKind.ANALYZE, (), built_on_base=True, statistics=statistics)
        return None if base is None else changes

    return publisher.publish(publisher.identity(), decide, CommitKind.ANALYZE)


def to_text(value: Any, kind: DataType) -> str:
    """Return a minimum or maximum as text, as other engines write it.

    Args:
        value: a Python value: bool, int, float, Decimal, str, date, time or datetime.
        kind: the type of its column.

    Raises UnsupportedError for a type without this text form.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            text = value.replace(tzinfo=None).isoformat(" ")
            return text[:-3] if value.microsecond and value.microsecond % 1000 == 0 else text
        case date():
            return str((value - _EPOCH).days)
        case time():
            return str(((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000)
        case float():
            return _java_float(value)
        case Decimal():
            return f"{value:f}"
        case int() | str():
            return str(value)
    raise UnsupportedError(f"statistics have no text form for values of type {kind}")


def from_text(text: str, kind: DataType) -> Any:
    """Return the value of a text from `to_text`; `None` for a type without text form, and for an invalid text."""
    root = kind.root if isinstance(kind, AtomicType) else ""
    try:
        match root:
            case "BOOLEAN":
                return {"true": True, "false": False}.get(text)
            case "TINYINT" | "SMALLINT" | "INT" | "INTEGER" | "BIGINT":
                return int(text)
            case "FLOAT" | "DOUBLE":
                return float(text)
            case "DECIMAL":
                return Decimal(text)
            case "DATE":
                return _EPOCH + timedelta(days=int(text))
            case "CHAR" | "VARCHAR" | "STRING":
                return text
        if root.startswith("TIMESTAMP"):
            return datetime.fromisoformat(text[:26])
    except (ValueError, ArithmeticError):
        return None
    return None


def _java_float(value: float) -> str:
    """Return a number in the format of Java's ``Double.toString``."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value) if "e" not in repr(value) else f"{Decimal(repr(value)):f}"
    digits, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _present(value: Any, keys: Mapping[str, str]) -> dict[str, Any]:
    values = {key: getattr(value, name) for key, name in keys.items()}
    return {key: item for key, item in values.items() if item is not None}


def _values(record: Mapping[str, Any], keys: Mapping[str, str], path: str) -> dict[str, Any]:
    values = {name: record.get(key) for key, name in keys.items()}
    for key, name in keys.items():
        expected = str if name in _TEXTS else int
        value = values[name]
        if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
            raise CorruptedError(f"{path}: {key!r} must be {expected.__name__}, found {value!r}")
    missing = [key for key in ("snapshotId", "schemaId", "colId") if key in keys and values[keys[key]] is None]
    if missing:
        raise CorruptedError(f"{path}: {missing[0]!r} is missing")
    return values
