"""Which row groups of a Parquet file can hold a row that a predicate wants."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import columns
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField


def row_groups_to_read(metadata: Any, fields: Sequence[DataField], predicate: Predicate | None) -> list[int]:
    """Row groups to read, in order; statistics that are missing or of an unexpected kind keep their row group."""
    groups = list(range(metadata.num_row_groups))
    if predicate is None or not groups:
        return groups
    asked = columns(predicate)
    leaves = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    known = {}
    for field in fields:
        if field.name in asked and field.name in leaves:
            stats = _bounds(metadata, leaves[field.name], to_arrow(field.type))
            if stats is not None:
                known[field.name] = stats
    rows = np.array([metadata.row_group(g).num_rows for g in groups], dtype=np.int64)
    keep = may_match(predicate, known, rows, len(groups))
    return [g for g, kept in zip(groups, keep, strict=True) if kept]


def _bounds(metadata: Any, leaf: int, arrow: pa.DataType) -> ColumnStats | None:
    """Bounds of one column in every row group; None when the column is stored in another way than its field says."""
    stored = metadata.schema.column(leaf)
    if not _is_plain(metadata.schema.to_arrow_schema(), stored, arrow):
        return None
    lows, highs, nulls = [], [], []
    for group in range(metadata.num_row_groups):
        stats = metadata.row_group(group).column(leaf).statistics
        bounded = stats is not None and stats.has_min_max
        lows.append(stats.min if bounded else None)
        highs.append(stats.max if bounded else None)
        nulls.append(stats.null_count if stats is not None and stats.has_null_count else -1)
    try:
        return ColumnStats(pa.array(lows, arrow), pa.array(highs, arrow), np.array(nulls, dtype=np.int64))
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return None


def _is_plain(file_schema: pa.Schema, stored: Any, arrow: pa.DataType) -> bool:
    """Whether the footer's bounds are bounds of the column's values."""
    if stored.path not in file_schema.names or stored.physical_type == "INT96":
        return False
    found = file_schema.field(stored.path).type
    return bool(found == arrow or (pa.types.is_large_string(found) and pa.types.is_string(arrow)))
