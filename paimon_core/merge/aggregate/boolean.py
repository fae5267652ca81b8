"""The aggregate functions bool_and and bool_or."""

from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, numbers, refuse_retract, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import any_of


def bool_and(field: FieldOptions) -> Aggregate:
    """Make bool_and: true if all non-null values are true. Associative."""
    return _combined(field, "bool_and", np.logical_and)


def bool_or(field: FieldOptions) -> Aggregate:
    """Make bool_or: true if any value is true. Associative."""
    return _combined(field, "bool_or", np.logical_or)


def _combined(field: FieldOptions, name: str, combine: Any) -> Aggregate:
    field.check_root(name, "BOOLEAN")

    def aggregate(column: Column, inputs: AggregateInput) -> Column:
        refuse_retract(field, name, inputs)
        values = combine.reduceat(numbers(column, combine is np.logical_and), inputs.starts)
        return pa.array(values, pa.bool_(), mask=~any_of(valid(column), inputs.starts))

    return aggregate
