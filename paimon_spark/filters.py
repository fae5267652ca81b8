"""Translation of Spark's pushed filters to predicates of the engine.

Spark applies all of its filters to every row again. So a filter without a predicate is left out: the engine then skips
no files by it.
"""

import datetime as dt
from collections.abc import Collection, Iterable
from typing import Any

from pyspark.sql import datasource as spark

from paimon_core.predicate.expr import And, Leaf, Not, Or, Predicate

_COMPARISONS: dict[type[spark.Filter], str] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "<=>",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.StringStartsWith: "starts with",
    spark.StringEndsWith: "ends with",
    spark.StringContains: "contains",
}


_TICK = dt.timedelta(microseconds=1)


def predicate_of(
    filters: Iterable[spark.Filter], finer: Collection[str] = (), computed: Collection[str] = ()
) -> Predicate | None:
    """Return the conjunction of the filters that have a predicate; `None`: no filter has one.

    Args:
        filters: of Spark.
        finer: names of timestamp columns with digits below the microsecond. Spark cuts these digits, so Spark's
            ``ts = t`` is true for the whole microsecond that begins at ``t``.
        computed: names of columns that no file stores; their filters have no predicate.
    """
    stored = (f for f in filters if _column_of(f) not in computed)
    predicates = tuple(predicate for f in stored if (predicate := _predicate(f, finer)) is not None)
    if not predicates:
        return None
    return predicates[0] if len(predicates) == 1 else And(predicates)


def _column_of(filter_: spark.Filter) -> str | None:
    """Return the first part of the name of the filter's column; `None`: the filter has no single column."""
    path: tuple[str, ...] = getattr(filter_.child if isinstance(filter_, spark.Not) else filter_, "attribute", ())
    return path[0] if path else None


def _predicate(filter_: spark.Filter, finer: Collection[str]) -> Predicate | None:
    if isinstance(filter_, spark.Not):
        child = _positive(filter_.child, finer)
        return None if child is None else Not(child)
    return _positive(filter_, finer)


def _positive(filter_: spark.Filter, finer: Collection[str]) -> Predicate | None:
    path: tuple[str, ...] = getattr(filter_, "attribute", ())
    if len(path) != 1:  # a field inside a struct, or an unknown kind of filter
        return None
    if isinstance(filter_, spark.IsNull):
        return Leaf("is null", path[0], ())
    if isinstance(filter_, spark.IsNotNull):
        return Leaf("is not null", path[0], ())
    if isinstance(filter_, spark.In):
        if not _has_values(filter_.value):
            return None
        if path[0] in finer:
            ticks = [_on_ticks("=", path[0], value) for value in filter_.value]
            return None if None in ticks else Or(tuple(tick for tick in ticks if tick is not None))
        return Leaf("in", path[0], tuple(filter_.value))
    operator = _COMPARISONS.get(type(filter_))
    value: Any = getattr(filter_, "value", None)
    if operator is None or value is None:
        return None
    return _on_ticks(operator, path[0], value) if path[0] in finer else Leaf(operator, path[0], (value,))


def _on_ticks(operator: str, column: str, value: dt.datetime) -> Predicate | None:
    """Return a comparison of a column of nanoseconds cut to microseconds; `None`: the value is the last datetime."""
    try:
        after = value + _TICK
    except OverflowError:
        return None
    match operator:
        case ">":
            return Leaf(">=", column, (after,))
        case "<=":
            return Leaf("<", column, (after,))
        case "=":
            return And((Leaf(">=", column, (value,)), Leaf("<", column, (after,))))
        case "<=>":  # false, and not unknown, for NULL: so NOT may be applied
            within = (Leaf(">=", column, (value,)), Leaf("<", column, (after,)))
            return And((Leaf("is not null", column, ()), *within))
    return Leaf(operator, column, (value,))


def _has_values(values: Iterable[Any]) -> bool:
    """Return True if NOT may be applied to this IN list: it is not empty and holds no null."""
    listed = list(values)
    return bool(listed) and all(value is not None for value in listed)
