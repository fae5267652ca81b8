"""Column defaults: expressions in SQL, texts in the table's schema.

A Paimon default is the text of one value, so an expression is evaluated when the statement runs.
"""

import re

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from paimon_core.errors import UnsupportedError
from paimon_core.types.datatype import TEXT_ROOTS, AtomicType, DataType
from paimon_core.types.default import unquoted
from paimon_spark.internals import analyzed

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
    root = kind.root if isinstance(kind, AtomicType) else str(kind)
    if root not in TEXT_ROOTS and root not in _TEXTS:
        reason = "depends on the time zone of the session" if root == _ZONED else "has no text that every engine reads"
        if sql.strip().upper() == "NULL":
            return None
        raise UnsupportedError(f"DEFAULT {sql} of column {column!r} is not possible: a value of type {kind} {reason}")
    type_ = "STRING" if root in TEXT_ROOTS else str(kind).removesuffix(" NOT NULL").split("(")[0]
    if root == "DECIMAL":
        type_ = str(kind).removesuffix(" NOT NULL")
    if root == "TIMESTAMP":
        type_ = "TIMESTAMP_NTZ"
    frame = spark.sql(f"SELECT CAST(CAST(({sql}) AS {type_}) AS STRING)")
    changing = _changing(analyzed(frame).expressions().head())
    if changing is not None:
        raise UnsupportedError(
            f"DEFAULT {sql} of column {column!r} is not possible: the value of {changing} varies, and a Paimon default "
            "is one value"
        )
    value = frame.collect()[0][0]
    if value is None:
        return None
    return f"'{value}'" if unquoted(value) != value else str(value)


def default_sql(text: str, kind: DataType) -> str | None:
    """Return a stored default as a SQL expression; `None`: Spark cannot cast a text to the type.

    For these types, the writer replaces missing values with the default.
    """
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


def _changing(expression: JavaObject) -> str | None:
    """Return the name of an expression in the tree whose value varies; `None`: all values are constant."""
    name = str(expression.getClass().getSimpleName())
    if _CHANGES.fullmatch(name) or not expression.deterministic():
        return str(expression.prettyName()) if hasattr(expression, "prettyName") else name
    children = expression.children()
    names = (_changing(children.apply(i)) for i in range(children.length()))
    return next((name for name in names if name is not None), None)
