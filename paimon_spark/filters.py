"""Spark's pushed filters as predicates of the engine.

Spark checks every row again with the filters it is handed back, so what cannot be said here is left out: a filter is
then only not used for skipping files.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import datasource as spark

from paimon_core.predicate.expr import And, Leaf, Not, Predicate

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


def predicate_of(filters: Iterable[spark.Filter]) -> Predicate | None:
    """The conjunction of the filters that can be said as predicates; None when there is none of them."""
    said = tuple(predicate for f in filters if (predicate := _one(f)) is not None)
    if not said:
        return None
    return said[0] if len(said) == 1 else And(said)


def _one(filter_: spark.Filter) -> Predicate | None:
    if isinstance(filter_, spark.Not):
        child = _positive(filter_.child)
        return None if child is None else Not(child)
    return _positive(filter_)


def _positive(filter_: spark.Filter) -> Predicate | None:
    path: tuple[str, ...] = getattr(filter_, "attribute", ())
    if len(path) != 1:  # a field inside a struct, or a kind of filter newer than this module
        return None
    if isinstance(filter_, spark.IsNull):
        return Leaf("is null", path[0], ())
    if isinstance(filter_, spark.IsNotNull):
        return Leaf("is not null", path[0], ())
    if isinstance(filter_, spark.In):
        return Leaf("in", path[0], tuple(filter_.value)) if _has_values(filter_.value) else None
    operator = _COMPARISONS.get(type(filter_))
    value: Any = getattr(filter_, "value", None)
    return None if operator is None or value is None else Leaf(operator, path[0], (value,))


def _has_values(values: Iterable[Any]) -> bool:
    """Whether an IN list is one that NOT IN may turn round: not empty and without a null."""
    listed = list(values)
    return bool(listed) and all(value is not None for value in listed)
