"""Decimals as Arrow computes them: rounding, fitting, their low words, their text. Vectorised."""

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

WIDE_PRECISION = 76
"""Digits of the widest Arrow decimal: room for any step between two 38 digit decimals."""


def fitted(wide: Any, precision: int, scale: int) -> Any:
    """A decimal256 array as ``decimal128(precision, scale)``: ties away from zero, what does not fit becomes null.

    ``wide`` needs room for one more digit before the point than its values have.
    """
    rounded = wide
    if wide.type.scale > scale:
        rounded = pc.round(wide, scale, round_mode="half_towards_infinity")
    fits = pc.less(pc.abs(rounded), _ten_to(precision - scale))
    return pc.if_else(fits, rounded, pa.scalar(None, rounded.type)).cast(pa.decimal128(precision, scale))


def _ten_to(power: int) -> Any:
    return pa.scalar(Decimal(10) ** power, pa.decimal256(power + 1, 0))


def widened(array: Any) -> Any:
    """A decimal128 array as decimal256 of the same scale with room to round up."""
    return array.cast(pa.decimal256(min(array.type.precision + 1, WIDE_PRECISION), array.type.scale))


def low_words(array: Any) -> npt.NDArray[np.int64]:
    """The low 64 bits of the unscaled values of a decimal128 array, two's complement; anything where null."""
    if not len(array):
        return np.empty(0, np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64)
    return words[2 * array.offset : 2 * (array.offset + len(array)) : 2]


def decimal_text(array: Any) -> Any:
    """Plain text of a decimal128 array (never an exponent), with as many digits after the point as its scale."""
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
