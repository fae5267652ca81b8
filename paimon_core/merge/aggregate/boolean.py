"""bool_and and bool_or."""

from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, numbers, refuse_retract, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import any_of


def bool_and(field: FieldOptions) -> Aggregate:
    """Whether all values that are not null are true. Lawful."""
    return _combined(field, "bool_and", np.logical_and)


def bool_or(field: FieldOptions) -> Aggregate:
    """Whether any value is true. Lawful."""
    return _combined(field, "bool_or", np.logical_or)


def _combined(field: FieldOptions, name: str, combine: Any) -> Aggregate:
    field.check_root(name, "BOOLEAN")

    def aggregate(column: Column, feed: AggregateInput) -> Column:
        refuse_retract(field, name, feed)
        values = combine.reduceat(numbers(column, combine is np.logical_and), feed.starts)
        return pa.array(values, pa.bool_(), mask=~any_of(valid(column), feed.starts))

    return aggregate
