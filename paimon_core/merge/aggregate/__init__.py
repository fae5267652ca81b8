"""Aggregate functions: the registry of their names.

A function is a module's maker, from the column's :class:`FieldOptions` to an :data:`Aggregate`, and a line here. A
maker refuses a column of a type it does not take.
"""

import difflib
from collections.abc import Callable, Mapping

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.feed import Aggregate, ignore_retract
from paimon_core.merge.aggregate.field import FieldOptions

__all__ = ["AGGREGATES", "aggregate"]

Maker = Callable[[FieldOptions], Aggregate]
AGGREGATES: Mapping[str, Maker] = {}


def aggregate(function: str, field: FieldOptions) -> Aggregate:
    """The function of that name for a column. InvalidInputError names an unknown one, or a type it does not take."""
    maker = AGGREGATES.get(function)
    if maker is None:
        near = difflib.get_close_matches(function, AGGREGATES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(AGGREGATES))}."
        raise InvalidInputError(f"column {field.name!r}: there is no aggregate function {function!r}; {hint}")
    made = maker(field)
    return ignore_retract(made) if field.ignore_retract else made
