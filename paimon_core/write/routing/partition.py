"""The partitions of the rows of a batch: a code per row, and the partition of each code."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.row.encode import encode


def partition_codes(rows: pa.RecordBatch, keys: Sequence[str]) -> tuple[np.ndarray, list[bytes]]:
    """Return the index (int64) of each row's partition, and the partitions as serialised BinaryRows.

    Partitions are compared by their bytes, as in the format: NULL, an empty text and a blank text are different.
    """
    if not keys:
        return np.zeros(rows.num_rows, np.int64), [EMPTY_ROW]
    columns = rows.select(list(keys))
    codes = _codes(columns.column(0))
    for column in columns.columns[1:]:
        column_codes = _codes(column)
        codes = _ranks(codes * (int(column_codes.max(initial=0)) + 1) + column_codes)
    first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(rows.num_rows - 1, -1, -1)  # of equal codes, the last one assigns its row
    encoded = encode(columns.take(pa.array(first))).serialized()
    return codes, [encoded[i].as_py() for i in range(len(encoded))]


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank (int64) of each value among the distinct values, without sorting all values."""
    encoded = pc.dictionary_encode(pa.array(values))
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[np.argsort(encoded.dictionary.to_numpy())] = np.arange(len(ranks))
    return np.asarray(ranks[encoded.indices.to_numpy()])


def _codes(column: pa.Array) -> np.ndarray:
    """Return a number (int64) for each distinct value, including NULL, from 0 without gaps.

    -0.0 and 0.0 differ, as their bytes do. REQUIRES: a plain array, no dictionary.
    """
    if pa.types.is_floating(column.type):
        bits = pa.int32() if column.type == pa.float32() else pa.int64()
        column = pa.Array.from_buffers(bits, len(column), column.buffers(), column.null_count, column.offset)
    encoded = pc.dictionary_encode(column)
    filled = pc.fill_null(encoded.indices, len(encoded.dictionary))
    return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int64)
