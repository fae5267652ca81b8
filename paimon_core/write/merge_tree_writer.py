"""The rows of one bucket on their way to level 0: buffered as they came, ordered and folded when flushed."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from paimon_core.datafile.spec import DataFileSpec
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge.engine import MergeEngine
from paimon_core.merge.kway import MergeOrder, merge_runs, sort_rows
from paimon_core.merge.window import Window
from paimon_core.options.lsm import LOCAL_SORT_MAX_NUM_FILE_HANDLES
from paimon_core.read.external_merge import Run, SpilledRun, cuts_at, multi_pass_merge
from paimon_core.store.file_store import FileStore
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.bucket_compaction import BucketCompaction
from paimon_core.write.restore import BucketState
from paimon_core.write.sequence import SequenceGenerator
from paimon_core.write.spill import SpillSpace

_CHANGELOG_ROWS = 1 << 17  # of a changelog, put in order at a time
_NEWEST_ROWS = 1 << 14  # a batch of rows that never left memory

HEAVY_BYTES = 16 << 20  # of files in the bucket; merging fewer takes little more than sorting a buffer


class MergeTreeWriter:
    """Buffers rows of one (partition, bucket) of a primary-key table.

    Every flush sorts what is buffered, keeps one row per key and makes level-0 files of its own, or leaves it on local
    disk, where all that has gathered becomes one run of files before a commit. Where merging in steps does not give the
    same, all rows wait there, and files are made as soon as no more runs may be open. With ``inline`` the bucket is
    compacted as well: when the runs have become too many, and before a commit where its shape asks for it. With
    ``changelog_shape`` all rows go into changelog files, too, a key as often as it was written.
    """

    def __init__(
        self,
        store: FileStore,
        place: tuple[bytes, int, int],
        shape: DataFileSpec,
        merge: tuple[MergeOrder, MergeEngine, SpillSpace | None],
        numbering: tuple[SequenceGenerator, int],
        inline: BucketCompaction | None,
        changelog_shape: DataFileSpec | None = None,
    ) -> None:
        self._partition, self._bucket, self._total_buckets = place
        self._order, engine, self._space = merge
        self._fold, self._steps = engine.fold, engine.keeps_rows
        self._full_file = shape.target_size
        self._spilled: list[SpilledRun] = []  # the oldest first
        self._rule, self._first = numbering
        self._inline = inline
        self._rows = 0
        self._pieces: list[pa.RecordBatch] = []
        self._files = DataFileWriter(store, self._partition, self._bucket, shape)
        self._changelog = None
        if changelog_shape is not None:
            self._changelog = DataFileWriter(store, self._partition, self._bucket, changelog_shape)
        self._written: list[DataFileMeta] = []
        self._told: list[DataFileMeta] = []
        self.buffered = 0

    @property
    def memory_heavy(self) -> bool:
        """Whether files are merged in earnest when the bucket is compacted."""
        return bool(self._spilled) or (self._inline is not None and self._inline.size > HEAVY_BYTES)

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Take rows in; each gets its number and its kind (None: all inserts)."""
        numbers = pa.array(self._rule.numbers(self._first, self._rows, rows.num_rows))
        kinds = pa.array(np.zeros(rows.num_rows, np.int8)) if kinds is None else kinds
        numbered = pa.RecordBatch.from_arrays(
            [*rows.columns, numbers, kinds], names=[*rows.schema.names, SEQUENCE_NUMBER.name, VALUE_KIND.name]
        )
        self._rows += rows.num_rows
        self._pieces.append(numbered)
        self.buffered += numbered.nbytes

    def flush(self) -> None:
        """Let go of what is buffered: onto local disk where that is wished and there is room, else into files."""
        if self._spill():
            return
        if self._write_buffer() and self._inline is not None:
            self._inline.compact_to_stop_trigger()

    def _write_buffer(self) -> bool:
        if not self._pieces and not self._spilled:
            return False
        if self._space is not None and self._spilled:
            for rows in self._merged(self._space):
                self._files.write(rows)
        else:
            self._files.write(self._taken())
        files = self._files.close()
        self._written += files
        if self._inline is not None:
            self._inline.add(files)
        return True

    def _taken(self) -> pa.Table:
        """What was buffered, sorted and folded."""
        return self._fold(self._sorted())

    def _sorted(self) -> Window:
        """What was buffered, sorted; the changelog has been told of it."""
        table = pa.Table.from_batches(self._pieces)
        self._pieces, self.buffered = [], 0
        window = sort_rows(table.combine_chunks(), self._order)
        del table
        self._write_changelog(window)
        return window

    def _write_changelog(self, window: Window) -> None:
        """Into the changelog goes every row as it was written."""
        if self._changelog is None:
            return
        for at in range(0, window.num_rows, _CHANGELOG_ROWS):
            self._changelog.write(window.take(np.arange(at, min(at + _CHANGELOG_ROWS, window.num_rows))))
        self._told += self._changelog.close()

    def _spill(self) -> bool:
        """Put what is buffered onto local disk; False where it must become files, or is enough for one of full size."""
        size = self.buffered
        if self._space is None or not self._pieces or size >= self._full_file:
            return False
        if not self._steps and len(self._spilled) >= _open_runs(self._space) - 1:
            return False
        if not self._space.reserve(size):
            return False
        run = self._space.new_run()
        if self._steps:
            self._space.put(run, size, self._taken())
        else:
            window = self._sorted()
            self._space.put(run, size, window.take(np.arange(window.num_rows)), window.starts)
        self._spilled.append(run)
        return True

    def _merged(self, space: SpillSpace) -> Iterator[pa.Table]:
        """What was spilled and what is still buffered, as sorting all of it at once would have it."""
        runs: list[Run] = [*self._spilled]
        order = replace(self._order, descending=False)
        if self._steps:
            if self._pieces:
                newest = self._taken().to_batches(max_chunksize=_NEWEST_ROWS)
                runs.append(lambda together: iter(newest))
            yield from multi_pass_merge(runs, order, self._fold, _open_runs(space), space.options)
        else:
            if self._pieces:
                runs.append(_by_keys(self._sorted()))
            yield from merge_runs([run(len(runs)) for run in runs], order, self._fold, repeated=True)
        self._forget_spilled()

    def _forget_spilled(self) -> None:
        spilled, self._spilled = self._spilled, []
        if self._space is not None:
            self._space.drop(spilled)

    def refresh(self, state: BucketState) -> None:
        """Go on from what the bucket holds now. REQUIRES: nothing was added since the last `prepare_commit`."""
        self._first = max(self._rule.after(self._first, self._rows), state.max_sequence_number + 1)
        self._rows = 0
        if self._inline is not None:
            self._inline.refresh(state)

    def finish(self, *, full: bool = False) -> None:
        """Flush and compact as is due. ``full``: everything to the highest level, if rows came since that was done."""
        self._write_buffer()
        if self._inline is None:
            return
        if full:
            self._inline.full()
        elif self._written:
            self._inline.compact_if_due()
        self._inline.write_deletion_vectors()

    def prepare_commit(self) -> CommitMessage | None:
        """Hand out what was written and compacted since the last call; None when nothing was."""
        new, self._written = tuple(self._written), []
        told, self._told = tuple(self._told), []
        place = self._partition, self._bucket, self._total_buckets
        compacted = CommitMessage(*place) if self._inline is None else self._inline.release()
        self._files.release()
        if self._changelog is not None:
            self._changelog.release()
        message = replace(compacted, new_files=new, changelog_files=told)
        return None if message.is_empty else message

    def abort(self) -> None:
        """Drop what is buffered and delete every file not handed out yet."""
        self._pieces, self.buffered, self._written, self._told = [], 0, [], []
        self._forget_spilled()
        if self._inline is not None:
            self._inline.abort()
        self._files.abort()
        if self._changelog is not None:
            self._changelog.abort()


def _open_runs(space: SpillSpace) -> int:
    """Return how many spilled runs may be merged at once, two at the least."""
    return max(2, space.options.value(LOCAL_SORT_MAX_NUM_FILE_HANDLES))


def _by_keys(window: Window) -> Run:
    """Return the sorted rows of the window as a run whose batches hold all rows of their keys."""
    rows = window.take(np.arange(window.num_rows))
    pieces = list(cuts_at(window.starts, rows.num_rows, _NEWEST_ROWS))

    def run(together: int) -> Iterator[pa.RecordBatch]:
        for begin, end in pieces:
            yield from rows.slice(begin, end - begin).to_batches()

    return run
