"""Conversions of a few values to Arrow and of masks to numpy, without pandas.

The first `pa.array`, `pa.scalar` or `to_numpy` imports pandas if it is installed, which takes longer than most plans.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_INTEGERS = {kind: np.dtype(f"<i{kind.bit_width // 8}") for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}


def small_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return the values as an Arrow array. Integers, texts and booleans without null do not import pandas.

    Raises the errors of `pa.array`.
    """
    if kind in _INTEGERS and all(type(value) is int for value in values):
        limit = 1 << kind.bit_width - 1
        if all(-limit <= value < limit for value in values):
            return _of_buffers(kind, len(values), np.array(values, _INTEGERS[kind]))
    if kind == pa.bool_() and all(type(value) is bool for value in values):
        return _of_buffers(kind, len(values), np.packbits(np.array(values, bool), bitorder="little"))
    if kind == pa.string() and all(type(value) is str for value in values):
        texts = [value.encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)])
        if ends[-1] < 1 << 31:
            return _of_buffers(kind, len(values), ends.astype(np.int32), np.frombuffer(b"".join(texts), np.uint8))
    return pa.array(values, kind)


def small_scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a value as an Arrow scalar, as `small_array` does."""
    return small_array([value], kind)[0]


def mask_of(truths: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return an array of booleans without nulls as numpy."""
    bits = np.frombuffer(truths.buffers()[1] or b"", np.uint8)
    end = truths.offset + len(truths)
    return np.unpackbits(bits, count=end, bitorder="little")[truths.offset :].view(np.bool_) if len(truths) else _NONE


_NONE: npt.NDArray[np.bool_] = np.zeros(0, bool)


def _of_buffers(kind: pa.DataType, count: int, *buffers: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, *map(pa.py_buffer, buffers)])
