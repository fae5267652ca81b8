"""How many rows make a batch of so many bytes, from what a file says of itself and a look at its first rows.

Bytes on disk do not tell: a text that repeats in every row takes next to nothing there, and its full length in every
row of a batch.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

PROBE_ROWS = 512
_PROBED_GROUPS = 4
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 16, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 16}
_OFFSET = 4  # bytes a row for where its text or list begins
_AS_LONG = frozenset({"PLAIN", "RLE", "BIT_PACKED"})  # encodings of bytes that do not shorten them


def rows_within(most: int, size: int | None, row_bytes: float) -> int:
    """Rows of so many bytes that ``size`` bytes hold, one at least and ``most`` at most; None is no bound."""
    return most if size is None else max(1, min(most, int(size / max(row_bytes, 0.125))))


def probed(batches: Iterator[pa.RecordBatch]) -> float:
    """Decoded bytes of a row of the first batch; 0 where there is none."""
    first = next(batches, None)
    return 0.0 if first is None or not first.num_rows else first.nbytes / first.num_rows


def parquet_row_bytes(file: Any, groups: Sequence[int], columns: Sequence[str], size: int) -> float:
    """Decoded bytes of a row of these columns of an open Parquet file, the largest of a few row groups.

    Numbers are as wide as they are, plain bytes as long as the footer says. Bytes in a dictionary are measured: a few
    rows are decoded, never more than ``size`` bytes, unless even the longest value in every row would stay below that.
    """
    leaves = _leaves(file.metadata, columns)
    step = -(-len(groups) // _PROBED_GROUPS) or 1
    return max((_group_row_bytes(file, g, leaves, size) for g in groups[::step]), default=0.0)


def _leaves(metadata: Any, columns: Sequence[str]) -> list[tuple[int, str]]:
    """Number of each stored column, and the column of the table that it is a part of."""
    tops = {name: name for name in columns}
    found = []
    for i in range(metadata.num_columns):
        path = metadata.schema.column(i).path
        top = tops.get(path) or next((name for name in columns if path.startswith(f"{name}.")), None)
        if top is not None:
            found.append((i, top))
    return found


def _group_row_bytes(file: Any, number: int, leaves: Sequence[tuple[int, str]], size: int) -> float:
    group = file.metadata.row_group(number)
    rows = max(1, group.num_rows)
    known = longest = 0
    measured: dict[str, None] = {}
    for i, top in leaves:
        chunk = group.column(i)
        width = _WIDTHS.get(chunk.physical_type)
        known += (_OFFSET if width is None else width) * chunk.num_values
        if width is None:
            stored = chunk.total_uncompressed_size
            known += stored
            if not _AS_LONG.issuperset(chunk.encodings):
                longest += stored * -(-chunk.num_values // rows)
                measured[top] = None
    if longest * rows <= size:
        return float(known / rows + longest)
    few = rows_within(PROBE_ROWS, size, longest)
    first_rows = file.iter_batches(few, row_groups=[number], columns=[*measured], use_threads=False)
    return float(known / rows + probed(first_rows))
