"""Column types in Avro files (format 7.6), and their values as the plain numbers and bytes Avro stores."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from paimon_core.errors import UnsupportedError
from paimon_core.format import decimal_bytes
from paimon_core.format.avro_container import Schema
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
        f"{flavour}timestamp-{word}": pa.timestamp(unit)
        for flavour in ("", "local-")
        for word, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


def avro_schema(fields: Sequence[DataField]) -> dict[str, Any]:
    """The writer schema of a file with these columns; UnsupportedError for a type or a name Avro does not have."""
    return {"namespace": _NAMESPACE, **_record("record", fields, set())}


def _record(name: str, fields: Sequence[DataField], taken: set[str]) -> dict[str, Any]:
    while name in taken:
        name += "_"
    taken.add(name)
    columns = []
    for field in fields:
        if not _NAME.match(field.name):
            raise UnsupportedError(
                f"column {field.name!r} cannot be stored in Avro, whose names are ASCII letters, digits and "
                "underscores; use Parquet"
            )
        column: dict[str, Any] = {"name": field.name, "type": _type(f"{name}_{field.name}", field.type, taken)}
        if field.type.nullable:
            column["default"] = None
        columns.append(column)
    return {"type": "record", "name": name, "fields": columns}


def _type(name: str, t: DataType, taken: set[str]) -> Schema:
    plain = _required(name, t, taken)
    return ["null", plain] if t.nullable else plain


def _required(name: str, t: DataType, taken: set[str]) -> Schema:
    match t:
        case AtomicType():
            return _PLAIN.get(t.root) or _logical(t)
        case ArrayType(element) | VectorType(element):
            return {"type": "array", "items": _type(name, element, taken)}
        case MapType(key, value):
            return _map(name, key, _type(f"{name}_value", value, taken), taken)
        case MultisetType(element):
            return _map(name, element, "int", taken)
        case RowType(fields):
            return _record(name, fields, taken)


def _map(name: str, key: DataType, value: Schema, taken: set[str]) -> Schema:
    if _text_key(key):
        return {"type": "map", "values": value}
    pair = {
        "type": "record",
        "name": name,
        "fields": [{"name": "key", "type": _required(f"{name}_key", key, taken)}, {"name": "value", "type": value}],
    }
    taken.add(name)
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
        flavour = "" if t.root == "TIMESTAMP" else "local-"  # the reverse of what Avro means, and what engines expect
        return {"type": "long", "logicalType": f"{flavour}timestamp-{'millis' if precision <= 3 else 'micros'}"}
    raise UnsupportedError(f"{t} cannot be stored in Avro; use Parquet")


def plain_schema(schema: Schema) -> Schema:
    """The schema without logical types: decoding then gives the stored numbers and bytes."""
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
    """The Arrow type of decoded values before logical types; ValueError for a schema no column has."""
    schema = _value(schema)
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


def _value(schema: Schema) -> Schema:
    """What a nullable type holds when it is not null."""
    if not isinstance(schema, list):
        return schema
    rest = [branch for branch in schema if branch != "null"]
    if len(rest) != 1:
        raise ValueError(f"a column cannot have the Avro type {schema}")
    return rest[0]


def from_stored(array: pa.Array, schema: Schema) -> pa.Array:
    """Decoded values with the meaning their logical type gives them."""
    schema = _value(schema)
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
    """Canonical values as the numbers and bytes to encode; a map without text keys becomes a list of pairs."""
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
    if _text_key(key):
        return rebuilt_map(array, array.keys, values)
    pairs = pa.StructArray.from_arrays([to_stored(array.keys, key), values], ["key", "value"])
    return _rebuilt(array, pa.list_(pairs.type), pairs)


def rebuilt_struct(array: pa.Array, children: list[pa.Array]) -> pa.Array:
    """The same rows with other columns."""
    mask = array.is_null() if array.null_count else None
    names = [field.name for field in array.type]
    if not children:
        return array
    return pa.StructArray.from_arrays(children, names, mask=mask)


def rebuilt_list(array: pa.Array, values: pa.Array) -> pa.Array:
    """The same lists of other values."""
    return _rebuilt(array, pa.list_(values.type), values)


def rebuilt_map(array: pa.Array, keys: pa.Array, values: pa.Array) -> pa.Array:
    """The same maps of other keys and values."""
    kind = pa.map_(keys.type, values.type)
    return _rebuilt(array, kind, map_entries(keys, values, kind))


def _rebuilt(array: pa.Array, kind: pa.DataType, children: pa.Array) -> pa.Array:
    """The same offsets and nulls over other children."""
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[children]
    )
