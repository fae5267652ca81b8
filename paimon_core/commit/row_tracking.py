"""Row ids: a commit assigns them to the rows it adds, and rows keep them for life (format 11)."""

from collections.abc import Iterable
from dataclasses import replace

from paimon_core.commit.changes import Changes
from paimon_core.lsm.row_ranges import is_blob
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.file import ROW_TRACKING_ENABLED, ROW_TRACKING_PARTITION_GROUP_ON_COMMIT
from paimon_core.options.option import Options
from paimon_core.snapshot.snapshot import CommitKind


def with_row_ids(
    options: Options, changes: Changes, snapshot_id: int, next_row_id: int | None
) -> tuple[Changes, int | None]:
    """Return the changes with ids for the rows they add, and the id for the next new row.

    New rows get the snapshot id as their sequence number. Blob files share the row ids of the data file before them,
    each blob column from the first row of that file on. Rows that compaction moves, or that come from another table,
    keep their ids. If the table does not track rows, the changes are returned unchanged.

    Args:
        options: the options of the table.
        changes: the changes of the commit.
        snapshot_id: the id of the new snapshot.
        next_row_id: the first id to assign; ``None``: 0.
    """
    if not options.value(ROW_TRACKING_ENABLED) or changes.kind == CommitKind.COMPACT:
        return changes, next_row_id
    if changes.next_row_id is not None:
        return changes, changes.next_row_id
    ids = start = next_row_id or 0
    blobs: dict[tuple[str, ...] | None, int] = {}  # first row id of the next blob file, by column
    entries: list[ManifestEntry] = []
    grouped = options.value(ROW_TRACKING_PARTITION_GROUP_ON_COMMIT)
    for entry in _by_partition(changes.entries) if grouped else changes.entries:
        if entry.kind == ADD:
            file = _with_sequence(entry.file, snapshot_id)
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


def _by_partition(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries grouped by partition, in the order of the partitions' first entries."""
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.partition, []).append(entry)
    return [entry for group in groups.values() for entry in group]


def _with_sequence(file: DataFileMeta, snapshot_id: int) -> DataFileMeta:
    """Return the file with the snapshot id as sequence number of its new rows.

    A minimum of 0 means that all rows are new. A maximum of 0 with another minimum means that some are.
    """
    if file.min_sequence_number == 0:
        return replace(file, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id)
    return replace(file, max_sequence_number=snapshot_id) if file.max_sequence_number == 0 else file
