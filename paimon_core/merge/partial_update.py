"""The partial-update engine: each column's last value that is not null, or columns versioned by sequence groups."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.first_last import RowPick, seen_after
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, Mask, any_of, first, last, numbered, sizes_of
from paimon_core.merge.aggregate.ordering import sortable
from paimon_core.merge.normalized_keys import Positions, only_chunk
from paimon_core.merge.result import (
    ColumnResult,
    Kinds,
    all_true,
    apply,
    build_result,
    drop_before,
    is_present,
    kinds_of,
    retracts_of,
)
from paimon_core.merge.row_kinds import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.merge.window import Window
from paimon_core.types.row_kind import DELETE, INSERT

REFUSED = (
    "merge engine partial-update cannot take rows of kind -U or -D; set 'ignore-delete' = 'true' to leave them out, "
    "'partial-update.remove-record-on-delete' = 'true' to let -D remove the record, or a sequence group "
    "('fields.<column>.sequence-group') to let them clear its columns"
)
_WIDEST = 2**62


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns versioned together by ordering columns, nulls smallest; for each an aggregate, or None: the newest value.

    ``removes``: a -D that is newest in this group removes the record.
    """

    ordering: tuple[str, ...]
    columns: Mapping[str, Aggregate | None]
    removes: bool = False


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """A fold: what is left of a group is the last value of each column that is not null.

    Columns in a sequence group follow the group's newest row, nulls too. A row that *opens* (alone, the first if it
    retracts, or one that removes) gives all its values as they are. Other retracts: within sequence groups they clear
    plain columns if newest and always take back from aggregates; with ``remove_on_delete`` -D opens anew and -U does
    nothing; with ``ignore_delete`` nothing. The result is a -D if its last row removed or no row added, else +I.

    Lawful for rows that add, without aggregates in sequence groups or where those commute; unlawful with retracts: a
    first retract fills the row. Removals by several groups cost a pass for each removal of the busiest key.
    """

    key: Collection[str] = ()
    groups: Sequence[SequenceGroup] = ()
    ignore_delete: bool = False
    remove_on_delete: bool = False

    def __call__(self, window: Window) -> pa.Table:
        """One row a group. InvalidInputError for a row that cannot be taken."""
        if window.all_alone:
            return window.take(window.starts) if window.order is not None else window.rows
        kinds, alone = kinds_of(window), window.alone
        retract = retracts_of(kinds)
        state = _State(window, kinds, retract, alone, ~all_true(len(alone)), {})
        added = all_true(len(alone)) if retract is None else any_of(~retract, window.starts)
        if retract is not None:
            state = self._retracting(state, retract)
        made = self._columns(state)
        kinds, index = state.kinds, state.window.ends - 1
        kind = np.where(state.removed & (index == state.window.starts) | ~added, np.int8(DELETE), np.int8(INSERT))
        return build_result(state.window, made, index, np.where(alone, kinds[index], kind))

    def _retracting(self, state: "_State", retract: Mask) -> "_State":
        """The state without rows that are ignored, and without rows that lie before a removal."""
        if self.ignore_delete:
            keep = ~retract
            keep[state.window.starts] = True
            return state.cut(state.window.kept(keep), state.removed, {})
        if self.remove_on_delete or any(group.removes for group in self.groups):
            while (restart := self._removals(state)) is not None:
                seen = {name: memory for group in self.groups for name, memory in _memories(state, group, restart)}
                state = state.cut(drop_before(state.window, restart), state.removed | (restart >= 0), seen)
        elif not self.groups and (retract & ~np.repeat(state.alone, state.sizes)).any():
            raise InvalidInputError(REFUSED)
        return state

    def _removals(self, state: "_State") -> Positions | None:
        """The row of each group to begin anew at, -1 for none; None where no group has one."""
        starts, delete = state.window.starts, state.kinds == DELETE
        delete[starts[state.alone | state.removed]] = False
        choose = last
        if not self.remove_on_delete:
            removing = [group.ordering for group in self.groups if group.removes]
            triggers = [np.logical_and(*newest(state.window, ordering)) for ordering in removing]
            choose = last if len(triggers) < 2 else first  # a removal by one group may lower the order of another
            delete &= np.logical_or.reduce(triggers)
        restart = choose(delete, starts)
        return restart if (restart >= 0).any() else None

    def _columns(self, state: "_State") -> dict[str, ColumnResult]:
        window, starts = state.window, state.window.starts
        opening, back = state.opening(self.ignore_delete)
        made: dict[str, ColumnResult] = {}
        for group in self.groups:
            if group.ordering[0] not in window.rows.column_names:
                continue
            has_order, newer = newest(window, group.ordering)
            index = last(opening | (has_order & newer), starts)
            made.update(dict.fromkeys(group.ordering, index))
            plain = np.where(back[index] & has_order[index], -1, index) if back.any() else index
            feed, times = _group_feed(state, opening, back & has_order, has_order, newer)
            for name, function in group.columns.items():
                if name not in window.rows.column_names:
                    continue
                if function is None:
                    made[name] = plain
                else:
                    made[name] = apply(window, name, function, replace(feed, seen=state.seen.get(name)), times)
        adding = None if state.retract is None else opening | ~state.retract
        newest_of_all = window.ends - 1
        for name in window.rows.column_names:
            if name in made or name in self.key or name in (VALUE_KIND, SEQUENCE_NUMBER):
                continue
            if adding is None and not only_chunk(window.rows, name).null_count:
                made[name] = newest_of_all
            else:
                mask = is_present(window, name)
                made[name] = last(mask if adding is None else mask & adding, starts)
        return made


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """A window on its way: ``alone`` groups had one row from the start, ``removed`` ones begin with a row that removed;
    ``seen`` is what first values remember from before that."""

    window: Window
    kinds: Kinds
    retract: Mask | None
    alone: Mask
    removed: Mask
    seen: Mapping[str, Mask]

    @property
    def sizes(self) -> Positions:
        return sizes_of(self.window.starts, self.window.num_rows)

    def cut(self, window: Window, removed: Mask, seen: Mapping[str, Mask]) -> "_State":
        kinds = kinds_of(window)
        return _State(window, kinds, retracts_of(kinds), self.alone, removed, {**self.seen, **seen})

    def opening(self, ignore_delete: bool) -> tuple[Mask, Mask]:
        """Rows copied whole, and rows to take back. A first row that retracts is both, unless deletes are ignored."""
        starts = self.window.starts
        opening = ~all_true(self.window.num_rows)
        opening[starts] = self.alone | self.removed
        if self.retract is None:
            return opening, opening & False
        back = self.retract & ~opening
        opening[starts] |= self.retract[starts]
        if ignore_delete:
            back &= ~opening
        return opening, back


def _group_feed(
    state: _State, opening: Mask, back: Mask, has_order: Mask, newer: Mask
) -> tuple[AggregateInput, Positions | None]:
    """What aggregates of a sequence group are fed, and how often each row (None: once)."""
    starts = state.window.starts
    times = (has_order | opening).astype(np.int64) + (opening & back)
    return AggregateInput(starts, back, has_order & ~newer, opening[starts]), None if (times == 1).all() else times


def _memories(state: _State, group: SequenceGroup, restart: Positions) -> list[tuple[str, Mask]]:
    """What the group's first values have seen, rows before ``restart`` counted in."""
    names = [
        (name, function)
        for name, function in group.columns.items()
        if isinstance(function, RowPick) and function.seen and name in state.window.rows.column_names
    ]
    if not names:
        return []
    opening, back = state.opening(False)
    has_order, newer = newest(state.window, group.ordering)
    feed, times = _group_feed(state, opening, back & has_order, has_order, newer)
    before = np.arange(state.window.num_rows) < np.repeat(restart, state.sizes)
    fed = np.where(before, 1 if times is None else times, 0)
    return [
        (name, seen_after(function, is_present(state.window, name), replace(feed, seen=state.seen.get(name)), fed))
        for name, function in names
    ]


def newest(window: Window, ordering: Sequence[str]) -> tuple[Mask, Mask]:
    """Rows with any ordering value, and rows not below an earlier row of their group: one running maximum.

    Ordering values become one integer, nulls 0, behind the group's number, so that the maximum starts anew in each.
    InvalidInputError for a NaN, which has no place in the order.
    """
    count, starts = window.num_rows, window.starts
    code, width, some = numbered(starts, count), len(starts), ~all_true(count)
    for name in ordering:
        column, has = window.column(name), is_present(window, name)
        values = sortable(column)
        if pa.types.is_floating(column.type):
            if pc.any(pc.is_nan(column)).as_py():
                raise InvalidInputError(
                    f"column {name!r} orders rows ('fields.{','.join(ordering)}.sequence-group') and holds NaN, which "
                    "is neither older nor newer than anything"
                )
            values = np.where(values == -1, 0, values)  # -0.0 equals 0.0 here
        there = values if has.all() else values[has]
        low, high = (int(there.min()), int(there.max())) if len(there) else (0, 0)
        if (high - low + 2) * width >= _WIDEST:  # too wide for one integer: number the distinct ones
            values, code = (np.unique(x, return_inverse=True)[1] for x in (values, code))
            low, high, width = 0, count, count
        ranks = values.astype(np.int64) - low + 1
        code = code * (high - low + 2) + (ranks if has.all() else np.where(has, ranks, 0))
        width *= high - low + 2
        some |= has
    return some, code == np.maximum.accumulate(code)
