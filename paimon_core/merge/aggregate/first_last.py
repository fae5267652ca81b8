"""Functions that choose one row of each group: first and last values. They look at where values are, never at them.

Knowing that, an engine moves only the values chosen.
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
    """An aggregate that picks a row: ``rows(present, feed)`` is its position for each group, -1 for null.

    ``seen(present, feed)``, for functions that remember: whether each group has been fed a first value.
    """

    rows: Callable[[Mask, AggregateInput], Positions]
    seen: Callable[[Mask, AggregateInput], Mask] | None = None

    def __call__(self, column: Column, feed: AggregateInput) -> Column:
        """The chosen values."""
        return pick(column, self.rows(valid(column), feed))


def choose_some(function: RowPick, present: Mask, feed: AggregateInput, times: Positions) -> Positions:
    """The rows chosen where rows are fed ``times`` (0, 1, 2) over, as :func:`apply_repeated` does."""
    if (times == 1).all():
        return function.rows(present, feed)
    index, part, back = repeated(feed, times)
    if not len(index):
        return back
    chosen = function.rows(present[index], part)[back]
    return np.where((back < 0) | (chosen < 0), -1, index[chosen])


def seen_after(function: RowPick, present: Mask, feed: AggregateInput, times: Positions) -> Mask:
    """Whether a function that remembers has been fed a first value in each group."""
    assert function.seen is not None
    index, part, back = repeated(feed, times)
    before = np.zeros(len(back), bool) if feed.seen is None else feed.seen
    return np.where(back < 0, before, function.seen(present[index], part)[back]) if len(index) else before


def ignore_retract(function: Aggregate) -> Aggregate:
    """The function, for which rows that retract leave the column as it is."""
    if not isinstance(function, RowPick):
        return lambda column, feed: apply_repeated(function, column, feed, np.where(feed.retract, 0, 1))
    return RowPick(
        lambda present, feed: choose_some(function, present, feed, np.where(feed.retract, 0, 1)),
        function.seen and (lambda present, feed: seen_after(function, present, feed, np.where(feed.retract, 0, 1))),
    )


def last_value(_: FieldOptions) -> Aggregate:
    """The last value, null too; null after a retract. Lawful."""
    return RowPick(_last_row)


def _last_row(_: Mask, feed: AggregateInput) -> Positions:
    index = sizes_of(feed.starts, len(feed.retract)) + feed.starts - 1
    if feed.older.any():
        index = last(~feed.older | feed.retract, feed.starts)  # a late row changes nothing, a late retract clears
    return np.where((index >= 0) & feed.retract[index], -1, index) if feed.retract.any() else index


def last_non_null_value(_: FieldOptions) -> Aggregate:
    """The last value that is not null; a retract of one clears. Lawful without retracts."""
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
    """The value of the last row, whatever its kind. Lawful."""
    return RowPick(lambda _, feed: last(~feed.older | feed.retract, feed.starts))


def first_value(field: FieldOptions) -> Aggregate:
    """The first value, null too. Lawful without late rows.

    A late row replaces the value once one was *seen*, that is applied and not only copied by an opening row. What was
    seen outlives a removal: the first value of the rows that follow is then the one the removal left.
    """
    return _first(field, "first_value", skip_null=False)


def first_non_null_value(field: FieldOptions) -> Aggregate:
    """The first value that is not null; as :func:`first_value`, late rows replacing it even by null."""
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
    """The first row of each group, the second of those that were opened, -1 where these have none."""
    second = np.where(sizes_of(feed.starts, len(feed.retract)) > 1, feed.starts + 1, -1)
    return np.where(feed.opened, second, feed.starts)


def _follow(counts: Mask, feed: AggregateInput, *, skip_null: bool) -> tuple[Positions, Mask]:
    """The row chosen in each group and whether it has seen one, row by row. ``counts``: rows that can be a first value.

    A late row that finds nothing to lie under makes that nothing the first value, if null may be one.
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
