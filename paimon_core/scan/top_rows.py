"""ORDER BY ... LIMIT by statistics: a predicate that is true for each of the first rows of an order.

Suppose that some files are known to hold LIMIT rows with values up to v. Then no row beyond v is among the first rows,
and files with only larger values are not read.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.predicate.expr import Leaf, Or, Predicate
from paimon_core.predicate.rewrite import columns
from paimon_core.scan.entries import live_entries
from paimon_core.scan.file_filter import files_of_equal_stats, stats_of_files
from paimon_core.scan.metadata_aggregate import are_unmerged
from paimon_core.scan.table_scan import TableScan
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import INTEGER_ROOTS, DataField, with_nullable

_ROOTS = {*INTEGER_ROOTS, "DATE", "DECIMAL", "TIMESTAMP", "TIMESTAMP_LTZ", "VARCHAR"}
"""Types whose values are within their statistics' bounds; bounds of floats omit NaN, bounds of CHAR may be padded."""


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first ``count`` rows in the order of a column; texts are ordered by their bytes."""

    column: str
    count: int
    descending: bool = False
    nulls_first: bool = False


def first_rows(scan: TableScan, top: TopRows) -> Predicate | None:
    """Return a bound predicate that is true for each of the first rows; `None`: statistics exclude no row.

    Cost: the manifests of the scan with their statistics.

    Args:
        scan: the scan to read; `None` is returned if its predicate uses other than partition columns.
        top: the order, and the number of rows.
    """
    store, snapshot = scan.store, scan.snapshot
    field = next((f for f in store.schema.fields if f.name == top.column), None)
    if snapshot is None or top.count < 1 or field is None or getattr(field.type, "root", None) not in _ROOTS:
        return None
    if scan.predicate is not None and not columns(scan.predicate) <= set(store.schema.partition_keys):
        return None
    store.check_readable()
    with raise_if_expired(store, snapshot):
        entries = scan.visible(live_entries(store, snapshot, partition=scan.predicate, with_stats=True).live)
        if not are_unmerged(store, entries):
            return None
        certain = list(_certain_rows(store, snapshot, entries, field, top))
    bound = _bound(certain, top)
    if bound is None:
        return None
    test = Leaf(">=" if top.descending else "<=", field.name, (bound,))
    return Or((Leaf("is null", field.name), test)) if top.nulls_first and field.type.nullable else test


def _bound(certain: Sequence[tuple[Any, int]], top: TopRows) -> Any:
    """Return a value that at least ``top.count`` rows do not exceed in the order; `None`: unknown."""
    key = (lambda pair: pair[0].encode()) if certain and isinstance(certain[0][0], str) else (lambda pair: pair[0])
    ordered = sorted(certain, key=key, reverse=top.descending)
    totals = itertools.accumulate(rows for _, rows in ordered)
    return next((value for (value, _), total in zip(ordered, totals, strict=True) if total >= top.count), None)


def _certain_rows(
    store: FileStore, snapshot: Snapshot, entries: list[ManifestEntry], field: DataField, top: TopRows
) -> Iterable[tuple[Any, int]]:
    """Yield, for each file, a bound that no value of the file exceeds, and the minimum number of its values."""
    deleted = {
        name: vector.range.cardinality
        for name, vector in stored_vectors(store, vector_entries(store, snapshot)).items()
    }
    for group in files_of_equal_stats(entries):
        stored = next((f for f in store.schemas.get(group[0].file.schema_id).fields if f.id == field.id), None)
        if stored is None or with_nullable(stored.type, True) != with_nullable(field.type, True):
            continue  # no values, or values that a cast may reorder
        stats = stats_of_files(store, group, stored)
        if stats is None:
            continue
        bounds = _internal(stats.min if top.descending else stats.max)
        for entry, bound, nulls in zip(group, bounds, stats.null_count.tolist(), strict=True):
            removed = deleted.get(entry.file.file_name, 0)
            if bound is not None and nulls >= 0 and removed is not None:
                yield bound, max(0, entry.file.row_count - nulls - removed)


def _internal(bounds: pa.Array) -> list[Any]:
    """Return bounds as values of a bound predicate."""
    if pa.types.is_date32(bounds.type):
        bounds = bounds.view(pa.int32())
    elif pa.types.is_timestamp(bounds.type):
        bounds = bounds.view(pa.int64())
    values: list[Any] = bounds.to_pylist()
    return values
