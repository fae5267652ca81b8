"""Merge sorted runs: cut every run at the same key, concatenate the parts, sort, mark groups, fold.

Each run keeps a few buffered batches. The smallest of the buffered last keys is the bound: later keys of every run
are larger than its own last key, so all rows at or below the bound are buffered. These rows are a window. Every window
empties a buffer, so the number of windows never exceeds the number of batches. Memory: two batches a run, because
another thread reads the runs and cuts the next window while this one is sorted and folded. Python compares keys only at
the edges of windows.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.fileio.parallel import ahead, timed
from paimon_core.memory import MemoryShares
from paimon_core.merge.engine import MergeFunction
from paimon_core.merge.normalized_keys import Column, nullable_key_words
from paimon_core.merge.order import MergeOrder, age_words, ascending_order, key_columns, key_words, sequence_words
from paimon_core.merge.row_kinds import SEQUENCE_NUMBER
from paimon_core.merge.sorting import sort_groups
from paimon_core.merge.window import Window
from paimon_core.types.selection import only_chunk

__all__ = ["MergeOrder", "merge_runs", "sort_rows"]

Key: TypeAlias = tuple[Any, ...]
RunBatches: TypeAlias = list[list[pa.RecordBatch]]
"""The rows of a window: a list of batches for each run that has rows in it."""

_BUFFERED_ROWS = 16_384  # a run with fewer buffered rows refills, so that tiny batches do not make tiny windows
_BUFFERED_BYTES = 4 << 20  # but not at this size: with long rows, a window of many runs would be too large
_SINGLE_RUN_ROWS = 4_096  # at least this many consecutive rows of one run become a separate window
_WINDOW_BYTES = 1 << 30  # far below the 2 GiB that a string column can hold in one chunk


def merge_runs(
    runs: Sequence[Iterator[pa.RecordBatch]],
    order: MergeOrder,
    fold: MergeFunction,
    *,
    repeated: bool = False,
    waited: Callable[[float], None] | None = None,
    buffered: int = MemoryShares().batches,
) -> Iterator[pa.Table]:
    """Merge runs into folded tables in key order; tables are never empty.

    REQUIRES: each run is sorted by key and holds a key once; all runs have the same columns. Batches may be of any
    size; another thread reads them. Memory: two batches a run, more only if batches have under 16 384 rows.
    Raises CorruptedError if a batch does not start above the last key of the batch before, InvalidInputError for a
    null in a key.

    Args:
        runs: batches of each sorted run, the oldest run first.
        order: the columns to merge by.
        fold: the merge function.
        repeated: a run may hold a key several times, in merge order and in one batch.
        waited: called with the seconds that the merge waits for rows; `None`: not measured.
        buffered: the most bytes of small batches of all runs to buffer.
    """
    cut = ahead(_window_bounds(runs, order, buffered))
    for batches in cut if waited is None else timed(cut, waited):
        single_run = len(batches) == 1 and not repeated
        windows = map(_single_run_window, batches[0]) if single_run else (_window(batches, order),)
        for window in windows:
            result = fold(window)
            if result.num_rows:
                yield result


def sort_rows(table: pa.Table, order: MergeOrder) -> Window:
    """Return the rows of a write buffer as a window sorted by key, sequence fields and sequence number.

    REQUIRES: the rows are in order of arrival. InvalidInputError for a null in a key, and for a column of over 2 GiB of
    text.
    """
    rows = _one_chunk(table)
    if not rows.num_rows:
        return Window(rows, None, np.zeros(0, np.int64))
    key_columns(rows, order)
    then = sequence_words(rows, order)
    if SEQUENCE_NUMBER in rows.column_names and not _ascends(rows.column(SEQUENCE_NUMBER).to_numpy()):
        then += nullable_key_words(only_chunk(rows, SEQUENCE_NUMBER), SEQUENCE_NUMBER)
    return Window(rows, *sort_groups(key_words(rows, order), then, rows.num_rows, runs=None))


def _window_bounds(runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, buffered: int) -> Iterator[RunBatches]:
    """Yield the complete rows at the front of the runs: a list of batches for each run that has such rows."""
    share = min(_BUFFERED_BYTES, buffered // max(1, len(runs)))
    heads = [_RunCursor(run, order, number, share) for number, run in enumerate(runs)]
    while heads := [head for head in heads if head.fill()]:
        if single := _single_run_rows(heads):
            yield [single]
            continue
        bound = _bound(heads)
        yield [batches for head in heads if (batches := head.take_through(bound))]


def _single_run_rows(heads: Sequence["_RunCursor"]) -> list[pa.RecordBatch]:
    """Cut off the rows of one run that are below all other runs, if there are many or no other run is left."""
    if len(heads) == 1:
        return heads[0].take_all()
    lowest, second = sorted(heads, key=lambda head: head.first_key)[:2]
    return lowest.take_before(second.first_key, at_least=_SINGLE_RUN_ROWS)


def _bound(heads: Sequence["_RunCursor"]) -> Key:
    """Return the key to cut at: the smallest last key, or a smaller one if a column would exceed one chunk."""
    bound = min(head.last_key for head in heads)
    if sum(head.nbytes for head in heads) <= _WINDOW_BYTES:
        return bound
    while sum(head.nbytes_through(bound) for head in heads) > _WINDOW_BYTES:
        longest = max(heads, key=lambda head: head.count_through(bound))
        rows = longest.count_through(bound)
        if rows < 2:
            break
        bound = longest.key((rows - 1) // 2)
    return bound


def _single_run_window(rows: pa.RecordBatch) -> Window:
    return Window(pa.Table.from_batches([rows]), None, np.arange(rows.num_rows))


def _window(batches: RunBatches, order: MergeOrder) -> Window:
    """Return the complete rows of several runs. Runs whose sequence numbers do not overlap need no sort by them."""
    aged = None if order.sequence_fields else batches if order.by_run else _by_age(batches)
    rows = _one_chunk(pa.Table.from_batches(itertools.chain.from_iterable(aged or batches)))
    ends = np.cumsum([sum(batch.num_rows for batch in run) for run in aged or batches])
    firsts = np.concatenate([[0], ends[:-1]])
    extremes = np.concatenate([firsts, ends - 1])
    age = [] if order.by_run else age_words(rows)
    then = [] if aged else sequence_words(rows, order) + age
    return Window(rows, *sort_groups(key_words(rows, order, extremes), then, rows.num_rows, runs=firsts))


def _by_age(batches: RunBatches) -> RunBatches | None:
    """Return the runs from oldest to newest; `None` if their ranges of sequence numbers overlap."""
    if SEQUENCE_NUMBER not in batches[0][0].schema.names:
        return None
    numbers = [[batch.column(SEQUENCE_NUMBER).to_numpy() for batch in run] for run in batches]
    order = ascending_order([(min(int(n.min()) for n in run), max(int(n.max()) for n in run)) for run in numbers])
    return None if order is None else [batches[number] for number in order]


def _one_chunk(table: pa.Table) -> pa.Table:
    combined = table.combine_chunks()
    if any(column.num_chunks > 1 for column in combined.columns):
        raise InvalidInputError(
            f"A column of {table.num_rows} rows to sort exceeds 2 GiB: "
            "use a smaller write-buffer-size or read.batch-size."
        )
    return combined


def _ascends(values: Any) -> bool:
    return bool((values[1:] >= values[:-1]).all())


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A batch with its key columns in comparable form, never empty."""

    batch: pa.RecordBatch
    keys: list[Column]
    nbytes: int

    @classmethod
    def of(cls, batch: pa.RecordBatch, keys: list[Column]) -> "_Chunk":
        return cls(batch, keys, _bytes_of(batch))

    def key(self, row: int) -> Key:
        return tuple(column[row].as_py() for column in self.keys)

    def search(self, key: Key, side: Callable[..., int]) -> int:
        """Return ``bisect_left`` or ``bisect_right`` (``side``) of the key among the rows."""
        low, high = 0, self.batch.num_rows
        first = self.keys[0].type
        if pa.types.is_integer(first) or pa.types.is_floating(first):
            values = self.keys[0].to_numpy()
            low, high = int(values.searchsorted(key[0], "left")), int(values.searchsorted(key[0], "right"))
        return side(range(self.batch.num_rows), key, low, high, key=self.key)

    def slice(self, start: int, stop: int) -> "_Chunk":
        count = stop - start
        return _Chunk.of(self.batch.slice(start, count), [column.slice(start, count) for column in self.keys])


def _bytes_of(batch: pa.RecordBatch) -> int:
    return int(batch.nbytes)


class _RunCursor:
    """The buffered front of a run."""

    def __init__(self, run: Iterable[pa.RecordBatch], order: MergeOrder, number: int, share: int) -> None:
        self._run, self._order, self._number, self._share = iter(run), order, number, share
        self._chunks: deque[_Chunk] = deque()
        self._rows = 0
        self.nbytes = 0
        """Bytes of all buffered rows."""
        self.last_key: Key = ()

    @property
    def first_key(self) -> Key:
        """The key of the first buffered row."""
        return self._chunks[0].key(0)

    def fill(self) -> bool:
        """Buffer batches up to the run's share of rows. Return False if the run has ended and the buffer is empty."""
        while self._wants_more() and (batch := next(self._run, None)) is not None:
            if batch.num_rows:
                self._append(_Chunk.of(batch, key_columns(batch, self._order)))
        return bool(self._chunks)

    def _wants_more(self) -> bool:
        return not self._chunks or (self._rows < _BUFFERED_ROWS and self.nbytes < self._share)

    def _append(self, chunk: _Chunk) -> None:
        first, last = chunk.key(0), chunk.key(chunk.batch.num_rows - 1)
        if last < first or (self.last_key and first <= self.last_key):
            raise CorruptedError(
                f"Run {self._number} is not sorted by its key {self._order.key}: a batch from {first} to {last} "
                f"follows the key {self.last_key or None}. Every file of a run must be sorted and hold a key once."
            )
        self._chunks.append(chunk)
        self._rows += chunk.batch.num_rows
        self.nbytes += chunk.nbytes
        self.last_key = last

    def take_all(self) -> list[pa.RecordBatch]:
        """Cut off all buffered rows."""
        taken = [chunk.batch for chunk in self._chunks]
        self._chunks.clear()
        self._rows = self.nbytes = 0
        return taken

    def key(self, row: int) -> Key:
        """Return the key of a buffered row."""
        for chunk in self._chunks:
            if row < chunk.batch.num_rows:
                return chunk.key(row)
            row -= chunk.batch.num_rows
        raise IndexError(row)

    def count_through(self, bound: Key) -> int:
        """Return the number of buffered rows at or below the bound."""
        return self._count(bound, bisect_right)

    def nbytes_through(self, bound: Key) -> int:
        """Return the bytes of the buffered rows at or below the bound."""
        total, count = 0, self.count_through(bound)
        for chunk in self._chunks:
            total += chunk.batch.slice(0, count).nbytes
            count -= min(count, chunk.batch.num_rows)
        return total

    def take_through(self, bound: Key) -> list[pa.RecordBatch]:
        """Cut off the rows at or below the bound."""
        return self._take(self.count_through(bound))

    def take_before(self, bound: Key, at_least: int) -> list[pa.RecordBatch]:
        """Cut off the rows below the bound; no rows if there are fewer than ``at_least``."""
        count = self._count(bound, bisect_left)
        return self._take(count) if count >= at_least else []

    def _count(self, bound: Key, side: Callable[..., int]) -> int:
        count = 0
        for chunk in self._chunks:
            within = chunk.search(bound, side)
            count += within
            if within < chunk.batch.num_rows:
                break
        return count

    def _take(self, count: int) -> list[pa.RecordBatch]:
        self._rows -= count
        taken = []
        while count:
            chunk = self._chunks.popleft()
            self.nbytes -= chunk.nbytes
            if (size := chunk.batch.num_rows) > count:
                remaining = chunk.slice(count, size)
                self._chunks.appendleft(remaining)
                self.nbytes += remaining.nbytes
                chunk = chunk.slice(0, count)
            count -= chunk.batch.num_rows
            taken.append(chunk.batch)
        return taken
