"""The features that this engine does not support yet, with the reason for the refusal (format 16).

A feature is refused on *read* if rows could be wrong without it. A feature is refused on *write* if the written rows
could be wrong, or could break a guarantee that other readers rely on. Options that affect only speed, or the time of
expiry, automatic tags and compaction, are accepted. An option without effect warns (``paimon_core.options``).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from paimon_core.errors import UnsupportedError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.format import WRITABLE_FORMATS, codec_fault, first_not_held
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.file_index import split_index_option
from paimon_core.options.option import Options
from paimon_core.options.per_field import split_field_option
from paimon_core.schema.blob_columns import in_managed_files, managed_blob_fault
from paimon_core.schema.iceberg import not_describable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import (
    BINARY_ROOTS,
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

QUERY_AUTH = "query-auth.enabled"
"""The option of a table whose rows and columns a server may hide."""
_SPECIAL_ROOTS = {"BLOB", "GEOMETRY", "GEOGRAPHY"}
_SCAN_MODES = {
    "default", "full", "latest-full", "latest", "from-timestamp", "from-snapshot", "from-snapshot-full",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """A missing feature: a function that detects its use in a schema, and the reason for the refusal."""

    detect: Callable[[TableSchema], str | None]
    """Returns the part of a schema that needs the feature, as text for a message; `None`: no part needs it."""
    reason: str
    read: bool = False
    write: bool = False
    problem: str = "is not supported yet"


def check_readable(schema: TableSchema, *, permitted: bool = False) -> None:
    """Raise UnsupportedError naming the first missing feature without which reads could return wrong rows.

    ``permitted``: True if the server of the catalog has said which rows and columns may be seen.
    """
    for limit in LIMITS:
        if limit is _QUERY_AUTH and permitted:
            continue
        if limit.read and (feature := limit.detect(schema)):
            raise UnsupportedError(f"cannot read this table: {feature} {limit.problem} ({limit.reason})")


def check_writable(schema: TableSchema) -> None:
    """Raise UnsupportedError naming the first missing feature without which writes could break the table."""
    for limit in LIMITS:
        if limit.write and (feature := limit.detect(schema)):
            raise UnsupportedError(f"cannot write to this table: {feature} {limit.problem} ({limit.reason})")


def check_alterable(old: TableSchema, new: TableSchema) -> None:
    """Raise UnsupportedError naming the first missing feature that writes need after a change, but not before it.

    So a table of another engine that needs the feature already can still be changed.
    """
    for limit in LIMITS:
        if limit.write and (feature := limit.detect(new)) and limit.detect(old) is None:
            raise UnsupportedError(
                f"cannot change the table, which could no longer be written: {feature} {limit.problem} ({limit.reason})"
            )


# ---- functions that detect the use of a feature in a schema


def _shown(key: str, value: object) -> str:
    return f"option {key!r} = {str(value)!r}"


def _value(schema: TableSchema, key: str) -> Any:
    value = schema.options.value(ALL_OPTIONS[key])
    return value.lower() if isinstance(value, str) else value


def _on(key: str) -> Callable[[TableSchema], str | None]:
    return lambda schema: _shown(key, "true") if _value(schema, key) is True else None


def _is(key: str, value: str) -> Callable[[TableSchema], str | None]:
    return lambda schema: _shown(key, value) if _text(schema, key) == value else None


def _is_not(key: str, *values: str) -> Callable[[TableSchema], str | None]:
    return lambda schema: None if (value := _text(schema, key)) in values else _shown(key, value)


def _csv_with_key(schema: TableSchema) -> str | None:
    return _is("file.format", "csv")(schema) if schema.primary_keys else None


def _text(schema: TableSchema, key: str) -> str:
    """Return an option as normalised text, because other engines may store values that no parser knows."""
    default = ALL_OPTIONS[key].default if key in ALL_OPTIONS else ""
    return schema.options.get(key, str(default)).strip().lower().replace("_", "-")


def _first(is_meant: Callable[[str], bool]) -> Callable[[TableSchema], str | None]:
    """Return a function that finds the first option with a key for which ``is_meant`` is True."""
    return lambda schema: next((_shown(k, v) for k, v in schema.options.items() if is_meant(k)), None)


def _set(*keys: str) -> Callable[[TableSchema], str | None]:
    return _first(keys.__contains__)


def _matches(pattern: str) -> Callable[[TableSchema], str | None]:
    return _first(lambda key: re.fullmatch(pattern, key) is not None)


def _merge_on_read(schema: TableSchema) -> str | None:
    return _on("postpone.merge-on-read")(schema) if schema.bucket == -2 else None


def _lookup_without_effect(schema: TableSchema) -> str | None:
    full = _text(schema, "changelog-producer") == "full-compaction"
    shown = _on("force-lookup")(schema) if full and schema.primary_keys else None
    return None if shown is None else f"{shown} with 'changelog-producer' = 'full-compaction'"


def _cross_partition(schema: TableSchema) -> str | None:
    return "a primary key that lacks a partition column" if schema.is_cross_partition and schema.bucket != -1 else None


def _binary_partition(schema: TableSchema) -> str | None:
    """Find a partition column whose legacy directory names do not contain its values."""
    names = schema.partition_keys if _value(schema, "partition.legacy-name") else ()
    types = ((name, schema.field(name).type) for name in names)
    found = (f"partition column {name} of type {t}" for name, t in types if getattr(t, "root", "") in BINARY_ROOTS)
    return next(found, None)


def _format_of_some_files(schema: TableSchema) -> str | None:
    """Find an unsupported format of a level or of changelog files."""
    level, changelog = "file.format.per.level", "changelog-file.format"
    if not {name.lower() for name in _value(schema, level).values()} <= {*WRITABLE_FORMATS} - {"csv"}:
        return _shown(level, schema.options[level])
    if _value(schema, changelog) not in (None, *WRITABLE_FORMATS):
        return _shown(changelog, schema.options[changelog])
    return None


def _formats(schema: TableSchema) -> list[str]:
    """Return the names of the formats of new files, without formats that this engine does not write."""
    named = (_text(schema, "file.format"), *_value(schema, "file.format.per.level").values())
    changelog = _value(schema, "changelog-file.format")
    chosen = [name.lower() for name in (*named, changelog) if name]
    return [name for name in dict.fromkeys(chosen) if name in WRITABLE_FORMATS]


def _column_elsewhere(schema: TableSchema) -> str | None:
    """Find a column that files of a format cannot hold."""
    columns = [f for f in schema.fields if not is_blob_type(f.type)]
    found = ((first_not_held(name, columns), name) for name in _formats(schema))
    return next((f"column {f.name} of type {f.type} in {name} files" for f, name in found if f is not None), None)


def _unknown_codec(schema: TableSchema) -> str | None:
    """Find a codec that files of a format cannot have. An unknown format is found by other functions."""
    main, formats = _text(schema, "file.format"), _value(schema, "file.format.per.level")
    codecs = _value(schema, "file.compression.per.level").items()
    uses = [("file.compression", _value(schema, "file.compression"), name) for name in (main, *formats.values())]
    uses += [("file.compression.per.level", codec, formats.get(level, main)) for level, codec in codecs]
    changelog = "changelog-file.compression"
    uses += [(changelog, _value(schema, changelog), _value(schema, "changelog-file.format") or main)]
    known = [(key, codec, name.lower()) for key, codec, name in uses if codec is not None]
    written = [use for use in known if use[2] in WRITABLE_FORMATS]
    faults = ((codec_fault(name, key, codec, schema.options), name) for key, codec, name in written)
    manifest = "manifest.compression"
    of_manifests = codec_fault("avro", manifest, _value(schema, manifest), Options({}))
    found = (f"{_shown(*fault)} for {name} files" for fault, name in (*faults, (of_manifests, "avro")) if fault)
    return next(found, None)


def _is_unknown_index(key: str) -> bool:
    return split_index_option(key) not in (None, *FILE_INDEXES)


def _is_field_default(key: str) -> bool:
    return (split_field_option(key) or ("", ""))[1] == "default-value"


def _done_otherwise(schema: TableSchema) -> str | None:
    key = "partition.mark-done-action"
    if _value(schema, "partition.end-input-to-done") and _value(schema, key) != ALL_OPTIONS[key].default:
        return _shown(key, schema.options[key])
    return None


def _shredded_maps(schema: TableSchema) -> str | None:
    """Find maps whose entries are stored in separate columns."""
    for key, value in schema.options.items():
        if "shared-shredding" in key or (key.endswith(".map.storage-layout") and value.strip().lower() != "default"):
            return _shown(key, value)
    return None


def _special_column(schema: TableSchema) -> str | None:
    """Find a column, or a part of a column, of an unsupported type. Columns of blobs are supported."""
    with_blobs = schema.primary_keys or _on("data-evolution.enabled")(schema) is not None
    fields = tuple(f for f in schema.fields if not (with_blobs and is_blob_type(f.type)))
    special = ((path, t) for path, t in types_in(fields) if _is_special(t))
    return next((f"column {path} of type {t}" for path, t in special), None)


def _managed_blobs(is_meant: Callable[[TableSchema], bool]) -> Callable[[TableSchema], str | None]:
    """Return a function that finds a column of managed blobs if ``is_meant`` is True for the schema."""

    def find(schema: TableSchema) -> str | None:
        managed = in_managed_files(schema)
        columns = (f"column {f.name} of type {f.type}" for f in schema.fields if f.name in managed)
        found = next((f"{column} under a primary key" for column in columns), None)
        return found if found is not None and is_meant(schema) else None

    return find


def _no_blobs(schema: TableSchema) -> str | None:
    """Find columns without blobs that an option names as blobs, as other engines may store them."""
    other_columns = {f.name for f in schema.fields if not is_blob_type(f.type)}
    for key in ("blob-field", "blob-descriptor-field", "blob-view-field"):
        name = next((name for name in schema.options.value(ALL_OPTIONS[key]) if name in other_columns), None)
        if name is not None:
            return _shown(key, name)
    return None


def _variant_elsewhere(schema: TableSchema) -> str | None:
    """Find a VARIANT column in a table with a file format other than Parquet."""
    per_level = schema.options.value(ALL_OPTIONS["file.format.per.level"]).values()
    other_formats = {name.lower() for name in (_text(schema, "file.format"), *per_level)} - {"parquet"}
    variants = (path for path, t in types_in(schema.fields) if isinstance(t, AtomicType) and t.root == "VARIANT")
    column = next(variants, None)
    return (
        f"column {column} of type VARIANT in {min(other_formats)} files"
        if other_formats and column is not None
        else None
    )


def _is_special(t: DataType) -> bool:
    return isinstance(t, VectorType) or (isinstance(t, AtomicType) and t.root in _SPECIAL_ROOTS)


def types_in(fields: tuple[DataField, ...], prefix: str = "") -> Iterator[tuple[str, DataType]]:
    """Yield the path and the type of all columns, and of all parts of nested columns."""
    for field in fields:
        yield from _parts(field.type, prefix + field.name)


def _parts(t: DataType, path: str) -> Iterator[tuple[str, DataType]]:
    yield path, t
    match t:
        case RowType():
            yield from types_in(t.fields, path + ".")
        case ArrayType() | MultisetType():
            yield from _parts(t.element, path + ".element")
        case MapType():
            yield from _parts(t.key, path + ".key")
            yield from _parts(t.value, path + ".value")


_QUERY_AUTH = Limit(
    _on(QUERY_AUTH),
    "a server decides which rows and columns may be seen: open the table by its name in the REST catalog",
    read=True,
    problem="is not supported for a table that is opened by its path",
)

LIMITS: tuple[Limit, ...] = (
    Limit(_is_not("type", "table"), "only tables of type 'table' are Paimon tables inside", read=True, write=True),
    Limit(_special_column, "its values cannot be represented", read=True, write=True),
    Limit(_variant_elsewhere, "only Parquet files hold variants", write=True),
    Limit(_column_elsewhere, "its values cannot be restored from text", write=True),
    # merging
    Limit(
        _lookup_without_effect,
        "readers would rely on lookups that compactions for this producer do not make, and would lose values",
        read=True,
        write=True,
    ),
    Limit(
        _on("sequence.snapshot-ordering"),
        "rows are ordered by the snapshot that adds them, which a compaction before the commit does not know",
        write=True,
    ),
    Limit(
        _is("write.sequence-number-init-mode", "snapshot"),
        "every commit would have to store the highest sequence number in the snapshot",
        write=True,
    ),
    Limit(_on("pk-clustering-override"), "files are not sorted by key", read=True, write=True),
    Limit(_on("primary-key.nullable"), "new keys must be NOT NULL", write=True),
    # partitions and buckets
    Limit(
        _binary_partition,
        "the names of its directories would not contain the values: set 'partition.legacy-name' to 'false'",
        write=True,
        problem="is not supported",
    ),
    Limit(_merge_on_read, "only rows already in their bucket can be shown", read=True),
    Limit(_cross_partition, "two partitions could get the same key; 'bucket' = '-1' prevents this", write=True),
    # columns and rows outside of the data files
    Limit(_no_blobs, "only blobs, and arrays and maps of blobs, are stored in separate files", write=True),
    Limit(_on("blob-as-descriptor"), "descriptors are only read: writes take the bytes of blobs", write=True),
    Limit(
        _set("blob-external-storage-field", "blob-external-storage-path"),
        "newer releases of the Java engine no longer store blobs in this way: use 'blob-descriptor-field'",
        write=True,
    ),
    Limit(
        _managed_blobs(lambda schema: schema.bucket == -2),
        "only rows whose bucket is known can have blobs: use 'bucket' = '-1'",
        write=True,
    ),
    Limit(
        _managed_blobs(lambda schema: bool(managed_blob_fault(schema))),
        "no engine writes blobs with these options; rows could lose their blobs",
        write=True,
    ),
    Limit(_set("vector-field"), "these columns are stored in separate files", read=True, write=True),
    Limit(_shredded_maps, "the layout of the files is unknown", read=True, write=True),
    Limit(_matches(r"chain-table\..*"), "rows come from several branches", read=True, write=True),
    Limit(_set("scan.fallback-branch", "scan.primary-branch"), "rows come from several branches", read=True),
    _QUERY_AUTH,
    Limit(_first(_is_field_default), "declare the default with the column instead", write=True),
    # indexes
    Limit(
        _first(_is_unknown_index),
        f"new files would lack the index; this engine writes {', '.join(FILE_INDEXES)}",
        write=True,
    ),
    Limit(_matches(r"global-index\..*|pk-.*\.index\.columns"), "new rows would be missing from the index", write=True),
    # files and metadata
    Limit(
        _is_not("file.format", *WRITABLE_FORMATS),
        f"this engine writes {', '.join(WRITABLE_FORMATS)}",
        write=True,
        problem="is not supported",
    ),
    Limit(_csv_with_key, "csv files do not separate keys from values", read=True, write=True),
    Limit(
        _format_of_some_files,
        f"this engine writes {', '.join(WRITABLE_FORMATS)}; no csv for a level",
        write=True,
        problem="is not supported",
    ),
    Limit(
        _unknown_codec,
        "'zstd' and 'none' are codecs of every format",
        write=True,
        problem="is not supported",
    ),
    Limit(_is_not("manifest.format", "", "avro"), "manifests are written as avro", write=True),
    Limit(_set("data-file.external-paths"), "files are written below the table only", write=True),
    Limit(not_describable, "Iceberg metadata cannot describe it, or its readers would show wrong rows", write=True),
    Limit(_on("partition.timestamp-format.strict"), "partition values would not be checked", write=True),
    Limit(_done_otherwise, "partitions are marked as done by 'success-file' alone", write=True),
    Limit(_set("commit.callbacks"), "callbacks are classes of another language", write=True),
    Limit(_set("commit.strict-mode.last-safe-snapshot"), "commits of other users would not be checked", write=True),
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
"""All missing features, the most fundamental first. An error names the first feature that a schema needs."""
