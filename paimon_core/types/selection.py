"""Some rows of a batch, by a mask: what leaves out few of many rows should cost a fraction of decoding them."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask: TypeAlias = npt.NDArray[np.bool_]
Positions: TypeAlias = npt.NDArray[np.int64]
Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def bits(mask: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """A mask as Arrow has it; ten times as fast as Arrow's own way."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(np.packbits(mask, bitorder="little"))])


def kept(rows: Rows, mask: pa.BooleanArray) -> Rows:
    """The rows the mask, which has no nulls, is true for.

    Column by column, for all at once Arrow goes by indices, which costs twice; and without the validity of columns
    that hold no null, with which they take five times as long.
    """
    if not rows.num_columns:
        return rows.slice(0, mask.true_count)
    columns = [_plain(column).filter(mask) for column in rows.columns]
    return type(rows).from_arrays(columns, schema=rows.schema)


def take_rows(rows: Any, positions: Positions) -> Any:
    """Return the rows at these positions of an array, a column, a batch or a table."""
    return rows.take(pa.array(positions))


def only_chunk(rows: Any, name: str) -> Any:
    """Return a column of a table, as an array. REQUIRES: each column of the table has one chunk."""
    return rows.column(name).chunk(0)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column, as one that says nothing of nulls where it holds none. Zero-copy."""
    if column.null_count or pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_plain(chunk) for chunk in column.chunks], column.type)
    return pa.Array.from_buffers(column.type, len(column), [None, *column.buffers()[1:]], 0, column.offset)
