"""Prune manifests by partitions, buckets and levels.

Law: a manifest with a matching entry is never pruned. A manifest without one may stay.
"""

import itertools
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.row.binary_row import decode_rows
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField


def prune_manifests(
    metas: Sequence[ManifestFileMeta],
    partition_predicate: Predicate | None,
    partition_fields: Sequence[DataField],
    buckets: Collection[int] | None = None,
    levels: Collection[int] | None = None,
) -> list[ManifestFileMeta]:
    """Return the manifests, in order, that can hold entries that match all conditions. `None`: no condition.

    Args:
        metas: the manifests to prune.
        partition_predicate: a predicate that is bound to the partition fields.
        partition_fields: the partition columns of the table.
        buckets: bucket numbers.
        levels: levels of data files.
    """
    may_hold = np.ones(len(metas), bool)
    if buckets is not None:
        may_hold &= _overlaps(buckets, [m.min_bucket for m in metas], [m.max_bucket for m in metas])
    if levels is not None:
        may_hold &= _overlaps(levels, [m.min_level for m in metas], [m.max_level for m in metas])
    if partition_predicate is not None and may_hold.any():
        may_hold &= may_hold_partitions(metas, partition_predicate, arrow_schema(partition_fields))
    return list(itertools.compress(metas, may_hold.tolist()))


def may_hold_partitions(
    metas: Sequence[ManifestFileMeta], predicate: Predicate, partition_schema: pa.Schema
) -> np.ndarray:
    """Return, for each manifest, True if its partition statistics allow a partition that matches the predicate."""
    may_hold = np.ones(len(metas), bool)
    width = len(partition_schema)
    with_stats = [i for i, meta in enumerate(metas) if _arity(meta) == width]
    if not with_stats:
        return may_hold
    stats = [metas[i].partition_stats for i in with_stats]
    nullable = pa.schema([field.with_nullable(True) for field in partition_schema])
    low = decode_rows([s.min_values for s in stats], nullable)
    high = decode_rows([s.max_values for s in stats], nullable)
    bounds = {}
    for column, field in enumerate(nullable):
        counts = [s.null_counts[column] if column < len(s.null_counts) else None for s in stats]
        nulls = np.array([-1 if count is None else count for count in counts], np.int64)
        bounds[field.name] = ColumnStats(low.column(column), high.column(column), nulls)
    rows = np.array([metas[i].num_added_files + metas[i].num_deleted_files for i in with_stats], np.int64)
    may_hold[with_stats] = may_match(predicate, bounds, rows, len(with_stats))
    return may_hold


def _arity(meta: ManifestFileMeta) -> int:
    return int.from_bytes(meta.partition_stats.min_values[:4], "big")


def _overlaps(numbers: Collection[int], low: Sequence[int | None], high: Sequence[int | None]) -> np.ndarray:
    """Return, for each range [low, high], True if one of the numbers is in the range; `None`: no bound."""
    ordered = np.array(sorted(numbers), np.int64)
    limits = np.iinfo(np.int64)
    first = np.array([limits.min if v is None else v for v in low], np.int64)
    last = np.array([limits.max if v is None else v for v in high], np.int64)
    result: np.ndarray = np.searchsorted(ordered, first, "left") < np.searchsorted(ordered, last, "right")
    return result
