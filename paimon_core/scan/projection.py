"""The columns that a read returns, chosen by name."""

from collections.abc import Sequence

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import InvalidInputError
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import BUCKET, FILE_PATH, ROW_INDEX, partition_field


def metadata_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return the columns that a batch read computes if they are requested by name; `SELECT *` does not include them.

    They are the path of a row's data file, the row's position in it, its partition and its bucket. A table column with
    the same name, in any letter case, hides the metadata column.
    """
    names = {field.name.lower() for field in schema.fields}
    computed = (FILE_PATH, partition_field(schema.partition_fields), BUCKET, ROW_INDEX)
    return tuple(field for field in computed if field.name not in names)


def readable_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return all columns that a batch read can return: the table's, the tracking columns and the metadata columns."""
    return (*schema.fields, *tracking_fields(schema), *metadata_fields(schema))


def project(schema: TableSchema, columns: Sequence[str] | None, *, metadata: bool = False) -> tuple[DataField, ...]:
    """Return the fields of `columns` in that order (`None`: all fields); letter case is ignored if one column matches.

    `columns` can also name `_ROW_ID` and `_SEQUENCE_NUMBER` of a table with row tracking, and with `metadata` the
    columns of `metadata_fields`.
    Raises InvalidInputError for a column that the table lacks, or that `columns` names twice.
    """
    if columns is None:
        return schema.fields
    if isinstance(columns, str):
        raise InvalidInputError(f"columns must be a list of names, not the text {columns!r}")
    stored = (*schema.fields, *tracking_fields(schema))
    computed = {field.name: field for field in metadata_fields(schema)} if metadata else {}
    chosen = tuple(computed.get(name.lower()) or find_column(stored, name, "the table") for name in columns)
    if len({field.name for field in chosen}) < len(chosen):
        raise InvalidInputError(f"{list(columns)} names a column twice: name each column once")
    return chosen
