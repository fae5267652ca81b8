"""Live files to splits: bin packing, and which splits need a merge. Pure functions on metadata (behaviour 8.3, 8.4)."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from paimon_core.deletion.files import StoredVector
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
"""Bytes below which a part of a file is not cut further, whatever was asked for: each part opens the file again."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Sizes that steer bin packing, in bytes (``source.split.target-size``, ``source.split.open-file-cost``)."""

    target_size: int = 128 << 20
    open_cost: int = 4 << 20

    @staticmethod
    def of(options: Options) -> "Packing":
        """Return the sizes that the options of a table give."""
        return Packing(options.value(SOURCE_SPLIT_TARGET_SIZE), options.value(SOURCE_SPLIT_OPEN_FILE_COST))


def pack(items: Sequence[T], weight: Callable[[T], int], packing: Packing) -> list[list[T]]:
    """Items in order into bins: a bin is closed when the next item would take it over the target size."""
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


def plan_splits(
    snapshot_id: int,
    entries: Iterable[ManifestEntry],
    packing: Packing,
    key_schema: pa.Schema | None,
    vectors: Mapping[str, StoredVector] | None = None,
    disjoint: bool = False,
    sliced: bool = False,
) -> list[DataSplit]:
    """Splits of live entries, bucket by bucket in their order; ``key_schema`` is None for append tables.

    ``vectors``: where deletion vectors lie, by data file; ``disjoint``: they leave each key once above level 0;
    ``sliced``: files may hold columns of the same rows.
    """
    marked = vectors or {}
    splits = []
    for bucket, files in files_by_bucket(entries).items():
        if sliced:
            planned = sliced_bins(files, packing)
        elif key_schema is None:
            planned = append_bins(files, packing)
        else:
            planned = keyed_bins(files, packing, key_schema, disjoint=disjoint)
        for group, raw in planned:
            stored = tuple(marked[f.file_name] for f in group if f.file_name in marked)
            splits.append(DataSplit(snapshot_id, *bucket, tuple(map(_slim, group)), raw, stored))
    return splits


def cut_file(file: DataFileMeta, size: int, part: range | None = None) -> list[range | None]:
    """Return ranges of row positions that cut a file, or ``part`` of it, into parts of at most about ``size`` bytes.

    The parts are alike, in order, and cover every row once. ``[part]`` where there is nothing to cut, and for formats
    of which a reader cannot leave out the rest: only Parquet tells where its row groups are.
    """
    rows = range(file.row_count) if part is None else part
    parts = min(-(-part_size(file, part) // max(1, size)), len(rows))
    if parts < 2 or not file.file_name.endswith(".parquet"):
        return [part]
    bounds = [rows.start + len(rows) * n // parts for n in range(parts + 1)]
    return [range(start, end) for start, end in itertools.pairwise(bounds)]


def cut_split(split: DataSplit, size: int) -> list[DataSplit]:
    """Return a split of one raw file as parts of at most about ``size`` bytes, in order; any other split as it is."""
    if not split.raw_convertible or len(split.files) != 1:
        return [split]
    parts = cut_file(split.files[0], size, split.part)
    return [split] if len(parts) == 1 else [replace(split, part=part) for part in parts]


def append_bins(files: Sequence[DataFileMeta], packing: Packing) -> list[tuple[list[DataFileMeta], bool]]:
    """Files of an append bucket in sequence order, packed; always raw."""
    ordered = sorted(files, key=lambda f: f.min_sequence_number)
    return [(group, True) for group in pack(ordered, _file_size, packing)]


def sliced_bins(files: Sequence[DataFileMeta], packing: Packing) -> list[tuple[list[DataFileMeta], bool]]:
    """Files in order of row ids, those with columns of the same rows together; raw where each has rows of its own."""
    groups = pack(group_by_row_range(files), lambda group: sum(f.file_size for f in group), packing)
    return [([f for group in bins for f in group], all(len(group) == 1 for group in bins)) for bins in groups]


def keyed_bins(
    files: Sequence[DataFileMeta], packing: Packing, key_schema: pa.Schema, *, disjoint: bool = False
) -> list[tuple[list[DataFileMeta], bool]]:
    """Files of a primary-key bucket as (files, raw?) groups.

    Files in which no key lies twice (of one level above 0; of any when ``disjoint``) and that hold no deletes are
    packed one by one; otherwise whole sections are, the oldest file of a group first, and only a group of one file
    without deletes is raw. A file that does not say how many deletes it holds is taken to hold some.
    REQUIRES: files of level 0 come in the order of their commits, as manifests name them.
    """
    levels = {f.level for f in files}
    if 0 not in levels and (disjoint or len(levels) == 1) and not any(map(may_delete, files)):
        return [(group, True) for group in pack(files, _file_size, packing)]
    groups = pack(sections(files, key_schema), lambda section: sum(run.size for run in section), packing)
    flat = [files_by_age(run for section in group for run in section) for group in groups]
    return [(group, len(group) == 1 and not may_delete(group[0])) for group in flat]


def may_delete(file: DataFileMeta) -> bool:
    """Whether rows of the file may stand for deletes of their keys."""
    return file.delete_row_count is None or file.delete_row_count > 0


def _file_size(file: DataFileMeta) -> int:
    return file.file_size


def _slim(file: DataFileMeta) -> DataFileMeta:
    """The file without its statistics, which have done their work when a split is made; its indexes tell rows, too."""
    if file.value_stats is EMPTY_STATS and file.key_stats is EMPTY_STATS:
        return file  # planned without a filter, so its statistics were never decoded
    return replace(file, key_stats=EMPTY_STATS, value_stats=EMPTY_STATS)
