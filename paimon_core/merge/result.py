"""Windows to results: where values are, which rows retract, and one row a group put together of columns and choices."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.merge.aggregate.first_last import RowPick, choose_some
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, apply_repeated, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.row_kinds import VALUE_KIND
from paimon_core.merge.segments import tally
from paimon_core.merge.window import Window
from paimon_core.types.row_kind import is_retract
from paimon_core.types.selection import Mask, Positions, only_chunk

Kinds: TypeAlias = npt.NDArray[np.int8]
ColumnResult: TypeAlias = Any
"""A column of a result: an array with a value a group, or the positions of the rows its values are taken from."""


def kinds_of(window: Window) -> Kinds:
    """The kind of each row, in sorted order."""
    kinds: Kinds = only_chunk(window.rows, VALUE_KIND).to_numpy()
    return kinds if window.order is None else kinds[window.order]


def retracts_of(kinds: Kinds) -> Mask | None:
    """Which rows take back; None where none does."""
    mask = is_retract(kinds)
    return mask if mask.any() else None


def is_present(window: Window, name: str) -> Mask:
    """Where a column holds a value, in sorted order. The values are not moved."""
    column = only_chunk(window.rows, name)
    if not column.null_count:
        return all_true(window.num_rows)
    mask = valid(column)
    return mask if window.order is None else mask[window.order]


def apply(
    window: Window, name: str, function: Aggregate, feed: AggregateInput, times: Positions | None = None
) -> ColumnResult:
    """The function's result for a column, its rows fed ``times`` (0, 1, 2; None: once) over.

    A choice moves no values: it gives positions.
    """
    if isinstance(function, RowPick):
        mask = is_present(window, name)
        return function.rows(mask, feed) if times is None else choose_some(function, mask, feed, times)
    column = window.column(name)
    return function(column, feed) if times is None else apply_repeated(function, column, feed, times)


def all_true(count: int) -> Mask:
    """A mask that holds everywhere."""
    return np.ones(count, bool)


def build_result(window: Window, made: Mapping[str, ColumnResult], index: Positions, kinds: Kinds) -> pa.Table:
    """One row a group: the columns made, the given kinds, everything else from the row at ``index``."""
    taken: dict[int, pa.Array] = {}

    def column(name: str) -> Column:
        if name == VALUE_KIND:
            return pa.array(kinds, pa.int8())
        value = made.get(name, index)
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in taken:
            mask = value < 0
            taken[id(value)] = pa.array(window.at(value), mask=mask) if mask.any() else pa.array(window.at(value))
        return only_chunk(window.rows, name).take(taken[id(value)])

    schema = window.rows.schema
    return pa.table([column(name) for name in schema.names], schema=schema)


def drop_before(window: Window, restart: Positions) -> Window:
    """The window without the rows of each group before its row ``restart`` (-1: all stay)."""
    sizes = window.ends - window.starts
    keep = np.arange(window.num_rows) >= np.repeat(restart, sizes)
    order = np.flatnonzero(keep) if window.order is None else window.order[keep]
    counts = tally(keep, window.starts)
    return Window(window.rows, order, np.cumsum(counts) - counts)
