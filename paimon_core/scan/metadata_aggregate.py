"""COUNT, MIN and MAX from metadata: row counts of files, cardinalities of deletion vectors, statistics of columns.

A result is exact; if metadata cannot give an exact result, the rows must be read. Rows that a merge may drop are not
counted, unless the caller knows the number of rows that the merge returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.deletion.vector_files import StoredVector
from paimon_core.lsm.row_ranges import group_by_row_range, vector_of_range
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry, files_by_bucket
from paimon_core.predicate.rewrite import columns, keeps_values
from paimon_core.scan.entries import live_entries
from paimon_core.scan.file_filter import files_of_equal_stats, stats_of_files
from paimon_core.scan.split_plan import Packing, keyed_bins
from paimon_core.scan.table_scan import Plan, TableScan
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import INTEGER_ROOTS, AtomicType, DataField, DataType, with_nullable

LiveRows: TypeAlias = Callable[[Plan], Sequence[int] | None]
"""Returns the exact number of rows of each split of a plan after merges and deletes; `None`: unknown."""
_SEPARATE = Packing(0, 1)
_EXACT_ROOTS = {*INTEGER_ROOTS, "DATE", "DECIMAL"}
"""Types whose bounds are values of the column: bounds of text may be truncated, and bounds of floats omit NaN."""


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: ``count`` (of rows if ``column`` is `None`, else of values), ``min`` or ``max``."""

    name: str
    column: str | None = None


@dataclass
class _Group:
    """The rows of one group that are not deleted."""

    rows: int
    """The number of rows."""
    partitions: list[tuple[int, Mapping[str, Any]]]
    """Number of rows and values by partition column, for each file, split or row range."""
    members: list[tuple[ManifestEntry, int]]
    """Entry and number of rows of each file; empty if files are merged or share rows."""


class _Unknown(Exception):
    """Metadata do not determine the result."""


def aggregate(
    scan: TableScan, groups: Sequence[str], functions: Sequence[Function], live_rows: LiveRows | None = None
) -> list[tuple[Any, ...]] | None:
    """Return the internal values of partition columns and functions, one row per group; `None`: rows must be read.

    Without ``groups`` the result is one row. Cost: the manifests of the scan; with MIN or MAX also their statistics.

    Args:
        scan: the scan to aggregate; `None` is returned if its predicate uses other than partition columns.
        groups: names of the partition columns to group by.
        functions: the functions to compute.
        live_rows: counts the rows of a plan whose files are merged. It is called only if row counts and partition
            values alone determine the functions. `None`: no function, so rows of merged files must be read.
    """
    schema = scan.store.schema
    keys = set(schema.partition_keys)
    if not set(groups) <= keys or (scan.predicate is not None and not columns(scan.predicate) <= keys):
        return None
    scan.store.check_readable()
    try:
        return _aggregate(scan, groups, functions, live_rows)
    except _Unknown:
        return None


def _aggregate(
    scan: TableScan, groups: Sequence[str], functions: Sequence[Function], live_rows: LiveRows | None
) -> list[tuple[Any, ...]]:
    store, snapshot = scan.store, scan.snapshot
    group_by_key: dict[tuple[Any, ...], _Group] = {} if groups else {(): _Group(0, [], [])}
    computed = [_value_of(store, function) for function in functions]
    if snapshot is not None:
        with_stats = any(not _needs_counts_only(store, function) for function in functions)
        with raise_if_expired(store, snapshot):
            live = live_entries(store, snapshot, partition=scan.predicate, with_stats=with_stats).live
            entries = scan.visible(live)
            if are_unmerged(store, entries):
                counts = _counts_of_files(store, snapshot, entries)
            elif with_stats:  # statistics include superseded rows, and values that a newer file replaces
                raise _Unknown
            elif store.traits.data_evolution:
                counts = _counts_of_ranges(store, snapshot, entries)
            elif live_rows is None:
                raise _Unknown
            else:
                counts = _counts_of_splits(scan, live_rows)
        values: dict[bytes, Mapping[str, Any]] = {}
        for partition, rows, entry in counts:
            named = values.get(partition)
            if named is None:
                partition_row = store.partition_values(partition)
                named = values[partition] = dict(zip(store.schema.partition_keys, partition_row, strict=True))
            group = group_by_key.setdefault(tuple(named[key] for key in groups), _Group(0, [], []))
            group.rows += rows
            group.partitions.append((rows, named))
            if entry is not None:
                group.members.append((entry, rows))
    results = [(key, group) for key, group in group_by_key.items() if group.rows or not groups]
    return [(*key, *(value(group) for value in computed)) for key, group in results]


_Counts: TypeAlias = list[tuple[bytes, int, ManifestEntry | None]]
"""Partition, number of rows that are not deleted, and entry of each file; the entry of a split or range is `None`."""


def _counts_of_files(store: FileStore, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> _Counts:
    """Return the rows of files that need no merge."""
    vectors = stored_vectors(store, vector_entries(store, snapshot))
    return [(entry.partition, _live_rows(entry.file, vectors.get(entry.file.file_name)), entry) for entry in entries]


def _counts_of_ranges(store: FileStore, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> _Counts:
    """Return the rows of row ranges: the rows whose columns several files hold count once."""
    vectors = stored_vectors(store, vector_entries(store, snapshot))
    return [
        (location.partition, _live_rows(group[0], vector_of_range(group, vectors)), None)
        for location, files in files_by_bucket(entries).items()
        for group in group_by_row_range(files)
    ]


def _live_rows(file: DataFileMeta, deleted: StoredVector | None) -> int:
    """Return the rows of a file that its deletion vector keeps. Raises _Unknown if the vector lacks their number."""
    removed = 0 if deleted is None else deleted.range.cardinality
    if removed is None:
        raise _Unknown
    return file.row_count - removed


def _counts_of_splits(scan: TableScan, live_rows: LiveRows) -> _Counts:
    """Return the rows of the splits of a scan, after merges."""
    plan = scan.plan()
    rows = live_rows(plan)
    if rows is None:
        raise _Unknown
    return [(split.partition, count, None) for split, count in zip(plan.splits, rows, strict=True)]


def _needs_counts_only(store: FileStore, function: Function) -> bool:
    """Return True if row counts and partition values determine a function, without statistics of columns."""
    column = function.column
    if column is None or column in store.schema.partition_keys:
        return True
    return function.name == "count" and not store.schema.field(column).type.nullable


def are_unmerged(store: FileStore, entries: Sequence[ManifestEntry]) -> bool:
    """Return False if files must be merged, so that their row counts do not determine the rows of a read."""
    buckets = files_by_bucket(entries).values()
    if store.traits.keyed:
        disjoint, key = store.traits.disjoint_levels, store.schema.key_arrow
        return all(raw for files in buckets for _, raw in keyed_bins(files, _SEPARATE, key, disjoint=disjoint))
    if store.traits.data_evolution:
        return all(len(group) == 1 for files in buckets for group in group_by_row_range(files))
    return True


def _value_of(store: FileStore, function: Function) -> Callable[[_Group], Any]:
    """Return a callable that computes an aggregate function for a group."""
    name, column = function.name, function.column
    if column is None:
        return lambda group: group.rows
    if column in store.schema.partition_keys:
        return lambda group: _of_partitions(group, name, column)
    field = store.schema.field(column)
    if name == "count":
        if not field.type.nullable:
            return lambda group: group.rows
        return lambda group: group.rows - _FileStatistics(store, field, group).nulls()
    if getattr(field.type, "root", None) not in _EXACT_ROOTS:
        raise _Unknown
    pick = min if name == "min" else max
    return lambda group: _FileStatistics(store, field, group).bound(pick)


def _of_partitions(group: _Group, name: str, column: str) -> Any:
    """Compute a function of a partition column: each row of a file has the value of its partition."""
    present = [(values[column], rows) for rows, values in group.partitions if rows and values[column] is not None]
    if name == "count":
        return sum(rows for _, rows in present)
    distinct = {value for value, _ in present}
    if any(isinstance(value, float) for value in distinct):  # the order of NaN
        raise _Unknown
    if not distinct:
        return None
    key = (lambda value: value.encode()) if isinstance(next(iter(distinct)), str) else None
    return min(distinct, key=key) if name == "min" else max(distinct, key=key)


class _FileStatistics:
    """The statistics of one column in the files of a group. REQUIRES: entries with statistics."""

    def __init__(self, store: FileStore, field: DataField, group: _Group) -> None:
        if any(entry.file.row_count != rows for entry, rows in group.members):
            raise _Unknown  # a deleted row may have held the bound or a null
        self._store, self._field = store, field
        self._entries = [entry for entry, _ in group.members if entry.file.row_count]

    def nulls(self) -> int:
        """Return the number of nulls. Raises _Unknown if statistics lack it."""
        return sum(nulls for _, nulls, _ in self._by_layout(int))

    def bound(self, pick: Callable[..., Any]) -> Any:
        """Return the smallest or largest value; `None`: all values are null. Raises _Unknown if statistics lack it."""
        bounds_of_files = [value for bounds, _, _ in self._by_layout(pick) for value in bounds]
        return pick(bounds_of_files) if bounds_of_files else None

    def _by_layout(self, pick: Callable[..., Any]) -> list[tuple[list[Any], int, int]]:
        """Return bounds, nulls and rows of each set of files with the same statistics layout."""
        return [self._of_layout(entries, pick) for entries in files_of_equal_stats(self._entries)]

    def _of_layout(self, entries: Sequence[ManifestEntry], pick: Callable[..., Any]) -> tuple[list[Any], int, int]:
        rows = sum(entry.file.row_count for entry in entries)
        file_fields = self._store.schemas.get(entries[0].file.schema_id).fields
        stored = next((f for f in file_fields if f.id == self._field.id), None)
        if stored is None:
            return [], rows, rows  # a column that the files do not have is null
        stats = stats_of_files(self._store, entries, stored)
        if stats is None or (stats.null_count < 0).any():
            raise _Unknown
        if pick is int:
            if not _keeps_nulls(stored.type, self._field.type):
                raise _Unknown  # a decimal that does not fit the new type is read as null
            return [], int(stats.null_count.sum()), rows
        if with_nullable(stored.type, True) != with_nullable(self._field.type, True):
            raise _Unknown  # a cast may reorder values
        bounds = _internal(stats.min if pick is min else stats.max)
        all_null = stats.null_count == [entry.file.row_count for entry in entries]
        if any(bound is None and not null for bound, null in zip(bounds, all_null, strict=True)):
            raise _Unknown
        return [b for b, null in zip(bounds, all_null, strict=True) if not null], int(stats.null_count.sum()), rows


def _keeps_nulls(stored: DataType, read: DataType) -> bool:
    """Return True if a read shows null where null is stored, and nowhere else."""
    if with_nullable(stored, True) == with_nullable(read, True):
        return True
    if isinstance(stored, AtomicType) and isinstance(read, AtomicType):
        return keeps_values(stored, read)
    return type(stored) is type(read)  # a nested type changes only inside its values


def _internal(bounds: pa.Array) -> list[Any]:
    """Return the bounds with dates as days."""
    values: list[Any] = (bounds.view(pa.int32()) if pa.types.is_date32(bounds.type) else bounds).to_pylist()
    return values
