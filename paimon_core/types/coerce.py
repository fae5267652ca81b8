"""The conversion of a user's Arrow arrays to column types: each value stays exactly equal, or the array is refused.

Integers may become wider integers, decimals or (up to 2**53) floats; encodings (dictionary, large, view) are decoded.
An error for a value that would change names the column, the row and the value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.columns import matching_positions
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
    is_nested,
)

ArrowArray: TypeAlias = Any

_MULTISET_COUNT = AtomicType("INT", nullable=False)
_VARIANT_PART = AtomicType("VARBINARY", nullable=False, length=MAX_LENGTH)

_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


@dataclass(frozen=True, slots=True)
class _Location:
    """The location of an array for messages: the path of its column, and the table row of each value."""

    path: str
    row: Callable[[int], int]

    def inside(self, name: str, row: Callable[[int], int] | None = None) -> "_Location":
        return _Location(f"{self.path}.{name}", row or self.row)

    def refusal(self, array: ArrowArray, position: int, target: DataType, why: str) -> InvalidInputError:
        value = repr(_python_value(array, position))
        text = value if len(value) <= 80 else value[:77] + "..."
        return InvalidInputError(
            f"column {self.path!r}, row {self.row(position)}: {text} cannot be stored as {target}: {why}"
        )


def _python_value(array: ArrowArray, position: int) -> Any:
    try:
        return array[position].as_py()
    except (ValueError, OverflowError):  # beyond the years of Python's datetime
        return array.slice(position, 1).view(pa.int64())[0].as_py()


def coerce_array(array: ArrowArray, target: DataType, column: str, first_row: int = 0) -> ArrowArray:
    """Return user data as the canonical Arrow array of ``target``, with every value unchanged.

    An array of the right type is returned without a copy. Nulls at the top level pass: the caller checks for them.
    Raises InvalidInputError, which names ``column``, the first bad row and its value, for:

    - numbers, times and texts that the type cannot hold, and types that need an explicit cast
    - timestamps with a zone for TIMESTAMP, or without a zone for TIMESTAMP_LTZ
    - nested fields that the type lacks, and nulls in nested types that forbid nulls

    Args:
        array: may be chunked.
        target: the column type.
        column: its name, for the message.
        first_row: the number of the first row of the array, for the message.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if is_nested(target) and _lacks_offsets(array):
        array = array.take(pa.array(np.arange(len(array))))
    if array.type.equals(to_arrow(target), check_metadata=True) and not _constrained(target):
        return array
    return _stored(array, target, _Location(column, lambda position: first_row + position))


def _lacks_offsets(array: ArrowArray) -> bool:
    """Return True if an array contains an empty array of lists or maps without an offset.

    Spark 4.1 writes them. The format allows it, but pyarrow then reads the first offset from outside of the buffer.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        return any(_lacks_offsets(array.field(i)) for i in range(kind.num_fields))
    is_map = pa.types.is_map(kind)
    if not is_map and not pa.types.is_list(kind) and not pa.types.is_large_list(kind):
        return False
    if not len(array):
        offsets = array.buffers()[1]
        return offsets is None or not offsets.size
    return _lacks_offsets(array.keys) or _lacks_offsets(array.items) if is_map else _lacks_offsets(array.values)


@lru_cache(maxsize=4096)
def _constrained(t: DataType) -> bool:
    """Return True if the Arrow type of a column type can hold values that the column type forbids."""
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
    """Return the number of digits of the Arrow unit beyond the precision of a time type."""
    return max(_UNIT_DIGITS[to_arrow(t).unit] - (t.precision or 0), 0)


def _stored(array: ArrowArray, target: DataType, location: _Location) -> ArrowArray:
    array = _decoded(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to_arrow(target))
    match target:
        case AtomicType(root="VARIANT"):
            return _stored_struct(array, target, (("value", _VARIANT_PART), ("metadata", _VARIANT_PART)), location)
        case AtomicType():
            return _stored_atomic(array, target, location)
        case RowType(fields):
            return _stored_struct(array, target, tuple((field.name, field.type) for field in fields), location)
        case ArrayType(element):
            return _stored_list(array, target, element, location)
        case VectorType(element):
            return _stored_vector(array, target, element, location)
        case MapType(key, value):
            return _stored_map(array, target, key, value, location)
        case MultisetType(element):
            return _stored_map(array, target, element, _MULTISET_COUNT, location)


def _decoded(array: ArrowArray) -> ArrowArray:
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = _of_plain_values(array).dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def _of_plain_values(array: ArrowArray) -> ArrowArray:
    """Return a dictionary array with plain values instead of views, which older versions of Arrow cannot decode."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(array.type.value_type)
    if plain is None:
        return array
    return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(plain))


# ---------------------------------------------------------------------------------------------- atomic values


def _stored_atomic(array: ArrowArray, target: AtomicType, location: _Location) -> ArrowArray:
    arrow_type = to_arrow(target)
    if array.type != arrow_type:
        advice = _unrelated(array.type, target)
        if advice is not None:
            advice = advice or "cast the column before"
            raise InvalidInputError(f"column {location.path!r}: {array.type} cannot be stored as {target}: {advice}")
        array = _exactly(array, arrow_type, target, location)
    if target.root in TEXT_ROOTS | BINARY_ROOTS and target.length != MAX_LENGTH:
        _check_length(array, target, location)
    elif target.root in TIME_ROOTS and _spare_digits(target):
        _check_digits(array, target, location)
    return array


def _unrelated(source: Any, target: AtomicType) -> str | None:
    """Return advice, possibly empty, for an Arrow type that the target cannot store; `None`: the type can be stored."""
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


def _exactly(array: ArrowArray, arrow_type: Any, target: AtomicType, location: _Location) -> ArrowArray:
    """Cast between related types. Raises InvalidInputError for the first value that would change."""
    try:
        result = _cast(array, arrow_type)
    except pa.ArrowInvalid as error:
        position = first_failure(array, lambda part: _cast(part, arrow_type))
        raise location.refusal(array, position, target, _reason(error)) from error
    if (
        pa.types.is_floating(array.type)
        and pa.types.is_floating(arrow_type)
        and arrow_type.bit_width < array.type.bit_width
    ):
        changed = pc.and_(pc.not_equal(result.cast(array.type), array), pc.invert(pc.is_nan(array)))
        _refuse_first(changed, array, target, location, "it is not exactly a number of that type; round it first")
    return result


def _cast(array: ArrowArray, arrow_type: Any) -> ArrowArray:
    if pa.types.is_integer(array.type) and pa.types.is_decimal(arrow_type):
        array = array.cast(pa.decimal256(20, 0))  # Arrow requires room for every integer of the type
    if pa.types.is_decimal(array.type) and pa.types.is_integer(arrow_type):
        array = array.cast(pa.decimal256(76, 0))
    if pa.types.is_float16(array.type) and not pa.types.is_floating(arrow_type):
        array = array.cast(pa.float32())
    return array.cast(arrow_type)


def first_failure(array: ArrowArray, convert: Callable[[ArrowArray], ArrowArray]) -> int:
    """Return the position of the first value that ``convert`` refuses with ArrowInvalid, by binary search.

    REQUIRES: ``convert`` refuses at least one value of ``array``.
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


def _refuse_first(bad: ArrowArray, array: ArrowArray, target: DataType, location: _Location, why: str) -> None:
    position = pc.index(bad, True).as_py()
    if position >= 0:
        raise location.refusal(array, position, target, why)


def _check_length(array: ArrowArray, target: AtomicType, location: _Location) -> None:
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
        raise location.refusal(array, position, target, f"it has {lengths[position].as_py()} {unit}")


def _check_digits(array: ArrowArray, target: AtomicType, location: _Location) -> None:
    step = 10 ** _spare_digits(target)
    numbers = array.view(pa.int32() if target.root == "TIME" else pa.int64())
    whole = pc.multiply(pc.divide(numbers, step), step)
    _refuse_first(
        pc.not_equal(numbers, whole.cast(numbers.type)),
        array,
        target,
        location,
        f"it has more than {target.precision} digits after the second; truncate it first",
    )


# ---------------------------------------------------------------------------------------------- nested values


def _kind_refused(array: ArrowArray, target: DataType, location: _Location) -> InvalidInputError:
    return InvalidInputError(f"column {location.path!r}: {array.type} cannot be stored as {target}")


def _no_nulls(child: ArrowArray, t: DataType, location: _Location, within: ArrowArray | None = None) -> None:
    """Raise InvalidInputError for a null in a child whose type forbids nulls. ``within``: mask of values to check."""
    if t.nullable or not child.null_count:
        return
    bad = child.is_null() if within is None else pc.and_(child.is_null(), within)
    _refuse_first(bad, child, t, location, "it must not be null")


def _stored_struct(
    array: ArrowArray, target: DataType, fields: tuple[tuple[str, DataType], ...], location: _Location
) -> ArrowArray:
    if not pa.types.is_struct(array.type):
        raise _kind_refused(array, target, location)
    positions = _field_positions(array, target, [name for name, _ in fields], location)
    children = array.flatten()  # the children are null if the row is null
    valid = array.is_valid() if array.null_count else None
    arrays = []
    for (name, t), position in zip(fields, positions, strict=True):
        inside = location.inside(name)
        missing = position is None
        stored = pa.nulls(len(array), to_arrow(t)) if missing else _stored(children[position], t, inside)
        _no_nulls(stored, t, inside, valid)
        arrays.append(stored)
    arrow_type = to_arrow(target)
    if not arrays:
        return array.cast(arrow_type)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=list(arrow_type), mask=mask)


def _field_positions(
    array: ArrowArray, target: DataType, names: Sequence[str], location: _Location
) -> list[int | None]:
    """Return the position of each field in the structs of an array, matched like columns; `None`: a missing field."""
    names_given = [array.type.field(i).name for i in range(array.type.num_fields)]
    positions = matching_positions(names, names_given)
    used = [i for candidates in positions for i in candidates]
    extra = [name for i, name in enumerate(names_given) if i not in used and name not in names]
    each_once = sorted(used) == list(range(len(names_given))) and max(map(len, positions), default=0) < 2
    if not each_once:
        problem = f"has no field {extra[0]!r}" if extra else "takes every field once"
        raise InvalidInputError(f"column {location.path!r}: {array.type} cannot be stored as {target}, which {problem}")
    return [candidates[0] if candidates else None for candidates in positions]


def _lengths(array: ArrowArray) -> Any:
    """Return the number of elements of each list (int64); 0 for a null list."""
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
    """Return the offsets of the lists into the flattened elements; null for a null list."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if ends[-1] > MAX_LENGTH:
        raise InvalidInputError(
            f"column {path!r}: {ends[-1]} elements in one batch, at most {MAX_LENGTH} fit: split it"
        )
    mask = np.append(_null_mask(array), False) if array.null_count else None
    return pa.array(ends.astype(np.int32), mask=mask)


def _element_location(location: _Location, name: str, lengths: Any) -> _Location:
    ends = np.cumsum(lengths)
    return location.inside(name, lambda position: location.row(int(np.searchsorted(ends, position, side="right"))))


def _stored_list(array: ArrowArray, target: DataType, element: DataType, location: _Location) -> ArrowArray:
    kinds = pa.types
    if not (kinds.is_nested(array.type) and hasattr(array, "flatten")) or kinds.is_map(array.type):
        raise _kind_refused(array, target, location)
    if kinds.is_struct(array.type) or kinds.is_union(array.type):
        raise _kind_refused(array, target, location)
    lengths = _lengths(array)
    inside = _element_location(location, "element", lengths)
    values = _stored(array.flatten(), element, inside)
    _no_nulls(values, element, inside)
    return pa.ListArray.from_arrays(_offsets(array, lengths, location.path), values, type=to_arrow(target))


def _stored_vector(array: ArrowArray, target: VectorType, element: DataType, location: _Location) -> ArrowArray:
    as_list = _stored_list(array, ArrayType(element), element, location)
    lengths = _lengths(as_list)
    wrong = pa.array((lengths != target.length) & ~_null_mask(as_list))
    _refuse_first(wrong, as_list, target, location, f"it must have {target.length} elements")
    return as_list.cast(to_arrow(target))


def _stored_map(array: ArrowArray, target: DataType, key: DataType, value: DataType, location: _Location) -> ArrowArray:
    if not pa.types.is_map(array.type):
        raise _kind_refused(array, target, location)
    lengths = _lengths(array)
    if array.null_count and np.diff(array.offsets.to_numpy())[_null_mask(array)].any():
        array = array.take(pa.array(np.arange(len(array))))  # removes the entries of null maps
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    keys_at, values_at = (_element_location(location, name, lengths) for name in ("key", "value"))
    keys = _stored(array.keys.slice(first, last - first), key, keys_at)
    values = _stored(array.items.slice(first, last - first), value, values_at)
    if keys.null_count:
        _refuse_first(keys.is_null(), keys, key, keys_at, "a key must not be null")
    _no_nulls(values, value, values_at)
    return pa.MapArray.from_arrays(_offsets(array, lengths, location.path), keys, values, type=to_arrow(target))
