"""Functions that pick one row of each group: first and last values.

They read null masks and no values, so an engine copies only the picked values.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import (
    Aggregate,
    AggregateInput,
    apply_repeated,
    pick,
    refuse_retract,
    repeated,
    valid,
)
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import first, last, rounds
from paimon_core.types.selection import Mask, Positions


@dataclass(frozen=True, slots=True)
class RowPick:
    """An aggregate that picks a row of each group: `rows(present, inputs)` returns its position, -1 for null.

    `seen(present, inputs)`: mask of groups that have seen a first value; `None`: the function does not depend on it.
    """

    rows: Callable[[Mask, AggregateInput], Positions]
    seen: Callable[[Mask, AggregateInput], Mask] | None = None

    def __call__(self, column: Column, inputs: AggregateInput) -> Column:
        """Return the picked values."""
        return pick(column, self.rows(valid(column), inputs))


def choose_some(function: RowPick, present: Mask, inputs: AggregateInput, times: Positions) -> Positions:
    """Return the picked rows of an input whose rows are repeated ``times`` (0, 1, 2), as in :func:`apply_repeated`."""
    if (times == 1).all():
        return function.rows(present, inputs)
    index, part, back = repeated(inputs, times)
    if not len(index):
        return back
    chosen = function.rows(present[index], part)[back]
    return np.where((back < 0) | (chosen < 0), -1, index[chosen])


def seen_after(function: RowPick, present: Mask, inputs: AggregateInput, times: Positions) -> Mask:
    """Return the mask of groups that have seen a first value. REQUIRES: the function has ``seen``."""
    assert function.seen is not None
    index, part, back = repeated(inputs, times)
    before = np.zeros(len(back), bool) if inputs.seen is None else inputs.seen
    return np.where(back < 0, before, function.seen(present[index], part)[back]) if len(index) else before


def ignore_retract(function: Aggregate) -> Aggregate:
    """Return the function, made to ignore rows that retract."""

    def once(inputs: AggregateInput) -> Positions:
        return np.where(inputs.retract, 0, 1)

    if not isinstance(function, RowPick):
        return lambda column, inputs: apply_repeated(function, column, inputs, once(inputs))
    return RowPick(
        lambda present, inputs: choose_some(function, present, inputs, once(inputs)),
        function.seen and (lambda present, inputs: seen_after(function, present, inputs, once(inputs))),
    )


def last_value(_: FieldOptions) -> Aggregate:
    """Make last_value: the last value, nulls included; null after a retract. Associative."""
    return RowPick(_last_row)


def _last_row(_: Mask, inputs: AggregateInput) -> Positions:
    index = inputs.last_rows
    if inputs.is_late:
        index = last(~inputs.late | inputs.retract, inputs.starts)  # a late row changes nothing, a late retract clears
    return np.where((index >= 0) & inputs.retract[index], -1, index) if inputs.retracts else index


def last_non_null_value(_: FieldOptions) -> Aggregate:
    """Make last_non_null_value: a retract of a value clears the column. Associative without retracts."""
    return RowPick(_last_present)


def _last_present(present: Mask, inputs: AggregateInput) -> Positions:
    order = inputs.final_order()
    if order is None:
        if not inputs.retracts:
            return _last_row(present, inputs) if present.all() else last(present, inputs.starts)
        index = last(present, inputs.starts)
        return np.where((index >= 0) & ~inputs.retract[index], index, -1)
    cleared = last(present & inputs.retract, inputs.starts)
    live = present & (np.arange(len(present)) > cleared[inputs.group()])
    index = last(live[order], inputs.starts)
    return np.where(index >= 0, order[index], -1)


def primary_key(_: FieldOptions) -> Aggregate:
    """Make primary-key: the value of the last row of any kind. Associative."""
    return RowPick(lambda _, inputs: last(~inputs.late | inputs.retract, inputs.starts))


def first_value(field: FieldOptions) -> Aggregate:
    """Make first_value: the first value, nulls included. Associative without late rows.

    A late row replaces the value if a first value was *seen*: applied, and not only copied by an opening row. Removing
    the record does not reset this: the rows that follow then keep the removing row's value.
    """
    return _first(field, "first_value", skip_null=False)


def first_non_null_value(field: FieldOptions) -> Aggregate:
    """Make first_non_null_value: like :func:`first_value` without nulls, but a late row may replace it by null."""
    return _first(field, "first_non_null_value", skip_null=True)


def _first(field: FieldOptions, name: str, *, skip_null: bool) -> Aggregate:
    def rows(present: Mask, inputs: AggregateInput) -> Positions:
        refuse_retract(field, name, inputs)
        counts = present if skip_null else np.ones(len(present), bool)
        if inputs.is_late:
            return _follow(counts, inputs, skip_null=skip_null)[0]
        if not inputs.opened.any():
            return first(counts, inputs.starts)
        if counts.all():
            if not (inputs.opened & (inputs.sizes > 1)).any():
                return inputs.starts  # an opened group without further rows keeps its first row
            index = _behind_opened(inputs)
        else:
            counts = counts.copy()
            counts[inputs.starts[inputs.opened]] = False
            index = first(counts, inputs.starts)
        stays = inputs.opened & ((index < 0) if inputs.seen is None else inputs.seen | (index < 0))
        return np.where(stays, inputs.starts, index)

    def seen(present: Mask, inputs: AggregateInput) -> Mask:
        return _follow(present if skip_null else np.ones(len(present), bool), inputs, skip_null=skip_null)[1]

    return RowPick(rows, seen)


def _behind_opened(inputs: AggregateInput) -> Positions:
    """Return the first row of each group; for an opened group the second row, -1 if it has only one."""
    second = np.where(inputs.sizes > 1, inputs.starts + 1, -1)
    return np.where(inputs.opened, second, inputs.starts)


def _follow(counts: Mask, inputs: AggregateInput, *, skip_null: bool) -> tuple[Positions, Mask]:
    """Return the picked row of each group and the mask of groups with a first value, by a loop over rows.

    ``counts``: mask of rows that can be a first value. If nulls count, a late first row makes null the first value.
    """
    opens_late = inputs.late[inputs.starts] & ~inputs.opened
    at = np.where(opens_late & (not skip_null), -1, inputs.starts)
    seen = np.where(opens_late, not skip_null, counts[inputs.starts] & ~inputs.opened)
    if inputs.seen is not None:
        seen |= inputs.seen
    for group, row in rounds(inputs.starts, len(counts)):
        late, unseen = inputs.late[row], ~seen[group]
        stays = unseen & (at[group] >= 0) & counts[at[group]]
        takes = unseen & counts[row]
        at[group] = np.where(np.where(late, ~stays, takes), row, at[group])
        seen[group] |= np.where(late, stays, takes)
    return at, seen
