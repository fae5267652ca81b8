"""The measures of row ranges: tables whose columns may be in several files (``data-evolution.enabled``)."""

from dataclasses import dataclass

import numpy as np

from paimon_core.inspect.advice.live_files import Files
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.types.selection import Positions


@dataclass(frozen=True, slots=True)
class RowRanges:
    """One position for each row range, in the order of buckets and row ids.

    ``first``: id of the first row, -1: unknown; ``files``: number of its data files; ``size``: their bytes; ``blobs``:
    the kinds of its blob files.
    """

    bucket: Positions
    first: Positions
    rows: Positions
    files: Positions
    size: Positions
    blobs: tuple[frozenset[int], ...]

    def __len__(self) -> int:
        return len(self.bucket)


def row_ranges(files: Files) -> RowRanges:
    """Return the row ranges of files; a data file without row ids is a separate row range."""
    data, blobs = np.flatnonzero(files.blob == 0), np.flatnonzero(files.blob)
    single = np.where(files.first_row[data] < 0, data, -1)
    keys = np.stack([files.bucket[data], files.first_row[data], single])
    (bucket, first, _), position = np.unique(keys, axis=1, return_inverse=True)
    position = position.reshape(-1)
    count = len(bucket)
    size, rows = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(size, position, files.size[data])
    np.maximum.at(rows, position, files.rows[data])
    kinds: list[set[int]] = [set() for _ in range(count)]
    span = int(files.first_row.max(initial=0)) + 2
    holders = np.searchsorted(bucket * span + first, files.bucket[blobs] * span + files.first_row[blobs], "right") - 1
    for holder, kind in zip(holders.tolist(), files.blob[blobs].tolist(), strict=True):
        kinds[max(holder, 0)].add(kind)
    number = np.bincount(position, minlength=count).astype(np.int64)
    return RowRanges(bucket, first, rows, number, size, tuple(map(frozenset, kinds)))


def saved_files(ranges: RowRanges, policy: AppendCompactionPolicy, count: int) -> Positions:
    """Return the number of files that a full compaction would save in each of ``count`` buckets.

    The compaction joins consecutive row ranges with the same kinds of blobs, as long as they fit into one file.
    """
    saved = np.zeros(count, np.int64)
    before: tuple[int, int, frozenset[int]] | None = None  # bucket, end and blobs of the last range
    files = size = rows = 0
    columns = (ranges.bucket, ranges.first, ranges.rows, ranges.files, ranges.size)
    for at, first, length, number, weight, blobs in zip(*(c.tolist() for c in columns), ranges.blobs, strict=True):
        if first < 0:
            continue
        full = size + weight > policy.target_size or rows + length > policy.target_rows
        if before != (at, first, blobs) or full:
            _save(saved, before, files, size, policy.target_size)
            files = size = rows = 0
        files, size, rows = files + number, size + weight, rows + length
        before = at, first + length, blobs
    _save(saved, before, files, size, policy.target_size)
    return saved


def _save(
    saved: Positions, before: tuple[int, int, frozenset[int]] | None, files: int, size: int, target_size: int
) -> None:
    if before is not None:
        saved[before[0]] += max(0, files - max(1, -(-size // target_size)))
