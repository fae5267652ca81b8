"""Columns and rows of Avro files that other tools wrote (format 7.6). Such files have no statistics."""

from typing import Any

from paimon_core.format.avro_container import Container, Schema
from paimon_core.format.file_description import ColumnInFile, FileDescription
from paimon_core.types import datatype
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, RowType, decimal

_PLAIN: dict[str, AtomicType] = {
    "boolean": datatype.BOOLEAN,
    "int": datatype.INT,
    "long": datatype.BIGINT,
    "float": datatype.FLOAT,
    "double": datatype.DOUBLE,
    "string": datatype.STRING,
    "bytes": datatype.BYTES,
}
_LOGICAL: dict[tuple[str, str | None], AtomicType] = {
    ("int", "date"): datatype.DATE,
    ("int", "time-millis"): AtomicType("TIME", precision=3),
    ("long", "timestamp-millis"): AtomicType("TIMESTAMP_LTZ", precision=3),
    ("long", "timestamp-micros"): AtomicType("TIMESTAMP_LTZ", precision=6),
    ("long", "local-timestamp-millis"): AtomicType("TIMESTAMP", precision=3),
    ("long", "local-timestamp-micros"): AtomicType("TIMESTAMP", precision=6),
}
_NO_MEANING = {"uuid"}
"""Logical types that leave a text as it is."""


def describe_avro(source: Any, path: str) -> FileDescription:
    """Return the description of a file. Raises UnsupportedError for a column that some engines misread.

    Cost: the whole file is read, because each block records its own number of rows.
    """
    source.seek(0)
    container = Container(source, path)
    root = container.header.schema
    if isinstance(root, list):
        root = next((branch for branch in root if branch != "null"), root)
    if not isinstance(root, dict) or root.get("type") != "record":
        raise ColumnInFile(path, "").refuse(str(root), "not as records with columns")
    columns = [(f["name"], f["type"], ColumnInFile(path, f["name"])) for f in root["fields"]]
    fields = tuple(DataField(datatype.NO_ID, name, _type(stored, column)) for name, stored, column in columns)
    required = frozenset(name for name, stored, _ in columns if not isinstance(stored, list))
    rows = sum(count for count, _ in container.blocks())
    return FileDescription(path, "avro", fields, rows, required=required)


def _type(stored: Schema, column: ColumnInFile) -> DataType:
    if isinstance(stored, list):
        if len(stored) != 2 or stored[0] != "null":
            raise column.refuse(f"the union {stored}", 'and Java engines read only unions ["null", type]')
        return _type(stored[1], column)
    if not isinstance(stored, dict):
        if stored in _PLAIN:
            return _PLAIN[stored]
        raise column.refuse(str(stored), "a reference to a named type, or a type that Paimon does not have")
    kind, logical = stored["type"], stored.get("logicalType")
    if isinstance(kind, dict | list):
        return _type(kind, column)
    nested = _nested(kind, logical, stored, column)
    if nested is not None:
        return nested
    if kind == "bytes" and logical == "decimal":
        return decimal(stored["precision"], stored.get("scale", 0))
    if (kind, logical) in _LOGICAL:
        return _LOGICAL[kind, logical]
    if kind in _PLAIN and (logical is None or logical in _NO_MEANING):
        return _PLAIN[kind]
    raise column.refuse(f"{kind} ({logical})" if logical else str(kind), "which some engines cannot read")


def _nested(kind: str, logical: str | None, stored: dict[str, Any], column: ColumnInFile) -> DataType | None:
    """Return the type of an array, a map or a record; `None` for any other type."""
    if kind == "array" and logical == "map":
        entry = {f["name"]: f["type"] for f in stored["items"]["fields"]}
        key = _type(entry["key"], column.part("key"))
        return MapType(datatype.with_nullable(key, False), _type(entry["value"], column.part("value")))
    if kind == "array":
        return ArrayType(_type(stored["items"], column.part("element")))
    if kind == "map":
        key = datatype.with_nullable(datatype.STRING, False)
        return MapType(key, _type(stored["values"], column.part("value")))
    if kind == "record" and stored["fields"]:
        inner = [(f["name"], _type(f["type"], column.part(f["name"]))) for f in stored["fields"]]
        return RowType(tuple(DataField(datatype.NO_ID, name, t) for name, t in inner))
    return None
