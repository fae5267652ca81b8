"""Options that name columns: which columns they name, and how they follow when a column is renamed."""

from collections.abc import Callable, Iterable, Mapping

from paimon_core.options.file_index import index_column, renamed_setting, split_index_option
from paimon_core.options.per_field import field_option, split_field_option, split_list
from paimon_core.schema.table_schema import TableSchema

LISTS = (
    "bucket-key",
    "sequence.field",
    "rowkind.field",
    "clustering.columns",
    "record-level.time-field",
    "partial-update.remove-record-on-sequence-group",
    "changelog-producer.row-deduplicate-ignore-fields",
)
"""Options whose value is a comma list of columns."""

_INNER = ("nested-key", "nested-sequence-field")


def columns_in(key: str, text: str) -> list[str]:
    """The columns an option names, in its key and in its value."""
    if key in LISTS:
        return split_list(text)
    if split_index_option(key) is not None:
        return [index_column(item) for item in split_list(text)]
    found = split_field_option(key)
    if found is None:
        return []
    columns, option = found
    return [*columns, *split_list(text)] if option == "sequence-group" else columns


def rename(options: Mapping[str, str], column: str, to: str) -> dict[str, str]:
    """The options with every mention of a column under its new name."""

    def renamed(name: str) -> str:
        return to if name == column else name

    return dict(_rename(key, text, renamed) for key, text in options.items())


def rename_inner(options: Mapping[str, str], column: str, inner: str, to: str) -> dict[str, str]:
    """The options with mentions of a field of the rows inside ``column`` under its new name."""
    result = dict(options)
    for option in _INNER:
        key = field_option(column, option)
        if key in result:
            result[key] = ",".join(to if item == inner else item for item in split_list(result[key]))
    return result


def keep(options: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """The options without mentions of columns other than these; options that would name none are left out."""
    known = set(columns)
    result = {}
    for key, text in options.items():
        named = columns_in(key, text)
        if all(name in known for name in named):
            result[key] = text
        elif key in LISTS and (left := [name for name in named if name in known]):
            result[key] = ",".join(left)
    return result


def options_at(now: TableSchema, then: TableSchema) -> dict[str, str]:
    """The options of a newer schema as they would have been written for an older one.

    Columns go by the names they had then; one that was not there yet cannot be named.
    """
    names_then = {field.id: field.name for field in then.fields}
    renamed = {field.name: names_then[field.id] for field in now.fields if field.id in names_then}
    known = keep(now.options, renamed)
    return dict(_rename(key, text, lambda name: renamed.get(name, name)) for key, text in known.items())


def _rename(key: str, text: str, renamed: Callable[[str], str]) -> tuple[str, str]:
    if key in LISTS:
        return key, _list(text, renamed)
    if split_index_option(key) is not None:
        return key, _list(text, lambda item: renamed(index_column(item)) + item[len(index_column(item)) :])
    found = split_field_option(key)
    if found is None:
        return renamed_setting(key, renamed), text
    columns, option = found
    if option == "sequence-group":
        text = _list(text, renamed)
    return field_option(",".join(map(renamed, columns)), option), text


def _list(text: str, renamed: Callable[[str], str]) -> str:
    items = split_list(text)
    return ",".join(map(renamed, items)) if any(renamed(item) != item for item in items) else text
