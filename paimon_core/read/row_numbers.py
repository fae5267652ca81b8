"""Numbers that are equal for equal rows of any types, to compare sets of rows without a sort."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.merge.normalized_keys import Column

_NULL = np.int32(-1)
_Numbers = npt.NDArray[np.int32]


def row_numbers(columns: Sequence[Column], rows: int) -> _Numbers:
    """Return a number for each row; two rows have the same number if and only if all their values are equal.

    Values are equal as in `equal_values` with ``exact``, except that NaN values equal each other only with the same
    bits. Numbers are dense, from 0. Memory: four bytes for each value.

    Args:
        columns: arrays of one length, not chunked.
        rows: the length.
    """
    if not columns:
        return np.zeros(rows, np.int32)
    return _joined([_numbers(column) for column in columns])


def _joined(numbers: Sequence[_Numbers]) -> _Numbers:
    """Return one number for each combination of numbers."""
    if len(numbers) == 1:
        joined: Any = pa.array(numbers[0])
    else:
        matrix = np.ascontiguousarray(np.stack(numbers, axis=1))
        joined = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(4 * len(numbers)), len(matrix), [None, pa.py_buffer(matrix)]
        )
    return _codes(joined)


def _numbers(column: Column) -> _Numbers:
    """Return a number for each value; `_NULL` for NULL."""
    kind: Any = column.type
    if pa.types.is_floating(kind):
        column = column.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    elif pa.types.is_nested(kind):
        return _nested(column)
    return _codes(column)


def _nested(column: Column) -> _Numbers:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    found = np.full(len(column), _NULL)
    values = column if valid.all() else column.take(pa.array(np.flatnonzero(valid)))
    if not len(values):
        return found
    if pa.types.is_struct(values.type):
        found[valid] = row_numbers(values.flatten(), len(values))
        return found
    if pa.types.is_map(values.type):
        offsets = values.offsets
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        elements = _joined([_numbers(part.slice(first, last - first)) for part in (values.keys, values.items)])
    else:
        elements = _numbers(values.flatten())
    sizes = _sizes(values)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) * elements.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(elements))]
    found[valid] = _codes(pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(sizes), buffers))
    return found


def _sizes(lists: Column) -> npt.NDArray[np.int64]:
    """Return the number of elements of each list or map. REQUIRES: no list is null."""
    if pa.types.is_fixed_size_list(lists.type):
        return np.full(len(lists), lists.type.list_size, np.int64)
    sizes: npt.NDArray[np.int64] = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    return sizes


def _codes(values: Column) -> _Numbers:
    """Return the index of each value among the distinct values; `_NULL` for NULL."""
    indices = values.dictionary_encode().indices
    codes: _Numbers = (indices.fill_null(-1) if indices.null_count else indices).to_numpy()
    return codes
