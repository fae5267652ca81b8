"""Estimate how many rows fit a batch of limited bytes, from a file's metadata and its first rows.

The encoded size alone is misleading: a text that repeats in every row takes almost no space in the file, but its full
length in every row of a batch.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from paimon_core.format.parquet_columns import schema_of

PROBE_ROWS = 512
_PROBED_GROUPS = 4
_WIDEST = 16  # bytes of the widest number
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 16, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 16}


def rows_within(max_rows: int, max_bytes: int | None, row_bytes: float) -> int:
    """Return how many rows of ``row_bytes`` fit: at least 1, at most ``max_rows``.

    Args:
        max_rows: the largest number of rows in a batch.
        max_bytes: the largest size of a batch in bytes; `None`: no limit.
        row_bytes: the size of one row in bytes.
    """
    return max_rows if max_bytes is None else max(1, min(max_rows, int(max_bytes / max(row_bytes, 0.125))))


def probed(batches: Iterator[pa.RecordBatch]) -> float:
    """Return the decoded bytes of a row, as the mean of the first batch; 0 without rows."""
    first = next(batches, None)
    return 0.0 if first is None or not first.num_rows else first.nbytes / first.num_rows


def parquet_row_bytes(file: Any, groups: Sequence[int], columns: Sequence[str], max_bytes: int) -> float:
    """Return the decoded bytes of a row of a Parquet file: the largest value among a few row groups.

    Numbers have a fixed width. For bytes and lists a few rows are decoded, because a dictionary may hide their length.
    A single row group is not measured if its rows cannot exceed ``max_bytes``, even if each row had the size of the row
    group. Without lists, the size of its columns of bytes is enough, because they store each value at least once. The
    decoded sizes in the footer are not used: a corrupt one crashes the process inside Arrow.

    Args:
        file: the open file.
        groups: numbers of the row groups to read.
        columns: names of the columns to read.
        max_bytes: the largest size in bytes of a batch, and of the rows decoded here.
    """
    if len(groups) == 1:
        group = file.metadata.row_group(groups[0])
        bound = group.total_byte_size + _WIDEST * file.metadata.num_columns
        if group.total_byte_size > 0 and bound * group.num_rows <= max_bytes:
            return float(bound)
    known, measured, flat = _widths(file.metadata, columns)
    if not measured:
        return float(known)
    if len(groups) == 1 and flat:
        sizes = [group.column(i).total_uncompressed_size for i in flat]
        bound = known + sum(sizes) + _WIDEST * len(sizes)
        if min(sizes) > 0 and bound * group.num_rows <= max_bytes:
            return float(bound)
    step = -(-len(groups) // _PROBED_GROUPS) or 1
    return known + max((_measured(file, g, measured, max_bytes) for g in groups[::step]), default=0.0)


def _widths(metadata: Any, columns: Sequence[str]) -> tuple[int, list[str], list[int]]:
    """Return the bytes of the plain numbers in a row, the other columns, and their leaves.

    No leaves are returned if a column has lists.
    """
    known, others, flat = 0, dict[str, None](), list[int]()
    with_lists, schema = False, schema_of(metadata)
    for i, top in _leaves(metadata, columns):
        leaf = schema.column(i)
        width = _WIDTHS.get(leaf.physical_type)
        if width is None or leaf.max_repetition_level:
            others[top] = None
            flat.append(i)
            with_lists = with_lists or leaf.max_repetition_level > 0
        else:
            known += width
    return known, [*others], [] if with_lists else flat


def _leaves(metadata: Any, columns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the number of each stored leaf of these columns, and the column."""
    tops, schema = set(columns), schema_of(metadata)
    for i in range(metadata.num_columns):
        path = schema.column(i).path
        ends = [len(path), *(found.start() for found in re.finditer(r"\.", path))]
        top = next((path[:end] for end in ends if path[:end] in tops), None)
        if top is not None:
            yield i, top


def encoded_bytes(metadata: Any, groups: Sequence[int], columns: Sequence[str]) -> int:
    """Return the encoded bytes of these columns in these row groups, as recorded in the footer."""
    leaves = [i for i, _ in _leaves(metadata, columns)]
    return sum(metadata.row_group(g).column(i).total_compressed_size for g in groups for i in leaves)


def _measured(file: Any, group: int, columns: Sequence[str], max_bytes: int) -> float:
    """Return the decoded bytes of a row of these columns in one row group."""
    rows = rows_within(PROBE_ROWS, max_bytes, file.metadata.row_group(group).total_byte_size)
    return probed(file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False))
