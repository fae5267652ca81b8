"""The columns that a read returns, chosen by name."""

from collections.abc import Sequence

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import InvalidInputError
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import DataField


def project(schema: TableSchema, columns: Sequence[str] | None) -> tuple[DataField, ...]:
    """Return the fields of `columns` in that order (`None`: all fields); case is folded if only one column matches.

    A table with row tracking also has `_ROW_ID` and `_SEQUENCE_NUMBER`, which only `columns` can select.
    Raises InvalidInputError for a column that the table lacks, or that `columns` names twice.
    """
    if columns is None:
        return schema.fields
    if isinstance(columns, str):
        raise InvalidInputError(f"columns must be a list of names, not the text {columns!r}")
    available = (*schema.fields, *tracking_fields(schema))
    chosen = tuple(find_column(available, name, "the table") for name in columns)
    if len({field.name for field in chosen}) < len(chosen):
        raise InvalidInputError(f"{list(columns)} names a column twice: name each column once")
    return chosen
