"""The order of floating-point keys: -0.0 before 0.0, and one NaN after all numbers (decision 14)."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def in_key_order(column: Any) -> Any:
    """Return integers (int64) that compare as the keys of a FLOAT or DOUBLE array do; nulls stay null.

    A column of another type is returned unchanged. A chunked array is combined into one chunk.
    """
    if not pa.types.is_floating(column.type):
        return column
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    bits = one_nan(array.to_numpy(zero_copy_only=False).astype(np.float64)).view(np.int64)
    ordered = bits ^ (bits >> 63 & np.iinfo(np.int64).max)
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(ordered, mask=nulls)


def one_nan(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values with a single bit pattern for NaN, as in hashes and stored keys."""
    is_nan = np.isnan(values)
    return np.where(is_nan, values.dtype.type(np.nan), values) if is_nan.any() else values
