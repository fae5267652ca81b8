"""Conversion of the engine's filters to Spark columns, for statements whose rows Spark's own scan reads."""

import datetime as dt
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from paimon_core.engine import And, Constant, Leaf, Not, Or, Predicate
from paimon_core.types.datatype import INTEGER_ROOTS, AtomicType, DataField

_EPOCH = dt.date(1970, 1, 1)
_ROOTS = {*INTEGER_ROOTS, "STRING", "VARCHAR", "BOOLEAN", "DATE"}
"""The type roots whose values Spark and the engine compare in the same way."""
_TESTS: dict[str, Callable[..., Column]] = {
    "=": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
    "<=>": lambda column, value: column.eqNullSafe(value),
    "in": lambda column, *values: column.isin(*values),
    "not in": lambda column, *values: ~column.isin(*values),
    "is null": lambda column: column.isNull(),
    "is not null": lambda column: column.isNotNull(),
    "starts with": lambda column, value: column.startswith(value),
    "ends with": lambda column, value: column.endswith(value),
    "contains": lambda column, value: column.contains(value),
}


def filter_column(filter: Predicate, fields: Sequence[DataField]) -> Column | None:
    """Return a column with the same value as a filter: true, false or NULL. `None`: Spark might differ.

    Args:
        filter: a predicate that is bound to `fields`.
        fields: the columns of the table.
    """
    match filter:
        case Constant(value):
            return F.lit(value).cast("boolean")
        case Not(child):
            negated = filter_column(child, fields)
            return None if negated is None else ~negated
        case And(children) | Or(children):
            converted = [filter_column(child, fields) for child in children]
            columns = [column for column in converted if column is not None]
            if len(columns) < len(converted):
                return None
            return reduce(lambda a, b: a & b if isinstance(filter, And) else a | b, columns)
        case Leaf():
            field = next((field for field in fields if field.name == filter.column), None)
            return None if field is None else _test(filter, field)  # `None`: a test of a field of a struct
    return None


def _test(leaf: Leaf, field: DataField) -> Column | None:
    column = F.col("`" + field.name.replace("`", "``") + "`")
    if not leaf.values:
        return _TESTS[leaf.op](column) if leaf.op in ("is null", "is not null") else None
    if not isinstance(field.type, AtomicType) or field.type.root not in _ROOTS:
        return None
    try:
        values = [_literal(value, field.type.root) for value in leaf.values]
    except OverflowError:  # a day outside of the range of Python's dates
        return None
    return _TESTS[leaf.op](column, *values)


def _literal(value: Any, root: str) -> Column:
    if root == "DATE" and isinstance(value, int):
        return F.lit(_EPOCH + dt.timedelta(days=value))
    return F.lit(value)
