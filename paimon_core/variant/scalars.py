"""Scalars of variants: Arrow arrays to and from the binary encoding."""

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import AtomicType
from paimon_core.variant.encoding import (
    BINARY,
    DATE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT64,
    NANOS,
    NANOS_NTZ,
    PRIMITIVE,
    SHORT_TEXT,
    SHORTEST_LONG_TEXT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TRUE,
    UUID,
    Bytes,
    Flags,
    Numbers,
    Slices,
    binary_array,
    joined,
    placed,
    read_numbers,
    slices_of,
)

_Part: TypeAlias = tuple[Numbers, pa.Array]
"""Values, and their rows."""
_WIDE = 16  # bytes of a decimal
_MOST_DIGITS = 38
_INTEGER_DIGITS = 19
_EXACT = Context(prec=2 * _MOST_DIGITS)
_FIXED_KINDS = {"FLOAT": FLOAT, "DOUBLE": DOUBLE, "DATE": DATE, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP": TIMESTAMP_NTZ}
"""The primitive types of numbers and times that no other type holds, by the root of the column type."""
_SHORT_DECIMAL, _LONG_DECIMAL = 9, 18  # digits of decimals of 4 and 8 bytes


def encoded_scalars(array: pa.Array) -> pa.Array:
    """Return scalars in the binary encoding; null stays null. Raises UnsupportedError for other types than a variant's.

    Integers and decimals take the fewest bytes that hold them. Timestamps of milliseconds become microseconds.
    """
    kind, types = array.type, pa.types
    if isinstance(array, pa.ExtensionArray):
        array, kind = array.storage, array.type.storage_type
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind):
        is_text = types.is_string(kind) or types.is_large_string(kind)
        return _texts(array.cast(pa.binary()), mask, is_text=is_text)
    if types.is_boolean(kind):
        flags = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
        return _fixed(np.where(flags, TRUE, FALSE), np.zeros((len(array), 0), np.uint8), 0, mask)
    if types.is_decimal(kind):
        return _decimals(array.cast(pa.decimal128(kind.precision, kind.scale)), mask)
    if types.is_fixed_size_binary(kind) and kind.byte_width == _WIDE:
        return _fixed(UUID, _rows_of(array, _WIDE), _WIDE, mask)
    if types.is_signed_integer(kind):
        return _integers(_filled(array.cast(pa.int64())), mask)
    header, stored = _header_of(array)
    width = stored.type.bit_width // 8
    return _fixed(header, _rows_of(stored, width), width, mask)


def _header_of(array: pa.Array) -> tuple[int, pa.Array]:
    """Return the primitive type of numbers and times of fixed width, and the array in its unit."""
    kind, types = array.type, pa.types
    if types.is_float32(kind):
        return FLOAT, array
    if types.is_float64(kind):
        return DOUBLE, array
    if types.is_date32(kind):
        return DATE, array
    if types.is_time(kind) and kind.unit != "ns":
        return TIME, array.cast(pa.time64("us"))
    if types.is_timestamp(kind) and kind.unit != "s":
        if kind.unit == "ns":
            return (NANOS_NTZ if kind.tz is None else NANOS), array
        return (TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP), array.cast(pa.timestamp("us", kind.tz))
    raise UnsupportedError(f"its shredded variants have values of type {kind}, which no variant has")


def _filled(array: pa.Array) -> Numbers:
    numbers: Numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    return numbers


def _rows_of(array: pa.Array, width: int) -> Bytes:
    """Return the stored bytes of values of fixed width as a matrix with a row per value."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    flat = np.frombuffer(data, np.uint8, len(array) * width, array.offset * width)
    return flat.reshape(len(array), width)


def _fixed(header: int | Numbers, content: Bytes, width: int, mask: Flags | None) -> pa.Array:
    """Return primitive values of ``width`` bytes after their header. ``mask``: True where the result is null."""
    out = np.empty((len(content), 1 + width), np.uint8)
    out[:, 0] = np.asarray(header) << 2
    out[:, 1:] = content
    if mask is not None:
        out = out[~mask]
    return binary_array(out.reshape(-1), _sizes(np.full(len(content), 1 + width), mask), mask)


def _sizes(sizes: Numbers, mask: Flags | None) -> Numbers:
    return sizes if mask is None else np.where(mask, 0, sizes)


def _ragged(out: Bytes, sizes: Numbers, mask: Flags | None) -> pa.Array:
    """Return the first ``sizes[i]`` bytes of each row of a matrix."""
    sizes = _sizes(sizes, mask)
    return binary_array(out[np.arange(out.shape[1]) < sizes[:, None]], sizes, mask)


def _integers(numbers: Numbers, mask: Flags | None) -> pa.Array:
    step = sum(((numbers < -(1 << bits)) | (numbers >= 1 << bits)).astype(np.int64) for bits in (7, 15, 31))
    out = np.empty((len(numbers), 9), np.uint8)
    out[:, 0] = (INT8 + step) << 2
    out[:, 1:] = np.ascontiguousarray(numbers).astype("<i8").view(np.uint8).reshape(-1, 8)
    return _ragged(out, 1 + (1 << np.asarray(step)), mask)


def _decimals(array: pa.Array, mask: Flags | None) -> pa.Array:
    content = _rows_of(array, _WIDE)
    size = np.full(len(array), _WIDE, np.int64)
    header = np.full(len(array), DECIMAL16, np.int64)
    low = np.ascontiguousarray(content[:, :8]).view("<i8").reshape(-1)
    high = np.ascontiguousarray(content[:, 8:]).view("<i8").reshape(-1)
    for digits, width, kind in ((_LONG_DECIMAL, 8, DECIMAL8), (_SHORT_DECIMAL, 4, DECIMAL4)):
        fits = (high == low >> 63) & (-(10**digits) < low) & (low < 10**digits) & (array.type.scale <= digits)
        size[fits], header[fits] = width, kind
    out = np.empty((len(array), 2 + _WIDE), np.uint8)
    out[:, 0], out[:, 1], out[:, 2:] = header << 2, array.type.scale, content
    return _ragged(out, 2 + size, mask)


def _texts(array: pa.Array, mask: Flags | None, *, is_text: bool) -> pa.Array:
    values = slices_of(array)
    sizes = _sizes(values.sizes, mask)
    short = sizes < (SHORTEST_LONG_TEXT if is_text else 0)
    out = np.empty((len(sizes), 5), np.uint8)
    out[:, 0] = np.where(short, SHORT_TEXT | sizes << 2, (TEXT if is_text else BINARY) << 2)
    out[:, 1:] = np.ascontiguousarray(sizes).astype("<i4").view(np.uint8).reshape(-1, 4)
    header_sizes = _sizes(np.where(short, 1, 5), mask)
    headers = binary_array(out[np.arange(5) < header_sizes[:, None]], header_sizes)
    return joined(headers, [array], mask)


def decoded_scalars(values: Slices, t: AtomicType) -> pa.Array:
    """Return the values that a type holds exactly, in its Arrow type; null: another value.

    Args:
        values: the values.
        t: BOOLEAN, a number, DECIMAL, STRING, BYTES, DATE, or a timestamp of microseconds.
    """
    target = to_arrow(t)
    details = values.type_details().astype(np.int64)
    basic = values.basic_types()
    kinds = np.where(basic == PRIMITIVE, details, -1)
    if t.root in ("VARCHAR", "VARBINARY"):
        return _decoded_texts(values, kinds, (basic == SHORT_TEXT) & (t.root == "VARCHAR"), details, target)
    if t.root == "BOOLEAN":
        return pa.array(kinds == TRUE, mask=(kinds != TRUE) & (kinds != FALSE))
    if t.root in _FIXED_KINDS:
        kind = _FIXED_KINDS[t.root]
        rows = np.flatnonzero(kinds == kind)
        numbers = read_numbers(values.data, values.starts[rows] + 1, target.bit_width // 8)
        width = np.int32 if target.bit_width == 32 else np.int64
        return placed(pa.array(numbers.astype(width)).view(target), rows, len(values))
    if t.root == "DECIMAL":
        parts = [(rows, _rescaled(part, target)) for rows, part in _decimals_of(values, kinds)]
        return _merged(parts, target, len(values))
    rows, numbers = _integers_of(values, kinds)
    low, high = -(1 << target.bit_width - 1), (1 << target.bit_width - 1) - 1
    return _merged([(rows, _within(numbers, low, high).cast(target))], target, len(values))


def decoded_numbers(values: Slices, t: AtomicType) -> pa.Array:
    """Return integers, decimals and floats in another type of numbers; null: another value.

    Args:
        values: the values.
        t: DECIMAL, which holds integers and decimals exactly, or FLOAT or DOUBLE, which holds the nearest number.
    """
    target = to_arrow(t)
    kinds = np.where(values.basic_types() == PRIMITIVE, values.type_details().astype(np.int64), -1)
    rows, integers = _integers_of(values, kinds)
    decimals = _decimals_of(values, kinds)
    if t.root == "DECIMAL":
        exact = [(rows, _rescaled(integers.cast(pa.decimal128(_INTEGER_DIGITS, 0)), target))]
        return _merged([*exact, *((at, _rescaled(part, target)) for at, part in decimals)], target, len(values))
    # texts, because a division of the digits by a power of ten would round twice
    parts = [(at, part.cast(pa.string()).cast(target)) for at, part in [(rows, integers), *decimals]]
    for root, kind in (("FLOAT", FLOAT), ("DOUBLE", DOUBLE)):
        at = np.flatnonzero(kinds == kind)
        parts.append((at, decoded_scalars(values.take(at), AtomicType(root)).cast(target, safe=False)))
    return _merged(parts, target, len(values))


def _decoded_texts(values: Slices, kinds: Numbers, short: Flags, details: Numbers, target: pa.DataType) -> pa.Array:
    """Return the texts, or bytes, among values. ``short``: True for texts that the header gives the length of."""
    long = kinds == (TEXT if target == pa.string() else BINARY)
    sizes = np.zeros(len(values), np.int64)
    sizes[short] = details[short]
    rows = np.flatnonzero(long)
    sizes[rows] = read_numbers(values.data, values.starts[rows] + 1, 4)
    starts = values.starts + np.where(short, 1, 5)
    found = short | long
    if (np.where(found, starts + sizes, 0) > values.starts + values.sizes).any():
        raise CorruptedError("a variant is cut off")
    try:
        return Slices(values.data, starts, sizes).to_arrow(~found).cast(target)
    except pa.ArrowInvalid as error:
        raise CorruptedError("a variant has a text that is not UTF-8") from error


def _integers_of(values: Slices, kinds: Numbers) -> _Part:
    """Return the rows with integers, and the integers."""
    rows = np.flatnonzero((kinds >= INT8) & (kinds <= INT64))
    widths = np.int64(1) << kinds[rows] - INT8
    shift = 64 - 8 * widths
    return rows, pa.array(read_numbers(values.data, values.starts[rows] + 1, widths) << shift >> shift)


def _decimals_of(values: Slices, kinds: Numbers) -> list[_Part]:
    """Return the rows with decimals of each scale, and the decimals."""
    rows = np.flatnonzero((kinds >= DECIMAL4) & (kinds <= DECIMAL16))
    scales = read_numbers(values.data, values.starts[rows] + 1, 1)
    widths = np.int64(4) << kinds[rows] - DECIMAL4
    at = values.starts[rows] + 2
    shift = 64 - 8 * np.minimum(widths, 8)
    low = read_numbers(values.data, at, np.minimum(widths, 8)) << shift >> shift
    high = low >> 63
    wide = widths == _WIDE
    high[wide] = read_numbers(values.data, at[wide] + 8, 8)
    content = np.stack([low, high], axis=1).astype("<i8")
    parts = []
    for scale in np.unique(scales):
        chosen = np.flatnonzero(scales == scale)
        if scale > _MOST_DIGITS:
            raise CorruptedError(f"a variant has a decimal of scale {scale}")
        buffers = [None, pa.py_buffer(np.ascontiguousarray(content[chosen]))]
        parts.append(
            (rows[chosen], pa.Array.from_buffers(pa.decimal128(_MOST_DIGITS, int(scale)), len(chosen), buffers))
        )
    return parts


def decimal_digits(values: Slices, kinds: Numbers) -> tuple[int, int]:
    """Return the most digits before and after the decimal point, without zeros at the end, of integers and decimals.

    Args:
        values: the values.
        kinds: their primitive types.
    """
    whole = fraction = 0
    for _, part in (_integers_of(values, kinds), *_decimals_of(values, kinds)):
        if len(part):
            for number in (pc.min(part).as_py(), pc.max(part).as_py()):
                whole = max(whole, len(str(abs(int(number)))))
            scale = part.type.scale if pa.types.is_decimal(part.type) else 0
            while scale > fraction and _rescaled(part, pa.decimal128(_MOST_DIGITS, scale - 1)).null_count == 0:
                scale -= 1
            fraction = max(fraction, scale)
    return whole, fraction


def _rescaled(numbers: pa.Array, target: pa.DataType) -> pa.Array:
    """Return decimals in another decimal type; null: the type does not hold the number exactly."""
    scale = numbers.type.scale
    if scale > target.scale:
        cut = numbers.cast(pa.decimal128(_MOST_DIGITS, target.scale), safe=False)
        exact = pc.equal(cut.cast(pa.decimal128(_MOST_DIGITS, scale), safe=False), numbers)
        numbers = pc.if_else(exact, cut, pa.scalar(None, cut.type))
        scale = target.scale
    digits = target.precision - (target.scale - scale)
    if digits <= 0:
        limit = Decimal(0)
    elif digits >= numbers.type.precision:
        return numbers.cast(target)
    else:
        limit = Decimal(10**digits - 1).scaleb(-scale, _EXACT)
    return _within(numbers, -limit, limit).cast(target)


def _within(numbers: pa.Array, low: int | Decimal, high: int | Decimal) -> pa.Array:
    """Return the numbers from ``low`` to ``high``, and null for others."""
    kind = pa.decimal128(_MOST_DIGITS, numbers.type.scale) if pa.types.is_decimal(numbers.type) else numbers.type
    inside = pc.and_(pc.greater_equal(numbers, pa.scalar(low, kind)), pc.less_equal(numbers, pa.scalar(high, kind)))
    return pc.if_else(inside, numbers, pa.scalar(None, numbers.type))


def _merged(parts: Sequence[_Part], target: pa.DataType, n: int) -> pa.Array:
    """Return an array of ``n`` values that has the values of each part at its rows."""
    if not parts:
        return pa.nulls(n, target)
    rows = np.concatenate([rows for rows, _ in parts])
    return placed(pa.concat_arrays([part.cast(target) for _, part in parts]), rows, n)
