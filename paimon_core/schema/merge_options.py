"""The options that define how the rows of a key are merged: their order, and the functions of columns."""

from collections.abc import Collection, Mapping

from paimon_core.merge import engine_type
from paimon_core.options.merge import FIELDS_DEFAULT_AGGREGATE_FUNCTION, SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER
from paimon_core.options.per_field import split_field_option, split_list
from paimon_core.schema.references import columns_in, options_at
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.widening import keeps_order

_OF_TABLES = (SEQUENCE_FIELD.key, SEQUENCE_FIELD_SORT_ORDER.key, "fields.default-aggregate-function")
_GROUP = "sequence-group"
_OF_COLUMNS = frozenset(
    {_GROUP, "aggregate-function", "count-limit", "distinct", "ignore-retract", "list-agg-delimiter"}
)
"""Options of columns. Options that name fields inside of columns are left out: they follow each rename."""

_CHOOSING = ("last_value", "last_non_null_value", "first_value", "first_non_null_value", "first_not_null_value")
"""Functions that choose a value by the order of the rows, so a cast may come before or after them."""


def changed_merge(old: TableSchema, new: TableSchema) -> str | None:
    """Return an option that makes ``new`` merge rows in another way than ``old``. `None`: both merge them the same.

    ``old`` and ``new`` are schemas of one table. Columns that only one of them has are not compared.
    """
    shared = {field.id for field in old.fields} & {field.id for field in new.fields}
    then, now = (_merge_of(schema, shared) for schema in (old, new))
    return next(
        (key for items in (now.items(), then.items()) for item, key in items if (item in then) != (item in now)), None
    )


def column_merged_otherwise(old: TableSchema, new: TableSchema) -> str | None:
    """Return a column whose new type changes how stored rows are merged. `None`: no type does.

    The values of these columns decide which row of a key is newest, or are combined by a function: '10' is less than
    '9', but 10 is not less than 9. A wider type changes neither.
    """
    before = {field.id: field for field in old.fields}
    deciding = _deciding(new)
    return next(
        (
            field.name
            for field in new.fields
            if field.name in deciding and field.id in before and not keeps_order(before[field.id].type, field.type)
        ),
        None,
    )


def _deciding(schema: TableSchema) -> set[str]:
    """Return the columns that order the rows of a key, or are combined by a function that does not choose a value."""
    if not schema.primary_keys:
        return set()
    options = schema.options
    found: set[str] = {*options.value(SEQUENCE_FIELD)}
    if engine_type(options).keeps_rows:
        return found
    values = [field.name for field in schema.fields if field.name not in schema.primary_keys]
    functions = dict.fromkeys(values, options.value(FIELDS_DEFAULT_AGGREGATE_FUNCTION))
    for key, text in options.items():
        setting = split_field_option(key)
        if setting is not None and setting[1] == _GROUP:
            found.update(setting[0])
        elif setting is not None and setting[1] == "aggregate-function":
            functions.update(dict.fromkeys(setting[0], text))
    return found | {name for name, function in functions.items() if function not in (None, *_CHOOSING)}


def merge_options(schema: TableSchema, then: TableSchema) -> dict[str, str | None]:
    """Return the changes of options that let ``schema`` merge the columns of ``then`` as ``then`` does."""
    ids = {field.id for field in then.fields}
    columns = {field.name for field in schema.fields if field.id in ids}
    changes: dict[str, str | None] = dict.fromkeys(_only_merging(schema.options, columns))
    changes.update(_only_merging(options_at(then, schema), columns))
    return changes


def _only_merging(options: Mapping[str, str], columns: Collection[str]) -> dict[str, str]:
    """Return the options that define the merge, of the table or of some of these columns."""
    return {
        key: text
        for key, text in options.items()
        if key in _OF_TABLES or (_is_of_column(key) and not set(columns_in(key, text)).isdisjoint(columns))
    }


def _is_of_column(key: str) -> bool:
    setting = split_field_option(key)
    return setting is not None and setting[1] in _OF_COLUMNS


def _merge_of(schema: TableSchema, columns: set[int]) -> dict[tuple[object, ...], str]:
    """Return the settings for the merge of these columns, with ids for names, and the option that makes each."""
    if not schema.primary_keys:
        return {}
    ids, options = {field.name: field.id for field in schema.fields}, schema.options
    order = tuple(ids[name] for name in options.value(SEQUENCE_FIELD) if ids.get(name) in columns)
    found: dict[tuple[object, ...], str] = {}
    if order:
        found["order", order] = SEQUENCE_FIELD.key
        found["sort order", options.value(SEQUENCE_FIELD_SORT_ORDER)] = SEQUENCE_FIELD_SORT_ORDER.key
    if engine_type(options).keeps_rows:
        return found
    for key, text in options.items():
        if key in _OF_TABLES[2:]:
            found[key, text] = key
        setting = split_field_option(key)
        if setting is None or setting[1] not in _OF_COLUMNS:
            continue
        named = tuple(ids.get(name, -1) for name in setting[0])
        if setting[1] == _GROUP:  # also one of a new column changes the merge of older ones
            members = frozenset(ids.get(name, -1) for name in split_list(text)) & columns
            found.update({(named, _GROUP, members): key} if members else {})
        elif not columns.isdisjoint(named):
            found[named, setting[1], text] = key
    return found
