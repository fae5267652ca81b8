"""Selection of the row groups of a Parquet file that can hold a requested row."""

from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.format.file_format import ReadRequest
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import columns
from paimon_core.types.arrow import to_arrow


def row_groups_to_read(metadata: Any, request: ReadRequest) -> list[int]:
    """Return the numbers of the row groups to read, in order, given the footer of the file.

    A row group without statistics, or with statistics of an unexpected type, is read.
    """
    groups = list(range(metadata.num_row_groups))
    counts = np.array([metadata.row_group(g).num_rows for g in groups], np.int64)
    ends, row_mask, part = np.cumsum(counts), request.row_mask, request.part
    if row_mask is not None and len(row_mask) == metadata.num_rows:
        groups = np.unique(np.searchsorted(ends, np.flatnonzero(row_mask), "right")).tolist()
    if part is not None:
        middles = (ends - counts + counts // 2).tolist()
        groups = [g for g in groups if middles[g] in part]
    if request.predicate is None or not groups:
        return groups
    referenced = columns(request.predicate)
    leaves = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    stored = metadata.schema.to_arrow_schema()
    known = {}
    for field in request.fields:
        name = field.name
        if name in referenced and "." not in name and name in leaves and name in stored.names:
            leaf, arrow = leaves[name], to_arrow(field.type)
            if stored.field(name).type == arrow and metadata.schema.column(leaf).physical_type != "INT96":
                known[name] = row_group_bounds(metadata, groups, leaf, arrow)
    matching = may_match(request.predicate, known, counts[groups], len(groups))
    return [g for g, match in zip(groups, matching, strict=True) if match]


def row_group_bounds(metadata: Any, groups: list[int], leaf: int, arrow: pa.DataType) -> ColumnStats:
    """Return the bounds of one column in these row groups; a bound is unknown if the footer has no readable one.

    Args:
        metadata: the footer.
        groups: numbers of row groups.
        leaf: the number of the stored column.
        arrow: its type.
    """
    lows, highs, nulls = [], [], []
    for group in groups:
        stats = metadata.row_group(group).column(leaf).statistics
        try:
            bounds = (stats.min, stats.max) if stats is not None and stats.has_min_max else (None, None)
            pa.array(bounds, arrow)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):  # out of range, or cut inside a character
            bounds = (None, None)
        lows.append(bounds[0])
        highs.append(bounds[1])
        nulls.append(stats.null_count if stats is not None and stats.has_null_count else -1)
    return ColumnStats(pa.array(lows, arrow), pa.array(highs, arrow), np.array(nulls, dtype=np.int64))
