"""New values of columns, as users give them."""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType
from pyspark.sql.types import DataType as SparkType

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
        field = find_column(schema.fields, column_name(name, alias), "the table")
        if field.name in values:
            raise InvalidInputError(f"column {field.name!r} gets two new values: give one")
        values[field.name] = stored(F.expr(value) if isinstance(value, str) else value, field)
    if not values:
        raise InvalidInputError("no column gets a new value: give {column: new value}")
    return values


def column_name(name: str, alias: str | None) -> str:
    """Return the name of a column without the alias of its table."""
    return name.removeprefix(f"{alias}.") if alias is not None else name


def stored_by_name(value: Column, given: SparkType, field: DataField) -> Column:
    """Return a value of type `given` with the type of a column; fields of structs are matched by their names.

    The job fails for a value that the type cannot hold. Raises InvalidInputError for a field of a struct that only one
    of the types has.
    """
    return stored(_reordered(value, given, spark_type(field.type, field.name), field.name), field)


def _reordered(value: Column, given: SparkType, wanted: SparkType, path: str) -> Column:
    """Return the value with the fields of its structs in the order of another type."""
    if not _has_struct(wanted):
        return value
    match given, wanted:
        case ArrayType(), ArrayType():
            return F.transform(value, lambda e: _reordered(e, given.elementType, wanted.elementType, f"{path}.element"))
        case MapType(), MapType():
            keyed = value
            if _has_struct(wanted.keyType):
                keyed = F.transform_keys(
                    value, lambda k, _: _reordered(k, given.keyType, wanted.keyType, f"{path}.key")
                )
            if not _has_struct(wanted.valueType):
                return keyed
            return F.transform_values(
                keyed, lambda _, v: _reordered(v, given.valueType, wanted.valueType, f"{path}.value")
            )
        case StructType(), StructType():
            by_name = {own.name.lower(): own for own in given.fields}
            odd = {f.name.lower() for f in wanted.fields} ^ set(by_name)
            if odd or len(by_name) < len(given.fields):
                raise InvalidInputError(
                    f"the source's {path} has the fields {given.names}, that of the table {wanted.names}: give the "
                    "value of this column by itself"
                )
            fields = []
            for part in wanted.fields:
                own = by_name[part.name.lower()]
                inner = _reordered(value.getField(own.name), own.dataType, part.dataType, f"{path}.{part.name}")
                fields.append(inner.alias(part.name))
            return F.when(value.isNotNull(), F.struct(*fields))
    return value


def _has_struct(kind: SparkType) -> bool:
    match kind:
        case ArrayType():
            return _has_struct(kind.elementType)
        case MapType():
            return _has_struct(kind.keyType) or _has_struct(kind.valueType)
    return isinstance(kind, StructType)


def stored(value: Column, field: DataField) -> Column:
    """Return the value with the type of a column. The job fails for a value that the type cannot hold."""
    kind = spark_type(field.type, field.name)
    cast = value.try_cast(kind)
    message = F.concat(F.lit(f"column {field.name!r} of type {field.type} cannot hold "), value.cast("string"))
    wrong = value.isNotNull() & cast.isNull()
    return F.when(wrong, F.raise_error(message).cast(kind)).otherwise(cast)
