"""New values of columns, as users give them."""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from paimon_core.errors import InvalidInputError
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import DataField
from paimon_spark.types import spark_type


def as_column(expression: str | Column | None) -> Column | None:
    """Return an expression in Spark's SQL as a column."""
    return F.expr(expression) if isinstance(expression, str) else expression


def assigned(schema: TableSchema, given: Mapping[str, str | Column], alias: str | None) -> dict[str, Column]:
    """Return the new value of each column, under the column's own name and with its type.

    `alias`: of the table; a column may be called ``alias.column``. A value that the type cannot hold fails the job.
    Raises InvalidInputError for an unknown column, for one named twice, and for no column.
    """
    values: dict[str, Column] = {}
    for name, value in given.items():
        own = name.removeprefix(f"{alias}.") if alias is not None else name
        field = find_column(schema.fields, own, "the table")
        if field.name in values:
            raise InvalidInputError(f"column {field.name!r} gets two new values: give one")
        values[field.name] = stored(F.expr(value) if isinstance(value, str) else value, field)
    if not values:
        raise InvalidInputError("no column gets a new value: give {column: new value}")
    return values


def stored(value: Column, field: DataField) -> Column:
    """Return the value with the type of a column. The job fails for a value that the type cannot hold."""
    kind = spark_type(field.type, field.name)
    cast = value.try_cast(kind)
    message = F.concat(F.lit(f"column {field.name!r} of type {field.type} cannot hold "), value.cast("string"))
    wrong = value.isNotNull() & cast.isNull()
    return F.when(wrong, F.raise_error(message).cast(kind)).otherwise(cast)
