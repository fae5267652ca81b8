"""Partitions given as texts: values of the types of their columns."""

from collections.abc import Sequence

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.table import Table
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import STRING, TEXT_ROOTS, AtomicType, DataType


def partition_values(table: Table, spec: Sequence[tuple[str, str]], what: str) -> dict[str, object]:
    """Return a partition given as texts, with values of its columns' types.

    Args:
        table: the table.
        spec: columns and texts; a text that is the table's default partition name means NULL.
        what: the option or argument with the texts, for messages.

    Raises InvalidInputError for another column and for a text that is no value of its column.
    """
    null_name = table.schema.options.value(PARTITION_DEFAULT_NAME)
    keys = {k.lower(): k for k in table.schema.partition_keys}
    values: dict[str, object] = {}
    for column, text in spec:
        key = keys.get(column.lower())
        if key is None:
            raise InvalidInputError(
                f"{what} names {column!r}, the partition columns of {table.path} are {list(keys.values())}"
            )
        values[key] = None if text == null_name else _value(key, text, table.schema.field(key).type, what)
    return values


def _value(column: str, text: str, kind: DataType, what: str) -> object:
    """Return the value of a text in the type `kind`. InvalidInputError for a text that is no value of the type."""
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
