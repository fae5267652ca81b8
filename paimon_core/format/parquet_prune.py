"""Which row groups of a Parquet file can hold a row that a predicate wants."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import ColumnStats, Mask, may_match
from paimon_core.predicate.rewrite import columns
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField


def row_groups_to_read(
    metadata: Any,
    fields: Sequence[DataField],
    predicate: Predicate | None,
    wanted: Mask | None = None,
    part: range | None = None,
) -> list[int]:
    """Row groups to read, in order; statistics that are missing or of an unexpected kind keep their row group.

    ``part``: only row groups whose middle row lies in this range of row positions.
    """
    groups = list(range(metadata.num_row_groups))
    if wanted is not None and len(wanted) == metadata.num_rows:
        ends = np.cumsum([metadata.row_group(g).num_rows for g in groups])
        groups = np.unique(np.searchsorted(ends, np.flatnonzero(wanted), "right")).tolist()
    if part is not None:
        counts = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
        starts = itertools.accumulate(counts, initial=0)
        middles = [start + rows // 2 for start, rows in zip(starts, counts, strict=False)]
        groups = [g for g in groups if middles[g] in part]
    return groups if predicate is None else _matching(metadata, groups, fields, predicate)


def _matching(metadata: Any, groups: list[int], fields: Sequence[DataField], predicate: Predicate) -> list[int]:
    if not groups:
        return groups
    asked = columns(predicate)
    leaves = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    stored = metadata.schema.to_arrow_schema()
    known = {}
    for field in fields:
        if field.name in asked and "." not in field.name and field.name in leaves and field.name in stored.names:
            leaf, arrow = leaves[field.name], to_arrow(field.type)
            if stored.field(field.name).type == arrow and metadata.schema.column(leaf).physical_type != "INT96":
                known[field.name] = _bounds(metadata, groups, leaf, arrow)
    rows = np.array([metadata.row_group(g).num_rows for g in groups], dtype=np.int64)
    keep = may_match(predicate, known, rows, len(groups))
    return [g for g, kept in zip(groups, keep, strict=True) if kept]


def _bounds(metadata: Any, groups: list[int], leaf: int, arrow: pa.DataType) -> ColumnStats:
    """Bounds of one column in these row groups; unknown where the footer has none or none that can be read."""
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
