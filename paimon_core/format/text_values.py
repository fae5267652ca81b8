"""Conversion of values to the texts in CSV and JSON files, and back (format 7.7).

A text is the value cast to STRING; bytes are encoded in base 64.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format.avro_types import rebuilt_list, rebuilt_map, rebuilt_struct
from paimon_core.types.arrow import to_arrow
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    STRING,
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    with_nullable,
)

ArrowArray: TypeAlias = Any
_KEY_ROOTS = {*TEXT_ROOTS, *INTEGER_ROOTS, "BOOLEAN"}
_NOT_A_VALUE = (InvalidInputError, pa.ArrowInvalid, binascii.Error)
_UNSTORABLE = {"VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"}


def check_storable(field: DataField, kind: str, *, nested: bool) -> None:
    """Raise UnsupportedError, naming the column, for a type whose values cannot be restored from text.

    Args:
        field: the column.
        kind: the file format for the message, CSV or JSON.
        nested: True if the files can hold arrays, maps and rows.
    """
    reason = _unstorable(field.type, nested)
    if reason:
        raise UnsupportedError(f"column {field.name!r} of type {field.type} cannot be stored in {kind} files: {reason}")


def _unstorable(t: DataType, nested: bool) -> str | None:
    """Return the reason why values of a type cannot be restored from text, or `None`."""
    match t:
        case AtomicType(root="TIMESTAMP_LTZ"):
            return "the text would depend on the time zone of the machine"
        case AtomicType():
            return "such values have no text" if t.root in _UNSTORABLE else None
        case ArrayType(element) if nested:
            return _unstorable(element, nested)
        case RowType(fields) if nested:
            return next((reason for f in fields if (reason := _unstorable(f.type, nested))), None)
        case MapType(key, value) if nested:
            if not (isinstance(key, AtomicType) and key.root in _KEY_ROOTS):
                return "keys of maps must be text, whole numbers or booleans"
            return _unstorable(value, nested)
    return "only single values have a text" if not nested else "values of this type have no text"


def text_type(t: DataType) -> pa.DataType:
    """Return the Arrow type of values whose leaves are texts."""
    match t:
        case ArrayType(element):
            return pa.list_(text_type(element))
        case MapType(_, value):
            return pa.map_(pa.string(), text_type(value))
        case RowType(fields):
            return pa.struct([pa.field(f.name, text_type(f.type)) for f in fields])
    return pa.string()


def to_text(array: ArrowArray, t: DataType) -> ArrowArray:
    """Return canonical values with all their leaves as texts."""
    return _leaves(array, t, _leaf_to_text)


def from_text(array: ArrowArray, t: DataType, column: str, path: str) -> ArrowArray:
    """Return canonical values for values whose leaves are texts: the inverse of `to_text`.

    Args:
        array: the texts.
        t: the type of the values.
        column: its name in messages.
        path: the file's name in messages.

    Raises CorruptedError naming column, text and file for a text that is not a value of the type.
    """
    try:
        return _leaves(array, t, _leaf_from_text)
    except _NOT_A_VALUE as cause:
        raise CorruptedError(f"column {column!r} of {path or 'the file'}: {cause}") from cause


def known_from_text(array: ArrowArray, t: DataType) -> ArrowArray:
    """Return canonical values as `from_text`, with NULL for each text that is not a value of its type."""
    return _leaves(array, t, _known_leaf)


def _known_leaf(array: ArrowArray, t: AtomicType) -> ArrowArray:
    """Return the values of texts. Texts that are no values are isolated by halving the array that holds them."""
    try:
        return _leaf_from_text(array, t)
    except _NOT_A_VALUE:
        if len(array) == 1:
            return pa.nulls(1, to_arrow(t))
    middle = len(array) // 2
    return pa.concat_arrays([_known_leaf(array.slice(0, middle), t), _known_leaf(array.slice(middle), t)])


def _leaves(array: ArrowArray, t: DataType, leaf: Callable[[ArrowArray, AtomicType], ArrowArray]) -> ArrowArray:
    """Return the values of type ``t`` with ``leaf`` applied to the values of each atomic type in it."""
    match t:
        case AtomicType():
            return leaf(array, t)
        case ArrayType(element):
            return rebuilt_list(array, _leaves(array.values, element, leaf))
        case MapType(key, value):
            return rebuilt_map(array, _leaves(array.keys, key, leaf), _leaves(array.items, value, leaf))
        case RowType(fields):
            children = array.flatten()  # the fields of a null row become null: their contents are undefined
            return rebuilt_struct(array, [_leaves(c, f.type, leaf) for c, f in zip(children, fields, strict=True)])
    raise UnsupportedError(f"values of type {t} have no text")


def _leaf_to_text(array: ArrowArray, t: AtomicType) -> ArrowArray:
    if t.root in BINARY_ROOTS:  # Arrow has no function for base 64
        return pa.array([None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()], pa.string())
    if t.root == "TIME":
        return pc.replace_substring_regex(array.cast(pa.string()), r"\.000$", "")
    return cast_array(array, with_nullable(t, True), STRING)


def _leaf_from_text(array: ArrowArray, t: AtomicType) -> ArrowArray:
    if t.root in TEXT_ROOTS:
        return array
    if t.root in BINARY_ROOTS:
        values = [None if v is None else base64.b64decode(v, validate=True) for v in array.to_pylist()]
        return pa.array(values, pa.binary())
    return cast_array(array, STRING, with_nullable(t, True))
