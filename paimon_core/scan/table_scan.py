"""A scan of a table, and its plan: the splits that can hold matching rows."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.datafile.file_columns import stored_columns
from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import hide_secrets
from paimon_core.lazy import collection_paused
from paimon_core.lsm.row_ranges import group_by_row_range, is_blob
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.metrics.listeners import emit, listening
from paimon_core.metrics.values import ScanMetrics
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import columns, restrict, split_by
from paimon_core.scan.entries import live_entries
from paimon_core.scan.file_filter import PruningStep, prune_files
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import LEAST_PART, Packing, cut_split, plan_splits
from paimon_core.schema.blob_columns import read_as_views
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.system_fields import ROW_ID


@dataclass(frozen=True, slots=True)
class Plan:
    """The splits of one snapshot that can hold matching rows, and counts of pruned manifests and files.

    ``snapshot`` is `None` for an empty table. Of the ``files_in_partitions`` files in matching partitions, ``files``
    remain; an index pruned ``files_skipped_by_index`` of the other files, and bucket or statistics the rest. ``steps``
    counts the files at each step, from all files of the snapshot to the files of the splits.
    """

    snapshot: Snapshot | None
    splits: list[DataSplit]
    manifests: int = 0
    manifests_read: int = 0
    files_in_partitions: int = 0
    files: int = 0
    files_skipped_by_index: int = 0
    steps: tuple[PruningStep, ...] = ()


def snapshot_splits(
    store: FileStore, snapshot: Snapshot, entries: Iterable[ManifestEntry], packing: Packing
) -> list[DataSplit]:
    """Return the splits of live entries of a snapshot, with their deletion vectors; see `plan_splits`."""
    key_schema = store.schema.key_arrow if store.traits.keyed else None
    vectors = stored_vectors(store, vector_entries(store, snapshot))
    disjoint, sliced = store.traits.disjoint_levels, store.traits.data_evolution
    return plan_splits(snapshot.id, entries, packing, key_schema, vectors, disjoint=disjoint, sliced=sliced)


@dataclass(frozen=True, slots=True)
class TableScan:
    """A scan of ``snapshot`` (`None`: an empty table) for rows that match ``predicate``.

    The predicate is bound to the columns of the store's schema, and of row tracking if the table has it.
    ``limit`` is a hint: planning stops once the splits with a known row count have that many rows. With
    ``read_optimized``, tables with a primary key show only the highest level, which needs no merge: rows written
    since the last full compaction are missing.

    Examples:
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> plan = table.scan(filter="id = 2").plan()
        >>> plan.snapshot.id, len(plan.splits)
        (2, 1)
        >>> reader = table.reader(columns=["name"], filter="id = 2")
        >>> [batch.to_pylist() for split in plan.splits for batch in reader.to_batches(split)]
        [[{'name': 'blue ink'}]]
    """

    store: FileStore
    snapshot: Snapshot | None
    predicate: Predicate | None = None
    limit: int | None = None
    read_optimized: bool = False

    def plan(self) -> Plan:
        """Plan the splits from metadata. Cost: one read per manifest that is not pruned, in parallel.

        A raw file larger than ``source.split.target-size`` is divided into splits, each with a ``part`` of its rows.
        Raises OutOfRangeError if the snapshot expires during planning.
        """
        self.store.check_readable(enforcing=True)
        if self.snapshot is None:
            return Plan(None, [])
        started = time.monotonic()
        with raise_if_expired(self.store, self.snapshot), collection_paused():
            plan = self._permitted()._plan(self.snapshot)
        if listening(ScanMetrics):
            emit(_measured(self.store, self.snapshot, plan, time.monotonic() - started))
        return plan

    def enforcing(self) -> "TableScan":
        """Return the scan of a read that applies the row filter and the masks of the user's permissions.

        REQUIRES: a `TableRead` with the same store reads the splits, or another reader that applies them.
        """
        return replace(self, store=self.store.enforcing())

    def _permitted(self) -> "TableScan":
        """Return the scan for planning: it must not prune by the stored values of masked columns and of views."""
        rules, scan, schema = self.store.permissions, self, self.store.schema
        if rules is not None and rules.restricts:
            scan = replace(self, predicate=rules.pushed(self.predicate), limit=None)
        views = read_as_views(schema)
        if not views or scan.predicate is None or views.isdisjoint(columns(scan.predicate)):
            return scan
        names = {f.name for f in (*schema.fields, *tracking_fields(schema))} - views
        return replace(scan, predicate=restrict(scan.predicate, names), limit=None)

    def _plan(self, snapshot: Snapshot) -> Plan:
        schema = self.store.schema
        partition = row_ids = None
        stored = self.predicate  # on columns that files store
        if self.predicate is not None and not columns(self.predicate) <= (names := set(schema.names)):
            stored, row_ids = restrict(self.predicate, names), restrict(self.predicate, {ROW_ID.name})
        if self.predicate is not None and schema.partition_keys:
            partition, _ = split_by(self.predicate, set(schema.partition_keys))
        on_rows = self.predicate is not None and not columns(self.predicate) <= set(schema.partition_keys)
        constant = self.predicate is not None and not columns(self.predicate)
        entries = live_entries(self.store, snapshot, partition=partition, with_stats=on_rows or constant)
        live = self.visible(entries.live)
        steps = [PruningStep("partition", entries.files, len(entries.live))] if schema.partition_keys else []
        if len(live) < len(entries.live):
            steps.append(PruningStep("visibility", len(entries.live), len(live)))
        files, traits = live, self.store.traits
        if stored is not None:
            whole_rows, partial_rows = _by_whole_rows(live) if traits.data_evolution else (live, [])
            chosen, pruned = prune_files(self.store, whole_rows, stored, disjoint=traits.disjoint_levels)
            steps += [PruningStep(s.name, s.before + len(partial_rows), s.after + len(partial_rows)) for s in pruned]
            files = [*chosen, *_matching_ranges(self.store, partial_rows, stored)]
            if partial_rows:
                steps.append(PruningStep("row ranges", len(chosen) + len(partial_rows), len(files)))
        if row_ids is not None and traits.data_evolution:
            within = _with_row_ids(files, row_ids)
            steps.append(PruningStep("row ids", len(files), len(within)))
            files = within
        packing = Packing.of(self.store.options)
        splits = snapshot_splits(self.store, snapshot, files, packing)
        if self.limit is not None and not on_rows:
            splits = _enough(splits, self.limit)
            steps.append(PruningStep("limit", len(files), sum(len(split.files) for split in splits)))
        size = max(packing.target_size, LEAST_PART)
        splits = [part for split in splits for part in cut_split(split, size)]
        by_index = sum(step.before - step.after for step in steps if step.name == "index")
        return Plan(
            snapshot, splits, entries.manifests, entries.manifests_read, len(live), len(files), by_index, tuple(steps)
        )

    def visible(self, live: list[ManifestEntry]) -> list[ManifestEntry]:
        """Return the live entries whose rows a batch read shows."""
        shown = [e for e in live if e.bucket >= 0]  # rows of bucket -2 are not shown before a compaction routes them
        if self.read_optimized and self.store.schema.primary_keys:
            top = num_levels(self.store.options) - 1
            return [e for e in shown if e.file.level == top]
        return [e for e in shown if e.file.level > 0] if self.store.traits.hides_level_0 else shown


def _measured(store: FileStore, snapshot: Snapshot, plan: Plan, seconds: float) -> ScanMetrics:
    return ScanMetrics(
        table=hide_secrets(store.root),
        branch=store.branch,
        snapshot_id=snapshot.id,
        seconds=seconds,
        manifests_read=plan.manifests_read,
        manifests_skipped=plan.manifests - plan.manifests_read,
        files=plan.files,
        files_skipped=plan.files_in_partitions - plan.files,
        files_skipped_by_index=plan.files_skipped_by_index,
        splits=len(plan.splits),
        rows=sum(split.row_count for split in plan.splits),
        bytes=sum(split.size for split in plan.splits),
    )


def _by_whole_rows(entries: Sequence[ManifestEntry]) -> tuple[list[ManifestEntry], list[ManifestEntry]]:
    """Return the files whose rows no other file shares, and the other files."""
    names = {group[0].file_name for group in group_by_row_range(e.file for e in entries) if len(group) == 1}
    return (
        [e for e in entries if e.file.file_name in names],
        [e for e in entries if e.file.file_name not in names],
    )


def _matching_ranges(store: FileStore, entries: list[ManifestEntry], predicate: Predicate) -> list[ManifestEntry]:
    """Return the files of the row ranges that may match: each column is judged by the newest file that has it."""
    names = columns(predicate) - set(store.schema.partition_keys)
    fields = [f for f in store.schema.fields if f.name in names]
    groups = group_by_row_range(e.file for e in entries) if fields else []
    layouts = {(f.schema_id, f.write_cols): f for group in groups for f in group}
    stored_ids = {layout: {column.id for column in stored_columns(store, f)} for layout, f in layouts.items()}
    judged: dict[str, set[str]] = {}  # by file name, the columns whose newest values are in the file
    for group in groups:
        for field in fields:
            having = [f for f in group if field.id in stored_ids[f.schema_id, f.write_cols]]
            numbers = [f.max_sequence_number for f in having[:2]]
            if having and not is_blob(having[0]) and len(set(numbers)) == len(numbers):
                judged.setdefault(having[0].file_name, set()).add(field.name)
    by_columns: dict[frozenset[str], list[ManifestEntry]] = {}
    for entry in entries:
        if entry.file.file_name in judged:
            by_columns.setdefault(frozenset(judged[entry.file.file_name]), []).append(entry)
    no_match: set[str] = set()
    for of_files, holders in by_columns.items():
        if (weaker := restrict(predicate, of_files)) is not None:
            may_hold = {e.file.file_name for e in prune_files(store, holders, weaker)[0]}
            no_match |= {e.file.file_name for e in holders} - may_hold
    left_out = {f.file_name for group in groups if any(f.file_name in no_match for f in group) for f in group}
    return [e for e in entries if e.file.file_name not in left_out]


def _with_row_ids(entries: list[ManifestEntry], predicate: Predicate) -> list[ManifestEntry]:
    """Return the files of the row ranges that may match; a range has all its files or none, even if some are parts."""
    numbered = [group for group in group_by_row_range(e.file for e in entries) if group[0].first_row_id is not None]
    first = np.array([group[0].first_row_id for group in numbered], np.int64)
    rows = np.array([group[0].row_count for group in numbered], np.int64)
    bounds = ColumnStats(pa.array(first), pa.array(first + rows - 1), np.zeros(len(rows), np.int64))
    matching = may_match(predicate, {ROW_ID.name: bounds}, rows, len(rows))
    left_out = {file.file_name for group, may in zip(numbered, matching, strict=True) if not may for file in group}
    return [e for e in entries if e.file.file_name not in left_out]


def _enough(splits: list[DataSplit], limit: int) -> list[DataSplit]:
    """Return the first splits that are known to have ``limit`` rows in total, or all splits."""
    chosen, certain = [], 0
    for split in splits:
        if certain >= limit:
            break
        chosen.append(split)
        certain += split.certain_row_count or 0
    return chosen
