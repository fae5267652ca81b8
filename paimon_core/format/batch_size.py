"""How many rows make a batch of so many bytes, from what a file says of itself and a look at its first rows.

Bytes on disk do not tell: a text that repeats in every row takes next to nothing there, and its full length in every
row of a batch.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

PROBE_ROWS = 512
_PROBED_GROUPS = 4
_WIDEST = 16  # bytes of the widest number
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 16, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 16}


def rows_within(most: int, size: int | None, row_bytes: float) -> int:
    """Rows of so many bytes that ``size`` bytes hold, one at least and ``most`` at most; None is no bound."""
    return most if size is None else max(1, min(most, int(size / max(row_bytes, 0.125))))


def probed(batches: Iterator[pa.RecordBatch]) -> float:
    """Decoded bytes of a row of the first batch; 0 where there is none."""
    first = next(batches, None)
    return 0.0 if first is None or not first.num_rows else first.nbytes / first.num_rows


def parquet_row_bytes(file: Any, groups: Sequence[int], columns: Sequence[str], size: int) -> float:
    """Decoded bytes of a row of these columns of an open Parquet file, the largest of a few row groups.

    Numbers are as wide as they are. Bytes and lists are measured, for a dictionary may hide how long they are: a few
    rows are decoded, never more than ``size`` bytes. Only of a row group that is alone, and so small that all of it in
    every row stays below that, its own size is told. What the footer says of single column chunks is not asked for: a
    damaged one ends the process inside Arrow.
    """
    if len(groups) == 1:
        group = file.metadata.row_group(groups[0])
        most = group.total_byte_size + _WIDEST * file.metadata.num_columns
        if group.total_byte_size > 0 and most * group.num_rows <= size:
            return float(most)
    known, measured = _widths(file.metadata, columns)
    if not measured:
        return float(known)
    step = -(-len(groups) // _PROBED_GROUPS) or 1
    return known + max((_measured(file, g, measured, size) for g in groups[::step]), default=0.0)


def _widths(metadata: Any, columns: Sequence[str]) -> tuple[int, list[str]]:
    """Bytes that the plain numbers of a row take, and the columns that are no plain numbers."""
    tops = {name: name for name in columns}
    known, others = 0, dict[str, None]()
    for i in range(metadata.num_columns):
        leaf = metadata.schema.column(i)
        top = tops.get(leaf.path) or next((name for name in columns if leaf.path.startswith(f"{name}.")), None)
        width = _WIDTHS.get(leaf.physical_type)
        if top is not None and (width is None or leaf.max_repetition_level):
            others[top] = None
        elif top is not None:
            known += width or 0
    return known, [*others]


def _measured(file: Any, number: int, columns: Sequence[str], size: int) -> float:
    few = rows_within(PROBE_ROWS, size, file.metadata.row_group(number).total_byte_size)
    return probed(file.iter_batches(few, row_groups=[number], columns=columns, use_threads=False))
