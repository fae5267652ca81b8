"""The text of floating-point numbers in the notation of Java, with the shortest digits that identify the number.

``1.0E10``, ``100.5``, ``1.0E-5``, ``NaN``, ``-Infinity``: plain from 0.001 up to 10 million, else scientific, always
with a digit after the point. Java before 19 prints one digit too many for a few numbers; these functions do not.
No library prints numbers as Java does.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.types.numpy_type import numpy_type

_PARTS = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?:e(?P<exponent>[+-]?\d+))?$"

_PLAIN_FROM, _PLAIN_TO = -2, 7
"""Positions of the point, counted from the first digit, of numbers in plain notation."""


def float_text(array: Any) -> Any:
    """Return the text of a float32 or float64 array; null stays null."""
    finite = pc.if_else(pc.is_finite(array), array, pa.scalar(0.0, array.type))
    parts = pc.extract_regex(finite.cast(pa.string()), _PARTS)
    sign, whole, fraction, exponent = (
        pc.struct_field(parts, name) for name in ("sign", "whole", "fraction", "exponent")
    )
    every_digit = pc.binary_join_element_wise(whole, fraction, "")
    digits = pc.utf8_ltrim(every_digit, "0")
    leading_zeros = pc.subtract(pc.utf8_length(every_digit), pc.utf8_length(digits))
    power = pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, "+")).cast(pa.int32())
    # the value is 0.DIGITS times ten to the point
    point = pc.subtract(pc.add(pc.utf8_length(whole), power), leading_zeros)
    unsigned = _java_notation(pc.utf8_rtrim(digits, "0"), point)
    text = _with_tiny(pc.binary_join_element_wise(sign, unsigned, ""), array, digits)
    text = pc.if_else(pc.equal(array, np.inf), "Infinity", text)
    text = pc.if_else(pc.equal(array, -np.inf), "-Infinity", text)
    return pc.if_else(pc.is_nan(array), "NaN", text)


def _with_tiny(text: Any, array: Any, digits: Any) -> Any:
    """Return the text with a second digit for subnormal numbers that one digit identifies: 4.9E-324, not 5.0E-324."""
    tiny = pc.less(pc.abs(array), pa.scalar(float(np.finfo(numpy_type(array.type)).tiny), array.type))
    tiny = pc.and_(tiny, pc.equal(pc.utf8_length(pc.utf8_rtrim(digits, "0")), 1))
    if not pc.any(tiny).as_py():
        return text
    numbers = pc.unique(array.filter(tiny))  # a few dozen at most
    texts = pa.array([f"{number:.1E}" for number in numbers.to_pylist()])
    return pc.if_else(tiny, texts.take(pc.index_in(array, value_set=numbers)), text)


def _java_notation(digits: Any, point: Any) -> Any:
    join = pc.binary_join_element_wise
    rest = pc.utf8_slice_codeunits(digits, 1)
    text = join(
        join(pc.utf8_slice_codeunits(digits, 0, 1), _or_zero(rest), "."),
        pc.subtract(point, pa.scalar(1, pa.int32())).cast(pa.string()),
        "E",
    )
    for at in range(_PLAIN_FROM, _PLAIN_TO + 1):
        here = pc.equal(point, at)
        if not pc.any(here).as_py():
            continue
        if at <= 0:
            plain = join(pa.scalar("0." + "0" * -at), digits, "")
        else:
            whole = pc.utf8_slice_codeunits(pc.utf8_rpad(digits, at, "0"), 0, at)
            plain = join(whole, _or_zero(pc.utf8_slice_codeunits(digits, at)), ".")
        text = pc.if_else(here, plain, text)
    return pc.if_else(pc.equal(digits, ""), "0.0", text)


def _or_zero(digits: Any) -> Any:
    return pc.if_else(pc.equal(digits, ""), "0", digits)
