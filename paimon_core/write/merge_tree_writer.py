"""The writer of one bucket of a table with a primary key: it buffers, sorts and merges rows into level 0."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from paimon_core.datafile.spec import DataFileSpec
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.manifest.bucket import BucketLocation
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge.engine import MergeEngine
from paimon_core.merge.kway import MergeOrder, merge_runs, sort_rows
from paimon_core.merge.result import drop_before
from paimon_core.merge.window import Window
from paimon_core.read.external_merge import Run, SpilledRun, cuts_at, multi_pass_merge
from paimon_core.store.file_store import FileStore
from paimon_core.types.combine import combined
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.bucket_compaction import BucketCompaction
from paimon_core.write.bucket_state import BucketState
from paimon_core.write.managed_blobs import ManagedBlobs
from paimon_core.write.sequence import RowSequence
from paimon_core.write.spill import SpillSpace

_CHANGELOG_ROWS = 1 << 17  # changelog rows that are sorted at a time
_NEWEST_ROWS = 1 << 14  # rows per batch of a run that never left memory
_HEAVY_BYTES = 16 << 20  # of files in the bucket; merging less takes little more memory than sorting a buffer


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """Merge order, merge engine and spill space of a table's writers. ``spill``: `None` if spilling is disabled."""

    order: MergeOrder
    engine: MergeEngine
    spill: SpillSpace | None


class MergeTreeWriter:
    """A `BucketWriter` of one (partition, bucket) of a table with a primary key.

    A flush sorts the buffered rows and merges them to one row per key. It spills the result, or writes level-0 files.
    Before a commit all spilled runs become one run of files. If the merge function cannot merge in steps, unmerged rows
    are spilled, and files are written when the maximum number of open runs is reached.

    A row that removes a record, and is followed by rows of its key, is written to a separate file. Merged with the
    later rows it would no longer hide older rows.

    Args:
        store: the table to write.
        bucket: the bucket to write to.
        spec: the spec of the new files.
        merge: merge order, merge engine and spill space.
        sequence: the sequence numbers of the rows.
        compaction: compacts the bucket when it has too many runs, and before a commit if the policy picks a
            compaction. `None`: no compaction.
        changelog_spec: the spec of changelog files, which get every written row. `None`: no changelog.
    """

    def __init__(
        self,
        store: FileStore,
        bucket: BucketLocation,
        spec: DataFileSpec,
        merge: MergeSettings,
        sequence: RowSequence,
        compaction: BucketCompaction | None,
        changelog_spec: DataFileSpec | None = None,
    ) -> None:
        self._bucket = bucket
        self._order, self._space = merge.order, merge.spill
        self._engine, self._merges_in_steps = merge.engine, merge.engine.keeps_rows
        self._target_size = spec.target_size
        self._spilled: list[SpilledRun] = []  # oldest first
        self._sequence, self._compaction = sequence, compaction
        self._buffer: list[pa.RecordBatch] = []
        self._blobs = ManagedBlobs(store, bucket.ref)
        self._files = DataFileWriter(store, bucket.ref, spec)
        self._removals = DataFileWriter(store, bucket.ref, spec)
        self._changelog = None if changelog_spec is None else DataFileWriter(store, bucket.ref, changelog_spec)
        self._written: list[DataFileMeta] = []
        self._changelog_files: list[DataFileMeta] = []
        self.buffered = 0

    @property
    def memory_heavy(self) -> bool:
        """True if a flush merges spilled runs, or may compact many bytes of files."""
        return bool(self._spilled) or (self._compaction is not None and self._compaction.size > _HEAVY_BYTES)

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Buffer rows with sequence numbers and row kinds (`None`: all inserts); write their managed blobs."""
        rows = self._blobs.stored(rows, kinds)
        numbers = pa.array(self._sequence.take(rows.num_rows))
        kinds = pa.array(np.zeros(rows.num_rows, np.int8)) if kinds is None else kinds
        numbered = pa.RecordBatch.from_arrays(
            [*rows.columns, numbers, kinds], names=[*rows.schema.names, SEQUENCE_NUMBER.name, VALUE_KIND.name]
        )
        self._buffer.append(numbered)
        self.buffered += numbered.nbytes

    def flush(self) -> None:
        """Release the buffered rows: spill them if spilling is enabled and has space, else write files."""
        if self._spill():
            return
        if self._write_buffer() and self._compaction is not None:
            self._compaction.compact_to_stop_trigger()

    def _write_buffer(self) -> bool:
        if not self._buffer and not self._spilled:
            return False
        if self._space is not None and self._spilled:
            for rows in self._merged(self._space):
                self._files.write(rows)
        else:
            self._files.write(self._merge_buffer())
        files = [*self._removals.close(), *self._files.close()]
        self._written += files
        if self._compaction is not None:
            self._compaction.add(files)
        return True

    def _merge_buffer(self) -> pa.Table:
        """Return the buffered rows, sorted and merged, and clear the buffer."""
        return self._fold(self._sort_buffer())

    def _fold(self, window: Window) -> pa.Table:
        """Return the merged rows. Write rows that remove a record, if rows of its key follow, to separate files."""
        if self._engine.removals is not None:
            removal = self._engine.removals(window)
            if (followed := removal >= 0).any():
                self._removals.write(window.take(removal[followed]))
                window = drop_before(window, removal + followed)
        return self._engine.fold(window)

    def _sort_buffer(self) -> Window:
        """Sort the buffered rows, clear the buffer, write the rows to the changelog, and return them."""
        table = pa.Table.from_batches(self._buffer)
        self._buffer, self.buffered = [], 0
        window = sort_rows(combined(table), self._order)
        del table
        self._write_changelog(window)
        return window

    def _write_changelog(self, window: Window) -> None:
        """Write every row of the window to the changelog, unmerged."""
        if self._changelog is None:
            return
        for start in range(0, window.num_rows, _CHANGELOG_ROWS):
            self._changelog.write(window.take(np.arange(start, min(start + _CHANGELOG_ROWS, window.num_rows))))
        self._changelog_files += self._changelog.close()

    def _spill(self) -> bool:
        """Spill the buffered rows. Return False if there is no space, or if the rows fill a file of target size."""
        size = self.buffered
        if self._space is None or not self._buffer or size >= self._target_size:
            return False
        if not self._merges_in_steps and len(self._spilled) >= self._space.open_runs(self._spilled) - 1:
            return False
        if not self._space.reserve(size):
            return False
        run = self._space.new_run()
        if self._merges_in_steps:
            self._space.put(run, size, self._merge_buffer())
        else:
            window = self._sort_buffer()
            self._space.put(run, size, window.take(np.arange(window.num_rows)), window.starts)
        self._spilled.append(run)
        return True

    def _merged(self, space: SpillSpace) -> Iterator[pa.Table]:
        """Merge the spilled and the buffered rows, with the same result as one sort and merge of all rows."""
        runs: list[Run] = [*self._spilled]
        open_runs, buffered = space.open_runs(self._spilled), space.shares.batches
        if self._merges_in_steps:
            if self._buffer:
                newest = self._merge_buffer().to_batches(max_chunksize=_NEWEST_ROWS)
                runs.append(lambda open_runs: iter(newest))
            yield from multi_pass_merge(runs, self._order, self._fold, open_runs, space.options)
        else:
            if self._buffer:
                runs.append(_by_keys(self._sort_buffer()))
            opened = [run(len(runs)) for run in runs]
            yield from merge_runs(opened, self._order, self._fold, repeated=True, buffered=buffered)
        self._forget_spilled()

    def _forget_spilled(self) -> None:
        spilled, self._spilled = self._spilled, []
        if self._space is not None:
            self._space.drop(spilled)

    def refresh(self, state: BucketState) -> None:
        """Continue from the bucket's current state. REQUIRES: no `add` since the last `prepare_commit`."""
        self._sequence.continue_above(state.max_sequence_number)
        if self._compaction is not None:
            self._compaction.refresh(state)

    def finish(self, *, full: bool = False) -> None:
        """Flush and run due compactions. ``full``: run a full compaction if rows were added since the last one."""
        self._blobs.finish()
        self._write_buffer()
        if self._compaction is None:
            return
        if full:
            self._compaction.full()
        elif self._written:
            self._compaction.compact_if_due()
        self._compaction.write_deletion_vectors()

    def prepare_commit(self) -> CommitMessage | None:
        """Return a message with the files written and compacted since the last call. `None`: no files."""
        new, self._written = tuple(self._written), []
        changelog, self._changelog_files = tuple(self._changelog_files), []
        compacted = CommitMessage(*self._bucket) if self._compaction is None else self._compaction.release()
        blobs = self._blobs.release()
        self._files.release()
        self._removals.release()
        if self._changelog is not None:
            self._changelog.release()
        message = replace(compacted, new_files=new, changelog_files=changelog, managed_blobs=blobs)
        return None if message.is_empty else message

    def abort(self) -> None:
        """Drop the buffered rows and delete every file that was not released."""
        self._buffer, self.buffered, self._written, self._changelog_files = [], 0, [], []
        self._forget_spilled()
        if self._compaction is not None:
            self._compaction.abort()
        self._blobs.abort()
        self._files.abort()
        self._removals.abort()
        if self._changelog is not None:
            self._changelog.abort()


def _by_keys(window: Window) -> Run:
    """Return the sorted rows of the window as a run whose batches never split a key."""
    rows = window.take(np.arange(window.num_rows))
    bounds = list(cuts_at(window.starts, rows.num_rows, _NEWEST_ROWS))

    def run(open_runs: int) -> Iterator[pa.RecordBatch]:
        for begin, end in bounds:
            yield from rows.slice(begin, end - begin).to_batches()

    return run
