"""The conversion of column types to Arrow types, and back.

A column type has exactly one Arrow type in the engine (:func:`to_arrow`), so all batches of a table have the same
types. Arrow fields hold the nullability. :func:`from_arrow` accepts every Arrow type with an obvious counterpart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.types import datatype
from paimon_core.types.datatype import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    decimal,
    with_nullable,
)

ArrowType: TypeAlias = Any
"""A ``pa.DataType``; pyarrow carries no type hints."""

_FIXED: dict[str, ArrowType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.binary(),
    "GEOMETRY": pa.binary(),
    "GEOGRAPHY": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
    "VARIANT": pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]),
}

_PRECISION_OF_UNIT = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def timestamp_unit(precision: int) -> str:
    """Return the coarsest Arrow unit that stores ``precision`` digits of a second: ms, us or ns."""
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


@lru_cache(maxsize=4096)
def to_arrow(t: DataType) -> ArrowType:
    """Return the Arrow type of a column type; the nullability of the outermost level belongs to the field."""
    match t:
        case AtomicType():
            return _atomic_to_arrow(t)
        case ArrayType(element):
            return pa.list_(_child("element", element))
        case MapType(key, value):
            return pa.map_(pa.field("key", to_arrow(key), False), _child("value", value))
        case MultisetType(element):
            return pa.map_(pa.field("key", to_arrow(element), False), pa.field("value", pa.int32(), False))
        case RowType(fields):
            return pa.struct([arrow_field(field) for field in fields])
        case VectorType(element, length):
            return pa.list_(_child("element", element), length)


def _child(name: str, t: DataType) -> Any:
    return pa.field(name, to_arrow(t), t.nullable)


def _atomic_to_arrow(t: AtomicType) -> ArrowType:
    match t.root:
        case "DECIMAL":
            return pa.decimal128(t.precision, t.scale)
        case "TIMESTAMP":
            return pa.timestamp(timestamp_unit(t.precision or 0))
        case "TIMESTAMP_LTZ":
            return pa.timestamp(timestamp_unit(t.precision or 0), "UTC")
        case root:
            return _FIXED[root]


def arrow_field(field: DataField) -> Any:
    """Return the ``pa.Field`` of a column."""
    return pa.field(field.name, to_arrow(field.type), field.type.nullable)


def arrow_schema(fields: Sequence[DataField]) -> Any:
    """Return the ``pa.Schema`` of columns, in their order."""
    return _schema(tuple(fields))


@lru_cache(maxsize=1024)
def _schema(fields: tuple[DataField, ...]) -> Any:
    return pa.schema([arrow_field(field) for field in fields])


def from_arrow(t: ArrowType, nullable: bool = True) -> DataType:
    """Return the column type that holds every value of an Arrow type; fields of nested rows get the id -1.

    Large, view, dictionary and run-end encoded types become the type of their values. Unsigned integers become the next
    wider signed type. Raises InvalidInputError for types without a counterpart: null, duration, interval, union, and
    decimals of more than 38 digits or with a negative scale.
    """
    return with_nullable(_from_arrow(t), nullable)


_FROM_PLAIN: dict[ArrowType, AtomicType] = {
    pa.bool_(): datatype.BOOLEAN,
    pa.int8(): datatype.TINYINT,
    pa.int16(): datatype.SMALLINT,
    pa.int32(): datatype.INT,
    pa.int64(): datatype.BIGINT,
    pa.uint8(): datatype.SMALLINT,
    pa.uint16(): datatype.INT,
    pa.uint32(): datatype.BIGINT,
    pa.uint64(): decimal(20),
    pa.float16(): datatype.FLOAT,
    pa.float32(): datatype.FLOAT,
    pa.float64(): datatype.DOUBLE,
    pa.string(): datatype.STRING,
    pa.large_string(): datatype.STRING,
    pa.string_view(): datatype.STRING,
    pa.binary(): datatype.BYTES,
    pa.large_binary(): datatype.BYTES,
    pa.binary_view(): datatype.BYTES,
    pa.date32(): datatype.DATE,
    pa.date64(): datatype.DATE,
}


def _from_arrow(t: ArrowType) -> DataType:
    plain = _FROM_PLAIN.get(t)
    if plain is not None:
        return plain
    if isinstance(t, pa.BaseExtensionType):
        return _from_arrow(t.storage_type)
    kinds = pa.types
    if kinds.is_dictionary(t) or kinds.is_run_end_encoded(t):
        return _from_arrow(t.value_type)
    if kinds.is_decimal(t) and t.precision <= datatype.MAX_DECIMAL_PRECISION and 0 <= t.scale <= t.precision:
        return decimal(t.precision, t.scale)
    if kinds.is_fixed_size_binary(t) and t.byte_width > 0:
        return AtomicType("BINARY", length=t.byte_width)
    if kinds.is_time(t):
        return AtomicType("TIME", precision=_PRECISION_OF_UNIT[t.unit])
    if kinds.is_timestamp(t):
        root = "TIMESTAMP" if t.tz is None else "TIMESTAMP_LTZ"
        return AtomicType(root, precision=_PRECISION_OF_UNIT[t.unit])
    if kinds.is_nested(t) and not kinds.is_union(t):
        return _nested_from_arrow(t)
    raise InvalidInputError(f"Arrow type {t} has no counterpart among the column types: cast the column before")


def _nested_from_arrow(t: ArrowType) -> DataType:
    if pa.types.is_struct(t):
        return RowType(tuple(_field_from_arrow(t.field(i)) for i in range(t.num_fields)))
    if pa.types.is_map(t):
        return MapType(from_arrow(t.key_type, False), from_arrow(t.item_type, t.item_field.nullable))
    element = from_arrow(t.value_type, t.value_field.nullable)
    if (
        pa.types.is_fixed_size_list(t)
        and isinstance(element, AtomicType)
        and element.root in datatype.VECTOR_ELEMENT_ROOTS
    ):
        return VectorType(element, t.list_size)
    return ArrayType(element)


def _field_from_arrow(field: Any) -> DataField:
    try:
        return DataField(datatype.NO_ID, field.name, from_arrow(field.type, field.nullable))
    except InvalidInputError as error:
        raise InvalidInputError(f"column {field.name!r}: {error}") from error


def fields_from_arrow(schema: Any) -> tuple[DataField, ...]:
    """Return the columns of a ``pa.Schema`` with ids from 0, nested fields included."""
    return assign_ids([_field_from_arrow(field) for field in schema], 0)[0]


def assign_ids(fields: Iterable[DataField], next_id: int) -> tuple[tuple[DataField, ...], int]:
    """Assign ids from ``next_id`` to columns; return the columns and the highest id (``next_id - 1``: no columns).

    A column gets its id before the fields nested in its type. Inside a nested ROW, the fields nested in a field get
    their ids before the field. Every engine of the format uses this order.
    """
    numbered = []
    for field in fields:
        t, free = _number(field.type, next_id + 1)
        numbered.append(replace(field, id=next_id, type=t))
        next_id = free
    return tuple(numbered), next_id - 1


def _number(t: DataType, free: int) -> tuple[DataType, int]:
    """Return the type with its nested fields numbered from ``free``, and the next free id."""
    match t:
        case RowType(fields):
            numbered = []
            for field in fields:
                inner, free = _number(field.type, free)
                numbered.append(replace(field, id=free, type=inner))
                free += 1
            return replace(t, fields=tuple(numbered)), free
        case ArrayType(element) | MultisetType(element):
            inner, free = _number(element, free)
            return replace(t, element=inner), free
        case MapType(key, value):
            new_key, free = _number(key, free)
            new_value, free = _number(value, free)
            return replace(t, key=new_key, value=new_value), free
        case _:
            return t, free
