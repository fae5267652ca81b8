"""Column types as Hive names them. Hive shows them to its users; the schema of a table is in the table's files."""

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
)

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


def column_comment(field: DataField) -> str | None:
    """Return the comment of a column that is not a partition key: one line of at most 255 characters."""
    if field.description is None:
        return None
    text = field.description.replace("\n", " ").replace("\r", " ")
    return text if len(text) <= _COMMENT else text[: _COMMENT - len(_CUT)] + _CUT
