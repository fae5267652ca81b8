"""ORDER BY ... LIMIT by statistics: a predicate that is true for each of the first rows of an order.

If some files certainly hold as many rows as the query wants, with values up to v, then no row beyond v is among the
first ones, and files with larger values only need not be read.
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
from paimon_core.schema.support import check_readable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import INTEGER_ROOTS, DataField, with_nullable

_ROOTS = {*INTEGER_ROOTS, "DATE", "DECIMAL", "TIMESTAMP", "TIMESTAMP_LTZ", "VARCHAR"}
"""Types whose values are within the bounds of statistics: those of floats omit NaN, those of CHAR may have blanks."""


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first ``count`` rows by a column; texts are ordered by their bytes."""

    column: str
    count: int
    descending: bool = False
    nulls_first: bool = False


def first_rows(scan: TableScan, wanted: TopRows) -> Predicate | None:
    """Return a bound predicate that is true for each of the first rows; `None`: statistics exclude no row.

    Cost: the manifests of the scan with their statistics.

    Args:
        scan: its predicate, if any, is on partition columns only.
        wanted: the order, and how many rows.
    """
    store, snapshot = scan.store, scan.snapshot
    field = next((f for f in store.schema.fields if f.name == wanted.column), None)
    if snapshot is None or wanted.count < 1 or field is None or getattr(field.type, "root", None) not in _ROOTS:
        return None
    if scan.predicate is not None and not columns(scan.predicate) <= set(store.schema.partition_keys):
        return None
    check_readable(store.schema)
    with raise_if_expired(store, snapshot):
        entries = scan.visible(live_entries(store, snapshot, partition=scan.predicate, with_stats=True).live)
        if not are_unmerged(store, entries):
            return None
        certain = list(_certain_rows(store, snapshot, entries, field, wanted))
    bound = _bound(certain, wanted)
    if bound is None:
        return None
    test = Leaf(">=" if wanted.descending else "<=", field.name, (bound,))
    return Or((Leaf("is null", field.name), test)) if wanted.nulls_first and field.type.nullable else test


def _bound(certain: Sequence[tuple[Any, int]], wanted: TopRows) -> Any:
    """Return the value that as many rows as wanted do not lie beyond; `None`: unknown."""
    key = (lambda pair: pair[0].encode()) if certain and isinstance(certain[0][0], str) else (lambda pair: pair[0])
    ordered = sorted(certain, key=key, reverse=wanted.descending)
    totals = itertools.accumulate(rows for _, rows in ordered)
    return next((value for (value, _), total in zip(ordered, totals, strict=True) if total >= wanted.count), None)


def _certain_rows(
    store: FileStore, snapshot: Snapshot, entries: list[ManifestEntry], field: DataField, wanted: TopRows
) -> Iterable[tuple[Any, int]]:
    """Yield for files the bound that none of their values is beyond, and how many values they have at least."""
    deleted = {
        name: vector.range.cardinality
        for name, vector in stored_vectors(store, vector_entries(store, snapshot)).items()
    }
    for group in files_of_equal_stats(entries):
        stored = next((f for f in store.schemas.get(group[0].file.schema_id).fields if f.id == field.id), None)
        if stored is None or with_nullable(stored.type, True) != with_nullable(field.type, True):
            continue  # no values, or values that a cast may put in another order
        found = stats_of_files(store, group, stored)
        if found is None:
            continue
        bounds = _internal(found.min if wanted.descending else found.max)
        for entry, bound, nulls in zip(group, bounds, found.null_count.tolist(), strict=True):
            removed = deleted.get(entry.file.file_name, 0)
            if bound is not None and nulls >= 0 and removed is not None:
                yield bound, max(0, entry.file.row_count - nulls - removed)


def _internal(bounds: pa.Array) -> list[Any]:
    """Return bounds as values of a bound predicate."""
    if pa.types.is_date32(bounds.type):
        bounds = bounds.view(pa.int32())
    elif pa.types.is_timestamp(bounds.type):
        bounds = bounds.view(pa.int64())
    found: list[Any] = bounds.to_pylist()
    return found
