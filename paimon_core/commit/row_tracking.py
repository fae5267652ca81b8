"""Row ids: given to rows when the snapshot that adds them is made, theirs for good (format 11)."""

from collections.abc import Iterable
from dataclasses import replace

from paimon_core.commit.changes import Changes
from paimon_core.lsm.row_ranges import is_blob
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.file import ROW_TRACKING_ENABLED, ROW_TRACKING_PARTITION_GROUP_ON_COMMIT
from paimon_core.options.option import Options
from paimon_core.snapshot.snapshot import CommitKind

__all__ = ["with_row_ids"]


def with_row_ids(
    options: Options, changes: Changes, snapshot_id: int, next_row_id: int | None
) -> tuple[Changes, int | None]:
    """The changes with ids for the rows they add, counted on from ``next_row_id``, and the number to go on from.

    New rows also get the number of their snapshot. Files of blobs have those of the file they come after, each column
    from its first row on. Compaction moves rows, which keep what they have. Nothing changes for a table that does not
    track its rows.
    """
    if not options.value(ROW_TRACKING_ENABLED) or changes.kind == CommitKind.COMPACT:
        return changes, next_row_id
    ids = start = next_row_id or 0
    blobs: dict[tuple[str, ...] | None, int] = {}  # where the next file of a column goes on
    entries: list[ManifestEntry] = []
    grouped = options.value(ROW_TRACKING_PARTITION_GROUP_ON_COMMIT)
    for entry in _grouped(changes.entries) if grouped else changes.entries:
        if entry.kind == ADD:
            file = _numbered(entry.file, snapshot_id)
            if file.first_row_id is None and file.file_source == FileSource.APPEND:
                if is_blob(file):
                    first = blobs.get(file.write_cols, start)
                    blobs[file.write_cols] = first + file.row_count
                else:
                    first, start, blobs = ids, ids, {}
                    ids += file.row_count
                file = replace(file, first_row_id=first)
            entry = replace(entry, file=file)
        entries.append(entry)
    return replace(changes, entries=tuple(entries)), ids


def _grouped(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Those of one partition together, in the order the partitions come."""
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.partition, []).append(entry)
    return [entry for group in groups.values() for entry in group]


def _numbered(file: DataFileMeta, snapshot_id: int) -> DataFileMeta:
    """Rows that do not say when they were changed were so now: all of them, or, with a lower bound, some."""
    if file.min_sequence_number == 0:
        return replace(file, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id)
    return replace(file, max_sequence_number=snapshot_id) if file.max_sequence_number == 0 else file
