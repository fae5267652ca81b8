"""Registry of the aggregate functions by name.

Each function has a maker, which builds an :data:`Aggregate` from a column's :class:`FieldOptions`, and a line here. A
maker raises InvalidInputError for a column type that the function does not accept.
"""

from collections.abc import Callable, Mapping

from paimon_core.errors import InvalidInputError, nearest_name
from paimon_core.merge.aggregate.bitmap import rbm32, rbm64
from paimon_core.merge.aggregate.boolean import bool_and, bool_or
from paimon_core.merge.aggregate.collection import collect, merge_map, merge_map_with_keytime
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.first_last import (
    first_non_null_value,
    first_value,
    ignore_retract,
    last_non_null_value,
    last_value,
    primary_key,
)
from paimon_core.merge.aggregate.input import Aggregate
from paimon_core.merge.aggregate.nested import nested_partial_update, nested_update
from paimon_core.merge.aggregate.numeric import max_, min_, product, sum_
from paimon_core.merge.aggregate.sketch import hll_sketch, theta_sketch
from paimon_core.merge.aggregate.text import listagg

__all__ = ["AGGREGATES", "TAKES_BACK", "aggregate"]

Maker = Callable[[FieldOptions], Aggregate]
AGGREGATES: Mapping[str, Maker] = {
    "sum": sum_,
    "product": product,
    "max": max_,
    "min": min_,
    "last_value": last_value,
    "last_non_null_value": last_non_null_value,
    "first_value": first_value,
    "first_non_null_value": first_non_null_value,
    "first_not_null_value": first_non_null_value,
    "bool_and": bool_and,
    "bool_or": bool_or,
    "listagg": listagg,
    "collect": collect,
    "merge_map": merge_map,
    "merge_map_with_keytime": merge_map_with_keytime,
    "nested_update": nested_update,
    "nested_partial_update": nested_partial_update,
    "rbm32": rbm32,
    "rbm64": rbm64,
    "hll_sketch": hll_sketch,
    "theta_sketch": theta_sketch,
    "primary-key": primary_key,
}
TAKES_BACK = frozenset(
    {"sum", "product", "last_value", "last_non_null_value", "primary-key", "collect", "merge_map", "nested_update"}
)
"""The functions that can retract a value."""


def aggregate(function: str, field: FieldOptions) -> Aggregate:
    """Return the function of this name for a column.

    Raises InvalidInputError for an unknown name and for a column type that the function does not accept.
    """
    maker = AGGREGATES.get(function)
    if maker is None:
        near = nearest_name(function, AGGREGATES)
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(AGGREGATES))}."
        raise InvalidInputError(f"column {field.name!r}: there is no aggregate function {function!r}; {hint}")
    result = maker(field)
    return ignore_retract(result) if field.ignore_retract else result
