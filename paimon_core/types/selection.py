"""The selection of rows of a batch by a mask or by positions, at a fraction of the cost of decoding the rows."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask: TypeAlias = npt.NDArray[np.bool_]
Positions: TypeAlias = npt.NDArray[np.int64]
Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def bits(mask: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """Return a mask as an Arrow array, ten times faster than Arrow's conversion."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(np.packbits(mask, bitorder="little"))])


def filter_rows(rows: Rows, mask: pa.BooleanArray) -> Rows:
    """Return the rows where the mask is true. REQUIRES: the mask has no nulls.

    Filters column by column: Arrow's filter of a whole batch uses indices, which doubles the time. A column without
    nulls is filtered without its validity bitmap, which is five times faster.
    """
    if not rows.num_rows:
        return rows  # pyarrow 19 ends the process for a column of maps without chunks
    if not rows.num_columns:
        return rows.slice(0, mask.true_count)
    columns = [_without_validity(column).filter(mask) for column in rows.columns]
    return type(rows).from_arrays(columns, schema=rows.schema)


def take_rows(rows: Any, positions: Positions) -> Any:
    """Return the rows at these positions of an array, a column, a batch or a table."""
    return rows.take(pa.array(positions))


def only_chunk(rows: Any, name: str) -> Any:
    """Return a column of a table, as an array. REQUIRES: each column of the table has one chunk."""
    return rows.column(name).chunk(0)


def _without_validity(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the column without its validity bitmap if it has no nulls. Zero-copy."""
    if column.null_count or pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_without_validity(chunk) for chunk in column.chunks], column.type)
    return pa.Array.from_buffers(column.type, len(column), [None, *column.buffers()[1:]], 0, column.offset)
