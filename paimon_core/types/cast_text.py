"""Casts from and to text.

Casts from text are strict: a text that is not a value of the type, or has blanks around it, raises an InvalidInputError
that quotes the text. Some rare spellings that the reference engine accepts are refused.
"""

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.coerce import first_failure
from paimon_core.types.datatype import MAX_LENGTH, AtomicType
from paimon_core.types.decimals import WIDE_PRECISION, fitted

ArrowArray: TypeAlias = Any

_TRUE = ["t", "true", "y", "yes", "1"]
_FALSE = ["f", "false", "n", "no", "0"]
_LAST_DATE_OF_FOUR_DIGITS = 2932896  # 9999-12-31, in days since 1970
_FIRST_DATE_OF_FOUR_DIGITS = -719162  # 0001-01-01
_BLANKS = "".join(map(chr, range(33)))
"""The characters that Java's `trim` removes."""
_DECIMAL_SCALE = 37  # the widest decimal has 76 digits: 38 before the point, and one for rounding


# ---------------------------------------------------------------------------------------------- fitting lengths


def fit_text(array: ArrowArray, target: AtomicType) -> ArrowArray:
    """Return the texts cut to the target's length in characters; for CHAR also padded with blanks to this length."""
    length = target.length or MAX_LENGTH
    if length == MAX_LENGTH and target.root == "VARCHAR":
        return array
    lengths = pc.utf8_length(array)
    if (pc.max(lengths).as_py() or 0) > length:
        array = pc.utf8_slice_codeunits(array, 0, length)
    if target.root == "CHAR" and (pc.min(lengths).as_py() or 0) < length:
        array = pc.utf8_rpad(array, length, " ")
    return array


def fit_bytes(array: ArrowArray, target: AtomicType) -> ArrowArray:
    """Return the bytes cut to the target's length; for BINARY also padded with zeros to this length."""
    length = target.length or MAX_LENGTH
    lengths = pc.binary_length(array)
    if (pc.max(lengths).as_py() or 0) > length:
        array = pc.binary_slice(array, 0, length)
    if target.root == "BINARY" and len(array) and (pc.min(lengths).as_py() or 0) < length:
        missing = pc.subtract(length, pc.binary_length(array))
        zeros = pc.binary_repeat(pa.scalar(b"\0"), pc.if_else(missing.is_valid(), missing, 0))
        array = pc.binary_join_element_wise(array, zeros, b"")
    return array


# ---------------------------------------------------------------------------------------------- to text


def _check_years(days: ArrowArray, source: AtomicType) -> None:
    first, last = pc.min(days).as_py(), pc.max(days).as_py()
    if first is not None and (first < _FIRST_DATE_OF_FOUR_DIGITS or last > _LAST_DATE_OF_FOUR_DIGITS):
        raise UnsupportedError(f"data stored as {source} cannot be read as text outside of the years 1 to 9999")


def date_text(array: ArrowArray, source: AtomicType) -> ArrowArray:
    """Return texts like ``2024-01-31``."""
    _check_years(array.view(pa.int32()), source)
    return array.cast(pa.string())


def timestamp_text(array: ArrowArray, source: AtomicType) -> ArrowArray:
    """Return texts like ``2024-01-31 12:00:00.000000``; the precision is the number of digits after the point."""
    _check_years(array.cast(pa.date32(), safe=False).view(pa.int32()), source)
    text = array.cast(pa.string())
    digits = source.precision or 0
    return pc.utf8_slice_codeunits(text, 0, 20 + digits if digits else 19)


def time_text(array: ArrowArray, source: AtomicType) -> ArrowArray:
    """Return texts like ``12:00:00``, with digits of a second if the type has any: ``12:00:00.5``, ``12:00:00.0``.

    As in the reference engine, trailing zeros are omitted, except the first digit.
    """
    text = array.cast(pa.string())
    whole = pc.utf8_slice_codeunits(text, 0, 8)
    if not source.precision:
        return whole
    fraction = pc.utf8_slice_codeunits(text, 9, 9 + min(source.precision, 3))
    first, others = pc.utf8_slice_codeunits(fraction, 0, 1), pc.utf8_slice_codeunits(fraction, 1, 3)
    return pc.binary_join_element_wise(whole, ".", first, pc.utf8_rtrim(others, "0"), "")


# ---------------------------------------------------------------------------------------------- from text


def _refuse_first(bad: ArrowArray, array: ArrowArray, target: AtomicType) -> None:
    position = pc.index(bad, True).as_py()
    if position >= 0:
        raise InvalidInputError(f"text {array[position].as_py()!r} is not a value of {target}")


def _parts(array: ArrowArray, pattern: str, target: AtomicType) -> ArrowArray:
    """Return the named groups of a pattern. Raises InvalidInputError for a text that does not match."""
    parts = pc.extract_regex(array, pattern)
    if parts.null_count > array.null_count:
        _refuse_first(pc.and_(parts.is_null(), array.is_valid()), array, target)
    return parts


def _parsed(texts: ArrowArray, arrow_type: Any, array: ArrowArray, target: AtomicType) -> ArrowArray:
    """Cast prepared texts with Arrow; null in ``array`` stays null. Errors quote the original text from ``array``."""
    texts = pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))
    try:
        return texts.cast(arrow_type)
    except pa.ArrowInvalid as error:
        position = first_failure(texts, lambda part: part.cast(arrow_type))
        raise InvalidInputError(f"text {array[position].as_py()!r} is not a value of {target}") from error


def to_boolean(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Parse t, true, y, yes, 1 and f, false, n, no, 0, in upper or lower case."""
    lowered = pc.utf8_lower(array)
    true = pc.is_in(lowered, value_set=pa.array(_TRUE))
    known = pc.or_(true, pc.is_in(lowered, value_set=pa.array(_FALSE)))
    _refuse_first(pc.and_(pc.invert(known), array.is_valid()), array, target)
    return pc.if_else(array.is_valid(), true, pa.scalar(None, pa.bool_()))


def to_integer(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Parse digits with an optional sign. A fraction is dropped; a number that does not fit is an error."""
    parts = _parts(array, r"^\+?(?P<whole>-?[0-9]*)(?P<fraction>\.[0-9]*)?$", target)
    _refuse_first(pc.fill_null(pc.starts_with(array, "+-"), False), array, target)
    whole, fraction = pc.struct_field(parts, "whole"), pc.struct_field(parts, "fraction")
    no_digits = pc.and_(pc.is_in(whole, value_set=pa.array(["", "-"])), pc.greater(pc.utf8_length(fraction), 1))
    return _parsed(pc.if_else(no_digits, "0", whole), to_arrow(target), array, target)


def to_float(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Parse a decimal number with an optional exponent, NaN, Infinity or -Infinity; blanks around it are ignored.

    A suffix f or d is ignored.
    """
    trimmed = pc.utf8_trim(array, _BLANKS)
    parts = _parts(
        trimmed,
        r"^\+?(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?Infinity|NaN)(?P<suffix>[fFdD])?$",
        target,
    )
    _refuse_first(pc.fill_null(pc.starts_with(trimmed, "+-"), False), array, target)
    number = pc.replace_substring(pc.struct_field(parts, "number"), "Infinity", "inf")
    return _parsed(number, to_arrow(target), array, target)


def to_decimal(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Parse a decimal number and round it half up; a number that does not fit becomes null."""
    fraction = max(target.scale or 0, _DECIMAL_SCALE)
    whole = WIDE_PRECISION - 1 - fraction  # rounding may need one more digit
    exact = rf"[0-9]{{1,{whole}}}(?:\.[0-9]{{0,{target.scale or 0}}})?"
    rounded = rf"[0-9]{{1,18}}(?:\.[0-9]{{0,{fraction}}})?"  # Arrow rounds longer texts wrongly
    smaller = rf"\.[0-9]{{1,{fraction}}}"
    scientific = r"(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})[eE][+-]?(?:0?[0-9]|1[0-8])"
    pattern = rf"^\+?(?P<number>-?(?:{exact}|{rounded}|{smaller}|{scientific}))$"
    parts = _parts(array, pattern, target)
    _refuse_first(pc.fill_null(pc.starts_with(array, "+-"), False), array, target)
    wide = _parsed(pc.struct_field(parts, "number"), pa.decimal256(WIDE_PRECISION, fraction), array, target)
    return fitted(wide, target.precision or 0, target.scale or 0)


def _padded(parts: ArrowArray, names: tuple[str, ...], separator: str) -> ArrowArray:
    return pc.binary_join_element_wise(
        *(pc.utf8_lpad(pc.struct_field(parts, name), 4 if name == "year" else 2, "0") for name in names), separator
    )


def to_date(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Parse texts like ``2024-1-31``; a time after a blank is dropped. Digits alone: days since 1970."""
    days = pc.fill_null(pc.match_substring_regex(array, r"^-?[0-9]{1,9}$"), False)
    numbers = pc.if_else(days, array, "0").cast(pa.int32()).view(pa.date32())
    dates = pc.if_else(days, "1970-01-01", array)
    parts = _parts(dates, r"^ *(?P<year>[0-9]{1,4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?: .*)?$", target)
    return pc.if_else(days, numbers, _parsed(_padded(parts, ("year", "month", "day"), "-"), pa.date32(), array, target))


def to_time(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Parse texts like ``12:00:00`` or ``12:00``; digits of a second beyond three are dropped."""
    pattern = (
        r"^(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})"
        r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?$"
    )
    parts = _parts(array, pattern, target)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(parts, "fraction"), 3, "0"), 0, 3)
    clock = _padded(parts, ("hour", "minute", "second"), ":")
    texts = pc.binary_join_element_wise("1970-01-01 ", clock, ".", fraction, "")
    return _parsed(texts, pa.timestamp("ms"), array, target).view(pa.int64()).cast(pa.int32()).view(pa.time32("ms"))


def to_timestamp(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Parse texts like ``2024-01-31 12:00:00.123``. The time may be missing; further digits are dropped."""
    parts = _parts(
        array,
        r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
        r"(?: (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?$",
        target,
    )
    arrow_type = to_arrow(target)
    unit_digits = {"ms": 3, "us": 6, "ns": 9}[arrow_type.unit]
    fraction = pc.struct_field(parts, "fraction")
    digits = pc.utf8_slice_codeunits(fraction, 0, target.precision or 0)
    seconds = pc.binary_join_element_wise(
        _padded(parts, ("hour", "minute", "second"), ":"), pc.utf8_rpad(digits, unit_digits, "0"), "."
    )
    texts = pc.binary_join_element_wise(_padded(parts, ("year", "month", "day"), "-"), seconds, " ")
    return _parsed(texts, arrow_type, array, target)
