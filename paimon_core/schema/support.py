"""The features that this engine does not support yet, by name and with the reason of the refusal (format 16).

A feature is refused on *read* if rows could be wrong without it. A feature is refused on *write* if the written rows
could be wrong, or could break a guarantee that other readers rely on. Options that affect only speed or the time of
expiry, automatic tags and compaction are accepted. An option without effect warns (``paimon_core.options``).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from paimon_core.errors import UnsupportedError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.file_index import split_index_option
from paimon_core.options.per_field import split_field_option
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    is_blob_type,
)

DATA_FORMATS = ("parquet", "orc", "avro", "json", "csv")
_SPECIAL_ROOTS = {"BLOB", "GEOMETRY", "GEOGRAPHY"}
_SCAN_MODES = {
    "default", "full", "latest-full", "latest", "from-timestamp", "from-snapshot", "from-snapshot-full",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """A missing feature: how a schema shows that it needs the feature, and the reason why it is refused."""

    found: Callable[[TableSchema], str | None]
    """A function to the part of the schema that needs the feature, in a user's words; `None`: no part needs it."""
    reason: str
    read: bool = False
    write: bool = False


def check_readable(schema: TableSchema) -> None:
    """Raise UnsupportedError naming the first feature without which reading could show wrong rows."""
    for limit in LIMITS:
        if limit.read and (found := limit.found(schema)):
            raise UnsupportedError(f"cannot read this table: {found} is not supported yet ({limit.reason})")


def check_writable(schema: TableSchema) -> None:
    """Raise UnsupportedError naming the first feature without which writing would break the table's promises."""
    for limit in LIMITS:
        if limit.write and (found := limit.found(schema)):
            raise UnsupportedError(f"cannot write to this table: {found} is not supported yet ({limit.reason})")


# ---- functions that find the need of a feature in a schema


def _shown(key: str, value: object) -> str:
    return f"option {key!r} = {str(value)!r}"


def _value(schema: TableSchema, key: str) -> Any:
    value = schema.options.value(ALL_OPTIONS[key])
    return value.lower() if isinstance(value, str) else value


def _on(key: str) -> Callable[[TableSchema], str | None]:
    return lambda schema: _shown(key, "true") if _value(schema, key) is True else None


def _set(*keys: str) -> Callable[[TableSchema], str | None]:
    def found(schema: TableSchema) -> str | None:
        return next((_shown(key, schema.options[key]) for key in keys if key in schema.options), None)

    return found


def _is(key: str, *values: str, keyed: bool = False) -> Callable[[TableSchema], str | None]:
    """Return a function that finds the option with one of ``values``; ``keyed``: only in tables with a primary key."""

    def found(schema: TableSchema) -> str | None:
        value = _text(schema, key)
        return _shown(key, value) if value in values and (schema.primary_keys or not keyed) else None

    return found


def _is_not(key: str, *values: str, keyed: bool = False) -> Callable[[TableSchema], str | None]:
    def found(schema: TableSchema) -> str | None:
        value = _text(schema, key)
        return None if value in values or (keyed and not schema.primary_keys) else _shown(key, value)

    return found


def _text(schema: TableSchema, key: str) -> str:
    """Return an option as text, for options to which other engines add values."""
    default = ALL_OPTIONS[key].default if key in ALL_OPTIONS else ""
    return schema.options.get(key, str(default)).strip().lower().replace("_", "-")


def _matches(pattern: str) -> Callable[[TableSchema], str | None]:
    wanted = re.compile(pattern)

    def found(schema: TableSchema) -> str | None:
        return next((_shown(key, value) for key, value in schema.options.items() if wanted.fullmatch(key)), None)

    return found


def _merge_on_read(schema: TableSchema) -> str | None:
    return _on("postpone.merge-on-read")(schema) if schema.bucket == -2 else None


def _looks_up_in_vain(schema: TableSchema) -> str | None:
    full = _text(schema, "changelog-producer") == "full-compaction"
    shown = _on("force-lookup")(schema) if full and schema.primary_keys else None
    return None if shown is None else f"{shown} with 'changelog-producer' = 'full-compaction'"


def _cross_partition(schema: TableSchema) -> str | None:
    return "a primary key that lacks a partition column" if schema.is_cross_partition and schema.bucket != -1 else None


def _format_of_some_files(schema: TableSchema) -> str | None:
    """Find an unknown format of a level or of changelog files."""
    level, changelog = "file.format.per.level", "changelog-file.format"
    if not {name.lower() for name in _value(schema, level).values()} <= {*DATA_FORMATS} - {"csv"}:
        return _shown(level, schema.options[level])
    return None if _value(schema, changelog) in (None, *DATA_FORMATS) else _shown(changelog, schema.options[changelog])


def _file_index(schema: TableSchema) -> str | None:
    """Find a file index of an unknown kind."""
    known = (None, *FILE_INDEXES)
    return next((_shown(k, v) for k, v in schema.options.items() if split_index_option(k) not in known), None)


def _field_default(schema: TableSchema) -> str | None:
    for key, value in schema.options.items():
        found = split_field_option(key)
        if found is not None and found[1] == "default-value":
            return _shown(key, value)
    return None


def _shredded_maps(schema: TableSchema) -> str | None:
    """Find maps whose entries are stored in columns of their own."""
    for key, value in schema.options.items():
        if "shared-shredding" in key or (key.endswith(".map.storage-layout") and value.strip().lower() != "default"):
            return _shown(key, value)
    return None


def _special_column(schema: TableSchema) -> str | None:
    """Find a column, or a part of one, of a type that is not supported. Top-level BLOB columns are supported."""
    evolving = _on("data-evolution.enabled")(schema) is not None
    rest = tuple(f for f in schema.fields if not (evolving and is_blob_type(f.type)))
    special = ((path, t) for path, t in _types(rest) if _is_special(t))
    return next((f"column {path} of type {t}" for path, t in special), None)


def _no_blobs(schema: TableSchema) -> str | None:
    """Find columns that an option names as blobs and that have another type, as other engines may store them."""
    others = {f.name for f in schema.fields if not is_blob_type(f.type)}
    named = schema.options.value(ALL_OPTIONS["blob-field"])
    return next((_shown("blob-field", name) for name in named if name in others), None)


def _variant_elsewhere(schema: TableSchema) -> str | None:
    """Find a VARIANT column in a table with a file format other than Parquet."""
    per_level = schema.options.value(ALL_OPTIONS["file.format.per.level"]).values()
    others = {name.lower() for name in (_text(schema, "file.format"), *per_level)} - {"parquet"}
    variants = (path for path, t in _types(schema.fields) if isinstance(t, AtomicType) and t.root == "VARIANT")
    column = next(variants, None)
    return f"column {column} of type VARIANT in {min(others)} files" if others and column is not None else None


def _is_special(t: DataType) -> bool:
    return isinstance(t, VectorType) or (isinstance(t, AtomicType) and t.root in _SPECIAL_ROOTS)


def _types(fields: tuple[DataField, ...], prefix: str = "") -> Iterator[tuple[str, DataType]]:
    for field in fields:
        yield from _parts(field.type, prefix + field.name)


def _parts(t: DataType, path: str) -> Iterator[tuple[str, DataType]]:
    yield path, t
    match t:
        case RowType():
            yield from _types(t.fields, path + ".")
        case ArrayType() | MultisetType():
            yield from _parts(t.element, path + ".element")
        case MapType():
            yield from _parts(t.key, path + ".key")
            yield from _parts(t.value, path + ".value")


LIMITS: tuple[Limit, ...] = (
    Limit(_is_not("type", "table"), "only tables of type 'table' are Paimon tables inside", read=True, write=True),
    Limit(_special_column, "its values cannot be represented", read=True, write=True),
    Limit(_variant_elsewhere, "only Parquet files hold variants", write=True),
    # merging
    Limit(
        _looks_up_in_vain,
        "readers would count on look-ups that such a producer's compactions do not make, and lose values",
        read=True,
        write=True,
    ),
    Limit(_on("sequence.snapshot-ordering"), "rows are ordered by the snapshot that added them", read=True, write=True),
    Limit(
        _is("write.sequence-number-init-mode", "snapshot"),
        "every commit would have to keep the highest sequence number in the snapshot",
        write=True,
    ),
    Limit(_on("pk-clustering-override"), "files are not sorted by key", read=True, write=True),
    Limit(_on("primary-key.nullable"), "keys are expected to be NOT NULL", read=True, write=True),
    # buckets
    Limit(_merge_on_read, "only rows already in their bucket can be shown", read=True),
    Limit(_cross_partition, "a key could come to live in two partitions; 'bucket' = '-1' keeps count", write=True),
    # columns and rows beside the files
    Limit(_no_blobs, "only columns of type BLOB lie in files of their own", write=True),
    Limit(_on("blob-as-descriptor"), "blobs are their bytes, not places of them", read=True, write=True),
    Limit(
        _set("blob-descriptor-field", "blob-external-storage-field", "blob-view-field"),
        "the values of these columns lie elsewhere",
        read=True,
        write=True,
    ),
    Limit(_set("vector-field"), "these columns lie in files of their own", read=True, write=True),
    Limit(_shredded_maps, "the layout of the files is not known", read=True, write=True),
    Limit(_matches(r"chain-table\..*"), "rows come from several branches", read=True, write=True),
    Limit(_set("scan.fallback-branch", "scan.primary-branch"), "rows come from several branches", read=True),
    Limit(_on("query-auth.enabled"), "a server decides which rows and columns may be seen", read=True),
    Limit(_field_default, "declare the default with the column instead", write=True),
    # indexes
    Limit(_file_index, f"new files would have no such index; there are {', '.join(FILE_INDEXES)}", write=True),
    Limit(_matches(r"global-index\..*|pk-.*\.index\.columns"), "new rows would be missing from the index", write=True),
    # files and metadata
    Limit(_is_not("file.format", *DATA_FORMATS), f"files are written as {', '.join(DATA_FORMATS)}", write=True),
    Limit(_is("file.format", "csv", keyed=True), "keys would have to be told apart from values", read=True, write=True),
    Limit(_format_of_some_files, f"files are written as {', '.join(DATA_FORMATS)}", write=True),
    Limit(_is_not("manifest.format", "", "avro"), "manifests are written as avro", write=True),
    Limit(_set("data-file.external-paths"), "files are written below the table only", write=True),
    Limit(_is_not("metadata.iceberg.storage", "", "disabled"), "Iceberg metadata would go stale", write=True),
    Limit(_on("partition.timestamp-format.strict"), "partition values would not be checked", write=True),
    Limit(_set("commit.callbacks"), "callbacks are classes of another language", write=True),
    Limit(_set("commit.strict-mode.last-safe-snapshot"), "commits of others would not be checked", write=True),
    # rows of a read
    Limit(
        _set("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"),
        "only whole snapshots can be read",
        read=True,
    ),
    Limit(
        _set("scan.bucket", "scan.file-creation-time-millis", "scan.creation-time-millis"),
        "only whole snapshots can be read",
        read=True,
    ),
    Limit(_is_not("scan.mode", *_SCAN_MODES), "only whole snapshots can be read", read=True),
)
"""All missing features, the most fundamental first: an error names the first one that a schema needs."""
