"""Integers that compare as the values of a column do."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.merge.aggregate.input import numbers
from paimon_core.merge.normalized_keys import Column


def sortable(column: Column) -> npt.NDArray[Any]:
    """Return integers that sort like the values: NaN largest, -0.0 (as -1) below 0.0, texts by bytes.

    Nulls have arbitrary integers. Fixed-width numbers keep their width, and :func:`flip` restores floats; other types
    are ranked.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        values = numbers(column, 0.0)
        return flip(np.where(np.isnan(values), values.dtype.type(np.nan), values).view(f"i{values.itemsize}"))
    if pa.types.is_integer(kind):
        return numbers(column, 0)
    if pa.types.is_temporal(kind):
        return numbers(column.view(pa.int64() if kind.bit_width == 64 else pa.int32()), 0)
    if pa.types.is_boolean(kind):
        return numbers(column.cast(pa.int8()), 0)
    coded = column.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.zeros(max(1, len(order)), np.int64)
    rank[order] = np.arange(len(order))
    ranks: npt.NDArray[Any] = rank[numbers(coded.indices, 0)]
    return ranks


def flip(bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert IEEE bits to integers in the same order, or back."""
    ordered: npt.NDArray[Any] = bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.iinfo(bits.dtype).max)
    return ordered
