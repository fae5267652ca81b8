"""The measures of each bucket, as pure functions of the file columns."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paimon_core.inspect.advice.live_files import Files
from paimon_core.inspect.advice.row_ranges import row_ranges, saved_files
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.types.selection import Mask, Positions

_FULL_PICK = 3  # a full compaction picks an ordered bucket with at least this number of files


@dataclass(frozen=True, slots=True)
class Buckets:
    """One position for each bucket: the sums and counts of its files.

    ``total``: number of buckets in the partition at the time of the write; ``runs``: sorted runs (each file of level 0,
    each higher level with files); ``overlap``: the largest number of files that share a key, which a read merges there,
    or of data files in a row range; ``merged_size``: bytes of the files that a read must merge; ``newer_size``: bytes
    below the highest level; ``largest_run``: rows of the largest sorted run; ``saved_files``: number of files that a
    full compaction of small files would save; ``last_full``: creation time of the newest file of the highest level;
    ``oldest``: creation time of the oldest file. Times are local (ms); -1: no such file.
    """

    files: Positions
    rows: Positions
    size: Positions
    total: Positions
    level_0_files: Positions
    level_0_rows: Positions
    runs: Positions
    overlap: Positions
    merged_size: Positions
    newer_size: Positions
    newer_deletes: Positions
    largest_run: Positions
    deleted: Positions
    marked_files: Positions
    marked_size: Positions
    small_files: Positions
    saved_files: Positions
    index_lacking: Positions
    compacted_files: Positions
    last_full: Positions
    oldest: Positions

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True, slots=True)
class Kind:
    """The table properties on which the measures depend.

    ``levels``: the smallest number of levels of a bucket; ``disjoint``: above level 0, deletion vectors leave each key
    once; ``hidden``: reads skip level 0; ``ordered``: compaction keeps the order of files; ``target``: bytes of a full
    file of a table with a primary key; ``by_row_range``: files hold columns of row ranges, which reads join.
    """

    keyed: bool
    levels: int
    disjoint: bool
    hidden: bool
    ordered: bool
    target: int
    policy: AppendCompactionPolicy
    by_row_range: bool


def measured(files: Files, kind: Kind) -> Buckets:
    """Return the measures of each bucket."""
    count, group = len(files.buckets), files.bucket
    level_0 = files.level == 0

    def total(values: Positions | Mask, mask: Mask | None = None) -> Positions:
        """Return the exact sum of the values for each bucket; ``mask``: the files to count, `None`: all."""
        sums = np.zeros(count, np.int64)
        rows = slice(None) if mask is None else mask
        np.add.at(sums, group[rows], values[rows].astype(np.int64))
        return sums

    deepest = np.zeros(count, np.int64)
    np.maximum.at(deepest, group, files.level)
    top = np.maximum(max(kind.levels, 2) - 1, deepest)
    newer = files.level < top[group]
    known_deletes = np.maximum(files.deletes, 0)
    marked = files.deleted > 0
    overlap, merged = _merging(files, kind, count) if kind.keyed else (np.minimum(total(group >= 0), 1), group < 0)
    small, saved = _small_files(files, kind, count)
    if kind.by_row_range:
        ranges = row_ranges(files)
        overlap = _most(ranges.bucket, ranges.files, count, least=0)
        saved = saved_files(ranges, kind.policy, count)
    ones = np.ones(len(files), np.int64)
    return Buckets(
        files=total(ones),
        rows=total(files.rows),
        size=total(files.size),
        total=_most(group, files.total, count),
        level_0_files=total(ones, level_0),
        level_0_rows=total(files.rows, level_0),
        runs=_runs(files, count) if kind.keyed else np.minimum(total(ones), 1),
        overlap=overlap,
        merged_size=total(files.size, merged),
        newer_size=total(files.size, newer),
        newer_deletes=total(known_deletes, newer),
        largest_run=_largest_run(files, count) if kind.keyed else total(files.rows),
        deleted=total(files.deleted),
        marked_files=total(ones, marked),
        marked_size=total(files.size, marked),
        small_files=total(ones, small),
        saved_files=saved,
        index_lacking=total(ones, files.lacks_index),
        compacted_files=total(ones, files.compacted),
        last_full=_most(group[~newer], files.created[~newer], count),
        oldest=-_most(group, -files.created, count, least=-(1 << 62)) if len(files) else np.zeros(0, np.int64),
    )


def _most(group: Positions, values: Positions, count: int, least: int = -1) -> Positions:
    largest = np.full(count, least, np.int64)
    np.maximum.at(largest, group, values)
    return largest


def _level_keys(files: Files) -> Positions:
    """Return a number for each file above level 0, equal exactly for files of one bucket and level."""
    high = files.level > 0
    keys: Positions = (files.bucket[high] << 16) + files.level[high]
    return keys


def _runs(files: Files, count: int) -> Positions:
    levels = np.unique(_level_keys(files)) >> 16
    runs: Positions = np.bincount(files.bucket[files.level == 0], minlength=count) + np.bincount(
        levels, minlength=count
    )
    return runs.astype(np.int64)


def _largest_run(files: Files, count: int) -> Positions:
    """Return the rows of the largest sorted run of each bucket; a run holds each key once."""
    low = files.level == 0
    rows_ = _most(files.bucket[low], files.rows[low], count, least=0)
    keys, position = np.unique(_level_keys(files), return_inverse=True)
    rows = np.zeros(len(keys), np.int64)
    np.add.at(rows, position.reshape(-1), files.rows[~low])
    np.maximum.at(rows_, keys >> 16, rows)
    return rows_


def _merging(files: Files, kind: Kind, count: int) -> tuple[Positions, Mask]:
    """Return the largest number of files that share a key in each bucket, and a mask of the files a read must merge.

    A read must merge files with connected key ranges and files with deletes. Adjacent small files are read, and
    therefore merged, together.
    """
    visible = (files.level > 0) if kind.hidden else np.ones(len(files), np.bool_)
    clean = _clean_buckets(files, kind, count)[files.bucket]
    candidates = np.flatnonzero(visible & ~clean)
    overlap = np.zeros(count, np.int64)
    np.maximum.at(overlap, files.bucket[visible & clean], 1)
    merged = np.zeros(len(files), np.bool_)
    if not len(candidates):
        return overlap, merged
    group, low, high = files.bucket[candidates], files.low[candidates], files.high[candidates]
    span = int(max(low.max(), high.max())) + 1
    low, high = group * span + low, group * span + high
    np.maximum.at(overlap, group, _depths(low, high))
    order = np.lexsort((high, low))
    reach = np.maximum.accumulate(high[order])
    section = np.empty(len(candidates), np.int64)
    section[order] = np.cumsum(np.r_[0, low[order][1:] > reach[:-1]])
    shared = np.bincount(section)[section] > 1
    single = np.bincount(group, minlength=count)[group] == 1
    adjacent = ~single & (files.size[candidates] < kind.target // 2)
    merged[candidates] = shared | adjacent | (files.deletes[candidates] != 0)
    return overlap, merged


def _clean_buckets(files: Files, kind: Kind, count: int) -> Mask:
    """Return a mask of the buckets that hold each key once, above level 0, without deletes."""
    dirty = np.zeros(count, np.bool_)
    visible = (files.level > 0) if kind.hidden else np.ones(len(files), np.bool_)
    dirty[files.bucket[visible & ((files.level == 0) | (files.deletes != 0))]] = True
    levels = np.bincount(np.unique(_level_keys(files)) >> 16, minlength=count)
    return ~dirty & ((levels <= 1) | kind.disjoint)


def _depths(low: Positions, high: Positions) -> Positions:
    """Return for each range the number of ranges, including itself, that contain its smallest value."""
    order = np.argsort(low, kind="stable")
    started = np.searchsorted(low[order], low, side="right")
    ended = np.searchsorted(np.sort(high), low, side="left")
    depths: Positions = started - ended
    return depths


def _small_files(files: Files, kind: Kind, count: int) -> tuple[Mask, Positions]:
    """Return a mask of the small files, and the number of files that a full compaction would save in each bucket."""
    policy, group = kind.policy, files.bucket
    none = np.zeros(len(files), np.bool_), np.zeros(count, np.int64)
    if kind.keyed or not len(files):
        return none
    small = (files.size < policy.small_size) & (files.rows < policy.target_rows)
    if not kind.ordered:
        picked = small
    else:
        order = np.lexsort((files.sequence, group))
        rank = np.empty(len(files), np.int64)
        rank[order] = np.arange(len(files))
        first = np.full(count, len(files), np.int64)
        np.minimum.at(first, group[small], rank[small])
        picked = rank >= first[group]
    number = np.bincount(group[picked], minlength=count)
    size = np.zeros(count, np.int64)
    np.add.at(size, group[picked], files.size[picked])
    saved = np.maximum(number - -(-size // policy.target_size), 0)
    if kind.ordered:
        few = np.bincount(group[small], minlength=count)
        saved[(number < _FULL_PICK) | (2 * few <= number)] = 0
    return small, saved.astype(np.int64)


def bucket_table(buckets: Buckets, partitions: pa.Array, numbers: Positions) -> pa.Table:
    """Return a table with a row for each bucket; times become timestamps without a zone, -1 becomes null."""

    def moment(values: Positions) -> pa.Array:
        return pa.array(values, pa.timestamp("ms"), mask=values < 0)

    return pa.table(
        {
            "partition": partitions,
            "bucket": pa.array(numbers, pa.int32()),
            "files": buckets.files,
            "rows": buckets.rows,
            "bytes": buckets.size,
            "level_0_files": buckets.level_0_files,
            "sorted_runs": buckets.runs,
            "merged_runs": buckets.overlap,
            "merged_bytes": buckets.merged_size,
            "delete_rows": buckets.newer_deletes,
            "vector_rows": buckets.deleted,
            "small_files": buckets.small_files,
            "last_full_compaction": moment(buckets.last_full),
        }
    )
