"""The mapping between Spark's types and Paimon's, and the final cast of a batch for Spark.

The mapping is the same as in Paimon's Java connector for Spark, so both show a table with the same columns:

================================  ==========================================================
Paimon                            Spark
================================  ==========================================================
CHAR, VARCHAR, STRING             string
BINARY, VARBINARY, BYTES, BLOB    binary
TIMESTAMP(p)                      timestamp_ntz, digits below the microsecond cut
TIMESTAMP_LTZ(p)                  timestamp, digits below the microsecond cut
TIME(p)                           time(p), at most time(6)
MULTISET<e>                       map<e, int>
VECTOR<e, n>                      array<e>
VARIANT                           variant
GEOMETRY, GEOGRAPHY               refused
================================  ==========================================================

From Spark: timestamp is TIMESTAMP_LTZ(6), timestamp_ntz TIMESTAMP(6), time(p) TIME(p); intervals, void and
user-defined types have no Paimon type and are refused.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.columns import Columns
from paimon_core.types.datatype import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    without_finer_digits,
)

STRING_LENGTH = 2147483647
MICROSECOND_DIGITS = 6  # the finest precision of Spark's times

_ATOMIC: dict[str, type[spark.DataType]] = {
    "BOOLEAN": spark.BooleanType,
    "TINYINT": spark.ByteType,
    "SMALLINT": spark.ShortType,
    "INT": spark.IntegerType,
    "BIGINT": spark.LongType,
    "FLOAT": spark.FloatType,
    "DOUBLE": spark.DoubleType,
    "CHAR": spark.StringType,
    "VARCHAR": spark.StringType,
    "BINARY": spark.BinaryType,
    "VARBINARY": spark.BinaryType,
    "BLOB": spark.BinaryType,
    "DATE": spark.DateType,
    "TIMESTAMP": spark.TimestampNTZType,
    "TIMESTAMP_LTZ": spark.TimestampType,
    "VARIANT": spark.VariantType,
}

_FROM_SPARK: dict[type[spark.DataType], Callable[[spark.DataType], AtomicType]] = {
    spark.BooleanType: lambda _: AtomicType("BOOLEAN"),
    spark.ByteType: lambda _: AtomicType("TINYINT"),
    spark.ShortType: lambda _: AtomicType("SMALLINT"),
    spark.IntegerType: lambda _: AtomicType("INT"),
    spark.LongType: lambda _: AtomicType("BIGINT"),
    spark.FloatType: lambda _: AtomicType("FLOAT"),
    spark.DoubleType: lambda _: AtomicType("DOUBLE"),
    spark.StringType: lambda _: AtomicType("VARCHAR", length=STRING_LENGTH),
    spark.CharType: lambda t: AtomicType("CHAR", length=t.length),  # type: ignore[attr-defined]
    spark.VarcharType: lambda t: AtomicType("VARCHAR", length=t.length),  # type: ignore[attr-defined]
    spark.BinaryType: lambda _: AtomicType("VARBINARY", length=STRING_LENGTH),
    spark.DateType: lambda _: AtomicType("DATE"),
    spark.TimestampNTZType: lambda _: AtomicType("TIMESTAMP", precision=MICROSECOND_DIGITS),
    spark.TimestampType: lambda _: AtomicType("TIMESTAMP_LTZ", precision=MICROSECOND_DIGITS),
    spark.TimeType: lambda t: AtomicType("TIME", precision=t.precision),  # type: ignore[attr-defined]
    spark.DecimalType: lambda t: AtomicType("DECIMAL", precision=t.precision, scale=t.scale),  # type: ignore[attr-defined]
    spark.VariantType: lambda _: AtomicType("VARIANT"),
}


def spark_schema(fields: Iterable[DataField]) -> spark.StructType:
    """Return the Spark schema of Paimon columns, including their comments.

    Raises UnsupportedError for a column whose type Spark lacks.
    """
    return spark.StructType([_spark_field(field, field.name) for field in fields])


def _spark_field(field: DataField, path: str, *, declared: bool = False) -> spark.StructField:
    metadata = {"comment": field.description} if field.description else None
    type_ = spark_type(field.type, path, declared=declared)
    return spark.StructField(field.name, type_, field.type.nullable, metadata)


def declared_schema(fields: Iterable[DataField]) -> spark.StructType:
    """Return the same schema as `spark_schema`, but with CHAR(n) and VARCHAR(n) at every depth, for Spark's catalogs.

    Spark checks lengths on writes and pads CHAR on reads only for columns of these types.
    """
    return spark.StructType([_spark_field(field, field.name, declared=True) for field in fields])


def spark_type(type_: DataType, path: str, *, declared: bool = False) -> spark.DataType:
    """Return the Spark type of a Paimon type. Raise UnsupportedError if Spark lacks it.

    `path`: the column for the error; `declared`: True for CHAR(n) and VARCHAR(n) instead of string.
    """
    match type_:
        case ArrayType() | VectorType():
            return spark.ArrayType(
                spark_type(type_.element, f"{path}.element", declared=declared), type_.element.nullable
            )
        case MapType():
            key, value = (
                spark_type(type_.key, f"{path}.key", declared=declared),
                spark_type(type_.value, f"{path}.value", declared=declared),
            )
            return spark.MapType(key, value, type_.value.nullable)
        case MultisetType():
            return spark.MapType(
                spark_type(type_.element, f"{path}.element", declared=declared), spark.IntegerType(), False
            )
        case RowType():
            return spark.StructType(
                [_spark_field(field, f"{path}.{field.name}", declared=declared) for field in type_.fields]
            )
        case AtomicType(root="CHAR", length=length) if declared and length:
            return spark.CharType(length)
        case AtomicType(root="VARCHAR", length=length) if declared and length and length < STRING_LENGTH:
            return spark.VarcharType(length)
        case AtomicType(root="DECIMAL", precision=precision, scale=scale):
            return spark.DecimalType(precision or 10, scale or 0)
        case AtomicType(root="TIME", precision=precision):
            return spark.TimeType(min(precision or 0, MICROSECOND_DIGITS))
        case AtomicType(root=root) if root in _ATOMIC:
            return _ATOMIC[root]()
    raise UnsupportedError(
        f"column {path!r} has type {type_}, for which Spark has no type: "
        "select other columns with the option 'columns', or read the table with paimon_core.Table"
    )


def paimon_fields(schema: spark.StructType, *, without: Iterable[str] = ()) -> tuple[DataField, ...]:
    """Return the Paimon columns of a DataFrame's schema, except `without`; their ids are -1: not assigned yet.

    All columns are nullable: NOT NULL in a DataFrame is a fact about its rows, not a requirement for the table.
    Raises UnsupportedError for a column without a Paimon type.
    """
    excluded = set(without)
    return tuple(_paimon_field(field, field.name) for field in schema.fields if field.name not in excluded)


def _paimon_field(field: spark.StructField, path: str) -> DataField:
    return DataField(-1, field.name, paimon_type(field.dataType, path), field.metadata.get("comment"))


def paimon_type(type_: spark.DataType, path: str) -> DataType:
    """Return the Paimon type of a Spark type, nullable at every depth except map keys.

    `path`: the column for the UnsupportedError of a type that Paimon lacks.
    """
    match type_:
        case spark.ArrayType():
            return ArrayType(paimon_type(type_.elementType, f"{path}.element"))
        case spark.MapType():
            key = paimon_type(type_.keyType, f"{path}.key")
            return MapType(key, paimon_type(type_.valueType, f"{path}.value"))
        case spark.StructType():
            return RowType(tuple(_paimon_field(field, f"{path}.{field.name}") for field in type_.fields))
    for spark_class, convert in _FROM_SPARK.items():
        if isinstance(type_, spark_class) and type(type_).__name__ == spark_class.__name__:
            return convert(type_)
    raise UnsupportedError(
        f"column {path!r} has Spark type {type_.simpleString()}, for which Paimon has no type: cast it before writing"
    )


_TIMEZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def expected_arrow_schema(schema: spark.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark requires of the batches of a source with this schema."""
    arrow: pa.Schema = to_arrow_schema(schema, **_TIMEZONE)
    return arrow


def projected(fields: Iterable[DataField], schema: spark.StructType, where: str) -> tuple[DataField, ...]:
    """Return the table's columns that a user-specified schema names, in the order of the schema.

    Names match in any case if no two columns differ only in case. A struct, at any depth, may be requested with only
    some of its fields; the returned column then has only these fields. `where`: the table for errors.

    Raises InvalidInputError for a column that does not exist, that has another type (only wider numbers are accepted),
    or that is nullable and requested as NOT NULL.
    """
    available = Columns(list(fields), where)
    return tuple(_projected_field(available, requested, where) for requested in schema.fields)


def _projected_field(available: Columns, requested: spark.StructField, where: str) -> DataField:
    field = available.find(requested.name)
    field = replace(field, type=_with_fields_of(field.type, requested.dataType, where))
    actual = spark_type(field.type, field.name)
    if not _widens(actual, requested.dataType):
        raise InvalidInputError(
            f"column {requested.name!r} of {where} is {actual.simpleString()}, but the schema given has "
            f"{requested.dataType.simpleString()}: read it with the table's type and cast it afterwards"
        )
    if field.type.nullable and not requested.nullable:
        raise InvalidInputError(f"column {requested.name!r} of {where} may be null, but the schema given says NOT NULL")
    return field


def _with_fields_of(type_: DataType, requested: spark.DataType, where: str) -> DataType:
    """Return the type with only the requested struct fields, in the requested order."""
    match type_, requested:
        case RowType(), spark.StructType():
            fields, available = [], Columns(type_.fields, f"a struct of {where}")
            for child in requested.fields:
                field = available.find(child.name)
                fields.append(replace(field, type=_with_fields_of(field.type, child.dataType, where)))
            return replace(type_, fields=tuple(fields))
        case ArrayType(), spark.ArrayType():
            return replace(type_, element=_with_fields_of(type_.element, requested.elementType, where))
        case MapType(), spark.MapType():
            key = _with_fields_of(type_.key, requested.keyType, where)
            return replace(type_, key=key, value=_with_fields_of(type_.value, requested.valueType, where))
    return type_


_WIDER: dict[type[spark.DataType], tuple[type[spark.DataType], ...]] = {
    spark.ByteType: (spark.ShortType, spark.IntegerType, spark.LongType),
    spark.ShortType: (spark.IntegerType, spark.LongType),
    spark.IntegerType: (spark.LongType, spark.DoubleType),
    spark.FloatType: (spark.DoubleType,),
}


def _widens(actual: spark.DataType, requested: spark.DataType) -> bool:
    """Return True if every value of type `actual` can be read as `requested` without loss."""
    if isinstance(actual, spark.DecimalType) and isinstance(requested, spark.DecimalType):
        return actual.scale == requested.scale and actual.precision <= requested.precision
    return actual.simpleString() == requested.simpleString() or type(requested) in _WIDER.get(type(actual), ())


def for_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the same rows in exactly this Arrow schema; columns are matched by position.

    A column that already has its type is not copied. Raises InvalidInputError for a NULL in a NOT NULL column, which
    Spark would read as another value. REQUIRES: `schema` is `expected_arrow_schema` of columns checked by `projected`.
    """
    for column, field in zip(batch.columns, schema, strict=True):
        if not field.nullable and column.null_count:
            raise InvalidInputError(
                f"column {field.name!r} is NOT NULL, but merging retracted its value (a row of kind -U or -D) and left "
                "NULL: write a value for the key, or make the column nullable"
            )
    arrays = [converted(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def converted(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return one column in Spark's Arrow type: convert nested values, truncate times to microseconds."""
    if array.type.equals(target):
        return array
    if pa.types.is_struct(target):
        children = [converted(array.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=_nulls(array))
    if pa.types.is_map(target):
        pair = [converted(array.keys, target.key_type), converted(array.items, target.item_type)]
        return _with_values(
            array, pa.StructArray.from_arrays(pair, fields=[target.key_field, target.item_field]), target
        )
    if pa.types.is_list(target):
        lists = array.cast(pa.list_(array.type.value_field)) if pa.types.is_fixed_size_list(array.type) else array
        return _with_values(lists, converted(lists.values, target.value_type), target)
    if pa.types.is_timestamp(target) and array.type.unit == "ns":
        return _to_microseconds(array, target)
    return array.cast(target)


def _to_microseconds(array: pa.Array, target: pa.DataType) -> pa.Array:
    nanos = array.view(pa.int64())
    micros = np.floor_divide(nanos.fill_null(0).to_numpy(zero_copy_only=False), 1000)
    return pa.array(micros, mask=np.asarray(array.is_null())).view(target)


def _nulls(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None


def _with_values(lists: pa.Array, values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return an array of lists or maps with the offsets and validity of `lists` and new values."""
    shared = lists.buffers()[:2]
    return pa.Array.from_buffers(target, len(lists), shared, lists.null_count, lists.offset, children=[values])


def finer_than_spark(fields: Iterable[DataField]) -> frozenset[str]:
    """Return the names of the columns with finer digits than Spark's microseconds."""
    return frozenset(field.name for field in fields if without_finer_digits(field.type) != field.type)
