"""Storing what a user hands over: exactly as it is, or not at all.

Widening is free (ints into wider ints, decimals or, up to 2**53, floats), encodings (dictionary, large, view) are
dissolved, and everything that would change a value is refused by column, row and value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    MAX_LENGTH,
    TEXT_ROOTS,
    TIME_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

ArrowArray: TypeAlias = Any

_MULTISET_COUNT = AtomicType("INT", nullable=False)
_VARIANT_PART = AtomicType("VARBINARY", nullable=False, length=MAX_LENGTH)

_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array sits: the column (with the path into it) and the table row of each of its values."""

    path: str
    row: Callable[[int], int]

    def inside(self, name: str, row: Callable[[int], int] | None = None) -> "_Place":
        return _Place(f"{self.path}.{name}", row or self.row)

    def refusal(self, array: ArrowArray, position: int, target: DataType, why: str) -> InvalidInputError:
        value = repr(_python_value(array, position))
        shown = value if len(value) <= 80 else value[:77] + "..."
        return InvalidInputError(
            f"column {self.path!r}, row {self.row(position)}: {shown} cannot be stored as {target}: {why}"
        )


def _python_value(array: ArrowArray, position: int) -> Any:
    try:
        return array[position].as_py()
    except (ValueError, OverflowError):  # beyond the years of Python's datetime
        return array.slice(position, 1).view(pa.int64())[0].as_py()


def coerce_array(array: ArrowArray, target: DataType, column: str, first_row: int = 0) -> ArrowArray:
    """User data as the canonical Arrow array of ``target``, every value unchanged.

    An array (or chunked array) already of the right type comes back as it is, without a copy. Refused with an
    InvalidInputError naming ``column``, the first bad row (the array starts at ``first_row``) and its value: numbers,
    times and texts the type cannot hold, types that only an explicit cast could turn into the other, timestamps with a
    zone for TIMESTAMP and without one for TIMESTAMP_LTZ, nested fields the type lacks, nulls inside of nested types
    that forbid them. Nulls at the top level pass: whether the column takes them is the caller's question.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if array.type.equals(to_arrow(target), check_metadata=True) and not _constrained(target):
        return array
    return _stored(array, target, _Place(column, lambda position: first_row + position))


@lru_cache(maxsize=4096)
def _constrained(t: DataType) -> bool:
    """Whether some values of the type's Arrow array are not values of the type."""
    match t:
        case AtomicType():
            return (
                (t.length or MAX_LENGTH) < MAX_LENGTH
                or (t.root in TIME_ROOTS and _spare_digits(t) > 0)
                or t.root == "VARIANT"
            )
        case ArrayType(element) | VectorType(element):
            return not element.nullable or _constrained(element)
        case MapType(key, value):
            return not value.nullable or _constrained(key) or _constrained(value)
        case MultisetType():
            return True
        case RowType(fields):
            return any(not field.type.nullable or _constrained(field.type) for field in fields)


def _spare_digits(t: AtomicType) -> int:
    """Digits of a second the Arrow unit of a time type has beyond its precision."""
    return max(_UNIT_DIGITS[to_arrow(t).unit] - (t.precision or 0), 0)


def _stored(array: ArrowArray, target: DataType, place: _Place) -> ArrowArray:
    array = _decoded(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to_arrow(target))
    match target:
        case AtomicType(root="VARIANT"):
            return _stored_struct(array, target, (("value", _VARIANT_PART), ("metadata", _VARIANT_PART)), place)
        case AtomicType():
            return _stored_atomic(array, target, place)
        case RowType(fields):
            return _stored_struct(array, target, tuple((field.name, field.type) for field in fields), place)
        case ArrayType(element):
            return _stored_list(array, target, element, place)
        case VectorType(element):
            return _stored_vector(array, target, element, place)
        case MapType(key, value):
            return _stored_map(array, target, key, value, place)
        case MultisetType(element):
            return _stored_map(array, target, element, _MULTISET_COUNT, place)


def _decoded(array: ArrowArray) -> ArrowArray:
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


# ---------------------------------------------------------------------------------------------- atomic values


def _stored_atomic(array: ArrowArray, target: AtomicType, place: _Place) -> ArrowArray:
    wanted = to_arrow(target)
    if array.type != wanted:
        advice = _unrelated(array.type, target)
        if advice is not None:
            advice = advice or "cast the column before"
            raise InvalidInputError(f"column {place.path!r}: {array.type} cannot be stored as {target}: {advice}")
        array = _exactly(array, wanted, target, place)
    if target.root in TEXT_ROOTS | BINARY_ROOTS and target.length != MAX_LENGTH:
        _check_length(array, target, place)
    elif target.root in TIME_ROOTS and _spare_digits(target):
        _check_digits(array, target, place)
    return array


def _unrelated(source: Any, target: AtomicType) -> str | None:
    """None when values of the Arrow type may be values of the target, else advice (perhaps empty)."""
    kinds = pa.types
    related: bool
    match target.root:
        case root if root in INTEGER_ROOTS:
            related = kinds.is_integer(source) or kinds.is_floating(source) or kinds.is_decimal(source)
        case "FLOAT" | "DOUBLE":
            related = kinds.is_integer(source) or kinds.is_floating(source)
        case "DECIMAL":
            related = kinds.is_integer(source) or kinds.is_decimal(source)
        case "CHAR" | "VARCHAR":
            related = kinds.is_string(source) or kinds.is_large_string(source) or kinds.is_string_view(source)
        case "DATE":
            related = kinds.is_date(source)
        case "TIME":
            related = kinds.is_time(source)
        case "TIMESTAMP" | "TIMESTAMP_LTZ" if kinds.is_timestamp(source):
            return _zone_advice(source, target)
        case "BOOLEAN" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            related = False
        case _:
            related = any(
                is_kind(source)
                for is_kind in (
                    kinds.is_binary,
                    kinds.is_large_binary,
                    kinds.is_fixed_size_binary,
                    kinds.is_binary_view,
                )
            ) and not kinds.is_decimal(source)
    return None if related else ""


def _zone_advice(source: Any, target: AtomicType) -> str | None:
    if target.root == "TIMESTAMP" and source.tz is not None:
        return "it has a time zone and the column has none: make it local time first, or declare TIMESTAMP_LTZ"
    if target.root == "TIMESTAMP_LTZ" and source.tz is None:
        return "it has no time zone and the column holds instants: attach the zone first, or declare TIMESTAMP"
    return None


def _exactly(array: ArrowArray, wanted: Any, target: AtomicType, place: _Place) -> ArrowArray:
    """Cast between related types; refuses the first value that would change."""
    try:
        result = _cast(array, wanted)
    except pa.ArrowInvalid as error:
        position = first_failure(array, lambda part: _cast(part, wanted))
        raise place.refusal(array, position, target, _reason(error)) from error
    if pa.types.is_floating(array.type) and pa.types.is_floating(wanted) and wanted.bit_width < array.type.bit_width:
        changed = pc.and_(pc.not_equal(result.cast(array.type), array), pc.invert(pc.is_nan(array)))
        _refuse_first(changed, array, target, place, "it is not exactly a number of that type; round it before")
    return result


def _cast(array: ArrowArray, wanted: Any) -> ArrowArray:
    if pa.types.is_integer(array.type) and pa.types.is_decimal(wanted):
        array = array.cast(pa.decimal256(20, 0))  # Arrow asks for room for every integer, not for those present
    if pa.types.is_decimal(array.type) and pa.types.is_integer(wanted):
        array = array.cast(pa.decimal256(76, 0))
    if pa.types.is_float16(array.type) and not pa.types.is_floating(wanted):
        array = array.cast(pa.float32())
    return array.cast(wanted)


def first_failure(array: ArrowArray, convert: Callable[[ArrowArray], ArrowArray]) -> int:
    """Position of the first value Arrow cannot convert: the end of the longest good prefix, by halving.

    ``convert`` raises ArrowInvalid when any value of its array fails; one of ``array`` does.
    """
    good, bad = 0, len(array)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            convert(array.slice(good, middle - good))
            good = middle
        except pa.ArrowInvalid:
            bad = middle
    return good


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0]


def _refuse_first(bad: ArrowArray, array: ArrowArray, target: DataType, place: _Place, why: str) -> None:
    position = pc.index(bad, True).as_py()
    if position >= 0:
        raise place.refusal(array, position, target, why)


def _check_length(array: ArrowArray, target: AtomicType, place: _Place) -> None:
    if target.root in TEXT_ROOTS:
        if not len(array) or array.nbytes <= (target.length or 0):
            return
        lengths, unit = pc.utf8_length(array), "characters"
    else:
        lengths, unit = pc.binary_length(array), "bytes"
    longest = pc.max(lengths).as_py()
    if longest is not None and longest > (target.length or 0):
        bad = pc.greater(lengths, target.length)
        position = pc.index(bad, True).as_py()
        raise place.refusal(array, position, target, f"it has {lengths[position].as_py()} {unit}")


def _check_digits(array: ArrowArray, target: AtomicType, place: _Place) -> None:
    step = 10 ** _spare_digits(target)
    numbers = array.view(pa.int32() if target.root == "TIME" else pa.int64())
    whole = pc.multiply(pc.divide(numbers, step), step)
    _refuse_first(
        pc.not_equal(numbers, whole.cast(numbers.type)),
        array,
        target,
        place,
        f"it has more than {target.precision} digits after the second; truncate it before",
    )


# ---------------------------------------------------------------------------------------------- nested values


def _kind_refused(array: ArrowArray, target: DataType, place: _Place) -> InvalidInputError:
    return InvalidInputError(f"column {place.path!r}: {array.type} cannot be stored as {target}")


def _no_nulls(child: ArrowArray, t: DataType, place: _Place, within: ArrowArray | None = None) -> None:
    """Refuse nulls in a child whose type forbids them; ``within`` masks the values that count."""
    if t.nullable or not child.null_count:
        return
    bad = child.is_null() if within is None else pc.and_(child.is_null(), within)
    _refuse_first(bad, child, t, place, "it must not be null")


def _stored_struct(
    array: ArrowArray, target: DataType, fields: tuple[tuple[str, DataType], ...], place: _Place
) -> ArrowArray:
    if not pa.types.is_struct(array.type):
        raise _kind_refused(array, target, place)
    given = [array.type.field(i).name for i in range(array.type.num_fields)]
    extra = [name for name in given if name not in dict(fields)]
    if extra or len(set(given)) < len(given):
        what = f"has no field {extra[0]!r}" if extra else "takes every field once"
        raise InvalidInputError(f"column {place.path!r}: {array.type} cannot be stored as {target}, which {what}")
    children = dict(zip(given, array.flatten(), strict=True))  # flattened: null where the row is null
    valid = array.is_valid() if array.null_count else None
    arrays = []
    for name, t in fields:
        inside = place.inside(name)
        child = children.get(name)
        stored = pa.nulls(len(array), to_arrow(t)) if child is None else _stored(child, t, inside)
        _no_nulls(stored, t, inside, valid)
        arrays.append(stored)
    wanted = to_arrow(target)
    if not arrays:
        return array.cast(wanted)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=mask)


def _lengths(array: ArrowArray) -> Any:
    """Number of elements of each list as int64, 0 where null."""
    if pa.types.is_map(array.type) or pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        lengths = np.diff(array.offsets.to_numpy()).astype(np.int64)
    elif pa.types.is_fixed_size_list(array.type):
        lengths = np.full(len(array), array.type.list_size, np.int64)
    else:
        lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where(_null_mask(array), 0, lengths) if array.null_count else lengths


def _null_mask(array: ArrowArray) -> Any:
    return array.is_null().to_numpy(zero_copy_only=False)


def _offsets(array: ArrowArray, lengths: Any, path: str) -> ArrowArray:
    """Offsets over the flattened elements, null where the list is."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if ends[-1] > MAX_LENGTH:
        raise InvalidInputError(f"column {path!r}: {ends[-1]} elements in one batch, at most {MAX_LENGTH} fit: cut it")
    mask = np.append(_null_mask(array), False) if array.null_count else None
    return pa.array(ends.astype(np.int32), mask=mask)


def _element_place(place: _Place, name: str, lengths: Any) -> _Place:
    ends = np.cumsum(lengths)
    return place.inside(name, lambda position: place.row(int(np.searchsorted(ends, position, side="right"))))


def _stored_list(array: ArrowArray, target: DataType, element: DataType, place: _Place) -> ArrowArray:
    kinds = pa.types
    if not (kinds.is_nested(array.type) and hasattr(array, "flatten")) or kinds.is_map(array.type):
        raise _kind_refused(array, target, place)
    if kinds.is_struct(array.type) or kinds.is_union(array.type):
        raise _kind_refused(array, target, place)
    lengths = _lengths(array)
    inside = _element_place(place, "element", lengths)
    values = _stored(array.flatten(), element, inside)
    _no_nulls(values, element, inside)
    return pa.ListArray.from_arrays(_offsets(array, lengths, place.path), values, type=to_arrow(target))


def _stored_vector(array: ArrowArray, target: VectorType, element: DataType, place: _Place) -> ArrowArray:
    as_list = _stored_list(array, ArrayType(element), element, place)
    lengths = _lengths(as_list)
    wrong = pa.array((lengths != target.length) & ~_null_mask(as_list))
    _refuse_first(wrong, as_list, target, place, f"it must have {target.length} elements")
    return as_list.cast(to_arrow(target))


def _stored_map(array: ArrowArray, target: DataType, key: DataType, value: DataType, place: _Place) -> ArrowArray:
    if not pa.types.is_map(array.type):
        raise _kind_refused(array, target, place)
    lengths = _lengths(array)
    if array.null_count and np.diff(array.offsets.to_numpy())[_null_mask(array)].any():
        array = array.take(pa.array(np.arange(len(array))))  # drops what hides under null maps
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    keys_at, values_at = (_element_place(place, name, lengths) for name in ("key", "value"))
    keys = _stored(array.keys.slice(first, last - first), key, keys_at)
    values = _stored(array.items.slice(first, last - first), value, values_at)
    if keys.null_count:
        _refuse_first(keys.is_null(), keys, key, keys_at, "a key must not be null")
    _no_nulls(values, value, values_at)
    return pa.MapArray.from_arrays(_offsets(array, lengths, place.path), keys, values, type=to_arrow(target))
