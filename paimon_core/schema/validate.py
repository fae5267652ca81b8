"""The rules for schemas, checked when a schema is created and when it changes."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from paimon_core.errors import InvalidInputError, PaimonError, nearest_name
from paimon_core.fileindex.indexed_columns import indexed_columns
from paimon_core.format import WRITABLE_FORMATS, check_options
from paimon_core.format.blob_payload import check_map_keys
from paimon_core.format.stats import parse_mode
from paimon_core.merge import MERGE_ENGINES, engine_type, merge_engine
from paimon_core.merge.partial_update import sequence_groups
from paimon_core.merge.record_expire import RecordLevelExpire
from paimon_core.options import ALL_OPTIONS, check_known, warn_of_strays, warn_once
from paimon_core.options.families import USER_PREFIX
from paimon_core.options.file import BLOB_DESCRIPTOR_FIELD, BLOB_FIELD, BLOB_VIEW_FIELD, OF_OPENING
from paimon_core.options.file_index import stray_option
from paimon_core.options.option import Option, Options
from paimon_core.options.per_field import split_field_option, split_list
from paimon_core.schema.blob_columns import given_as_descriptors, in_managed_files, managed_blob_fault, stored_as_views
from paimon_core.schema.directives import with_directives
from paimon_core.schema.mutability import check_change
from paimon_core.schema.properties import check_table_options
from paimon_core.schema.read_rules import changed_rule
from paimon_core.schema.references import columns_in
from paimon_core.schema.schema import Schema
from paimon_core.schema.support import QUERY_AUTH, types_in
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    is_blob_type,
    is_nested,
    with_nullable,
)
from paimon_core.types.default import default_value
from paimon_core.types.system_fields import check_names
from paimon_core.variant.infer import adapts
from paimon_core.variant.layout import configured_layout, is_variant

_MODE_PER_LEVEL = "metadata.stats-mode.per.level"
_KEYLESS_ROOTS = {"VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"}
_POSITIONS = {
    "from-timestamp": ("scan.timestamp-millis", "scan.timestamp"),
    "from-snapshot": ("scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"),
    "from-snapshot-full": ("scan.snapshot-id",),
    "from-file-creation-time": ("scan.file-creation-time-millis",),
    "from-creation-timestamp": ("scan.creation-time-millis",),
    "incremental": ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"),
}
_OPENING_ONLY = {"path", "branch", *(option.key for option in OF_OPENING)}


def create(schema: Schema, now_millis: int) -> TableSchema:
    """Return the first version (id 0) of a schema, created at ``now_millis`` (epoch ms).

    Columns get ids, and the options ``primary-key`` and ``partition`` become keys. Primary key columns become NOT NULL.
    Bytes columns that ``blob-field`` names, or whose comment is ``__BLOB_FIELD``, become BLOB. Raises InvalidInputError
    for a schema that breaks a rule, UnsupportedError for another directive in a comment.
    """
    options = dict(schema.options)
    check_table_options(options, "the options of the new table")
    for option in OF_OPENING:
        check_change({}, option.key, options.get(option.key))
    primary_keys = _keys(schema.primary_keys, options, "primary-key")
    partition_keys = _keys(schema.partition_keys, options, "partition")
    if _flag(options, "auto-create"):
        raise InvalidInputError("option 'auto-create' must not be true for a new table")
    fields = with_directives(schema.data_fields, options)
    if not fields:
        raise InvalidInputError("a table needs at least one column")
    blobs = Options(options).value(BLOB_FIELD)
    fields = _with_blobs(fields, blobs)
    for option in (BLOB_DESCRIPTOR_FIELD, BLOB_VIEW_FIELD):
        fields = _with_references(fields, option, Options(options))
    check_case(field.name for field in fields)
    if not _flag(options, "primary-key.nullable"):
        fields = tuple(_not_null(field) if field.name in primary_keys else field for field in fields)
    numbered, highest = assign_ids(fields, 0)
    table_schema = TableSchema(
        0, numbered, highest, partition_keys, primary_keys, Options(options), schema.comment, now_millis
    )
    validate(table_schema)
    return table_schema


def validate(schema: TableSchema) -> None:
    """Refuse a new or changed schema that breaks a rule. Raises InvalidInputError."""
    for rule in _RULES:
        rule(schema)


def check_dynamic(schema: TableSchema, options: Mapping[str, str | None]) -> None:
    """Refuse dynamic options that are unknown, cannot be parsed, or change the meaning of the table's files.

    ``primary-key`` and ``partition`` may repeat the keys of the table. Raises InvalidInputError.
    """
    table_options = {key: value for key, value in options.items() if key not in _OPENING_ONLY}
    for key in table_options:
        if key.startswith(USER_PREFIX):
            raise InvalidInputError(
                f"option {key!r} is a property of tables: set it when you create or alter the table"
            )
    check_known({key: value or "" for key, value in table_options.items()}, "the options given")
    for key, keys in (("primary-key", schema.primary_keys), ("partition", schema.partition_keys)):
        text = table_options.pop(key, None)
        if text is not None and tuple(split_list(text)) != keys:
            raise InvalidInputError(f"option {key!r} is {text!r}, but the table has {', '.join(keys) or 'none'}")
    for key, value in table_options.items():
        if value == schema.options.get(key):
            continue
        check_change(schema.options, key, value)
        _check_fixed(schema, key, value)
        if value is not None and key in ALL_OPTIONS:
            Options({key: value}).value(ALL_OPTIONS[key])
        if value is not None:
            _check_columns_of(schema, key, value)
    given = schema.copy(table_options)
    rule = changed_rule(schema, given)
    if rule is not None:
        raise InvalidInputError(
            f"option {rule!r} cannot be changed for one read or write: files are read by the option under which they "
            "were committed; alter the table"
        )
    _check_scan(given)


def _check_fixed(schema: TableSchema, key: str, value: str | None) -> None:
    """Refuse a dynamic option that only ALTER TABLE may change."""
    if key == QUERY_AUTH:
        raise InvalidInputError(f"option {key!r} cannot be changed for one read or write: alter the table")
    if key == "bucket":
        raise InvalidInputError(
            f"option 'bucket' cannot be {value!r} for one read or write: the table has "
            f"{schema.options.get(key, '-1')}. Alter the table, then overwrite it"
        )


def warn_of_stored(schema: TableSchema, where: str) -> None:
    """Warn once about each stored option that names an unknown column or is an unknown member of a family.

    ``where``: the table, for the message. Other engines may store these options, so reads and writes continue.
    """
    warn_of_strays(schema.options, where)
    for key in schema.options:
        columns, _ = split_field_option(key) or ((), "")
        strange = next((column for column in columns if not schema.has_field(column)), None)
        if strange is not None:
            warn_once(f"option {key!r} of {where} names an unknown column {strange!r} and has no effect")


def check_case(names: Iterable[str]) -> None:
    """Refuse names that differ in case only, because SQL engines do not distinguish such columns."""
    names = list(names)
    spellings: dict[str, str] = {}
    for name in names:
        other = spellings.setdefault(name.lower(), name)
        if other != name:
            raise InvalidInputError(f"columns {other!r} and {name!r} differ only in case: rename one of them")


def _keys(keys: Sequence[str], options: dict[str, str], key: str) -> tuple[str, ...]:
    if isinstance(keys, str):
        raise InvalidInputError(f"the {key} columns must be a list of names, not the text {keys!r}")
    text = options.pop(key, None)
    if text is None:
        return tuple(keys)
    if keys:
        raise InvalidInputError(f"the {key} columns are given twice, as a list and as option {key!r}: remove one")
    return tuple(split_list(text))


def _not_null(field: DataField) -> DataField:
    return replace(field, type=with_nullable(field.type, False))


def _with_blobs(fields: tuple[DataField, ...], names: Sequence[str]) -> tuple[DataField, ...]:
    """Return the columns, with the bytes in the columns of ``names``, also in arrays and maps, as BLOB."""
    blobs = {f.name: blob for f in fields if (blob := _as_blob(f.type)) is not None}
    for name in names:
        if name not in blobs:
            raise InvalidInputError(
                f"option 'blob-field' names {name!r}, which is not a column of type BLOB or BYTES, nor an ARRAY or MAP "
                "of BLOB or BYTES"
            )
    return tuple(replace(f, type=blobs[f.name]) if f.name in names else f for f in fields)


def _with_references(
    fields: tuple[DataField, ...], option: Option[tuple[str, ...]], options: Options
) -> tuple[DataField, ...]:
    """Return the columns, with the columns that an option for references to blobs names as BLOB."""
    names, blobs = options.value(option), {f.name: f for f in fields if _is_bytes(f.type)}
    for name in names:
        if name not in blobs:
            raise InvalidInputError(
                f"option {option.key!r} names {name!r}, which is not a column of type BLOB or BYTES"
            )
    return tuple(replace(f, type=AtomicType("BLOB", f.type.nullable)) if f.name in names else f for f in fields)


def _is_bytes(t: DataType) -> bool:
    return isinstance(t, AtomicType) and t.root in (*BINARY_ROOTS, "BLOB")


def _as_blob(t: DataType) -> DataType | None:
    """Return a type with BLOB in place of bytes; `None`: it is no type of bytes, nor an ARRAY or MAP of bytes."""
    match t:
        case AtomicType(root=root) if root in (*BINARY_ROOTS, "BLOB"):
            return AtomicType("BLOB", t.nullable)
        case ArrayType(element=AtomicType()) if (blob := _as_blob(t.element)) is not None:
            return replace(t, element=blob)
        case MapType(value=AtomicType()) if (blob := _as_blob(t.value)) is not None:
            return replace(t, value=blob)
    return None


def _value(options: Options, key: str) -> Any:
    return options.value(ALL_OPTIONS[key])


def _flag(options: Mapping[str, str], key: str) -> bool:
    return bool(_value(Options(options), key))


def _repeated(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name, count in Counter(names).items() if count > 1)


def _no_key(t: DataType) -> bool:
    return is_nested(t) or (isinstance(t, AtomicType) and t.root in _KEYLESS_ROOTS)


# ---- the rules


def _check_columns(schema: TableSchema) -> None:
    if any(not field.name.strip() for field in schema.fields):
        raise InvalidInputError("a column name must not be blank")
    if repeated := _repeated(field.name for field in schema.fields):
        raise InvalidInputError(f"column names {repeated} appear more than once")
    check_names(field.name for field in schema.fields)


def _check_keys(schema: TableSchema) -> None:
    for what, keys in (("primary key", schema.primary_keys), ("partition", schema.partition_keys)):
        if repeated := _repeated(keys):
            raise InvalidInputError(f"{what} column {repeated} is named more than once")
        for key in keys:
            if not schema.has_field(key):
                raise InvalidInputError(f"{what} column {key!r} is not among the columns {', '.join(schema.names)}")
            if _no_key(schema.field(key).type):
                raise InvalidInputError(
                    f"{what} column {key!r} has type {schema.field(key).type}, which cannot be a key"
                )
    if schema.primary_keys and not schema.trimmed_primary_keys:
        raise InvalidInputError(
            f"the primary key {', '.join(schema.primary_keys)} has only partition columns, so a partition could hold "
            "only one row: add another column to the key"
        )


def _check_options_parse(schema: TableSchema) -> None:
    for key in schema.options:
        if key in ALL_OPTIONS:
            schema.options.value(ALL_OPTIONS[key])


def _check_named_columns(schema: TableSchema) -> None:
    for key, text in schema.options.items():
        _check_columns_of(schema, key, text)


def _check_columns_of(schema: TableSchema, key: str, text: str) -> None:
    for column in columns_in(key, text):
        if not schema.has_field(column):
            near = nearest_name(column, schema.names)
            hint = f"; did you mean {near!r}?" if near else ""
            raise InvalidInputError(
                f"option {key!r} names column {column!r}, which is not among {', '.join(schema.names)}{hint}"
            )


def _check_bucket(schema: TableSchema) -> None:
    bucket, keys = schema.bucket, split_list(schema.options.get("bucket-key", ""))
    if bucket == 0 or bucket < -2:
        raise InvalidInputError(f"option 'bucket' is {bucket}: it must be at least 1, or -1, or -2 (postponed)")
    if bucket == -1:
        if keys:
            raise InvalidInputError(
                "option 'bucket-key' needs a number of buckets: set 'bucket', or remove 'bucket-key'"
            )
        if not schema.primary_keys and "full-compaction.delta-commits" in schema.options:
            raise InvalidInputError("option 'full-compaction.delta-commits' needs a primary key or a fixed 'bucket'")
    if not schema.primary_keys:
        if bucket == -2:
            raise InvalidInputError("option 'bucket' is -2 (postponed), which needs a primary key")
        if bucket > 0 and not keys:
            raise InvalidInputError(f"an append table with 'bucket' = {bucket} needs option 'bucket-key'")
    _check_bucket_keys(schema, keys)


def _check_bucket_keys(schema: TableSchema, keys: list[str]) -> None:
    if repeated := _repeated(keys):
        raise InvalidInputError(f"option 'bucket-key' names {repeated} more than once")
    for key in keys:
        if key in schema.partition_keys:
            raise InvalidInputError(f"option 'bucket-key' names {key!r}, which is a partition column")
        if schema.primary_keys and key not in schema.primary_keys:
            raise InvalidInputError(f"option 'bucket-key' names {key!r}, which is not in the primary key")
        if _no_key(schema.field(key).type):
            raise InvalidInputError(
                f"option 'bucket-key' names {key!r} of type {schema.field(key).type}, which cannot be a key"
            )
    if schema.bucket <= 0:
        return
    function = str(_value(schema.options, "bucket-function.type")).lower()
    roots = [field.type.root if isinstance(field.type, AtomicType) else "" for field in schema.bucket_fields]
    if function == "mod" and (len(roots) != 1 or roots[0] not in ("INT", "BIGINT")):
        raise InvalidInputError(
            "option 'bucket-function.type' is mod, which needs exactly one bucket key of type INT or BIGINT, "
            f"but the bucket key is {', '.join(schema.bucket_keys)}"
        )
    if function == "hive" and any(root.startswith("TIMESTAMP") for root in roots):
        raise InvalidInputError("option 'bucket-function.type' is hive, which has no hash for TIMESTAMP bucket keys")


def _check_scan(schema: TableSchema) -> None:
    options = schema.options
    positions = [key for key in dict.fromkeys(key for keys in _POSITIONS.values() for key in keys) if key in options]
    if len(positions) > 1:
        raise InvalidInputError(f"options {' and '.join(map(repr, positions))} are mutually exclusive: remove one")
    mode = options.get("scan.mode", "default").strip().lower().replace("_", "-")
    needed = _POSITIONS.get(mode)
    if needed is not None and (not positions or positions[0] not in needed):
        raise InvalidInputError(f"option 'scan.mode' is {mode!r}, which needs one of {', '.join(needed)}")
    if needed is None and mode != "default" and positions:
        raise InvalidInputError(f"option 'scan.mode' is {mode!r}, which excludes {positions[0]!r}: remove one")
    if "scan.bucket" in options and not (schema.primary_keys and schema.bucket > 0):
        raise InvalidInputError("option 'scan.bucket' needs a primary key and a fixed number of buckets")
    if "scan.fallback-branch" in options and "scan.primary-branch" in options:
        raise InvalidInputError("options 'scan.fallback-branch' and 'scan.primary-branch' are mutually exclusive")


def _check_retention(schema: TableSchema) -> None:
    low, high = 10, math.inf
    for what in ("snapshot", "changelog"):
        least, most = f"{what}.num-retained.min", f"{what}.num-retained.max"
        low = _value(schema.options, least) if least in schema.options else low
        high = _value(schema.options, most) if most in schema.options else high
        if low < 1:
            raise InvalidInputError(f"option {least!r} is {low}: it must be at least 1")
        if low > high:
            raise InvalidInputError(f"option {least!r} is {low}, more than {most!r} = {high}")


def _check_sequence(schema: TableSchema) -> None:
    columns = split_list(schema.options.get("sequence.field", ""))
    if repeated := _repeated(columns):
        raise InvalidInputError(f"option 'sequence.field' names {repeated} more than once")
    for column in columns:
        if f"fields.{column}.aggregate-function" in schema.options:
            raise InvalidInputError(f"column {column!r} is in 'sequence.field' with an aggregate function: remove one")
    if columns and schema.is_cross_partition:
        raise InvalidInputError("option 'sequence.field' needs a primary key that contains all partition columns")
    if _flag(schema.options, "sequence.snapshot-ordering") and (
        not schema.primary_keys or columns or not _flag(schema.options, "write-only")
    ):
        raise InvalidInputError(
            "option 'sequence.snapshot-ordering' needs a primary key, 'write-only' = 'true' and no 'sequence.field'"
        )


def _check_merge(schema: TableSchema) -> None:
    options, engine, producer = schema.options, engine_type(schema.options), _producer(schema)
    if engine.refuses_sequence_field and "sequence.field" in options:
        raise InvalidInputError(engine.refuses_sequence_field)
    if producer in engine.refused_producers:
        raise InvalidInputError(f"merge engine {engine.name} excludes 'changelog-producer' = {producer!r}")
    row_kind = options.get("rowkind.field")
    if row_kind is not None:
        t = schema.field(row_kind.strip()).type
        if not isinstance(t, AtomicType) or t.root not in ("CHAR", "VARCHAR"):
            raise InvalidInputError(
                f"option 'rowkind.field' names {row_kind!r} of type {t}: its type must be text, for values such as +I"
            )
    RecordLevelExpire.of(options, schema.fields, 0)
    sequence_groups(options, schema.fields, schema.primary_keys)
    if schema.primary_keys:
        merge_engine(options, schema.fields, schema.primary_keys)


def _check_changelog(schema: TableSchema) -> None:
    options, producer = schema.options, _producer(schema)
    if producer != "none" and not schema.primary_keys:
        raise InvalidInputError(f"option 'changelog-producer' is {producer!r}, which needs a primary key")
    if producer == "lookup" and "full-compaction.delta-commits" in options:
        raise InvalidInputError("option 'full-compaction.delta-commits' excludes 'changelog-producer' = 'lookup'")
    if _flag(options, "streaming-read-overwrite") and (
        not schema.primary_keys or producer in ("full-compaction", "lookup")
    ):
        raise InvalidInputError(
            "option 'streaming-read-overwrite' needs a primary key and 'changelog-producer' = 'none' or 'input'"
        )
    if _flag(options, "deletion-vectors.enabled") and (
        producer == "full-compaction" or (schema.primary_keys and not engine_type(options).deletion_vectors)
    ):
        without = " or ".join(name for name, engine in MERGE_ENGINES.items() if not engine.deletion_vectors)
        raise InvalidInputError(
            "option 'deletion-vectors.enabled' excludes 'changelog-producer' = 'full-compaction' "
            f"and merge engine {without}"
        )
    if _flag(options, "table-read.sequence-number.enabled") and not schema.primary_keys:
        raise InvalidInputError("option 'table-read.sequence-number.enabled' needs a primary key")


def _check_features(schema: TableSchema) -> None:
    options = schema.options
    tracking = _flag(options, "row-tracking.enabled")
    if tracking and (schema.primary_keys or schema.bucket != -1):
        raise InvalidInputError("option 'row-tracking.enabled' needs an append table with 'bucket' = -1")
    if _flag(options, "data-evolution.enabled") and not tracking:
        raise InvalidInputError("option 'data-evolution.enabled' needs 'row-tracking.enabled'")
    if _flag(options, "clustering.incremental"):
        if schema.primary_keys:
            raise InvalidInputError("option 'clustering.incremental' needs a table without a primary key")
        ordered = _flag(options, "bucket-append-ordered") or _flag(options, "deletion-vectors.enabled")
        if schema.bucket != -1 and ordered:
            raise InvalidInputError(
                "option 'clustering.incremental' needs 'bucket' = -1, or 'bucket-append-ordered' = 'false' "
                "without deletion vectors"
            )
    if "target-file-row-num" in options and _value(options, "target-file-row-num") < 1:
        raise InvalidInputError("option 'target-file-row-num' must be at least 1")
    if _flag(options, "manifest-sort.enabled") and not schema.partition_keys:
        raise InvalidInputError("option 'manifest-sort.enabled' needs a partitioned table")


def _check_blobs(schema: TableSchema) -> None:
    blobs = [f.name for f in schema.fields if is_blob_type(f.type)]
    for field in schema.fields:
        if is_blob_type(field.type):
            check_map_keys(field.type, field.name)
    if blobs and not schema.primary_keys and not _flag(schema.options, "data-evolution.enabled"):
        raise InvalidInputError(
            f"column {blobs[0]!r} is {schema.field(blobs[0]).type}, which needs options 'row-tracking.enabled' and "
            "'data-evolution.enabled', or a primary key"
        )
    both = given_as_descriptors(schema) & stored_as_views(schema)
    if both:
        raise InvalidInputError(
            f"column {min(both)!r} is in both 'blob-descriptor-field' and 'blob-view-field': it can store only one kind"
        )
    fault = managed_blob_fault(schema)
    if fault is not None:
        raise InvalidInputError(
            f"the table has a primary key and blobs in column {min(in_managed_files(schema))!r}: {fault}"
        )
    ordering = {name for key in schema.options if key.endswith(".sequence-group") for name in _ordering(key)}
    ordering |= set(_value(schema.options, "sequence.field"))
    if not ordering.isdisjoint(blobs):
        raise InvalidInputError(f"column {min(ordering.intersection(blobs))!r} holds blobs, which have no order")
    if len(blobs) == len(schema.fields):
        raise InvalidInputError(
            f"a table needs a column of another type than BLOB, besides {', '.join(map(repr, blobs))}"
        )


def _ordering(key: str) -> tuple[str, ...]:
    """Return the columns that order the rows of a sequence group, from the name of its option."""
    columns, _ = split_field_option(key) or ((), "")
    return tuple(columns)


def _check_variants(schema: TableSchema) -> None:
    """Check the options of shredded variants."""
    adapts(schema.options)
    layout = configured_layout(schema.options)
    types = {f.name: f.type for f in schema.fields}
    for field in () if layout is None else layout.fields:
        if field.name not in types or not is_variant(types[field.name]):
            found = f"is {types[field.name]}" if field.name in types else "does not exist"
            raise InvalidInputError(
                f"option 'variant.shreddingSchema' shreds column {field.name!r}, which {found}: name columns of type "
                f"VARIANT"
            )


def _check_formats(schema: TableSchema) -> None:
    levels = split_list(schema.options.get("file.format.per.level", ""))
    named = (_value(schema.options, "file.format"), *(item.partition(":")[2].strip() for item in levels))
    formats = {str(name).lower() for name in named}
    for name in formats & {*WRITABLE_FORMATS}:
        check_options(name, schema.options)
    for path, t in types_in(schema.fields):
        if "avro" in formats and isinstance(t, AtomicType) and t.root[:9] == "TIMESTAMP" and (t.precision or 0) > 6:
            raise InvalidInputError(f"column {path!r} is {t}, but avro files store at most TIMESTAMP(6)")
        if "parquet" in formats and isinstance(t, RowType) and not t.fields:
            raise InvalidInputError(f"column {path!r} is {t}, but parquet files store no rows without fields")


def _check_stats_modes(schema: TableSchema) -> None:
    keys = ("metadata.stats-mode", "changelog-file.stats-mode", *(f"fields.{f.name}.stats-mode" for f in schema.fields))
    for key in keys:
        _check_stats_mode(key, schema.options.get(key, "none"))
    for mode in schema.options.value(ALL_OPTIONS[_MODE_PER_LEVEL]).values():
        _check_stats_mode(_MODE_PER_LEVEL, mode)


def _check_stats_mode(key: str, mode: str) -> None:
    try:
        parse_mode(mode)
    except InvalidInputError as error:
        raise InvalidInputError(f"option {key!r}: {error}") from error


def _check_file_indexes(schema: TableSchema) -> None:
    indexed_columns(schema.options, schema.fields)
    stray = stray_option(schema.options)
    if stray is not None:
        raise InvalidInputError(f"option {stray!r} is for an index that no 'file-index.<kind>.columns' names")


def _check_defaults(schema: TableSchema) -> None:
    for field in schema.fields:
        if field.default is None:
            continue
        try:
            default_value(field)
        except (PaimonError, pa.ArrowException) as error:
            raise InvalidInputError(
                f"the default {field.default!r} of column {field.name!r} cannot be cast to {field.type}: {error}"
            ) from error


def _producer(schema: TableSchema) -> str:
    return str(_value(schema.options, "changelog-producer")).lower()


_RULES: tuple[Callable[[TableSchema], None], ...] = (
    _check_columns,
    _check_keys,
    _check_options_parse,
    _check_named_columns,
    _check_bucket,
    _check_scan,
    _check_retention,
    _check_sequence,
    _check_merge,
    _check_changelog,
    _check_features,
    _check_blobs,
    _check_formats,
    _check_stats_modes,
    _check_variants,
    _check_file_indexes,
    _check_defaults,
)
