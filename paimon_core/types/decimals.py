"""Vectorised functions on Arrow decimals: rounding to a type, the lower 64 bits, and text."""

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

WIDE_PRECISION = 76
"""Digits of the widest Arrow decimal: enough for every step of a cast between two decimals of 38 digits."""


def fitted(wide: Any, precision: int, scale: int) -> Any:
    """Return a decimal256 array as ``decimal128(precision, scale)``: half up, and null if a value does not fit.

    REQUIRES: the type of ``wide`` has one more digit before the point than its values.
    """
    rounded = wide
    if wide.type.scale > scale:
        rounded = pc.round(wide, scale, round_mode="half_towards_infinity")
    fits = pc.less(pc.abs(rounded), _ten_to(precision - scale))
    return pc.if_else(fits, rounded, pa.scalar(None, rounded.type)).cast(pa.decimal128(precision, scale))


def _ten_to(power: int) -> Any:
    return pa.scalar(Decimal(10) ** power, pa.decimal256(power + 1, 0))


def widened(array: Any) -> Any:
    """Return a decimal128 array as decimal256 of the same scale, with one more digit for rounding."""
    return array.cast(pa.decimal256(min(array.type.precision + 1, WIDE_PRECISION), array.type.scale))


def low_halves(array: Any) -> npt.NDArray[np.int64]:
    """Return the lower 64 bits (two's complement) of unscaled decimal128 values; undefined at nulls."""
    if not len(array):
        return np.empty(0, np.int64)
    halves = np.frombuffer(array.buffers()[1], np.int64)
    return halves[2 * array.offset : 2 * (array.offset + len(array)) : 2]


def decimal_text(array: Any) -> Any:
    """Return decimal128 values as texts without an exponent; the scale is the number of digits after the point."""
    scale = array.type.scale
    if scale == 0:
        return array.cast(pa.string())
    unscaled = pa.Array.from_buffers(
        pa.decimal128(array.type.precision, 0), len(array), array.buffers(), array.null_count, array.offset
    )
    digits = pc.utf8_lpad(pc.abs(unscaled).cast(pa.string()), scale + 1, "0")
    sign = pc.if_else(pc.less(unscaled, pa.scalar(Decimal(0), unscaled.type)), "-", "")
    whole = pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(digits, 0, -scale), "")
    return pc.binary_join_element_wise(whole, pc.utf8_slice_codeunits(digits, -scale), ".")
