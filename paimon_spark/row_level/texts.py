"""Values in texts of Spark's SQL: one call of Java takes a text for every column of a statement."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from paimon_core.errors import InvalidInputError
from paimon_core.types.columns import matching_positions
from paimon_core.types.datatype import DataField
from paimon_spark.internals import quoted, renamed, select_texts
from paimon_spark.types import spark_type

_PLAIN = re.compile(r"[^'\\$\x00-\x1f]*")


def text_of(value: str) -> str:
    """Return a text as a literal."""
    return f"'{value}'" if _PLAIN.fullmatch(value) else f"CAST(X'{value.encode().hex()}' AS STRING)"


@dataclass(frozen=True)
class NumberedRows:
    """Rows whose columns are called ``c0``, ``c1`` ...: texts name them so, whatever users call them.

    ``schema``: of the rows, with the names before.
    """

    frame: DataFrame
    schema: StructType

    @staticmethod
    def of(rows: DataFrame) -> "NumberedRows":
        """Return the rows with numbered columns."""
        schema = rows.schema
        return NumberedRows(renamed(rows, [f"c{n}" for n in range(len(schema.fields))]), schema)

    def type_of(self, column: str) -> DataType:
        """Return the type of a numbered column."""
        return self.schema.fields[int(column[1:])].dataType

    def selected(self, columns: Mapping[str, str]) -> DataFrame:
        """Return columns by name, each the value of a text."""
        texts = [f"{text} AS o{n}" for n, text in enumerate(columns.values())]
        return renamed(select_texts(self.frame, texts), list(columns))


def stored(value: str, given: DataType, field: DataField) -> str:
    """Return a value of type `given` with the type of a column; fields of structs are matched by their names.

    The job fails for a value that the type cannot hold, at any depth. Raises InvalidInputError for a field of a struct
    that only one of the types has.
    """
    return _stored(value, given, spark_type(field.type, field.name), field.name, 0)


def _stored(value: str, given: DataType, wanted: DataType, path: str, depth: int) -> str:
    """Return the value with another type; its own text if the types are equal."""
    match given, wanted:
        case ArrayType(), ArrayType():
            item = f"x{depth}"
            made = _stored(item, given.elementType, wanted.elementType, f"{path}.element", depth + 1)
            return value if made == item else f"transform({value}, {item} -> {made})"
        case MapType(), MapType():
            key, item = f"k{depth}", f"x{depth}"
            made = _stored(key, given.keyType, wanted.keyType, f"{path}.key", depth + 1)
            found = value if made == key else f"transform_keys({value}, ({key}, {item}) -> {made})"
            made = _stored(item, given.valueType, wanted.valueType, f"{path}.value", depth + 1)
            return found if made == item else f"transform_values({found}, ({key}, {item}) -> {made})"
        case StructType(), StructType():
            return _stored_struct(value, given, wanted, path, depth)
    if given == wanted:
        return value
    sql = _sql(wanted)
    if isinstance(given, NullType):
        return f"CAST({value} AS {sql})"
    cast = f"try_cast({value} AS {sql})"
    message = (
        f"concat({text_of(f'column {path!r} of type {wanted.simpleString()} cannot hold ')}, CAST({value} AS STRING))"
    )
    wrong = f"{value} IS NOT NULL AND {cast} IS NULL"
    return f"CASE WHEN {wrong} THEN CAST(raise_error({message}) AS {sql}) ELSE {cast} END"


def _stored_struct(value: str, given: StructType, wanted: StructType, path: str, depth: int) -> str:
    parts, as_given = [], given.names == wanted.names
    for field, own in zip(wanted.fields, _own_fields(given, wanted, path), strict=True):
        before = f"{value}.{quoted(own.name)}"
        made = _stored(before, own.dataType, field.dataType, f"{path}.{field.name}", depth)
        as_given = as_given and made == before
        parts += [text_of(field.name), made]
    return value if as_given else f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def _own_fields(given: StructType, wanted: StructType, path: str) -> list[StructField]:
    """Return the field of a struct that is the value of each wanted field."""
    found = matching_positions(wanted.names, given.names)
    used = [n for positions in found for n in positions]
    if all(len(positions) == 1 for positions in found) and sorted(used) == list(range(len(given.names))):
        return [given.fields[positions[0]] for positions in found]
    missing = [name for name, positions in zip(wanted.names, found, strict=True) if not positions]
    further = [name for n, name in enumerate(given.names) if n not in used]
    why = [f"lacks {', '.join(missing)}"] if missing else []
    why += [f"has {', '.join(further)}, which the column lacks"] if further else []
    raise InvalidInputError(
        f"the new value of {path} {' and '.join(why) or 'has fields that differ in case only'}: it has the fields "
        f"{given.names}, the column {wanted.names}; give each field of the column one value"
    )


def _sql(kind: DataType) -> str:
    """Return a type as Spark's SQL writes it."""
    match kind:
        case ArrayType():
            return f"ARRAY<{_sql(kind.elementType)}>"
        case MapType():
            return f"MAP<{_sql(kind.keyType)}, {_sql(kind.valueType)}>"
        case StructType():
            return f"STRUCT<{', '.join(f'{quoted(field.name)}: {_sql(field.dataType)}' for field in kind.fields)}>"
        case StringType():
            return "STRING"
        case TimestampType():
            return "TIMESTAMP_LTZ"  # TIMESTAMP may be either type
    return kind.simpleString()
