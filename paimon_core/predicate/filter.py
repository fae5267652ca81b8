"""Filters as users write them: SQL-like text, or a predicate built with `col`."""

from collections.abc import Sequence
from typing import TypeAlias

from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.types.datatype import DataField

Filter: TypeAlias = str | Predicate | None
"""A filter as text or as a predicate; `None`: every row matches."""


def bound_filter(filter: Filter, fields: Sequence[DataField]) -> Predicate | None:
    """Return the filter as a bound predicate on `fields`. Raises the errors of `parse_predicate` and `bind`."""
    parsed = parse_predicate(filter) if isinstance(filter, str) else filter
    return None if parsed is None else bind(parsed, fields)
