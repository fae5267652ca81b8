"""Splits of live files: bin packing, and the need for a merge. Pure functions on metadata (behaviour 8.3, 8.4)."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import attrgetter, is_
from typing import TypeVar

import numpy as np
import pyarrow as pa

from paimon_core.deletion.vector_files import StoredVector
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.row_ranges import group_by_row_range
from paimon_core.lsm.sorted_run import files_by_age
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry, files_by_bucket
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.options.option import Options
from paimon_core.options.scan import SOURCE_SPLIT_OPEN_FILE_COST, SOURCE_SPLIT_TARGET_SIZE
from paimon_core.scan.split import DataSplit, part_size

T = TypeVar("T")

LEAST_PART = 64 << 10
"""The smallest part of a file in bytes, regardless of the target size: each part opens the file again."""

_LEVEL_OF, _DELETES_OF, _SIZE_OF = attrgetter("level"), attrgetter("delete_row_count"), attrgetter("file_size")
_KEY_STATS_OF, _VALUE_STATS_OF = attrgetter("key_stats"), attrgetter("value_stats")
_MANY_FILES = 50  # files of a bucket from which one numpy pass over their sizes is faster


@dataclass(frozen=True, slots=True)
class Packing:
    """Sizes for bin packing, in bytes (``source.split.target-size``, ``source.split.open-file-cost``)."""

    target_size: int = 128 << 20
    open_cost: int = 4 << 20

    @staticmethod
    def of(options: Options) -> "Packing":
        """Return the sizes that a table's options define."""
        return Packing(options.value(SOURCE_SPLIT_TARGET_SIZE), options.value(SOURCE_SPLIT_OPEN_FILE_COST))


def pack(items: Sequence[T], weight: Callable[[T], int], packing: Packing) -> list[list[T]]:
    """Pack items into bins in order; a bin ends before the item that would make it exceed the target size."""
    bins: list[list[T]] = []
    current: list[T] = []
    filled = 0
    for item in items:
        size = max(weight(item), packing.open_cost)
        if current and filled + size > packing.target_size:
            bins.append(current)
            current, filled = [], 0
        current.append(item)
        filled += size
    return [*bins, current] if current else bins


def _pack_files(files: Sequence[DataFileMeta], packing: Packing) -> list[list[DataFileMeta]]:
    """Pack files as `pack` does. Cost: one search for each bin of a large bucket."""
    if len(files) < _MANY_FILES:
        return pack(files, lambda file: file.file_size, packing)
    sizes = np.fromiter(map(_SIZE_OF, files), np.int64, len(files))
    filled = np.cumsum(np.maximum(sizes, packing.open_cost))
    bins, start = [], 0
    while start < len(files):
        before = int(filled[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(filled, before + packing.target_size, "right")))
        bins.append(list(files[start:end]))
        start = end
    return bins


def plan_splits(
    snapshot_id: int,
    entries: Iterable[ManifestEntry],
    packing: Packing,
    key_schema: pa.Schema | None,
    vectors: Mapping[str, StoredVector] | None = None,
    disjoint: bool = False,
    sliced: bool = False,
) -> list[DataSplit]:
    """Return the splits of live entries, in the order in which buckets appear in the entries.

    Args:
        snapshot_id: id of the snapshot.
        entries: live entries of the snapshot.
        packing: sizes in bytes.
        key_schema: columns of the trimmed primary key; `None`: an append table.
        vectors: locations of deletion vectors by data file; `None`: no deletion vectors.
        disjoint: deletion vectors leave at most one row of each key above level 0.
        sliced: several files may hold columns of the same rows (data evolution).
    """
    located = vectors or {}
    splits = []
    for bucket, files in files_by_bucket(entries).items():
        if sliced:
            planned = sliced_bins(files, packing)
        elif key_schema is None:
            planned = append_bins(files, packing)
        else:
            planned = keyed_bins(files, packing, key_schema, disjoint=disjoint)
        for group, raw in planned:
            stored = tuple(located[f.file_name] for f in group if f.file_name in located) if located else ()
            splits.append(DataSplit(snapshot_id, *bucket, _without_stats(group), raw, stored))
    return splits


def cut_file(file: DataFileMeta, size: int, part: range | None = None) -> list[range | None]:
    """Return ranges of row positions that cut a file, or ``part`` of it, into parts of at most about ``size`` bytes.

    The parts have about equal sizes, are in order, and cover every row once. Returns ``[part]`` if the file is small or
    is not a Parquet file: readers of other formats cannot skip the rest of a file.
    """
    rows = range(file.row_count) if part is None else part
    parts = min(-(-part_size(file, part) // max(1, size)), len(rows))
    if parts < 2 or not file.file_name.endswith(".parquet"):
        return [part]
    bounds = [rows.start + len(rows) * n // parts for n in range(parts + 1)]
    return [range(start, end) for start, end in itertools.pairwise(bounds)]


def cut_split(split: DataSplit, size: int) -> list[DataSplit]:
    """Cut a split of one raw file into parts of at most about ``size`` bytes, in order; other splits stay unchanged."""
    if not split.raw_convertible or len(split.files) != 1:
        return [split]
    parts = cut_file(split.files[0], size, split.part)
    return [split] if len(parts) == 1 else [replace(split, part=part) for part in parts]


def append_bins(files: Sequence[DataFileMeta], packing: Packing) -> list[tuple[list[DataFileMeta], bool]]:
    """Pack the files of an append bucket in the order of sequence numbers, as (files, True): all are raw."""
    ordered = sorted(files, key=lambda f: f.min_sequence_number)
    return [(group, True) for group in _pack_files(ordered, packing)]


def sliced_bins(files: Sequence[DataFileMeta], packing: Packing) -> list[tuple[list[DataFileMeta], bool]]:
    """Pack row ranges, in the order of row ids, as (files, raw?); raw if no two of the files share rows."""
    groups = pack(group_by_row_range(files), lambda group: sum(f.file_size for f in group), packing)
    return [([f for group in bins for f in group], all(len(group) == 1 for group in bins)) for bins in groups]


def keyed_bins(
    files: Sequence[DataFileMeta], packing: Packing, key_schema: pa.Schema, *, disjoint: bool = False
) -> list[tuple[list[DataFileMeta], bool]]:
    """Pack the files of a primary-key bucket as (files, raw?).

    Files without deletes that store each key once are packed individually: files of one level above 0, or of all levels
    above 0 if ``disjoint``. Otherwise whole sections are packed, the oldest file of a group first, and only a group of
    one file without deletes is raw. A file with an unknown number of deletes counts as a file with deletes.
    REQUIRES: files of level 0 are in the order of their commits, as manifests list them.
    """
    levels = set(map(_LEVEL_OF, files))
    if 0 not in levels and (disjoint or len(levels) == 1) and set(map(_DELETES_OF, files)) == {0}:
        return [(group, True) for group in _pack_files(files, packing)]
    groups = pack(sections(files, key_schema), lambda section: sum(run.size for run in section), packing)
    flat = [files_by_age(run for section in group for run in section) for group in groups]
    return [(group, len(group) == 1 and not group[0].may_delete) for group in flat]


def _without_stats(files: Sequence[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    """Return the files without statistics, which readers do not use. They keep their indexes: readers use them."""
    if all(map(is_, map(_KEY_STATS_OF, files), repeat(EMPTY_STATS))) and all(
        map(is_, map(_VALUE_STATS_OF, files), repeat(EMPTY_STATS))
    ):
        return tuple(files)  # planned without a filter, so their statistics were never decoded
    return tuple(replace(file, key_stats=EMPTY_STATS, value_stats=EMPTY_STATS) for file in files)
