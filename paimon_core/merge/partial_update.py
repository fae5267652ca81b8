"""The partial-update engine: each column's last value that is not null, or columns versioned by sequence groups."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate import aggregate
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.first_last import RowPick, seen_after
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput
from paimon_core.merge.aggregate.ordering import sortable
from paimon_core.merge.engine import EngineType, MergeEngine
from paimon_core.merge.result import (
    ColumnResult,
    Kinds,
    all_true,
    apply,
    build_result,
    drop_before,
    is_present,
    kinds_of,
    removals,
    retracts_of,
)
from paimon_core.merge.row_kinds import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.merge.segments import any_of, first, last, numbered, sizes_of
from paimon_core.merge.window import Window
from paimon_core.options.merge import (
    IGNORE_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
)
from paimon_core.options.option import Options
from paimon_core.options.per_field import split_field_option, split_list
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, INSERT, UPDATE_BEFORE
from paimon_core.types.selection import Mask, Positions, only_chunk

_REFUSED = (
    "merge engine partial-update cannot take rows of kind -U or -D; set 'ignore-delete' = 'true' to leave them out, "
    "'partial-update.remove-record-on-delete' = 'true' to let -D remove the record, or a sequence group "
    "('fields.<column>.sequence-group') to let them clear its columns"
)
_WIDEST = 2**62


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns that are versioned together by ordering columns, nulls smallest.

    ``columns``: the aggregate function of each column; `None`: the column's newest value. ``removes``: a -D that is the
    newest row of this group removes the record.
    """

    ordering: tuple[str, ...]
    columns: Mapping[str, Aggregate | None]
    removes: bool = False


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """A merge function: the result of a group is the last non-null value of each column.

    Columns of a sequence group follow the group's newest row, nulls included. The effect of rows that retract depends
    on the options:

    - sequence groups: the newest retracting row clears plain columns; each retracts its values from aggregates;
    - ``remove_on_delete``: a -D removes the record, and rows that add after it begin a new one; a -U has no effect;
    - ``ignore_delete``: they have no effect.

    With sequence groups, three kinds of rows *open* the record: the only row of a key, a first row that retracts, and a
    row that removes the record through its group. All values of an opening row are copied.

    The result is a -D if the last row removes the record or no row adds, else a +I.

    Associative for rows that add, unless an aggregate of a sequence group depends on their order. With
    ``remove_on_delete`` it is associative if no -D precedes other rows. With rows that retract in sequence groups it
    is not, because a retracting first row is copied. If several groups remove records, each removal of the key with the
    most removals costs one pass.
    """

    key: Collection[str] = ()
    groups: Sequence[SequenceGroup] = ()
    ignore_delete: bool = False
    remove_on_delete: bool = False

    def __call__(self, window: Window) -> pa.Table:
        """Return one row for each group. InvalidInputError for a row whose kind the options refuse."""
        if window.all_single:
            return window.take(window.starts) if window.order is not None else window.rows
        kinds, single = kinds_of(window), window.single
        retract = retracts_of(kinds)
        state = _State(window, kinds, retract, single, ~all_true(len(single)), {})
        if retract is not None:
            state = self._retracting(state, retract)
        results = self._columns(state)
        index = state.window.ends - 1
        if retract is None:
            return build_result(state.window, results, index, np.where(single, kinds[index], np.int8(INSERT)))
        kinds, added = state.kinds, any_of(~retract, window.starts)
        kind = np.where(state.removed & (index == state.window.starts) | ~added, np.int8(DELETE), np.int8(INSERT))
        return build_result(state.window, results, index, np.where(state.single, kinds[index], kind))

    def _retracting(self, state: "_State", retract: Mask) -> "_State":
        """Return the state without ignored rows and without rows before a removal."""
        if self.ignore_delete or self.remove_on_delete:
            return self._only_adds(state, retract)
        if any(group.removes for group in self.groups):
            while (restart := self._removals(state)) is not None:
                seen = {name: memory for group in self.groups for name, memory in _memories(state, group, restart)}
                state = state.cut(drop_before(state.window, restart), state.removed | (restart >= 0), seen)
        elif not self.groups and (retract & ~np.repeat(state.single, state.sizes)).any():
            raise InvalidInputError(_REFUSED)
        return state

    def _only_adds(self, state: "_State", retract: Mask) -> "_State":
        """Return the state with only the rows that add after the last removal.

        A group without such rows keeps one row: with ``remove_on_delete`` its last -D, if any, else its last row.
        """
        window, starts = state.window, state.window.starts
        removal = last(state.kinds == DELETE, starts) if self.remove_on_delete else np.full(len(starts), -1)
        keep = ~retract & (np.arange(window.num_rows) > np.repeat(removal, state.sizes))
        empty = ~any_of(keep, starts)
        keep[np.where(removal < 0, window.ends - 1, removal)[empty]] = True
        rest = window.filter(keep, ~(state.single | empty))
        kinds = kinds_of(rest)
        return _State(rest, kinds, retracts_of(kinds), state.single | empty, state.removed, state.seen)

    def _removals(self, state: "_State") -> Positions | None:
        """Return the row of each group that removes the record, -1: no row does; `None` if no group has a removal."""
        starts, delete = state.window.starts, state.kinds == DELETE
        delete[starts[state.single | state.removed]] = False
        removing = [group.ordering for group in self.groups if group.removes]
        triggers = [np.logical_and(*newest(state.window, ordering)) for ordering in removing]
        choose = last if len(triggers) < 2 else first  # a removal by one group may lower the order of another group
        delete &= np.logical_or.reduce(triggers)
        restart = choose(delete, starts)
        return restart if (restart >= 0).any() else None

    def _columns(self, state: "_State") -> dict[str, ColumnResult]:
        window, starts = state.window, state.window.starts
        results: dict[str, ColumnResult] = {}
        nothing = ~all_true(window.num_rows)
        inputs = AggregateInput(starts, nothing, nothing, state.single | state.removed, unsorted=window.order)
        read = set(window.rows.column_names)
        for group in self.groups:
            if group.ordering[0] not in read:
                continue
            if state.retract is None and not any(group.columns.values()):
                index = newest_rows(window, group.ordering, inputs)
                results.update(dict.fromkeys((*group.ordering, *group.columns), index))
            else:
                results.update(_versioned(state, group))
        adding = None if state.retract is None else state.opening()[0] | ~state.retract
        newest_of_all = window.ends - 1
        for name in window.rows.column_names:
            if name in results or name in self.key or name in (VALUE_KIND, SEQUENCE_NUMBER):
                continue
            if adding is None and not only_chunk(window.rows, name).null_count:
                results[name] = newest_of_all
            else:
                mask = is_present(window, name)
                results[name] = last(mask if adding is None else mask & adding, starts)
        return results


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """A window during the fold.

    ``single``: mask of groups that had one row from the start. ``removed``: mask of groups that begin with a row that
    removes the record. ``seen``: by column, mask of groups whose first-value function had a value before that row.
    """

    window: Window
    kinds: Kinds
    retract: Mask | None
    single: Mask
    removed: Mask
    seen: Mapping[str, Mask]

    @property
    def sizes(self) -> Positions:
        return sizes_of(self.window.starts, self.window.num_rows)

    def cut(self, window: Window, removed: Mask, seen: Mapping[str, Mask]) -> "_State":
        kinds = kinds_of(window)
        return _State(window, kinds, retracts_of(kinds), self.single, removed, {**self.seen, **seen})

    def opening(self) -> tuple[Mask, Mask]:
        """Return two masks: the rows that are copied as a whole, and the rows that retract.

        A key's first row is in both masks if it retracts, unless it is the key's only row.
        """
        starts = self.window.starts
        opening = ~all_true(self.window.num_rows)
        opening[starts] = self.single | self.removed
        if self.retract is None:
            return opening, opening & False
        back = self.retract & ~opening
        opening[starts] |= self.retract[starts]
        return opening, back


def _versioned(state: _State, group: SequenceGroup) -> dict[str, ColumnResult]:
    """Return the results of the columns of a sequence group."""
    window = state.window
    opening, back = state.opening()
    has_order, newer = newest(window, group.ordering)
    index = last(opening | (has_order & newer), window.starts)
    results: dict[str, ColumnResult] = dict.fromkeys(group.ordering, index)
    plain = np.where(back[index] & has_order[index], -1, index) if back.any() else index
    inputs, times = _group_inputs(state, opening, back & has_order, has_order, newer)
    read = set(window.rows.column_names)
    for name, function in group.columns.items():
        if name not in read:
            continue
        if function is None:
            results[name] = plain
        else:
            results[name] = apply(window, name, function, replace(inputs, seen=state.seen.get(name)), times)
    return results


def _group_inputs(
    state: _State, opening: Mask, back: Mask, has_order: Mask, newer: Mask
) -> tuple[AggregateInput, Positions | None]:
    """Return the input of a sequence group's aggregates, and how often each row is applied (`None`: once)."""
    starts = state.window.starts
    times = (has_order | opening).astype(np.int64) + (opening & back)
    return AggregateInput(starts, back, has_order & ~newer, opening[starts]), None if (times == 1).all() else times


def _memories(state: _State, group: SequenceGroup, restart: Positions) -> list[tuple[str, Mask]]:
    """Return (column, seen) for the group's first-value functions, after the rows before ``restart``."""
    read = set(state.window.rows.column_names)
    names = [
        (name, function)
        for name, function in group.columns.items()
        if isinstance(function, RowPick) and function.seen and name in read
    ]
    if not names:
        return []
    opening, back = state.opening()
    has_order, newer = newest(state.window, group.ordering)
    inputs, times = _group_inputs(state, opening, back & has_order, has_order, newer)
    before = np.arange(state.window.num_rows) < np.repeat(restart, state.sizes)
    fed = np.where(before, 1 if times is None else times, 0)
    return [
        (name, seen_after(function, is_present(state.window, name), replace(inputs, seen=state.seen.get(name)), fed))
        for name, function in names
    ]


def newest_rows(window: Window, ordering: Sequence[str], inputs: AggregateInput) -> Positions:
    """Return the newest row of each group: its last row with the largest ordering values.

    Without ordering values it is the first row of an opened group, and -1 for other groups.
    REQUIRES and errors: as in :func:`newest`.
    """
    if len(ordering) == 1:
        column = only_chunk(window.rows, ordering[0])
        if not column.null_count and not pa.types.is_floating(column.type):
            return inputs.of_unsorted.last_largest(sortable(column))
    some, ranks, _ = _ranks(window, ordering, None, 1)
    index = inputs.last_largest(ranks)
    return index if some.all() else np.where(some[index], index, np.where(inputs.opened, inputs.starts, -1))


def newest(window: Window, ordering: Sequence[str]) -> tuple[Mask, Mask]:
    """Return masks of the rows with any ordering value and of the rows not below an earlier row of their group.

    REQUIRES: ``ordering`` is not empty.
    The rank of a row follows its group's number in one integer. So one running maximum serves all groups.
    InvalidInputError for NaN, which has no position in the order.
    """
    some, code, _ = _ranks(window, ordering, numbered(window.starts, window.num_rows), window.num_groups)
    return some, code == np.maximum.accumulate(code)


def _ranks(window: Window, ordering: Sequence[str], code: Positions | None, width: int) -> tuple[Mask, Positions, int]:
    """Return a mask of the rows with any ordering value, integers that order the rows, and their number of values.

    An integer consists of ``code`` (`None`: 0) and the ordering values of the row (null: 0).

    Args:
        window: the rows.
        ordering: names of columns, at least one.
        code: integers from 0 to ``width`` that come first; the array is changed.
        width: the number of values of ``code``.
    """
    count, some = window.num_rows, ~all_true(window.num_rows)
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
        present = values if has.all() else values[has]
        low, high = (int(present.min()), int(present.max())) if len(present) else (0, 0)
        if (high - low + 2) * width >= _WIDEST:  # too wide for one integer: number the distinct values
            values = np.unique(values, return_inverse=True)[1]
            if code is not None:
                code, width = np.unique(code, return_inverse=True)[1], count
            low, high = 0, count
        ranks = np.subtract(values, low, dtype=np.int64)
        ranks += 1
        if not has.all():
            ranks *= has
        if code is None:
            code = ranks
        else:
            code *= high - low + 2  # in place: new arrays take longer than the arithmetic
            code += ranks
        width *= high - low + 2
        some |= has
    assert code is not None
    return some, code, width


# ---- the engine of one table


def sequence_groups(options: Options, fields: Sequence[DataField], key: Collection[str]) -> tuple[SequenceGroup, ...]:
    """Return the sequence groups of a table. InvalidInputError for unknown columns, keys, and columns in two groups."""
    columns = {field.name: field for field in fields}
    listed = options.value(PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP)
    definitions = [
        (option, tuple(parsed[0]), split_list(text))
        for option, text in options.items()
        if (parsed := split_field_option(option)) and parsed[1] == "sequence-group"
    ]
    orderings = {name for _, ordering, _ in definitions for name in ordering}
    group_of: dict[str, str] = {}
    groups = []
    for option, ordering, members in definitions:
        for name in (*ordering, *members):
            if name not in columns:
                raise InvalidInputError(f"option {option!r} names column {name!r}, which the table does not have")
            if name in key:
                raise InvalidInputError(f"option {option!r} names {name!r}, which is a primary key column")
            if group_of.setdefault(name, option) != option:
                raise InvalidInputError(
                    f"column {name!r} is in two sequence groups, {group_of[name]!r} and {option!r}; keep it in one"
                )
        functions = {name: _group_function(options, columns[name]) for name in members if name not in orderings}
        groups.append(SequenceGroup(ordering, functions, removes=any(name in listed for name in ordering)))
    return tuple(groups)


def _group_function(options: Options, column: DataField) -> Aggregate | None:
    field = FieldOptions(column.name, column.type, options)
    return None if field.function is None else aggregate(field.function, field)


def _make(options: Options, fields: Sequence[DataField], key: Collection[str]) -> MergeEngine:
    groups = sequence_groups(options, fields, key)
    ignore, remove = options.value(IGNORE_DELETE), options.value(PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE)
    listed = options.value(PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP)
    _check_exclusive(
        {
            "ignore-delete": ignore,
            "partial-update.remove-record-on-delete": remove,
            "partial-update.remove-record-on-sequence-group": bool(listed),
        }
    )
    if remove and groups:
        raise InvalidInputError(
            "option 'partial-update.remove-record-on-delete' excludes sequence groups; list their ordering columns in "
            "'partial-update.remove-record-on-sequence-group' instead"
        )
    grouped = {name for group in groups for name in group.columns}
    ordering = {name for group in groups for name in group.ordering}
    if unknown := [name for name in listed if name not in ordering]:
        raise InvalidInputError(
            f"option 'partial-update.remove-record-on-sequence-group' names {unknown[0]!r}, which orders no sequence "
            f"group (ordering columns: {', '.join(sorted(ordering)) or 'none'})"
        )
    for column in fields:
        if column.name in key or column.name in grouped or column.name in ordering:
            continue
        function = FieldOptions(column.name, column.type, options).function
        if function not in (None, "last_non_null_value"):
            raise InvalidInputError(
                f"column {column.name!r} has the aggregate function {function} but is in no sequence group, which "
                "merge engine partial-update requires for aggregates: list it in a 'fields.<column>.sequence-group'"
            )
    refuses = {} if ignore or remove or groups else dict.fromkeys((UPDATE_BEFORE, DELETE), _REFUSED)
    fold = PartialUpdate(tuple(key), groups, ignore, remove)
    return MergeEngine(fold, _Needs(groups).closure, refuses=refuses, removals=removals if remove else None)


class _Needs:
    """The columns that other columns need: the ordering columns of their groups and of groups that remove records."""

    def __init__(self, groups: Sequence[SequenceGroup]) -> None:
        self._always = frozenset(name for group in groups if group.removes for name in group.ordering)
        self._with = {name: frozenset(group.ordering) for group in groups for name in (*group.columns, *group.ordering)}

    def closure(self, names: Collection[str]) -> frozenset[str]:
        """Return these columns and all columns that they need."""
        return frozenset(names).union(self._always, *(self._with.get(name, ()) for name in names))


def _check_exclusive(switches: Mapping[str, bool]) -> None:
    on = [option for option, value in switches.items() if value]
    if "ignore-delete" in on and len(on) > 1:
        raise InvalidInputError(f"options {on[0]!r} and {on[1]!r} are mutually exclusive: set only one of them")


PARTIAL_UPDATE = EngineType(
    "partial-update",
    _make,
    "known only after the merge, which takes each column from the newest row that has it",
    keeps_rows=False,
    delete_options=(PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE, PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP),
    removal_option=PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
)
