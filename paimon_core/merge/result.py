"""Results of a fold: one row for each group, built from new columns and from positions of existing values."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.merge.aggregate.first_last import RowPick, choose_some
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, UnsortedAggregate, apply_repeated, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.row_kinds import VALUE_KIND
from paimon_core.merge.segments import last, tally
from paimon_core.merge.window import Window
from paimon_core.types.row_kind import DELETE, is_retract
from paimon_core.types.selection import Mask, Positions, only_chunk

Kinds: TypeAlias = npt.NDArray[np.int8]
ColumnResult: TypeAlias = Any
"""A column of a result: an array with one value for each group, or the positions of the rows with the values."""


def kinds_of(window: Window) -> Kinds:
    """Return the kind of each row, in sorted order."""
    kinds: Kinds = only_chunk(window.rows, VALUE_KIND).to_numpy()
    return kinds if window.order is None else kinds[window.order]


def retracts_of(kinds: Kinds) -> Mask | None:
    """Return the mask of the rows that retract; `None`: no row retracts."""
    mask = is_retract(kinds)
    return mask if mask.any() else None


def is_present(window: Window, name: str) -> Mask:
    """Return the mask of the rows where a column is not null, in sorted order, without copying values."""
    column = only_chunk(window.rows, name)
    if not column.null_count:
        return all_true(window.num_rows)
    mask = valid(column)
    return mask if window.order is None else mask[window.order]


def apply(
    window: Window, name: str, function: Aggregate, inputs: AggregateInput, times: Positions | None = None
) -> ColumnResult:
    """Return the function's result for a column.

    A function that picks rows copies no values: its result is their positions. A column is sorted only if its function,
    nulls or retracting rows require it.

    Args:
        window: the rows.
        name: the column.
        function: the column's aggregate function.
        inputs: groups and kinds of the rows.
        times: how often (0, 1, 2) each row is applied; `None`: once.
    """
    if isinstance(function, RowPick):
        mask = is_present(window, name)
        return function.rows(mask, inputs) if times is None else choose_some(function, mask, inputs, times)
    if isinstance(function, UnsortedAggregate) and times is None and inputs.unsorted is not None:
        unsorted = only_chunk(window.rows, name)
        if not unsorted.null_count and not inputs.retracts:
            return function(unsorted, inputs.of_unsorted)
    column = window.column(name)
    return function(column, inputs) if times is None else apply_repeated(function, column, inputs, times)


def all_true(count: int) -> Mask:
    """Return a mask that is true everywhere."""
    return np.ones(count, bool)


def build_result(window: Window, results: Mapping[str, ColumnResult], index: Positions, kinds: Kinds) -> pa.Table:
    """Return one row for each group.

    Args:
        window: the rows.
        results: results by column.
        index: for each group, the row that all other columns are taken from, as a position in sorted order.
        kinds: the kind of each group's row.
    """
    taken: dict[int, pa.Array] = {}

    def column(name: str) -> Column:
        if name == VALUE_KIND:
            return pa.array(kinds, pa.int8())
        value = results.get(name, index)
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in taken:
            mask = value < 0
            taken[id(value)] = pa.array(window.at(value), mask=mask) if mask.any() else pa.array(window.at(value))
        return only_chunk(window.rows, name).take(taken[id(value)])

    schema = window.rows.schema
    return pa.table([column(name) for name in schema.names], schema=schema)


def removals(window: Window) -> Positions:
    """Return, for each group, its last row of kind -D if a row that adds follows it, else -1."""
    kinds = kinds_of(window)
    removal = last(kinds == DELETE, window.starts)
    return np.where(last(~is_retract(kinds), window.starts) > removal, removal, -1)


def drop_before(window: Window, restart: Positions) -> Window:
    """Return the window without each group's rows before `restart[g]` (-1: all rows stay)."""
    sizes = window.ends - window.starts
    keep = np.arange(window.num_rows) >= np.repeat(restart, sizes)
    order = np.flatnonzero(keep) if window.order is None else window.order[keep]
    counts = tally(keep, window.starts)
    return Window(window.rows, order, np.cumsum(counts) - counts)
