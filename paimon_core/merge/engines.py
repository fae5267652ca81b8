"""From a table's options to its merge engine. Contradictions are refused by name."""

from collections.abc import Collection, Mapping, Sequence

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate import TAKES_BACK, aggregate
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate
from paimon_core.merge.aggregation import aggregation
from paimon_core.merge.deduplicate import deduplicate
from paimon_core.merge.engine import MergeEngine
from paimon_core.merge.first_row import REFUSED as FIRST_ROW_REFUSED
from paimon_core.merge.first_row import first_row
from paimon_core.merge.partial_update import REFUSED as PARTIAL_UPDATE_REFUSED
from paimon_core.merge.partial_update import PartialUpdate, SequenceGroup
from paimon_core.options.merge import (
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    FIELDS_DEFAULT_AGGREGATE_FUNCTION,
    IGNORE_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
    SEQUENCE_FIELD,
)
from paimon_core.options.option import Options
from paimon_core.options.per_field import field_option, split_field_option, split_list
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, UPDATE_BEFORE

Fields = Sequence[DataField]
Key = Collection[str]


def make_deduplicate(options: Options, _fields: Fields, _key: Key) -> MergeEngine:
    """The newest row of a key."""
    ignore = options.value(IGNORE_DELETE)
    newest_wins = not ignore and not options.value(SEQUENCE_FIELD)
    return MergeEngine(deduplicate(ignore_delete=ignore), newest_wins=newest_wins)


def make_first_row(options: Options, _fields: Fields, _key: Key) -> MergeEngine:
    """The oldest row of a key."""
    ignore = options.value(IGNORE_DELETE)
    refuses = {} if ignore else {UPDATE_BEFORE: FIRST_ROW_REFUSED, DELETE: FIRST_ROW_REFUSED}
    return MergeEngine(first_row(ignore_delete=ignore), refuses=refuses, skips_level_0=True)


def make_aggregation(options: Options, fields: Fields, key: Key) -> MergeEngine:
    """Every column by its function: last_value for sequence fields, else the one the options name, else the last value
    that is not null."""
    remove = options.value(AGGREGATION_REMOVE_RECORD_ON_DELETE)
    functions: dict[str, Aggregate] = {}
    refuses: dict[int, str] = {}
    for column in (f for f in fields if f.name not in key):
        field = FieldOptions(column.name, column.type, options)
        name = "last_value" if column.name in options.value(SEQUENCE_FIELD) else _function(options, column.name)
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
    return MergeEngine(fold, keeps_rows=False, refuses={} if options.value(IGNORE_DELETE) else refuses)


def make_partial_update(options: Options, fields: Fields, key: Key) -> MergeEngine:
    """The last value of each column that is not null; sequence groups."""
    groups = sequence_groups(options, fields, key)
    ignore, remove = options.value(IGNORE_DELETE), options.value(PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE)
    listed = options.value(PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP)
    _exclusive(
        {
            "ignore-delete": ignore,
            "partial-update.remove-record-on-delete": remove,
            "partial-update.remove-record-on-sequence-group": bool(listed),
        }
    )
    if remove and groups:
        raise InvalidInputError(
            "option 'partial-update.remove-record-on-delete' does not go with sequence groups; list their columns in "
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
        if _function(options, column.name) not in (None, "last_non_null_value"):
            raise InvalidInputError(
                f"column {column.name!r} has the aggregate function {_function(options, column.name)} and is in no "
                "sequence group, which merge engine partial-update needs for aggregates: list it in a "
                "'fields.<column>.sequence-group'"
            )
    refuses = {} if ignore or remove or groups else dict.fromkeys((UPDATE_BEFORE, DELETE), PARTIAL_UPDATE_REFUSED)
    fold = PartialUpdate(tuple(key), groups, ignore, remove)
    return MergeEngine(fold, _Needs(groups).closed, keeps_rows=False, refuses=refuses)


class _Needs:
    """Which columns a set of columns needs: ordering columns of their groups, and of groups that remove records."""

    def __init__(self, groups: Sequence[SequenceGroup]) -> None:
        self._always = frozenset(name for group in groups if group.removes for name in group.ordering)
        self._with = {name: frozenset(group.ordering) for group in groups for name in (*group.columns, *group.ordering)}

    def closed(self, asked: Collection[str]) -> frozenset[str]:
        """The columns asked for, and those they need. Needs nothing more itself."""
        return frozenset(asked).union(self._always, *(self._with.get(name, ()) for name in asked))


def sequence_groups(options: Options, fields: Fields, key: Key) -> tuple[SequenceGroup, ...]:
    """The sequence groups of a table. InvalidInputError for columns that are unknown, keys, or in two groups."""
    columns = {field.name: field for field in fields}
    listed = options.value(PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP)
    found = [
        (option, tuple(parsed[0]), split_list(text))
        for option, text in options.items()
        if (parsed := split_field_option(option)) and parsed[1] == "sequence-group"
    ]
    orderings = {name for _, ordering, _ in found for name in ordering}
    group_of: dict[str, str] = {}
    groups = []
    for option, ordering, members in found:
        for name in (*ordering, *members):
            if name not in columns:
                raise InvalidInputError(f"option {option!r} names column {name!r}, which the table does not have")
            if name in key:
                raise InvalidInputError(f"option {option!r} names {name!r}, which is a primary key column")
            if group_of.setdefault(name, option) != option:
                raise InvalidInputError(
                    f"column {name!r} is in two sequence groups: {group_of[name]!r} and {option!r}; leave it in one"
                )
        functions = {name: _group_function(options, columns[name]) for name in members if name not in orderings}
        groups.append(SequenceGroup(ordering, functions, removes=any(name in listed for name in ordering)))
    return tuple(groups)


def _group_function(options: Options, column: DataField) -> Aggregate | None:
    name = _function(options, column.name)
    return None if name is None else aggregate(name, FieldOptions(column.name, column.type, options))


def _function(options: Options, column: str) -> str | None:
    name = options.get(field_option(column, "aggregate-function"))
    return name if name is not None else options.value(FIELDS_DEFAULT_AGGREGATE_FUNCTION)


def _exclusive(given: Mapping[str, bool]) -> None:
    on = [option for option, value in given.items() if value]
    if "ignore-delete" in on and len(on) > 1:
        raise InvalidInputError(f"options {on[0]!r} and {on[1]!r} exclude each other: leave one")
