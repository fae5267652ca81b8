"""Options that name columns: the named columns, and the options after a column is renamed or dropped."""

from collections.abc import Callable, Iterable, Mapping

from paimon_core.options.file_index import index_column, renamed_setting, split_index_option
from paimon_core.options.per_field import field_option, split_field_option, split_list
from paimon_core.schema.table_schema import TableSchema

LISTS = (
    "bucket-key", "sequence.field", "rowkind.field", "clustering.columns", "record-level.time-field",
    "partial-update.remove-record-on-sequence-group", "changelog-producer.row-deduplicate-ignore-fields",
)  # fmt: skip
"""Options whose value is a comma-separated list of columns."""

_INNER = ("nested-key", "nested-sequence-field")


def columns_in(key: str, text: str) -> list[str]:
    """Return the columns that an option names in its key and in its value."""
    if key in LISTS:
        return split_list(text)
    if split_index_option(key) is not None:
        return [index_column(item) for item in split_list(text)]
    field_setting = split_field_option(key)
    if field_setting is None:
        return []
    columns, option = field_setting
    return [*columns, *split_list(text)] if option == "sequence-group" else columns


def rename(options: Mapping[str, str], column: str, to: str) -> dict[str, str]:
    """Return the options with every mention of ``column`` replaced by ``to``."""

    def renamed(name: str) -> str:
        return to if name == column else name

    return dict(_rename(key, text, renamed) for key, text in options.items())


def rename_inner(options: Mapping[str, str], column: str, inner: str, to: str) -> dict[str, str]:
    """Return the options with a renamed field inside a column of rows.

    Args:
        options: the options of the table.
        column: the column, whose value contains rows.
        inner: the old name of the field.
        to: the new name of the field.
    """
    result = dict(options)
    for option in _INNER:
        key = field_option(column, option)
        if key in result:
            result[key] = ",".join(to if item == inner else item for item in split_list(result[key]))
    return result


def keep(options: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Return the options without mentions of columns outside of ``columns``.

    An option without a remaining column is removed.
    """
    remaining_columns = set(columns)
    result = {}
    for key, text in options.items():
        named = columns_in(key, text)
        if all(name in remaining_columns for name in named):
            result[key] = text
        elif key in LISTS and (remaining := [name for name in named if name in remaining_columns]):
            result[key] = ",".join(remaining)
    return result


def options_at(now: TableSchema, then: TableSchema) -> dict[str, str]:
    """Return the options of the newer schema ``now`` for the older schema ``then``.

    Columns get their names of ``then``. Columns that ``then`` does not have are removed from the options.
    """
    names_then = {field.id: field.name for field in then.fields}
    renamed = {field.name: names_then[field.id] for field in now.fields if field.id in names_then}
    options = keep(now.options, renamed)
    return dict(_rename(key, text, lambda name: renamed.get(name, name)) for key, text in options.items())


def _rename(key: str, text: str, renamed: Callable[[str], str]) -> tuple[str, str]:
    if key in LISTS:
        return key, _list(text, renamed)
    if split_index_option(key) is not None:
        return key, _list(text, lambda item: renamed(index_column(item)) + item[len(index_column(item)) :])
    field_setting = split_field_option(key)
    if field_setting is None:
        return renamed_setting(key, renamed), text
    columns, option = field_setting
    if option == "sequence-group":
        text = _list(text, renamed)
    return field_option(",".join(map(renamed, columns)), option), text


def _list(text: str, renamed: Callable[[str], str]) -> str:
    items = split_list(text)
    return ",".join(map(renamed, items)) if any(renamed(item) != item for item in items) else text
