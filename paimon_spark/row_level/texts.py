"""Values as Spark SQL texts: one JVM call passes the texts of all columns of a statement."""

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
from paimon_spark.char_columns import padded_text
from paimon_spark.internals import quoted, renamed, select_texts
from paimon_spark.types import spark_type

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
"""Names that need no escape and no substitution in a SQL text."""
_PLAIN = re.compile(r"[^'\\$\x00-\x1f]*")


def text_of(value: str) -> str:
    """Return a text as a Spark SQL literal."""
    return f"'{value}'" if _PLAIN.fullmatch(value) else f"CAST(X'{value.encode().hex()}' AS STRING)"


@dataclass(frozen=True)
class NumberedRows:
    """Rows whose columns are renamed to ``c0``, ``c1`` ..., so that SQL texts do not depend on users' names.

    ``schema``: the schema of the rows with their original names.
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
        """Select columns by name, each computed from a SQL text."""
        plain = all(map(_PLAIN_NAME.fullmatch, columns))
        names = columns if plain else [f"o{n}" for n in range(len(columns))]
        rows = select_texts(
            self.frame, [f"{text} AS {quoted(n)}" for n, text in zip(names, columns.values(), strict=True)]
        )
        return rows if plain else renamed(rows, list(columns))


def stored(value: str, source: DataType, field: DataField) -> str:
    """Return SQL text that casts a value of type `source` to the type of a column; struct fields match by name.

    The job fails for a value that does not fit the type, at any depth. CHAR values are padded. Raises InvalidInputError
    for a struct field that only one of the types has.
    """
    return padded_text(_stored(value, source, spark_type(field.type, field.name), field.name, 0), field.type)


def _stored(value: str, source: DataType, target: DataType, path: str, depth: int) -> str:
    """Return SQL text that casts the value to the type `target`; return `value` itself if the types are equal."""
    match source, target:
        case ArrayType(), ArrayType():
            item = f"x{depth}"
            cast_item = _stored(item, source.elementType, target.elementType, f"{path}.element", depth + 1)
            return value if cast_item == item else f"transform({value}, {item} -> {cast_item})"
        case MapType(), MapType():
            key, item = f"k{depth}", f"x{depth}"
            cast_item = _stored(key, source.keyType, target.keyType, f"{path}.key", depth + 1)
            with_keys = value if cast_item == key else f"transform_keys({value}, ({key}, {item}) -> {cast_item})"
            cast_item = _stored(item, source.valueType, target.valueType, f"{path}.value", depth + 1)
            return with_keys if cast_item == item else f"transform_values({with_keys}, ({key}, {item}) -> {cast_item})"
        case StructType(), StructType():
            return _stored_struct(value, source, target, path, depth)
    if source == target:
        return value
    sql = _sql(target)
    if isinstance(source, NullType):
        return f"CAST({value} AS {sql})"
    cast = f"try_cast({value} AS {sql})"
    message = (
        f"concat({text_of(f'column {path!r} of type {target.simpleString()} cannot hold ')}, CAST({value} AS STRING))"
    )
    wrong = f"{value} IS NOT NULL AND {cast} IS NULL"
    return f"CASE WHEN {wrong} THEN CAST(raise_error({message}) AS {sql}) ELSE {cast} END"


def _stored_struct(value: str, source: StructType, target: StructType, path: str, depth: int) -> str:
    parts, unchanged = [], source.names == target.names
    for field, child in zip(target.fields, _own_fields(source, target, path), strict=True):
        before = f"{value}.{quoted(child.name)}"
        cast_child = _stored(before, child.dataType, field.dataType, f"{path}.{field.name}", depth)
        unchanged = unchanged and cast_child == before
        parts += [text_of(field.name), cast_child]
    return value if unchanged else f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def _own_fields(source: StructType, target: StructType, path: str) -> list[StructField]:
    """Return the source field for each field of the target struct."""
    matches = matching_positions(target.names, source.names)
    used = [n for positions in matches for n in positions]
    if all(len(positions) == 1 for positions in matches) and sorted(used) == list(range(len(source.names))):
        return [source.fields[positions[0]] for positions in matches]
    missing = [name for name, positions in zip(target.names, matches, strict=True) if not positions]
    extra = [name for n, name in enumerate(source.names) if n not in used]
    why = [f"lacks {', '.join(missing)}"] if missing else []
    why += [f"has {', '.join(extra)}, which the column lacks"] if extra else []
    raise InvalidInputError(
        f"the new value of {path} {' and '.join(why) or 'has fields that differ in case only'}: it has the fields "
        f"{source.names}, the column {target.names}; set each field of the column once"
    )


def _sql(kind: DataType) -> str:
    """Return a type in Spark SQL syntax."""
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
