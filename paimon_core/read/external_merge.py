"""External merge: merge many sorted runs over local disk, which bounds the memory of open files."""

import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from paimon_core.fileio.parallel import timed
from paimon_core.memory import MemoryShares
from paimon_core.merge.engine import MergeFunction
from paimon_core.merge.kway import MergeOrder, merge_runs
from paimon_core.merge.window import Window
from paimon_core.options.lsm import SPILL_COMPRESSION, SPILL_COMPRESSION_ZSTD_LEVEL
from paimon_core.options.option import Options
from paimon_core.types.selection import Positions

Run: TypeAlias = Callable[[int], Iterator[pa.RecordBatch]]
"""A function that opens a run; its argument is the number of runs read at the same time."""
Waited: TypeAlias = Callable[[float], None] | None
"""A function that receives the seconds that a merge waits for rows; `None`: not measured."""

AnyRun = TypeVar("AnyRun", bound=Run)

_MAX_BATCH_BYTES, _MIN_BATCH_BYTES = 1 << 20, 1 << 16
_LONG_ROWS = 2  # times the share of batches: the most bytes of one row of each run, and the same for the next rows
_COLUMN_BYTES = 1 << 10  # of the objects of a column in each batch, even of one row


def multi_pass_merge(
    runs: Sequence[Run],
    order: MergeOrder,
    fold: MergeFunction,
    max_open: int,
    options: Options,
    waited: Waited = None,
) -> Iterator[pa.Table]:
    """Merge the runs with at most ``max_open`` of them open at a time.

    REQUIRES: the fold is associative over adjacent runs. Intermediate runs are stored in a temporary directory, which
    is deleted when the iterator ends.

    Args:
        runs: functions that open the runs, the oldest run first.
        order: the columns to merge by.
        fold: the merge function.
        max_open: number of runs, at least two.
        options: table options, which define the compression of spilled rows.
        waited: as in `merge_runs`.
    """
    with tempfile.TemporaryDirectory(prefix="paimon-merge-") as name:
        directory, codec, number = Path(name), spill_codec(options), 0
        shares, current = MemoryShares.of(options), list(runs)
        while len(current) > max_open:
            merged: list[Run] = []
            for group in _groups(current, max_open):
                if len(group) == 1:
                    merged.append(group[0])
                    continue
                number += 1
                spilled = SpilledRun(directory / f"{number}.arrow", batch_bytes(shares, max_open))
                spilled.put(_merged(group, order, fold, shares, waited), codec)
                merged.append(spilled)
            current = merged
        yield from _merged(current, order, fold, shares, waited)


def merge_from_disk(
    runs: Sequence[Run],
    order: MergeOrder,
    fold: MergeFunction,
    options: Options,
    waited: Waited = None,
    group_fold: MergeFunction | None = None,
) -> Iterator[pa.Table]:
    """Copy the runs (the oldest first) to local disk one by one, and merge the copies.

    An open copy needs the memory of one small batch. If rows are long and the batches of all copies would exceed
    their share, groups of copies become one run each first.

    Args:
        runs: functions that open the runs.
        order: the columns to merge by.
        fold: the merge function.
        options: table options, which define the compression of spilled rows, and the share of batches.
        waited: as in `merge_runs`.
        group_fold: the merge function of groups of adjacent runs, which keeps all columns. `None`: a group is sorted,
            and not merged.
    """
    with tempfile.TemporaryDirectory(prefix="paimon-merge-") as name:
        codec, shares = spill_codec(options), MemoryShares.of(options)
        size = batch_bytes(shares, len(runs))
        copies: list[SpilledRun] = []
        for number, run in enumerate(runs):
            copy = SpilledRun(Path(name) / f"{number}.arrow", size)
            read = run(1) if waited is None else timed(run(1), waited)
            copy.put((pa.Table.from_batches([batch]) for batch in read if batch.num_rows), codec)
            copies.append(copy)
        limit = open_runs(shares, len(copies), max(copy.row_bytes for copy in copies))
        grouped = len(copies) > limit
        number = len(copies)
        while len(copies) > limit:
            joined = []
            for group in _groups(copies, limit):
                if len(group) == 1:
                    joined.append(group[0])
                    continue
                number += 1
                joined.append(SpilledRun(Path(name) / f"{number}.arrow", size))
                if group_fold is None:
                    _sort_into(joined[-1], group, order, codec, shares)
                else:
                    joined[-1].put(_merged(group, order, group_fold, shares, waited), codec)
            copies = joined
        opened, repeated = [copy(len(copies)) for copy in copies], grouped and group_fold is None
        yield from merge_runs(opened, order, fold, repeated=repeated, waited=waited, buffered=shares.batches)


def _sort_into(
    target: "SpilledRun", runs: Sequence[Run], order: MergeOrder, codec: pa.Codec | None, shares: MemoryShares
) -> None:
    """Write the rows of several runs into one run in merge order, unmerged; no batch splits a key."""
    keep = _KeepAll()
    for rows in merge_runs([run(len(runs)) for run in runs], order, keep, repeated=True, buffered=shares.batches):
        target.put((rows,), codec, keep.starts)


class _KeepAll:
    """A merge function that returns all rows in merge order, and notes where the keys of the last window start."""

    def __init__(self) -> None:
        self.starts: Positions = np.zeros(0, np.int64)

    def __call__(self, window: Window) -> pa.Table:
        self.starts = window.starts
        return window.take(np.arange(window.num_rows))


def batch_bytes(shares: MemoryShares, runs: int) -> int:
    """Return the size of the batches of spilled runs, if ``runs`` of them are read at the same time."""
    return max(_MIN_BATCH_BYTES, min(_MAX_BATCH_BYTES, shares.batches // runs))


def open_runs(shares: MemoryShares, most: int, row_bytes: int) -> int:
    """Return the number of spilled runs to merge at once: at least two, at most ``most``, fewer if rows are long.

    ``row_bytes``: the size of a row.
    """
    return max(2, min(most, _LONG_ROWS * shares.batches // max(1, row_bytes)))


def _merged(
    runs: Sequence[Run], order: MergeOrder, fold: MergeFunction, shares: MemoryShares, waited: Waited
) -> Iterator[pa.Table]:
    return merge_runs([run(len(runs)) for run in runs], order, fold, waited=waited, buffered=shares.batches)


def _groups(runs: Sequence[AnyRun], max_open: int) -> Iterator[Sequence[AnyRun]]:
    """Yield the smallest possible number of groups of adjacent runs, of about equal size."""
    count = -(-len(runs) // max_open)
    ends = [len(runs) * i // count for i in range(count + 1)]
    for start, end in itertools.pairwise(ends):
        yield runs[start:end]


class SpilledRun:
    """A run in a temporary file, in batches of about ``batch_bytes``. Rows can be appended; it is read once.

    A batch of thousands of columns is larger, because the objects of its columns take megabytes.
    """

    def __init__(self, path: Path, batch_bytes: int) -> None:
        self._path, self._batch_bytes = path, batch_bytes
        self.size = 0
        self.row_bytes = 1
        """The size of a row: the largest mean of the tables that were appended. Of thousands of columns, of a batch."""

    def put(self, tables: Iterable[pa.Table], codec: pa.Codec | None, starts: Positions | None = None) -> None:
        """Append rows, in order.

        Args:
            tables: the rows.
            codec: compression; `None`: no compression.
            starts: row positions at which a batch may begin, if there is a single table; `None`: at any row.
        """
        writer: pa.RecordBatchWriter | None = None
        with pa.OSFile(str(self._path), "ab") as sink:
            for table in tables:
                if writer is None:
                    writer = pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec))
                row_bytes = max(1, table.nbytes // table.num_rows)
                objects = _COLUMN_BYTES * table.num_columns
                many_columns = objects > self._batch_bytes
                self.row_bytes = max(self.row_bytes, row_bytes, 2 * objects if many_columns else 0)
                rows = max(1, max(self._batch_bytes, objects) // row_bytes)
                if starts is None:
                    writer.write_table(table, max_chunksize=rows)
                    continue
                for begin, end in cuts_at(starts, table.num_rows, rows):
                    writer.write_table(table.slice(begin, end - begin), max_chunksize=table.num_rows)
            if writer is not None:
                writer.close()
            self.size = sink.tell()

    def __call__(self, parallel_files: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, then delete the file. The argument has no effect."""
        if self.size:
            with pa.OSFile(str(self._path)) as source:
                while source.tell() < self.size:
                    with pa.ipc.open_stream(source) as stream:
                        yield from stream
        self.delete()

    def delete(self) -> None:
        """Remove the file if it still exists."""
        self._path.unlink(missing_ok=True)


def cuts_at(starts: Positions, count: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of parts of a table of ``count`` rows; each part begins at one of ``starts``.

    Parts end at the first of ``starts`` at or after each multiple of ``rows``.
    """
    next_start = np.searchsorted(starts, np.arange(rows, count, rows))
    cuts = np.unique(starts[next_start[next_start < len(starts)]]).tolist()
    return itertools.pairwise([0, *(c for c in cuts if 0 < c < count), count])


def spill_codec(options: Options) -> pa.Codec | None:
    """Return the codec and level of option ``spill-compression``; `None`: spilled rows are not compressed."""
    name = options.value(SPILL_COMPRESSION)
    if name == "zstd":
        return pa.Codec("zstd", options.value(SPILL_COMPRESSION_ZSTD_LEVEL))
    return pa.Codec("lz4") if name == "lz4" else None
