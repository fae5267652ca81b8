"""Which manifests can hold entries of some partitions, buckets or levels.

Law: a manifest that holds one is kept; the converse is not promised.
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


def keep(
    metas: Sequence[ManifestFileMeta],
    partition_predicate: Predicate | None,
    partition_fields: Sequence[DataField],
    buckets: Collection[int] | None = None,
    levels: Collection[int] | None = None,
) -> list[ManifestFileMeta]:
    """The manifests, in order, that can hold entries in matching partitions, in ``buckets`` and on ``levels``.

    The predicate is bound to the partition fields; None means any, for each of the three.
    """
    kept = np.ones(len(metas), bool)
    if buckets is not None:
        kept &= _meets(buckets, [m.min_bucket for m in metas], [m.max_bucket for m in metas])
    if levels is not None:
        kept &= _meets(levels, [m.min_level for m in metas], [m.max_level for m in metas])
    if partition_predicate is not None and kept.any():
        kept &= may_hold_partitions(metas, partition_predicate, arrow_schema(partition_fields))
    return list(itertools.compress(metas, kept.tolist()))


def may_hold_partitions(
    metas: Sequence[ManifestFileMeta], predicate: Predicate, partition_schema: pa.Schema
) -> np.ndarray:
    """Per manifest, whether its partition statistics admit a partition that matches."""
    kept = np.ones(len(metas), bool)
    width = len(partition_schema)
    judged = [i for i, meta in enumerate(metas) if _arity(meta) == width]
    if not judged:
        return kept
    stats = [metas[i].partition_stats for i in judged]
    nullable = pa.schema([field.with_nullable(True) for field in partition_schema])
    low = decode_rows([s.min_values for s in stats], nullable)
    high = decode_rows([s.max_values for s in stats], nullable)
    bounds = {}
    for column, field in enumerate(nullable):
        counts = [s.null_counts[column] if column < len(s.null_counts) else None for s in stats]
        nulls = np.array([-1 if count is None else count for count in counts], np.int64)
        bounds[field.name] = ColumnStats(low.column(column), high.column(column), nulls)
    rows = np.array([metas[i].num_added_files + metas[i].num_deleted_files for i in judged], np.int64)
    kept[judged] = may_match(predicate, bounds, rows, len(judged))
    return kept


def _arity(meta: ManifestFileMeta) -> int:
    return int.from_bytes(meta.partition_stats.min_values[:4], "big")


def _meets(wanted: Collection[int], low: Sequence[int | None], high: Sequence[int | None]) -> np.ndarray:
    """Whether one of the wanted numbers lies in [low, high]; an unknown end admits all beyond."""
    numbers = np.array(sorted(wanted), np.int64)
    limits = np.iinfo(np.int64)
    first = np.array([limits.min if v is None else v for v in low], np.int64)
    last = np.array([limits.max if v is None else v for v in high], np.int64)
    result: np.ndarray = np.searchsorted(numbers, first, "left") < np.searchsorted(numbers, last, "right")
    return result
