"""Values and partitions given as texts: ``column=value,column=value``, by the types of their columns."""

from collections.abc import Sequence

import pyarrow as pa

from paimon_core.errors import InvalidInputError, listed_names
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import STRING, TEXT_ROOTS, AtomicType, DataType


def partition_spec(text: str) -> tuple[tuple[str, str], ...]:
    """Return the columns and values, as texts, of ``column=value,column=value``."""
    pairs = [tuple(part.strip() for part in pair.partition("=")) for pair in text.split(",")]
    if not all(column and equals for column, equals, _ in pairs):
        raise ValueError("must be column=value, or several separated by commas")
    if len({column.lower() for column, _, _ in pairs}) < len(pairs):
        raise ValueError("names a column twice")
    return tuple((column, value) for column, _, value in pairs)


def partition_values(schema: TableSchema, spec: Sequence[tuple[str, str]], what: str, path: str) -> dict[str, object]:
    """Return a partition given as texts, with values of its columns' types.

    Args:
        schema: of the table.
        spec: columns and texts; a text that is the table's default partition name means NULL.
        what: the option or argument with the texts, for messages.
        path: of the table, for messages.

    Raises InvalidInputError for another column and for a text that is no value of its column.
    """
    null_name = schema.options.value(PARTITION_DEFAULT_NAME)
    keys = {k.lower(): k for k in schema.partition_keys}
    values: dict[str, object] = {}
    for column, text in spec:
        key = keys.get(column.lower())
        if key is None:
            raise InvalidInputError(
                f"{what} names {column!r}, the partition columns of {path} are {listed_names(column, keys.values())}"
            )
        values[key] = None if text == null_name else value_of_text(key, text, schema.field(key).type, what)
    return values


def value_of_text(column: str, text: str, kind: DataType, what: str) -> object:
    """Return the value of a text in the type `kind`. InvalidInputError for a text that is no value of the type.

    Args:
        column: its name, for messages.
        text: such as "7", "a" or "2026-01-31".
        kind: type of the column.
        what: the option or argument with the text, for messages.
    """
    if isinstance(kind, AtomicType) and kind.root in TEXT_ROOTS:
        return text
    wrong = f"{what}: {text!r} is not a value of column {column!r}, a {kind}"
    try:
        value = cast_array(pa.array([text]), STRING, kind)[0].as_py()
    except InvalidInputError as error:
        raise InvalidInputError(wrong) from error
    if value is None:
        raise InvalidInputError(wrong)
    return value
