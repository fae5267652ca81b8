"""Column defaults: expressions in SQL, texts in the table's schema.

A Paimon default is the text of one value, so an expression is evaluated when the statement runs.
"""

import re
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.datatype import TEXT_ROOTS, ArrayType, AtomicType, DataType, MapType
from paimon_core.types.default import list_items, list_text, map_entries, map_text, unquoted
from paimon_spark.internals import analyzed
from paimon_spark.times import date_text_sql

_CHANGES = re.compile(
    r"Current.*|Now|LocalTimestamp|Rand.*|Uuid|InputFile.*|MonotonicallyIncreasingID|SparkPartitionID"
)
"""Spark expressions whose value differs between calls or sessions."""
_ZONED = "TIMESTAMP_LTZ"
_TEXTS = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP")


def default_text(spark: SparkSession, sql: str | None, kind: DataType, column: str) -> str | None:
    """Return the text of a default for the schema; `None`: no default.

    Args:
        spark: the session that issued the statement.
        sql: the expression; `None` and NULL: no default.
        kind: the type of the column.
        column: the name of the column, for errors.

    Raises UnsupportedError for an expression whose value varies, and for a type whose values have no text form.
    """
    if not sql:
        return None
    if isinstance(kind, ArrayType | MapType) and all(map(_has_text, _parts(kind))):
        return _nested_text(spark, sql, kind, column)
    root = kind.root if isinstance(kind, AtomicType) else str(kind)
    if root not in TEXT_ROOTS and root not in _TEXTS:
        reason = "depends on the time zone of the session" if root == _ZONED else "has no text that every engine reads"
        if sql.strip().upper() == "NULL":
            return None
        raise UnsupportedError(f"DEFAULT {sql} of column {column!r} is not possible: a value of type {kind} {reason}")
    value = _evaluated(spark, _text_sql(f"CAST(({sql}) AS {_spark_type(kind)})", kind), sql, column)
    if value is None:
        return None
    return f"'{value}'" if unquoted(value) != value else str(value)


def _nested_text(spark: SparkSession, sql: str, kind: ArrayType | MapType, column: str) -> str | None:
    """Return the text of a default for an array or a map of values that have texts; `None`: no default."""
    parts = [_spark_type(part) for part in _parts(kind)]
    try:
        if isinstance(kind, ArrayType):
            items = f"transform(CAST(({sql}) AS ARRAY<{parts[0]}>), item -> {_text_sql('item', kind.element)})"
            values = _evaluated(spark, items, sql, column)
            return None if values is None else list_text(values)
        entries = f"transform(map_entries(CAST(({sql}) AS MAP<{', '.join(parts)}>)), "
        entries += f"entry -> struct({_text_sql('entry.key', kind.key)}, {_text_sql('entry.value', kind.value)}))"
        values = _evaluated(spark, entries, sql, column)
        return None if values is None else map_text([(key, value) for key, value in values])
    except InvalidInputError as error:
        raise UnsupportedError(f"DEFAULT {sql} of column {column!r} is not possible: {error}") from None


def _evaluated(spark: SparkSession, expression: str, sql: str, column: str) -> Any:
    """Return the value of an expression. Raise UnsupportedError if the value varies between calls or sessions."""
    frame = spark.sql(f"SELECT {expression}")
    changing = _changing(analyzed(frame).expressions().head())
    if changing is not None:
        raise UnsupportedError(
            f"DEFAULT {sql} of column {column!r} is not possible: the value of {changing} varies, and a Paimon default "
            "is one value"
        )
    return frame.collect()[0][0]


def _text_sql(value: str, kind: DataType) -> str:
    """Return SQL that turns a value of the type into text, under all settings of a session."""
    is_date = isinstance(kind, AtomicType) and kind.root == "DATE"
    return date_text_sql(value) if is_date else f"CAST({value} AS STRING)"


def _parts(kind: ArrayType | MapType) -> list[DataType]:
    return [kind.element] if isinstance(kind, ArrayType) else [kind.key, kind.value]


def _has_text(kind: DataType) -> bool:
    return isinstance(kind, AtomicType) and (kind.root in TEXT_ROOTS or kind.root in _TEXTS)


def _spark_type(kind: DataType) -> str:
    """Return the type in which Spark evaluates a default."""
    text = str(kind).removesuffix(" NOT NULL")
    if isinstance(kind, AtomicType) and kind.root in TEXT_ROOTS:
        return "STRING"
    return text if text.startswith("DECIMAL") else text.split("(")[0].replace("TIMESTAMP", "TIMESTAMP_NTZ")


def default_sql(text: str, kind: DataType) -> str | None:
    """Return a stored default as a SQL expression; `None`: Spark cannot cast a text to the type.

    For these types, the writer replaces missing values with the default.
    """
    if isinstance(kind, ArrayType) and _has_text(kind.element):
        items = [_literal(item, kind.element) for item in list_items(text)]
        return f"array({', '.join(items)})" if items else f"CAST(array() AS ARRAY<{_spark_type(kind.element)}>)"
    if isinstance(kind, MapType) and all(map(_has_text, _parts(kind))):
        pairs = [
            _literal(item, part) for entry in map_entries(text) for item, part in zip(entry, _parts(kind), strict=True)
        ]
        types = ", ".join(map(_spark_type, _parts(kind)))
        return f"map({', '.join(pairs)})" if pairs else f"CAST(map() AS MAP<{types}>)"
    if not isinstance(kind, AtomicType):
        return None
    text = unquoted(text)
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if kind.root in TEXT_ROOTS:
        return quoted
    if kind.root not in (*_TEXTS, _ZONED):
        return None
    if re.fullmatch(r"-?\d{1,9}", text) and kind.root in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return text
    names = {"TIMESTAMP": "TIMESTAMP_NTZ", _ZONED: "TIMESTAMP", "DECIMAL": str(kind).removesuffix(" NOT NULL")}
    return f"CAST({quoted} AS {names.get(kind.root, kind.root)})"


def _literal(text: str | None, kind: DataType) -> str:
    """Return an item of a default as a SQL expression of its type."""
    value = None if text is None else default_sql(text, kind)
    return f"CAST(NULL AS {_spark_type(kind)})" if value is None else value


def _changing(expression: JavaObject) -> str | None:
    """Return the name of an expression in the tree whose value varies; `None`: all values are constant."""
    name = str(expression.getClass().getSimpleName())
    if _CHANGES.fullmatch(name) or not expression.deterministic():
        return str(expression.prettyName()) if hasattr(expression, "prettyName") else name
    children = expression.children()
    names = (_changing(children.apply(i)) for i in range(children.length()))
    return next((name for name in names if name is not None), None)
