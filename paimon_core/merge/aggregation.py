"""The aggregation engine: every column by its function, -U and -D taken back."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from paimon_core.merge.aggregate.first_last import RowPick, seen_after
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, Mask, last, sizes_of
from paimon_core.merge.fold import MergeFunction
from paimon_core.merge.normalized_keys import Positions
from paimon_core.merge.result import all_true, apply, build_result, drop_before, is_present, kinds_of, retracts_of
from paimon_core.merge.window import Window
from paimon_core.types.row_kind import DELETE, INSERT


def aggregation(functions: Mapping[str, Aggregate], *, remove_on_delete: bool = False) -> MergeFunction:
    """Each named column by its function, other columns from the last row; a group of several rows becomes a +I.

    ``remove_on_delete``: a -D replaces the row by itself, values and kind; what follows adds *to those values*.
    Lawful as far as the functions are, and not with ``remove_on_delete``.
    """

    def fold(window: Window) -> pa.Table:
        if window.all_alone:
            return window.take(window.starts) if window.order is not None else window.rows
        alone, kinds = window.alone, kinds_of(window)
        opened, seen = alone, {}
        if remove_on_delete and (kinds == DELETE).any():
            restart = last(kinds == DELETE, window.starts)
            opened = alone | (restart >= 0)
            seen = {
                name: _seen(window, name, function, restart)
                for name, function in functions.items()
                if isinstance(function, RowPick) and function.seen and name in window.rows.column_names
            }
            window = drop_before(window, restart)
            kinds = kinds_of(window)
        return _aggregated(window, functions, opened, seen)

    return fold


def _aggregated(window: Window, functions: Mapping[str, Aggregate], opened: Mask, seen: Mapping[str, Mask]) -> pa.Table:
    kinds, count = kinds_of(window), window.num_rows
    retract = retracts_of(kinds)
    if retract is None:
        retract = ~all_true(count)
    else:
        retract[window.starts[opened]] = False
    feed = AggregateInput(window.starts, retract, ~all_true(count), opened)
    made = {
        name: apply(window, name, function, replace(feed, seen=seen.get(name)))
        for name, function in functions.items()
        if name in window.rows.column_names
    }
    index = window.ends - 1
    single = opened & (index == window.starts)
    return build_result(window, made, index, np.where(single, kinds[index], np.int8(INSERT)))


def _seen(window: Window, name: str, function: RowPick, restart: Positions) -> Mask:
    """Whether the function had been fed a first value by a row before ``restart`` that was no removal itself."""
    kinds, starts = kinds_of(window), window.starts
    before = np.arange(window.num_rows) < np.repeat(restart, sizes_of(starts, window.num_rows))
    nothing = ~all_true(window.num_rows)
    retract = retracts_of(kinds)
    feed = AggregateInput(starts, nothing if retract is None else retract, nothing, ~all_true(len(starts)))
    return seen_after(function, is_present(window, name), feed, (before & (kinds != DELETE)).astype(np.int64))
