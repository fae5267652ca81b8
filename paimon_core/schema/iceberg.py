"""The parts of a schema that Iceberg metadata can describe, and the refusal of other parts (decision 28)."""

from collections.abc import Iterator
from typing import Any, Final

from paimon_core.options.file import DATA_EVOLUTION_ENABLED, FILE_FORMAT, FILE_FORMAT_PER_LEVEL
from paimon_core.options.iceberg import (
    DISABLED,
    HADOOP_CATALOG,
    METADATA_ICEBERG_FORMAT_VERSION,
    METADATA_ICEBERG_STORAGE,
    TABLE_LOCATION,
)
from paimon_core.options.merge import DELETION_VECTORS_ENABLED
from paimon_core.options.option import Options
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType

FORMAT_VERSION: Final = 2
FIRST_PARTITION_ID: Final = 1000
_NESTED_ID, _ID_STRIDE = 536870911, 1024  # as in Parquet files (format 7.4)
_ATOMIC: Final = {
    "BOOLEAN": "boolean", "TINYINT": "int", "SMALLINT": "int", "INT": "int", "BIGINT": "long", "FLOAT": "float",
    "DOUBLE": "double", "DATE": "date", "CHAR": "string", "VARCHAR": "string", "BINARY": "binary",
    "VARBINARY": "binary",
}  # fmt: skip
_TIMESTAMPS: Final = {"TIMESTAMP": "timestamp", "TIMESTAMP_LTZ": "timestamptz"}
_PARTITION_TYPES: Final = {"boolean", "int", "long", "date", "string"}
_PROMOTIONS: Final = {("int", "long"), ("float", "double")}

IcebergType = str | dict[str, Any]


def is_enabled(options: Options) -> bool:
    """Return True if commits write Iceberg metadata."""
    return options.value(METADATA_ICEBERG_STORAGE) != DISABLED


def not_describable(schema: TableSchema) -> str | None:
    """Return the option, column or key that Iceberg metadata cannot describe correctly, as text for a message.

    `None`: everything can be described, or the table writes no Iceberg metadata.
    """
    options = schema.options
    if not is_enabled(options):
        return None
    storage = options.value(METADATA_ICEBERG_STORAGE)
    shown = f"option {METADATA_ICEBERG_STORAGE.key!r} = {storage!r}"
    if storage not in (TABLE_LOCATION, HADOOP_CATALOG):
        return f"{shown} (set it to {TABLE_LOCATION!r} or {HADOOP_CATALOG!r})"
    if options.value(METADATA_ICEBERG_FORMAT_VERSION) != FORMAT_VERSION:
        version = options.value(METADATA_ICEBERG_FORMAT_VERSION)
        return f"option {METADATA_ICEBERG_FORMAT_VERSION.key!r} = '{version}' (set it to '{FORMAT_VERSION}')"
    why = _other_feature(schema) or next(_columns(schema), None)
    return None if why is None else f"{shown} with {why}"


def _other_feature(schema: TableSchema) -> str | None:
    """Return an option with which the rows of the files are not the rows that a reader must see. `None`: no option."""
    options = schema.options
    for option in (DELETION_VECTORS_ENABLED, DATA_EVOLUTION_ENABLED):
        if options.value(option):
            return f"option {option.key!r} = 'true'"
    formats = {FILE_FORMAT.key: {options.value(FILE_FORMAT)}}
    formats[FILE_FORMAT_PER_LEVEL.key] = set(options.value(FILE_FORMAT_PER_LEVEL).values())
    for key, names in formats.items():
        other = next((name for name in sorted(names) if name.lower() != "parquet"), None)
        if other is not None:
            return f"files of the format {other!r} (option {key!r}; only Parquet files hold the ids of columns)"
    return None


def _columns(schema: TableSchema) -> Iterator[str]:
    """Yield the columns without a type in Iceberg, then partition columns of a type that it cannot partition by."""
    for field in schema.fields:
        part = _unknown_part(field.type, field.name)
        if part is not None:
            yield f"column {part[0]} of type {part[1]}"
    for field in schema.partition_fields:
        if iceberg_type(field.type, field.id) not in _PARTITION_TYPES:
            yield f"partition column {field.name} of type {field.type}"


def _unknown_part(t: DataType, path: str) -> tuple[str, DataType] | None:
    match t:
        case RowType(fields):
            parts = [_unknown_part(f.type, f"{path}.{f.name}") for f in fields]
        case ArrayType(element) | MultisetType(element):
            parts = [_unknown_part(element, f"{path}.element")]
        case MapType(key, value):
            parts = [_unknown_part(key, f"{path}.key"), _unknown_part(value, f"{path}.value")]
        case _:
            return None if isinstance(t, AtomicType) and _atomic(t) is not None else (path, t)
    return next((part for part in parts if part is not None), None)


def _atomic(t: AtomicType) -> str | None:
    if t.root == "DECIMAL":
        return f"decimal({t.precision}, {t.scale})"
    precision = t.precision or 0
    if t.root in _TIMESTAMPS:
        return _TIMESTAMPS[t.root] if 3 <= precision <= 6 else None
    return _ATOMIC.get(t.root)


def iceberg_type(t: DataType, field_id: int, depth: int = 0) -> IcebergType:
    """Return Iceberg's type, as in its JSON, with the ids that our Parquet files have.

    Args:
        t: a type for which `not_describable` returns `None`.
        field_id: the id of the column, or of the field of a row, that has the type.
        depth: the number of collections around the type, within that column.
    """
    inner_depth = depth + 1
    element_id, key_id = (
        _NESTED_ID + field_id * _ID_STRIDE + inner_depth,
        _NESTED_ID - field_id * _ID_STRIDE - inner_depth,
    )

    def collection(kind: str, **parts: tuple[DataType, int]) -> dict[str, Any]:
        result: dict[str, Any] = {"type": kind}
        for name, (part, number) in parts.items():
            result |= {f"{name}-id": number, name: iceberg_type(part, field_id, inner_depth)}
            if name != "key":
                result[f"{name}-required"] = not part.nullable
        return result

    match t:
        case ArrayType(element):
            return collection("list", element=(element, element_id))
        case MapType(key, value):
            return collection("map", key=(key, key_id), value=(value, element_id))
        case MultisetType(element):
            return collection("map", key=(element, key_id), value=(AtomicType("INT", False), element_id))
        case RowType(fields):
            return {"type": "struct", "fields": [_field(f) for f in fields]}
        case _:
            atomic = _atomic(t) if isinstance(t, AtomicType) else None
            assert atomic is not None, f"{t} should have been refused"
            return atomic


def _field(field: DataField) -> dict[str, Any]:
    document = {
        "id": field.id,
        "name": field.name,
        "required": not field.type.nullable,
        "type": iceberg_type(field.type, field.id),
    }
    return document if field.description is None else {**document, "doc": field.description}


def iceberg_schema(schema: TableSchema) -> dict[str, Any]:
    """Return a version of the schema as Iceberg's JSON."""
    return {"type": "struct", "schema-id": schema.id, "fields": [_field(f) for f in schema.fields]}


def partition_fields(schema: TableSchema) -> list[dict[str, Any]]:
    """Return the fields of the only partition spec as Iceberg's JSON."""
    return [
        {"name": f.name, "transform": "identity", "source-id": f.id, "field-id": FIRST_PARTITION_ID + i}
        for i, f in enumerate(schema.partition_fields)
    ]


def highest_id(schema: dict[str, Any]) -> int:
    """Return the highest id of a field, element, key or value in an Iceberg schema."""
    return max(_ids(schema))


def _ids(part: Any) -> Iterator[int]:
    yield 0
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("id", "element-id", "key-id", "value-id"):
                yield value
            yield from _ids(value)
    elif isinstance(part, list):
        for item in part:
            yield from _ids(item)


def described_type(t: DataType, field_id: int) -> IcebergType | None:
    """Return Iceberg's type of a column, as `iceberg_type` does. `None`: Iceberg has no type for it."""
    return None if _unknown_part(t, "") is not None else iceberg_type(t, field_id)


def unreadable_change(old: TableSchema, new: TableSchema) -> str | None:
    """Return a column whose old values no Iceberg reader can read as its new type. `None`: no column."""
    before = {f.id: f for f in old.fields}
    for field in new.fields:
        was = before.get(field.id)
        if was is None:
            continue
        old_type = described_type(was.type, was.id)
        if old_type is None or not _readable(old_type, iceberg_type(field.type, field.id)):
            return f"column {field.name}, which was {was.type} in schema {old.id} and is {field.type} in {new.id}"
    return None


def _readable(old: IcebergType, new: IcebergType) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        if old == new or (old, new) in _PROMOTIONS:
            return True
        decimals = old.startswith("decimal(") and new.startswith("decimal(")
        return decimals and _digits(old)[1] == _digits(new)[1] and _digits(old)[0] <= _digits(new)[0]
    if isinstance(old, str) or isinstance(new, str):
        return False
    if old["type"] != new["type"]:
        return False
    if old["type"] == "struct":
        before = {f["id"]: f["type"] for f in old["fields"]}
        return all(_readable(before[f["id"]], f["type"]) for f in new["fields"] if f["id"] in before)
    return all(_readable(old[part], new[part]) for part in ("element", "key", "value") if part in old)


def _digits(t: str) -> tuple[int, int]:
    precision, scale = t[len("decimal(") : -1].split(", ")
    return int(precision), int(scale)
