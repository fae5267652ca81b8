"""Assign new row ids to partitions with overlapping ids, so that each has a separate range (behaviour 12.2)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paimon_core.commit.changes import Changes, Corrections
from paimon_core.commit.corrected import publish_corrected
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry, merge_entries
from paimon_core.operations.jobs.task import partition_choice
from paimon_core.options.file import DATA_EVOLUTION_ENABLED, ROW_TRACKING_ENABLED
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.entries import PartitionFilter, manifest_metas
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.system_fields import ROW_ID


def reassign_row_ids(
    store: FileStore,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
) -> Snapshot | None:
    """Assign new row ids to partitions whose id ranges interleave, in one COMPACT; `None` if no ranges do.

    The new ids begin at ``nextRowId``; partitions and rows keep their order. Only metadata is written. Writers that
    read the old ids conflict and read again. Memory: all live entries.

    Args:
        store: a table with data evolution.
        partitions: the partitions to consider, each as {column: value}; `None`: all.
        filter: a bound predicate on partition columns; `None`: all partitions.

    Raises InvalidInputError for a table without data evolution, UnsupportedError (nothing changed) for global indexes
    and for files that store ids with their rows.
    """
    for option in (ROW_TRACKING_ENABLED, DATA_EVOLUTION_ENABLED):
        if not store.options.value(option):
            raise InvalidInputError(f"{store.root} has no row ids to reassign: they need '{option.key}' = 'true'")
    partition_filter = partition_choice(store, partitions, filter)

    def reassigned(base: Snapshot) -> Changes | None:
        metas = manifest_metas(store, base)
        entries = [e for m in metas for e in store.manifests.read(m.file_name, m.file_size, lossless=True)]
        live = [entry for entry in merge_entries(entries) if entry.kind == ADD]
        due = _interleaved(live)
        if partition_filter is not None:
            due = [
                partition
                for partition in due
                if partition in PartitionFilter(partition_filter, store.schema.partition_arrow).matching(due)
            ]
        if not due:
            return None
        _check(store, base, [entry.file for entry in live if entry.partition in due])
        renumbered, following = _renumbered(live, due, base.next_row_id or 0)
        corrections = Corrections(tuple(renumbered), next_row_id=following)
        return Changes(CommitKind.COMPACT, (), built_on_base=True, corrections=corrections)

    return publish_corrected(store, reassigned)


def _interleaved(live: Iterable[ManifestEntry]) -> list[bytes]:
    """Return the partitions whose id range overlaps another partition's range, sorted by first id."""
    ranges: dict[bytes, tuple[int, int]] = {}
    for entry in live:
        first = entry.file.first_row_id
        if first is not None:
            low, high = ranges.get(entry.partition, (first, first))
            ranges[entry.partition] = min(low, first), max(high, first + entry.file.row_count - 1)
    interleaved: set[bytes] = set()
    widest: tuple[int, bytes] | None = None
    for (low, high), partition in sorted((ends, partition) for partition, ends in ranges.items()):
        if widest is not None and low <= widest[0]:
            interleaved |= {partition, widest[1]}
        if widest is None or high > widest[0]:
            widest = high, partition
    return sorted(interleaved, key=ranges.__getitem__)


def _check(store: FileStore, base: Snapshot, files: Iterable[DataFileMeta]) -> None:
    indexes = [] if base.index_manifest is None else store.manifests.read_index(base.index_manifest)
    if any(entry.global_index is not None for entry in indexes):
        raise UnsupportedError(f"{store.root} has global indexes, which refer to row ids: drop them first")
    for file in files:
        if file.first_row_id is None or ROW_ID.name in (file.write_cols or ()):
            raise UnsupportedError(f"the rows of {file.file_name} in {store.root} store their ids, which cannot change")


def _renumbered(live: Sequence[ManifestEntry], due: Sequence[bytes], following: int) -> tuple[list[ManifestEntry], int]:
    """Return all entries, with new ids from ``following`` on for the partitions ``due``, and the next free id."""
    ranges: dict[bytes, set[tuple[int, int]]] = defaultdict(set)  # first id and number of rows
    for entry in live:
        if entry.partition in due:
            ranges[entry.partition].add((_first(entry.file), entry.file.row_count))
    moved: dict[tuple[bytes, int], int] = {}  # new first id by partition and old first id
    for partition in due:
        start = end = 0  # the current row range, whose columns several files may share
        for first, rows in sorted(ranges[partition]):
            if first >= end:
                following += end - start
                start = end = first
            moved[partition, first] = following + first - start
            end = max(end, first + rows)
        following += end - start
    renumbered = [
        replace(e, file=replace(e.file, first_row_id=moved[e.partition, _first(e.file)])) if e.partition in due else e
        for e in live
    ]
    return renumbered, following


def _first(file: DataFileMeta) -> int:
    assert file.first_row_id is not None  # checked
    return file.first_row_id
