"""Column types in Avro files (format 7.6), and conversion of their values to the numbers and bytes that Avro stores."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from paimon_core.errors import UnsupportedError
from paimon_core.format import decimal_bytes
from paimon_core.format.avro_container import Schema
from paimon_core.format.conform import with_children
from paimon_core.types.datatype import (
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from paimon_core.types.map_entries import map_entries

_NAMESPACE = "org.apache.paimon.avro.generated"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN: dict[str, str] = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "int"),
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    **dict.fromkeys(("CHAR", "VARCHAR"), "string"),
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB"), "bytes"),
}
_ARROW: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    **{
        f"{prefix}timestamp-{suffix}": pa.timestamp(unit)
        for prefix in ("", "local-")
        for suffix, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


def avro_schema(fields: Sequence[DataField]) -> dict[str, Any]:
    """Return the writer schema of a file with these columns.

    Raises UnsupportedError for a type or a column name that Avro does not have.
    """
    return {"namespace": _NAMESPACE, **_record("record", fields, set())}


def _record(name: str, fields: Sequence[DataField], used: set[str]) -> dict[str, Any]:
    """Return a record type.

    Args:
        name: the name of the record; underscores are added until the name is unused.
        fields: the fields of the record.
        used: names of the records so far; the new one is added.
    """
    while name in used:
        name += "_"
    used.add(name)
    columns = []
    for field in fields:
        if not _NAME.match(field.name):
            raise UnsupportedError(
                f"column {field.name!r} cannot be stored in Avro, whose names are ASCII letters, digits and "
                "underscores; use Parquet"
            )
        column: dict[str, Any] = {"name": field.name, "type": _type(f"{name}_{field.name}", field.type, used)}
        if field.type.nullable:
            column["default"] = None
        columns.append(column)
    return {"type": "record", "name": name, "fields": columns}


def _type(name: str, t: DataType, used: set[str]) -> Schema:
    """Return the Avro type of a column type; ``name`` is for a record in it, ``used`` as for `_record`."""
    plain = _required(name, t, used)
    return ["null", plain] if t.nullable else plain


def _required(name: str, t: DataType, used: set[str]) -> Schema:
    """Return the Avro type of the values that are not null; arguments as for `_type`."""
    match t:
        case AtomicType():
            return _PLAIN.get(t.root) or _logical(t)
        case ArrayType(element) | VectorType(element):
            return {"type": "array", "items": _type(name, element, used)}
        case MapType(key, value):
            return _map(name, key, _type(f"{name}_value", value, used), used)
        case MultisetType(element):
            return _map(name, element, "int", used)
        case RowType(fields):
            return _record(name, fields, used)


def _map(name: str, key: DataType, value: Schema, used: set[str]) -> Schema:
    """Return an Avro map; for keys other than text, an array of records (key, value) called ``name``."""
    if _text_key(key):
        return {"type": "map", "values": value}
    pair = {
        "type": "record",
        "name": name,
        "fields": [{"name": "key", "type": _required(f"{name}_key", key, used)}, {"name": "value", "type": value}],
    }
    used.add(name)
    return {"type": "array", "items": pair, "logicalType": "map"}


def _text_key(key: DataType) -> bool:
    return isinstance(key, AtomicType) and key.root in TEXT_ROOTS


def _logical(t: AtomicType) -> Schema:
    precision = t.precision or 0
    if t.root == "DECIMAL":
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": t.scale}
    if t.root == "DATE":
        return {"type": "int", "logicalType": "date"}
    if t.root == "TIME" and precision <= 3:
        return {"type": "int", "logicalType": "time-millis"}
    if t.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and precision <= 6:
        prefix = "" if t.root == "TIMESTAMP" else "local-"  # the reverse of Avro's meaning; engines expect this
        return {"type": "long", "logicalType": f"{prefix}timestamp-{'millis' if precision <= 3 else 'micros'}"}
    raise UnsupportedError(f"{t} cannot be stored in Avro; use Parquet")


def plain_schema(schema: Schema) -> Schema:
    """Return the schema without logical types, so that a decoder returns the stored numbers and bytes."""
    if isinstance(schema, list):
        return [plain_schema(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {k: v for k, v in schema.items() if k not in ("logicalType", "precision", "scale")}
    if "fields" in plain:
        plain["fields"] = [{"name": f["name"], "type": plain_schema(f["type"])} for f in plain["fields"]]
    for inner in ("items", "values", "type"):
        if isinstance(plain.get(inner), dict | list):
            plain[inner] = plain_schema(plain[inner])
    return plain


def stored_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of decoded values before logical types. Raises ValueError if no column has this schema."""
    schema = _non_null(schema)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return stored_type(kind)
    if kind in _ARROW:
        return _ARROW[kind]
    if kind == "fixed":
        return pa.binary(schema["size"])
    if kind == "array":
        return pa.list_(stored_type(schema["items"]))
    if kind == "map":
        return pa.map_(pa.string(), stored_type(schema["values"]))
    if kind == "record":
        return pa.struct([pa.field(f["name"], stored_type(f["type"])) for f in schema["fields"]])
    raise ValueError(f"a column cannot have the Avro type {schema}")


def _non_null(schema: Schema) -> Schema:
    """Return the schema of values that are not null. Raises ValueError for a union of several other types."""
    if not isinstance(schema, list):
        return schema
    branches = [branch for branch in schema if branch != "null"]
    if len(branches) != 1:
        raise ValueError(f"a column cannot have the Avro type {schema}")
    return branches[0]


def from_stored(array: pa.Array, schema: Schema) -> pa.Array:
    """Return decoded values in the Arrow type of their logical type. Raises ValueError for a bad decimal."""
    schema = _non_null(schema)
    if not isinstance(schema, dict):
        return array
    kind, logical = schema["type"], schema.get("logicalType")
    if isinstance(kind, dict | list):
        return from_stored(array, kind)
    if logical == "decimal":
        target = pa.decimal128(schema["precision"], schema.get("scale", 0))
        return decimal_bytes.from_bytes(array.cast(pa.binary()), target)
    if logical in _LOGICAL:
        return array.view(_LOGICAL[logical])
    if kind == "record":
        return rebuilt_struct(array, [from_stored(array.field(i), f["type"]) for i, f in enumerate(schema["fields"])])
    if kind == "array":
        return rebuilt_list(array, from_stored(array.values, schema["items"]))
    if kind == "map":
        return rebuilt_map(array, array.keys, from_stored(array.items, schema["values"]))
    return array


def to_stored(array: pa.Array, t: DataType) -> pa.Array:
    """Return canonical values as the numbers and bytes to encode; a map without text keys becomes a list of pairs."""
    match t:
        case AtomicType(root="DECIMAL"):
            return decimal_bytes.to_bytes(array)
        case AtomicType(root="DATE" | "TIME"):
            return array.view(pa.int32())
        case AtomicType(root="TIMESTAMP" | "TIMESTAMP_LTZ"):
            return array.view(pa.int64())
        case AtomicType():
            return array
        case VectorType(element):
            plain = array.cast(pa.list_(array.type.value_field))
            return rebuilt_list(plain, to_stored(plain.values, element))
        case ArrayType(element):
            return rebuilt_list(array, to_stored(array.values, element))
        case RowType(fields):
            return rebuilt_struct(array, [to_stored(array.field(i), f.type) for i, f in enumerate(fields)])
        case MapType(key, value):
            return _stored_map(array, key, to_stored(array.items, value))
        case MultisetType(element):
            return _stored_map(array, element, array.items)


def _stored_map(array: pa.Array, key: DataType, values: pa.Array) -> pa.Array:
    """Return maps with these values as Avro stores them: as maps for text keys, else as lists of pairs."""
    if _text_key(key):
        return rebuilt_map(array, array.keys, values)
    pairs = pa.StructArray.from_arrays([to_stored(array.keys, key), values], ["key", "value"])
    return with_children(array, pa.list_(pairs.type), pairs)


def rebuilt_struct(array: pa.Array, children: list[pa.Array]) -> pa.Array:
    """Return the structs with other values in their fields; nulls and field names stay."""
    if not children:
        return array
    names = [field.name for field in array.type]
    return pa.StructArray.from_arrays(children, names, mask=array.is_null() if array.null_count else None)


def rebuilt_list(array: pa.Array, values: pa.Array) -> pa.Array:
    """Return the lists with other elements; offsets and nulls stay."""
    return with_children(array, pa.list_(values.type), values)


def rebuilt_map(array: pa.Array, keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return the maps with other keys and values; offsets and nulls stay."""
    kind = pa.map_(keys.type, values.type)
    return with_children(array, kind, map_entries(keys, values, kind))
