"""The layout of shredded variants: the type to shred by, and the stored columns that follow from it.

The type to shred by is a column type: a ROW for objects, an ARRAY for arrays, VARIANT for a part that stays whole, and
any other type for values of that type.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from paimon_core.errors import InvalidInputError
from paimon_core.options.file import VARIANT_SHREDDINGSCHEMA
from paimon_core.options.option import Options
from paimon_core.types.datatype import (
    BYTES,
    NO_ID,
    STRING,
    VARIANT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    RowType,
    with_nullable,
)
from paimon_core.types.parse import parse_type

_NUMBERS = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE")
_TEXTS = {"CHAR": STRING, "VARCHAR": STRING, "BINARY": BYTES, "VARBINARY": BYTES}
_MICROSECONDS = 6


Layouts: TypeAlias = dict[str, DataType]
"""The type to shred by, for each column that is shredded. For a ROW column it is a ROW of the fields to shred."""


def is_variant(t: DataType) -> bool:
    """Return True if a type is VARIANT."""
    return isinstance(t, AtomicType) and t.root == "VARIANT"


def configured_layout(options: Options) -> RowType | None:
    """Return the types to shred by, by column, of the option `variant.shreddingSchema`; `None`: not set.

    Raises InvalidInputError for a text that is no ROW, or an unsuitable type.
    """
    text = options.value(VARIANT_SHREDDINGSCHEMA)
    if text is None:
        return None
    where = f"option {VARIANT_SHREDDINGSCHEMA.key!r}"
    try:
        layout = parse_type(json.loads(text))
    except ValueError as error:  # InvalidInputError is one, too
        raise InvalidInputError(f"{where} is {text!r}, which is not a type as JSON: {error}") from error
    if not isinstance(layout, RowType):
        raise InvalidInputError(f"{where} is of type {layout}: it must be a ROW with a field for each column to shred")
    return RowType(tuple(replace(f, type=_checked(f.type, f.name, where)) for f in layout.fields))


def _checked(t: DataType, path: str, where: str) -> DataType:
    """Return a type to shred by in the form of `stored_group`. Raises InvalidInputError for an unsuitable type."""
    match t:
        case RowType(fields):
            if not fields or len({f.name for f in fields}) < len(fields):
                raise InvalidInputError(f"{where} has a ROW without fields, or with two fields of one name, at {path}")
            return RowType(tuple(replace(f, type=_checked(f.type, f"{path}.{f.name}", where)) for f in fields))
        case ArrayType(element):
            return ArrayType(_checked(element, f"{path}.element", where))
        case AtomicType(root=root):
            if root in _TEXTS:
                return _TEXTS[root]
            instant = root in ("TIMESTAMP", "TIMESTAMP_LTZ") and t.precision == _MICROSECONDS
            if root in _NUMBERS or root == "VARIANT" or instant:
                return with_nullable(t, True)
    raise InvalidInputError(
        f"{where} has the type {t} at {path}: variants are shredded by ROW, ARRAY, VARIANT, numbers, BOOLEAN, STRING, "
        f"BYTES, DATE, TIMESTAMP(6) and TIMESTAMP_LTZ(6)"
    )


def without_times(layout: DataType) -> DataType:
    """Return a type to shred by that leaves timestamps in the binary encoding.

    In a file with a column of nanoseconds, the encoder writes other timestamps as plain integers, which readers would
    take for integers of a variant.
    """
    match layout:
        case RowType(fields):
            return replace(layout, fields=tuple(replace(f, type=without_times(f.type)) for f in fields))
        case ArrayType(element):
            return replace(layout, element=without_times(element))
        case AtomicType(root="TIMESTAMP" | "TIMESTAMP_LTZ"):
            return VARIANT
        case _:
            return layout


def stored_group(layout: DataType, *, top: bool = True) -> RowType:
    """Return the stored columns of variants that are shredded by a type, as the type of a row.

    Args:
        layout: the type to shred by.
        top: True for a whole variant, which has metadata; False for a field or an element.
    """
    columns: list[tuple[str, DataType]] = [("metadata", BYTES)] if top else []
    columns.append(("value", BYTES))
    match layout:
        case RowType(fields):
            groups = [replace(f, id=i if f.id == NO_ID else f.id) for i, f in enumerate(fields)]
            columns.append(
                ("typed_value", RowType(tuple(replace(f, type=stored_group(f.type, top=False)) for f in groups)))
            )
        case ArrayType(element):
            columns.append(("typed_value", ArrayType(stored_group(element, top=False))))
        case _ if layout != VARIANT:
            columns.append(("typed_value", layout))
    return RowType(tuple(DataField(i, name, t) for i, (name, t) in enumerate(columns)))


def stored_fields(fields: Sequence[DataField], layouts: Layouts) -> tuple[DataField, ...]:
    """Return the columns of a file, with the columns in ``layouts`` shredded."""
    return tuple(replace(f, type=_stored_type(f.type, layouts[f.name])) if f.name in layouts else f for f in fields)


def _stored_type(t: DataType, layout: DataType) -> DataType:
    if is_variant(t):
        return replace(stored_group(layout), nullable=t.nullable)
    if isinstance(t, RowType) and isinstance(layout, RowType):
        inner = {f.name: f.type for f in layout.fields}
        return replace(t, fields=stored_fields(t.fields, inner))
    return t


def configured_layouts(fields: Sequence[DataField], options: Options) -> Layouts:
    """Return the layouts that the option `variant.shreddingSchema` gives for the variants among these columns."""
    layout = configured_layout(options)
    variants = {f.name for f in fields if is_variant(f.type)}
    return {} if layout is None else {f.name: f.type for f in layout.fields if f.name in variants}
