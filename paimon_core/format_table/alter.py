"""Changes of a format table: its files stay, so only changes under which old rows keep their values are possible."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError, listed_names
from paimon_core.format_table.settings import FORMAT_TABLE, check_format_schema
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.options.file import FILE_FORMAT
from paimon_core.options.option import Options
from paimon_core.schema.change import (
    LAST,
    AddColumn,
    DropColumn,
    RemoveOption,
    SchemaChange,
    SetOption,
    UpdateComment,
    UpdateTableComment,
)
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

_FIXED: Final = {
    "type": "a format table stays one",
    "path": "its files stay where they are",
    "primary-key": "it has no primary key",
    "partition": "its directories stay",
    FILE_FORMAT.key: "its files stay as they are",
    "format-table.partition-path-only-value": "its directories keep their names",
    PARTITION_DEFAULT_NAME.key: "its directories keep their names",
}
_BY_NAME: Final = ("json", "orc", "parquet")
"""The formats whose files name their columns."""


def altered_format_schema(schema: TableSchema, changes: Sequence[SchemaChange], table: str) -> TableSchema:
    """Return the schema of a format table after changes.

    Possible are comments, options, and new columns, which are NULL in old rows. Formats whose files name their columns
    also lose columns; in CSV files the order counts, so a new column is the last one.

    Args:
        schema: the schema of the table.
        changes: the changes, in their order.
        table: its name, for messages.

    Raises UnsupportedError for any other change, InvalidInputError for an unknown column and an invalid option,
    AlreadyExistsError for a column that exists.
    """
    for change in changes:
        schema = _altered(schema, change, table)
    check_format_schema(schema, table)
    return schema


def _altered(schema: TableSchema, change: SchemaChange, table: str) -> TableSchema:
    match change:
        case SetOption() | RemoveOption():
            return _with_option(schema, change, table)
        case UpdateTableComment():
            return replace(schema, comment=change.comment)
        case UpdateComment():
            name = _top_level(change.name, schema, table)
            fields = [replace(f, description=change.comment) if f.name == name else f for f in schema.fields]
            return replace(schema, fields=tuple(fields))
        case AddColumn():
            return _with_column(schema, change, table)
        case DropColumn():
            name = _top_level(change.name, schema, table)
            if schema.options.value(FILE_FORMAT) not in _BY_NAME or name in schema.partition_keys:
                raise _impossible(change, table, "the files and directories keep the values of the column")
            return replace(schema, fields=tuple(f for f in schema.fields if f.name != name))
    raise _impossible(change, table, "the files keep their columns")


def _with_option(schema: TableSchema, change: SetOption | RemoveOption, table: str) -> TableSchema:
    if change.key in _FIXED and not (isinstance(change, SetOption) and _is_set(schema, change)):
        raise InvalidInputError(f"option {change.key!r} of format table {table} cannot change: {_FIXED[change.key]}")
    options = {key: value for key, value in schema.options.items() if key != change.key}
    if isinstance(change, SetOption):
        options[change.key] = change.value
    return replace(schema, options=Options(options))


def _is_set(schema: TableSchema, change: SetOption) -> bool:
    usual = {"type": FORMAT_TABLE, FILE_FORMAT.key: FILE_FORMAT.default}
    return schema.options.get(change.key, usual.get(change.key)) == change.value


def _with_column(schema: TableSchema, change: AddColumn, table: str) -> TableSchema:
    names = [change.name] if isinstance(change.name, str) else list(change.name)
    if len(names) > 1:
        raise _impossible(change, table, "the fields of a column are as in its files")
    if names[0].lower() in {field.name.lower() for field in schema.fields}:
        raise AlreadyExistsError(f"column {names[0]!r} of {table} exists already")
    kind = parse_type(change.type) if isinstance(change.type, str) else change.type
    if not kind.nullable or change.default is not None:
        raise _impossible(change, table, "old rows have NULL in a new column: leave out NOT NULL and DEFAULT")
    if change.position not in (None, LAST):
        raise _impossible(change, table, "a new column is the last one: leave out its position")
    format = schema.options.value(FILE_FORMAT)
    if format != "csv" and format not in _BY_NAME:
        raise _impossible(change, table, f"a {format} file has one column")
    (added,), highest = assign_ids([DataField(0, names[0], kind, change.comment)], schema.highest_field_id + 1)
    return replace(schema, fields=(*schema.fields, added), highest_field_id=highest)


def _top_level(name: str | Sequence[str], schema: TableSchema, table: str) -> str:
    names = [name] if isinstance(name, str) else list(name)
    known = [field.name for field in schema.fields]
    if len(names) > 1 or names[0] not in known:
        shown = ".".join(names)
        raise InvalidInputError(f"{shown!r} is not a column of {table}: {listed_names(shown, known)}")
    return names[0]


def _impossible(change: SchemaChange, table: str, reason: str) -> UnsupportedError:
    return UnsupportedError(f"{type(change).__name__} is not possible for the format table {table}: {reason}")
