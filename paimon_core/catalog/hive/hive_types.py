"""Column types as Hive names them. Hive shows them to its users; the schema of a table is in the table's files."""

import re
from typing import Final

from paimon_core.errors import UnsupportedError
from paimon_core.types.datatype import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    with_nullable,
)
from paimon_core.types.parse import parse_type

_NAMES: Final = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "BLOB": "binary",
    "DATE": "date",
    "TIME": "string",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "VARIANT": "struct<value:binary,metadata:binary>",
}
"""TIMESTAMP_LTZ has no type of its own before Hive 3, nor in the metastore client of Spark."""
_OF_HIVE: Final = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL",
    "string": "STRING",
    "char": "CHAR",
    "varchar": "VARCHAR",
    "binary": "BYTES",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp with local time zone": "TIMESTAMP WITH LOCAL TIME ZONE",
}
"""The types of Paimon by the names of Hive, as Java reads them."""
_ATOM: Final = re.compile(r"\s*([A-Za-z][A-Za-z ]*[A-Za-z])\s*(\([0-9, ]+\))?\s*")
_LONGEST: Final = {"CHAR": 255, "VARCHAR": 65535}
_COMMENT: Final = 255  # characters: the metastore's column for comments holds 256
_CUT: Final = "..."


def hive_type(kind: DataType, column: str) -> str:
    """Return the name of a type. Raises UnsupportedError, with the ``column``, for a type that Hive does not have."""
    match kind:
        case ArrayType(element) | VectorType(element):
            return f"array<{hive_type(element, column)}>"
        case MultisetType(element):
            return f"map<{hive_type(element, column)},int>"
        case MapType(key, value):
            return f"map<{hive_type(key, column)},{hive_type(value, column)}>"
        case RowType(fields):
            return f"struct<{','.join(f'{f.name}:{hive_type(f.type, column)}' for f in fields)}>"
        case AtomicType(root="DECIMAL"):
            return f"decimal({kind.precision},{kind.scale})"
        case AtomicType(root="CHAR" | "VARCHAR"):
            longest, length = _LONGEST[kind.root], kind.length or 1
            return "string" if length > longest else f"{kind.root.lower()}({length})"
        case AtomicType(root) if root in _NAMES:
            return _NAMES[root]
    raise UnsupportedError(
        f"column {column!r} has the type {kind}, which a Hive metastore cannot store: leave the column out, or use "
        "another kind of catalog"
    )


def paimon_type(text: str, column: str) -> DataType:
    """Return the type that the name of a type in Hive means. Raises UnsupportedError for a type without equivalent.

    Hive's names say less than Paimon's: a TIME was stored as ``string``, and no type says NOT NULL.
    """
    try:
        kind, rest = _parsed((text or "").strip())
        if not rest:
            return kind
    except (ValueError, IndexError, RecursionError):
        pass
    raise UnsupportedError(f"column {column!r} has the Hive type {text}, which Paimon does not have")


def _parsed(text: str) -> tuple[DataType, str]:
    """Parse the type at the beginning of a text; return it and the rest. Raises ValueError for an unknown type."""
    lower = text.lower()
    if lower.startswith("array<"):
        element, rest = _parsed(text[len("array<") :])
        return ArrayType(element), _after(rest, ">")
    if lower.startswith("map<"):
        key, rest = _parsed(text[len("map<") :])
        value, rest = _parsed(_after(rest, ","))
        return MapType(with_nullable(key, nullable=False), value), _after(rest, ">")
    if lower.startswith("struct<"):
        rest, fields = text[len("struct<") :], list[DataField]()
        while True:
            name, _, rest = rest.partition(":")
            kind, rest = _parsed(rest)
            fields.append(DataField(len(fields), name.strip(), kind))
            if rest.startswith(">"):
                return RowType(tuple(fields)), rest[1:]
            rest = _after(rest, ",")
    found = _ATOM.match(text)
    if found is None:
        raise ValueError(text)
    name = " ".join(found[1].lower().split())
    if name not in _OF_HIVE:
        raise ValueError(text)
    return parse_type(_OF_HIVE[name] + (found[2] or "")), text[found.end() :]


def _after(text: str, sign: str) -> str:
    if not text.startswith(sign):
        raise ValueError(text)
    return text[len(sign) :]


def column_comment(field: DataField) -> str | None:
    """Return the comment of a column that is not a partition key: one line of at most 255 characters."""
    if field.description is None:
        return None
    text = field.description.replace("\n", " ").replace("\r", " ")
    return text if len(text) <= _COMMENT else text[: _COMMENT - len(_CUT)] + _CUT
