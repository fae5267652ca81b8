"""The aggregation engine: every column has an aggregate function, and rows of kind -U and -D are taken back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate import TAKES_BACK, aggregate
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.first_last import RowPick, seen_after
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput
from paimon_core.merge.engine import EngineType, MergeEngine, MergeFunction
from paimon_core.merge.result import all_true, apply, build_result, drop_before, is_present, kinds_of, retracts_of
from paimon_core.merge.segments import last, sizes_of
from paimon_core.merge.window import Window
from paimon_core.options.merge import AGGREGATION_REMOVE_RECORD_ON_DELETE, IGNORE_DELETE, SEQUENCE_FIELD
from paimon_core.options.option import Options
from paimon_core.options.per_field import field_option
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, INSERT, UPDATE_BEFORE
from paimon_core.types.selection import Mask, Positions


def aggregation(functions: Mapping[str, Aggregate], *, remove_on_delete: bool = False) -> MergeFunction:
    """Return the fold of each named column by its function; other columns have the value of the last row.

    The result of several rows is a +I. With ``remove_on_delete`` a -D replaces the row, values and kind, and later rows
    add to the values of the -D. Associative if all functions are, but never with ``remove_on_delete``.
    """

    def fold(window: Window) -> pa.Table:
        if window.all_single:
            return window.take(window.starts) if window.order is not None else window.rows
        single, kinds = window.single, kinds_of(window)
        opened, seen = single, {}
        if remove_on_delete and (kinds == DELETE).any():
            restart = last(kinds == DELETE, window.starts)
            opened = single | (restart >= 0)
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
    inputs = AggregateInput(window.starts, retract, ~all_true(count), opened)
    made = {
        name: apply(window, name, function, replace(inputs, seen=seen.get(name)))
        for name, function in functions.items()
        if name in window.rows.column_names
    }
    index = window.ends - 1
    unchanged = opened & (index == window.starts)
    return build_result(window, made, index, np.where(unchanged, kinds[index], np.int8(INSERT)))


def _seen(window: Window, name: str, function: RowPick, restart: Positions) -> Mask:
    """Return, for each group, True if a row before ``restart`` that is no removal gave the function a first value."""
    kinds, starts = kinds_of(window), window.starts
    before = np.arange(window.num_rows) < np.repeat(restart, sizes_of(starts, window.num_rows))
    nothing = ~all_true(window.num_rows)
    retract = retracts_of(kinds)
    inputs = AggregateInput(starts, nothing if retract is None else retract, nothing, ~all_true(len(starts)))
    return seen_after(function, is_present(window, name), inputs, (before & (kinds != DELETE)).astype(np.int64))


def _make(options: Options, fields: Sequence[DataField], key: Collection[str]) -> MergeEngine:
    """Return the engine with a function for each column that is not in the key.

    The function is last_value for sequence fields, else the one that the options name, else last_non_null_value.
    """
    remove = options.value(AGGREGATION_REMOVE_RECORD_ON_DELETE)
    functions: dict[str, Aggregate] = {}
    refuses: dict[int, str] = {}
    for column in (f for f in fields if f.name not in key):
        field = FieldOptions(column.name, column.type, options)
        name = "last_value" if column.name in options.value(SEQUENCE_FIELD) else field.function
        name = name or "last_non_null_value"
        functions[column.name] = aggregate(name, field)
        if remove and field.ignore_retract:
            raise InvalidInputError(
                f"options 'aggregation.remove-record-on-delete' and {field_option(column.name, 'ignore-retract')!r} "
                "exclude each other: leave one"
            )
        if not field.ignore_retract and name not in TAKES_BACK:
            reason = (
                f"column {column.name!r}: the aggregate function {name} cannot take a value back, as a row of kind -U "
                f"or -D asks; set {field_option(column.name, 'ignore-retract')!r} = 'true' to leave the column as it "
                "is then, or 'ignore-delete' = 'true' to leave such rows out"
            )
            refuses |= dict.fromkeys((UPDATE_BEFORE,) if remove else (UPDATE_BEFORE, DELETE), reason)
    fold = aggregation(functions, remove_on_delete=remove)
    return MergeEngine(fold, refuses={} if options.value(IGNORE_DELETE) else refuses)


AGGREGATION = EngineType(
    "aggregation",
    _make,
    "known only after the merge, which computes it from all rows of the key",
    keeps_rows=False,
    delete_options=(AGGREGATION_REMOVE_RECORD_ON_DELETE,),
)
