"""A scan of a table, and its plan: the splits that can hold matching rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.lsm.row_ranges import group_by_row_range
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.merge import merge_engine
from paimon_core.options.file import DATA_EVOLUTION_ENABLED
from paimon_core.options.merge import DELETION_VECTORS_ENABLED, DELETION_VECTORS_MERGE_ON_READ
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import split_by
from paimon_core.scan.entries import live_entries
from paimon_core.scan.file_filter import prune_by_index, prune_files
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import LEAST_PART, Packing, cut_split, plan_splits
from paimon_core.schema.support import check_readable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class Plan:
    """The splits of one snapshot that can hold matching rows, and counts of the manifests and files pruned.

    ``snapshot`` is `None` for an empty table. ``files`` of ``files_in_partitions`` files in matching partitions are
    left; of the others, ``files_skipped_by_index`` were pruned by an index, the rest by bucket or statistics.
    """

    snapshot: Snapshot | None
    splits: list[DataSplit]
    manifests: int = 0
    manifests_read: int = 0
    files_in_partitions: int = 0
    files: int = 0
    files_skipped_by_index: int = 0


def passes_over_level_0(store: FileStore) -> bool:
    """Return True if batch reads show rows only after their compaction."""
    schema, options = store.schema, store.options
    if not schema.primary_keys:
        return False
    if options.value(DELETION_VECTORS_ENABLED) and not options.value(DELETION_VECTORS_MERGE_ON_READ):
        return True
    return merge_engine(options, schema.fields, schema.primary_keys).skips_level_0


@dataclass(frozen=True, slots=True)
class TableScan:
    """A scan of ``snapshot`` (`None`: an empty table) for rows of ``predicate`` (bound to the store's schema).

    ``limit`` is a hint: planning stops once the splits with a certain row count have that many rows. With
    ``read_optimized``, tables with a primary key show only the highest level, which needs no merge: rows written
    since the last full compaction are missing.
    """

    store: FileStore
    snapshot: Snapshot | None
    predicate: Predicate | None = None
    limit: int | None = None
    read_optimized: bool = False

    def plan(self) -> Plan:
        """Plan the splits from metadata. Cost: one read per manifest that is not pruned, in parallel.

        A raw file larger than ``source.split.target-size`` is divided into splits, each with a ``part`` of its rows.
        Raises OutOfRangeError if the snapshot expires meanwhile.
        """
        check_readable(self.store.schema)
        if self.snapshot is None:
            return Plan(None, [])
        with raise_if_expired(self.store, self.snapshot.id):
            return self._plan(self.snapshot)

    def _plan(self, snapshot: Snapshot) -> Plan:
        schema = self.store.schema
        partition = None
        if self.predicate is not None and schema.partition_keys:
            partition, _ = split_by(self.predicate, set(schema.partition_keys))
        found = live_entries(self.store, snapshot, partition=partition, with_stats=self.predicate is not None)
        live = self.visible(found.live)
        options = self.store.options
        disjoint = bool(schema.primary_keys) and options.value(DELETION_VECTORS_ENABLED)
        files, by_index = live, 0
        sliced = options.value(DATA_EVOLUTION_ENABLED)
        if self.predicate is not None:
            whole_rows, others = _by_whole_rows(live) if sliced else (live, [])
            chosen = prune_files(self.store, whole_rows, self.predicate, disjoint=disjoint)
            indexed = prune_by_index(self.store, chosen, self.predicate, disjoint=disjoint)
            files, by_index = [*indexed, *others], len(chosen) - len(indexed)
        packing = Packing.of(options)
        splits = plan_splits(
            snapshot.id,
            files,
            packing,
            schema.key_arrow if schema.primary_keys else None,
            stored_vectors(self.store, vector_entries(self.store, snapshot)),
            disjoint=disjoint,
            sliced=sliced,
        )
        if self.limit is not None and self.predicate is None:
            splits = _enough(splits, self.limit)
        size = max(packing.target_size, LEAST_PART)
        splits = [part for split in splits for part in cut_split(split, size)]
        return Plan(snapshot, splits, found.manifests, found.manifests_read, len(live), len(files), by_index)

    def visible(self, live: list[ManifestEntry]) -> list[ManifestEntry]:
        """Return the live entries whose rows a batch read shows."""
        shown = [e for e in live if e.bucket >= 0]  # rows of bucket -2 are not shown before a compaction routes them
        if self.read_optimized and self.store.schema.primary_keys:
            top = num_levels(self.store.options) - 1
            return [e for e in shown if e.file.level == top]
        return [e for e in shown if e.file.level > 0] if passes_over_level_0(self.store) else shown


def _by_whole_rows(entries: Sequence[ManifestEntry]) -> tuple[list[ManifestEntry], list[ManifestEntry]]:
    """Return the files whose rows no other file shares, and the others, which values cannot prune."""
    names = {group[0].file_name for group in group_by_row_range(e.file for e in entries) if len(group) == 1}
    return (
        [e for e in entries if e.file.file_name in names],
        [e for e in entries if e.file.file_name not in names],
    )


def _enough(splits: list[DataSplit], limit: int) -> list[DataSplit]:
    """Return the first splits that certainly have ``limit`` rows, or all splits."""
    chosen, certain = [], 0
    for split in splits:
        if certain >= limit:
            break
        chosen.append(split)
        certain += split.certain_row_count or 0
    return chosen
