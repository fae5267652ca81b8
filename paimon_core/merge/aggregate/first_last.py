"""Functions that pick one row of each group: first and last values.

They need to know which values are null, never the values. So an engine copies only the picked values.
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
from paimon_core.merge.segments import first, last, rounds, sizes_of
from paimon_core.types.selection import Mask, Positions


@dataclass(frozen=True, slots=True)
class RowPick:
    """An aggregate that picks a row: `rows(present, feed)` is its position for each group, -1: null.

    `seen(present, feed)`: mask of groups that have a first value; `None`: the function needs no memory of it.
    """

    rows: Callable[[Mask, AggregateInput], Positions]
    seen: Callable[[Mask, AggregateInput], Mask] | None = None

    def __call__(self, column: Column, feed: AggregateInput) -> Column:
        """Return the picked values."""
        return pick(column, self.rows(valid(column), feed))


def choose_some(function: RowPick, present: Mask, feed: AggregateInput, times: Positions) -> Positions:
    """Return the picked rows of an input whose rows are repeated ``times`` (0, 1, 2), as in :func:`apply_repeated`."""
    if (times == 1).all():
        return function.rows(present, feed)
    index, part, back = repeated(feed, times)
    if not len(index):
        return back
    chosen = function.rows(present[index], part)[back]
    return np.where((back < 0) | (chosen < 0), -1, index[chosen])


def seen_after(function: RowPick, present: Mask, feed: AggregateInput, times: Positions) -> Mask:
    """Return the mask of groups in which a function with memory has a first value."""
    assert function.seen is not None
    index, part, back = repeated(feed, times)
    before = np.zeros(len(back), bool) if feed.seen is None else feed.seen
    return np.where(back < 0, before, function.seen(present[index], part)[back]) if len(index) else before


def ignore_retract(function: Aggregate) -> Aggregate:
    """Return the function with rows that retract left out."""
    if not isinstance(function, RowPick):
        return lambda column, feed: apply_repeated(function, column, feed, np.where(feed.retract, 0, 1))
    return RowPick(
        lambda present, feed: choose_some(function, present, feed, np.where(feed.retract, 0, 1)),
        function.seen and (lambda present, feed: seen_after(function, present, feed, np.where(feed.retract, 0, 1))),
    )


def last_value(_: FieldOptions) -> Aggregate:
    """Make last_value: the last value, null too; null after a retract. Lawful."""
    return RowPick(_last_row)


def _last_row(_: Mask, feed: AggregateInput) -> Positions:
    index = sizes_of(feed.starts, len(feed.retract)) + feed.starts - 1
    if feed.older.any():
        index = last(~feed.older | feed.retract, feed.starts)  # a late row changes nothing, a late retract clears
    return np.where((index >= 0) & feed.retract[index], -1, index) if feed.retract.any() else index


def last_non_null_value(_: FieldOptions) -> Aggregate:
    """Make last_non_null_value: a retract of a value clears the column. Lawful without retracts."""
    return RowPick(_last_present)


def _last_present(present: Mask, feed: AggregateInput) -> Positions:
    line = feed.line()
    if line is None:
        if not feed.retract.any():
            return _last_row(present, feed) if present.all() else last(present, feed.starts)
        index = last(present, feed.starts)
        return np.where((index >= 0) & ~feed.retract[index], index, -1)
    cleared = last(present & feed.retract, feed.starts)
    left = present & (np.arange(len(present)) > cleared[feed.group()])
    index = last(left[line], feed.starts)
    return np.where(index >= 0, line[index], -1)


def primary_key(_: FieldOptions) -> Aggregate:
    """Make primary-key: the value of the last row, whatever its kind. Lawful."""
    return RowPick(lambda _, feed: last(~feed.older | feed.retract, feed.starts))


def first_value(field: FieldOptions) -> Aggregate:
    """Make first_value: the first value, null too. Lawful without late rows.

    A late row replaces the value if a first value was *seen*: applied, and not only copied by an opening row. A removal
    of the record does not reset this: the first value of the following rows is then the one of the removing row.
    """
    return _first(field, "first_value", skip_null=False)


def first_non_null_value(field: FieldOptions) -> Aggregate:
    """Make first_non_null_value: as :func:`first_value`, without nulls, but a late row replaces it even by null."""
    return _first(field, "first_non_null_value", skip_null=True)


def _first(field: FieldOptions, name: str, *, skip_null: bool) -> Aggregate:
    def rows(present: Mask, feed: AggregateInput) -> Positions:
        refuse_retract(field, name, feed)
        counts = present if skip_null else np.ones(len(present), bool)
        if feed.older.any():
            return _follow(counts, feed, skip_null=skip_null)[0]
        if not feed.opened.any():
            return first(counts, feed.starts)
        if counts.all():
            index = _behind_opened(feed)
        else:
            counts = counts.copy()
            counts[feed.starts[feed.opened]] = False
            index = first(counts, feed.starts)
        stays = feed.opened & ((index < 0) if feed.seen is None else feed.seen | (index < 0))
        return np.where(stays, feed.starts, index)

    def seen(present: Mask, feed: AggregateInput) -> Mask:
        return _follow(present if skip_null else np.ones(len(present), bool), feed, skip_null=skip_null)[1]

    return RowPick(rows, seen)


def _behind_opened(feed: AggregateInput) -> Positions:
    """Return the first row of each group; of an opened group the second, -1: it has one row."""
    second = np.where(sizes_of(feed.starts, len(feed.retract)) > 1, feed.starts + 1, -1)
    return np.where(feed.opened, second, feed.starts)


def _follow(counts: Mask, feed: AggregateInput, *, skip_null: bool) -> tuple[Positions, Mask]:
    """Return the picked row of each group and the mask of groups with a first value, by a loop over rows.

    ``counts``: mask of rows that can be a first value. A late first row makes null the first value, if null may be one.
    """
    lone = feed.older[feed.starts] & ~feed.opened
    at = np.where(lone & (not skip_null), -1, feed.starts)
    seen = np.where(lone, not skip_null, counts[feed.starts] & ~feed.opened)
    if feed.seen is not None:
        seen |= feed.seen
    for group, row in rounds(feed.starts, len(counts)):
        late, unseen = feed.older[row], ~seen[group]
        stays = unseen & (at[group] >= 0) & counts[at[group]]
        takes = unseen & counts[row]
        at[group] = np.where(np.where(late, ~stays, takes), row, at[group])
        seen[group] |= np.where(late, stays, takes)
    return at, seen
