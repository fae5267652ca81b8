"""The levels of a table's buckets, and what must hold of them."""

from collections.abc import Sequence

from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import FileSource
from paimon_core.manifest.entry import ADD, ManifestEntry, files_by_bucket
from paimon_core.scan.entries import live_entries
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.table import Table


def levels_of(table: Table, **when) -> dict[BucketRef, Levels]:
    """The levels of every bucket; making them checks that no files above level 0 overlap."""
    snapshot = table.snapshot(**when)
    store = table.store
    found = files_by_bucket([] if snapshot is None else live_entries(store, snapshot).live)
    levels = num_levels(store.options)
    return {bucket.ref: Levels.of(files, store.schema.key_arrow, levels) for bucket, files in found.items()}


def only_levels(table: Table) -> Levels:
    """The levels of a table's one bucket."""
    (levels,) = levels_of(table).values()
    return levels


def shape(table: Table) -> list[tuple[int, int]]:
    """(level, rows) of the files of a table's one bucket, newest first."""
    return [(run.level, file.row_count) for run in only_levels(table).runs for file in run.files]


def check_levels(table: Table, most_runs: int | None = None) -> None:
    """Check the invariants of every bucket after any commit."""
    for levels in levels_of(table).values():
        for level, files in enumerate(levels.files):
            for file in files:
                assert file.level == level
                assert file.delete_row_count is not None
                assert file.min_sequence_number <= file.max_sequence_number
        if len(levels.files) > levels.max_level:
            assert [
                f.delete_row_count for f in levels.files[levels.max_level] if f.file_source == FileSource.COMPACT
            ] == [0 for f in levels.files[levels.max_level] if f.file_source == FileSource.COMPACT]
        if most_runs is not None:
            assert len(levels.runs) <= most_runs


def delta(table: Table, snapshot: Snapshot) -> Sequence[ManifestEntry]:
    """Return the manifest entries that a snapshot added."""
    manifests = table.store.manifests
    return [e for m in manifests.read_list(snapshot.delta_manifest_list) for e in manifests.read(m.file_name)]


def rows_rewritten(table: Table) -> int:
    """Rows that all compactions together wrote; what only changed its level does not count."""
    total = 0
    for snapshot in table.snapshots():
        if snapshot.commit_kind == CommitKind.COMPACT:
            entries = delta(table, snapshot)
            gone = {e.file.file_name for e in entries if e.kind != ADD}
            total += sum(e.file.row_count for e in entries if e.kind == ADD and e.file.file_name not in gone)
    return total
