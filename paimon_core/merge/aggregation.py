"""The aggregation engine: every column has an aggregate function, and rows of kind -U and -D retract values."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate import TAKES_BACK, aggregate
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput
from paimon_core.merge.engine import EngineType, MergeEngine, MergeFunction
from paimon_core.merge.result import all_true, apply, build_result, kinds_of, removals, retracts_of
from paimon_core.merge.segments import last, sizes_of
from paimon_core.merge.window import Window
from paimon_core.options.merge import AGGREGATION_REMOVE_RECORD_ON_DELETE, IGNORE_DELETE, SEQUENCE_FIELD
from paimon_core.options.option import Options
from paimon_core.options.per_field import field_option
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, INSERT, UPDATE_BEFORE
from paimon_core.types.selection import Mask


def aggregation(functions: Mapping[str, Aggregate], *, remove_on_delete: bool = False) -> MergeFunction:
    """Return a merge function that folds each named column by its function; other columns take the last row's value.

    The result of several rows is a +I. With ``remove_on_delete`` a -D removes the record: rows that add after it begin
    a new record, and without them the result is the -D. Associative if all functions are, and no -D precedes other
    rows.
    """

    def fold(window: Window) -> pa.Table:
        if window.all_single:
            return window.take(window.starts) if window.order is not None else window.rows
        if remove_on_delete and (kinds_of(window) == DELETE).any():
            return _aggregated(*_without_removed(window), functions)
        return _aggregated(window, window.single, functions)

    return fold


def _without_removed(window: Window) -> tuple[Window, Mask]:
    """Return the window without the rows up to a removal that other rows follow, and the mask of copied groups.

    A removal at the end of a group stays as its only row, and is copied.
    """
    kinds, sizes = kinds_of(window), sizes_of(window.starts, window.num_rows)
    removal, follows = last(kinds == DELETE, window.starts), removals(window) >= 0
    removed = (removal >= 0) & ~follows
    lowest, highest = np.where(removed, removal, removal + 1), np.where(removed, removal, window.ends - 1)
    at = np.arange(window.num_rows)
    keep = (at >= np.repeat(lowest, sizes)) & (at <= np.repeat(highest, sizes))
    several = (sizes > 1) & (removal < 0)
    rest = window.filter(keep, several if window.merged is None else window.merged | several)
    return rest, rest.single | removed


def _aggregated(window: Window, opened: Mask, functions: Mapping[str, Aggregate]) -> pa.Table:
    kinds, count = kinds_of(window), window.num_rows
    retract = retracts_of(kinds)
    if retract is None:
        retract = ~all_true(count)
    else:
        retract[window.starts[opened]] = False
    inputs = AggregateInput(window.starts, retract, ~all_true(count), opened, unsorted=window.order)
    read = set(window.rows.column_names)
    columns = {name: apply(window, name, function, inputs) for name, function in functions.items() if name in read}
    index = inputs.last_rows
    unchanged = opened & (index == window.starts)
    return build_result(window, columns, index, np.where(unchanged, kinds[index], np.int8(INSERT)))


def _make(options: Options, fields: Sequence[DataField], key: Collection[str]) -> MergeEngine:
    """Return the engine with a function for each column that is not in the key.

    The function is last_value for sequence fields, else the function that the options name, else last_non_null_value.
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
                "are mutually exclusive: set only one of them"
            )
        if not field.ignore_retract and name not in TAKES_BACK:
            reason = (
                f"column {column.name!r}: the aggregate function {name} cannot retract a value, as a row of kind -U "
                f"or -D requires; set {field_option(column.name, 'ignore-retract')!r} = 'true' to leave the column "
                "unchanged, or 'ignore-delete' = 'true' to leave these rows out"
            )
            refuses |= dict.fromkeys((UPDATE_BEFORE,) if remove else (UPDATE_BEFORE, DELETE), reason)
    fold = aggregation(functions, remove_on_delete=remove)
    return MergeEngine(
        fold, refuses={} if options.value(IGNORE_DELETE) else refuses, removals=removals if remove else None
    )


AGGREGATION = EngineType(
    "aggregation",
    _make,
    "known only after the merge, which computes it from all rows of the key",
    keeps_rows=False,
    delete_options=(AGGREGATION_REMOVE_RECORD_ON_DELETE,),
    removal_option=AGGREGATION_REMOVE_RECORD_ON_DELETE,
)
