"""The statistics of the partitions of one manifest's entries."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.manifest.stats import EMPTY_STATS, SimpleStats
from paimon_core.row.binary_row import decode_rows, serialize


def partition_stats(partitions: Mapping[bytes, int], schema: pa.Schema) -> SimpleStats:
    """Return the bounds and null counts of the partitions of entries.

    ``partitions``: the number of entries of each serialised partition. Bounds are exact, never truncated. A column with
    NaN has no bounds, because Arrow leaves NaN out of bounds.
    """
    if not len(schema):
        return EMPTY_STATS
    rows = decode_rows(list(partitions), schema)
    entries = np.fromiter(partitions.values(), np.int64, len(partitions))
    bounds = [_bounds(column) for column in rows.columns]
    nulls = tuple(int(entries[column.is_null().to_numpy(zero_copy_only=False)].sum()) for column in rows.columns)
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    low, high = (serialize(tuple(ends), nullable) for ends in zip(*bounds, strict=True))
    return SimpleStats(low, high, nulls)


def _bounds(column: pa.Array) -> tuple[object, object]:
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return None, None
    ends = pc.min_max(column)
    low, high = (internal_values(pa.repeat(ends[end], 1))[0] for end in ("min", "max"))
    return low, high


def internal_values(column: pa.Array) -> list[Any]:
    """Return the values in Python, with dates and times as integers in the unit of their type."""
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
