"""Reads of a table: the selected snapshot, its scan and reader, changes and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.lazy import deferred
from paimon_core.memory import MemoryShares
from paimon_core.operations.history.read_guard import protected_read
from paimon_core.options.scan import INCREMENTAL_BETWEEN_SCAN_MODE, SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED
from paimon_core.predicate.filter import Filter, bound_filter
from paimon_core.predicate.rewrite import columns as columns_of
from paimon_core.read.frames import RepeatableRead
from paimon_core.scan.interval import Interval, asks_for_changes, interval_between, interval_of
from paimon_core.scan.projection import project
from paimon_core.scan.read_rules import with_rules_at
from paimon_core.scan.split import DataSplit
from paimon_core.scan.starting_scanner import without_start
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.time_travel import NEWEST, OPTIONS, TimeTravel
from paimon_core.store.current_schema import check_columns, check_opened, check_same_table
from paimon_core.store.file_store import FileStore
from paimon_core.table.selection import Selection
from paimon_core.types.arrow import arrow_schema

if TYPE_CHECKING:
    from paimon_core.read.changed_rows import ChangeRead, change_splits
    from paimon_core.read.stream import Stream
    from paimon_core.read.table_read import TableRead
    from paimon_core.scan.fallback import branch_splits, reads_branches
    from paimon_core.scan.stream_scan import StreamScan
    from paimon_core.scan.table_scan import TableScan
else:
    ChangeRead = deferred("paimon_core.read.changed_rows", "ChangeRead")
    change_splits = deferred("paimon_core.read.changed_rows", "change_splits")
    Stream = deferred("paimon_core.read.stream", "Stream")
    TableRead = deferred("paimon_core.read.table_read", "TableRead")
    branch_splits = deferred("paimon_core.scan.fallback", "branch_splits")
    reads_branches = deferred("paimon_core.scan.fallback", "reads_branches")
    StreamScan = deferred("paimon_core.scan.stream_scan", "StreamScan")
    TableScan = deferred("paimon_core.scan.table_scan", "TableScan")

READERS = 2  # splits decoded at a time by to_arrow; each split also decodes its columns in parallel


@dataclass(frozen=True, slots=True)
class TableReading:
    """The reads of a table, or of its read-optimized view."""

    store: FileStore
    read_optimized: bool = False

    def resolve(self, at: TimeTravel = NEWEST) -> tuple[FileStore, Snapshot | None]:
        """Return the selected snapshot and its store: with the snapshot's schema for time travel, else the newest.

        The snapshot is `None` if the table has no commit. Raises as `TimeTravel.resolve`, and InvalidInputError if the
        table was altered after it was opened so that its columns cannot hold the rows of the newest snapshot.
        """
        store, snapshot = self.find(at)
        if snapshot is not None and snapshot.schema_id > store.schema.id:
            check_columns(store.schemas, store.schema, snapshot)
        return store, snapshot

    def find(self, at: TimeTravel = NEWEST) -> tuple[FileStore, Snapshot | None]:
        """Return the same as `resolve`, also if the opened columns cannot hold the rows of the snapshot."""
        store = self.store
        if at == NEWEST:
            at = TimeTravel.from_options(store.options)
        snapshot = at.resolve(store.snapshots, store.tags)
        if at != NEWEST and snapshot is not None:
            check_same_table(store.schemas, store.schema)
            return store.at_schema(snapshot.schema_id), snapshot
        check_opened(store.schemas, store.schema, snapshot)
        return with_rules_at(store, snapshot), snapshot

    def scan_and_reader(self, selection: Selection) -> tuple[TableScan, TableRead]:
        """Return the scan of the selected snapshot, and the reader of its splits."""
        store, snapshot = self.resolve(selection.at)
        stored, tracking = store.schema.fields, tracking_fields(store.schema)
        predicate = bound_filter(selection.filter, (*stored, *tracking))
        fields = project(store.schema, selection.columns, metadata=True, nested=True)
        read = TableRead(store, fields, predicate, skip_bad_files=True)
        return TableScan(store, snapshot, predicate, selection.limit, self.read_optimized), read

    def rows(self, selection: Selection) -> RepeatableRead:
        """Return the selected rows as a read that can be repeated; the snapshot is chosen now."""
        if self.reads_changes(selection):
            batches = self._change_batches(selection)
            return _limited(selection, arrow_schema(project(self.store.schema, selection.columns)), batches)
        scan, read = self.scan_and_reader(selection)
        scan = scan.enforcing()
        read = replace(read, store=scan.store)
        if self._reads_branches(selection):
            of_branches = cache(partial(branch_splits, scan))  # the newest snapshot of the other branch, once
            return _limited(selection, read.schema, lambda: _branch_batches(of_branches(), read))
        batches = partial(_batches, scan, read)
        if scan.store.options.has(SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED):
            batches = partial(_protected_batches, scan, read)
        repeatable = _limited(selection, read.schema, batches)
        if selection.limit is not None:
            return repeatable
        return replace(repeatable, in_parallel=partial(_parallel_batches, scan, read))

    def first_rows(self, snapshot: Snapshot | None, columns: Sequence[str], limit: int) -> pa.Table:
        """Return at most ``limit`` rows of a snapshot; no rows for `None`. REQUIRES: the store has its schema."""
        scan = TableScan(self.store, snapshot, None, limit, self.read_optimized).enforcing()
        read = TableRead(scan.store, project(self.store.schema, columns), None, skip_bad_files=True)
        return _limited(Selection.of(columns, None, limit, {}), read.schema, partial(_batches, scan, read)).table()

    def stream(self, columns: Sequence[str] | None, filter: Filter, *, changelog: bool, ignore_deletes: bool) -> Stream:
        """Return a stream of the changes; arguments as for `Table.stream`."""
        store = self.store
        fields, predicate = project(store.schema, columns), bound_filter(filter, store.schema.fields)
        filtered = columns_of(predicate) - {f.name for f in fields} if predicate is not None else set()
        planned = None if columns is None else (*fields, *(f for f in store.schema.fields if f.name in filtered))
        reader = ChangeRead(store, fields, predicate, kinds=changelog, ignore_deletes=ignore_deletes)
        return Stream(StreamScan(store, planned, predicate), reader)

    def interval(self, first: int | str | None, last: int | str | None, mode: str | None) -> Interval:
        """Return the ends of a read of changes, by arguments or else by options; arguments as for `Table.changes`."""
        found = self._interval(first, last, mode)
        check_same_table(self.store.schemas, self.store.schema)
        return found

    def _interval(self, first: int | str | None, last: int | str | None, mode: str | None) -> Interval:
        if first is not None:
            source = self.store.options.value(INCREMENTAL_BETWEEN_SCAN_MODE) if mode is None else mode
            return interval_between(self.store, first, last, source)
        if last is not None or mode is not None:
            raise InvalidInputError("from_snapshot is required (0 returns all changes)")
        interval = interval_of(self.store)
        if interval is None:
            raise InvalidInputError("from_snapshot, or the option 'incremental-between', is required")
        return interval

    def reads_changes(self, selection: Selection) -> bool:
        """Return True if the options ``incremental-*`` make this a read of changes."""
        return asks_for_changes(self.store) and selection.at == NEWEST and not self.read_optimized

    def _reads_branches(self, selection: Selection) -> bool:
        """Return True for the newest rows of two branches; planning refuses an older snapshot of both."""
        travels = selection.at != NEWEST or any(self.store.options.get(key) is not None for key in OPTIONS)
        return reads_branches(self.store) and not travels

    def _change_batches(self, selection: Selection) -> Callable[[], Iterator[pa.RecordBatch]]:
        """Return a function that yields the rows that the options ``incremental-*`` select."""
        interval, schema = self.interval(None, None, None), self.store.schema
        source = interval.source(without_start(self.store))
        fields, predicate = project(schema, selection.columns), bound_filter(selection.filter, schema.fields)

        def batches() -> Iterator[pa.RecordBatch]:
            for split in change_splits(source, interval):
                yield from ChangeRead(source, fields, predicate).to_batches(split)

        return batches


def _limited(
    selection: Selection, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]
) -> RepeatableRead:
    return RepeatableRead(schema, lambda: selection.limited(batches()))


def _chained(read: TableRead, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
    for split in splits:
        yield from read.to_batches(split)


def _batches(scan: TableScan, read: TableRead) -> Iterator[pa.RecordBatch]:
    return _chained(read, scan.plan().splits)


def _protected_batches(scan: TableScan, read: TableRead) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a scan, and protect its snapshot until the last row."""
    with protected_read(scan.store, scan.snapshot):
        yield from _chained(read, scan.plan().splits)


def _parallel_batches(scan: TableScan, read: TableRead) -> Sequence[pa.RecordBatch]:
    """Return the rows of a scan, read by several threads, and protect its snapshot until the end."""
    with protected_read(scan.store, scan.snapshot):
        threads = MemoryShares.of(scan.store.options).at_most(READERS)
        parts = parallel_map(lambda split: list(read.to_batches(split)), scan.plan().splits, threads)
        return [batch for part in parts for batch in part]


def _branch_batches(
    branches: Sequence[tuple[FileStore, Sequence[DataSplit]]], read: TableRead
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of two branches."""
    for store, splits in branches:
        yield from _chained(replace(read, store=store), splits)
