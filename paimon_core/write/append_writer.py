"""The writer of one bucket of an append table: rows go to rolling files in order of arrival."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock

import pyarrow as pa

from paimon_core.datafile.spec import DataFileSpec
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.manifest.bucket import BucketLocation
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.read.external_merge import SpilledRun
from paimon_core.store.file_store import FileStore
from paimon_core.types.combine import gathered
from paimon_core.write.append_compactor import Concatenated, InlineAppend
from paimon_core.write.bucket_state import BucketState
from paimon_core.write.spill import SpillSpace

ROW_GROUP_BYTES = 4 << 20  # of Arrow memory: the smallest useful row group
SPILLED_BYTES = 32 << 20  # of Arrow memory: with more on local disk a file may stay open


class OpenFiles:
    """A limit on the files that the append writers of one job keep open between flushes.

    An open file holds the bytes that its sink has not sent yet: up to 50 MiB on an object store, even after a flush.
    It also keeps metadata for its footer.
    """

    def __init__(self, limit: int, footer_bytes: int | None = None) -> None:
        """Begin without files. ``footer_bytes``: the most memory of all footers. `None`: not limited."""
        self._limit, self._most_footer_bytes = limit, footer_bytes
        self._writers: dict[object, int] = {}  # with the memory of its footer
        self._lock = Lock()

    def admit(self, writer: object) -> bool:
        """Return True if the file of this writer may stay open."""
        with self._lock:
            if writer in self._writers or len(self._writers) < self._limit:
                self._writers.setdefault(writer, 0)
                return True
            return False

    def fits(self, writer: object, footer_bytes: int) -> bool:
        """Return True if the file of this writer may still stay open, now that its footer takes this memory."""
        if self._most_footer_bytes is None:
            return True
        with self._lock:
            self._writers[writer] = footer_bytes
            return sum(self._writers.values()) <= self._most_footer_bytes

    def leave(self, writer: object) -> None:
        """Record that the writer has no open file."""
        with self._lock:
            self._writers.pop(writer, None)


@dataclass(frozen=True, slots=True)
class SharedResources:
    """Resources that the append writers of one job share. ``spill``: `None` if spilling is disabled."""

    open_files: OpenFiles
    spill: SpillSpace | None


class AppendWriter:
    """A `BucketWriter` that writes rows in order of arrival; a file may grow over several flushes.

    A flush releases all rows from memory. If they fill a row group and the limit of open files allows it, they go to
    an open file. Otherwise they are spilled; without spill space they are written to separate files.

    Args:
        store: the table to write.
        bucket: the bucket to write to.
        spec: the spec of the new files.
        first_sequence: the sequence number of the first row.
        compaction: compacts small files of the bucket before a commit. `None`: no compaction.
        shared: resources shared with the other writers of the job.
        exclusive: True if this writer gets all rows of the job; a separate thread then encodes rows while more arrive.
    """

    def __init__(
        self,
        store: FileStore,
        bucket: BucketLocation,
        spec: DataFileSpec,
        first_sequence: int,
        compaction: InlineAppend | None,
        shared: SharedResources,
        *,
        exclusive: bool,
    ) -> None:
        self._bucket, self._compaction, self._exclusive = bucket, compaction, exclusive
        self._open_files, self._space = shared.open_files, shared.spill
        self._spilled: SpilledRun | None = None  # rows older than the buffered rows
        self._spilled_bytes = 0  # of Arrow memory
        self._buffer: list[pa.RecordBatch] = []
        self._files = DataFileWriter(store, bucket.ref, spec, first_sequence)
        self._written: list[DataFileMeta] = []
        self._compacted = Concatenated()
        self._encoder: ThreadPoolExecutor | None = None
        self._encoding: Future[None] | None = None
        self._buffer_bytes = 0

    @property
    def buffered(self) -> int:
        """Bytes of the rows in memory, including the rows that the open file holds."""
        return self._buffer_bytes + self._files.held_bytes

    @property
    def memory_heavy(self) -> bool:
        """False: compaction holds one batch at a time."""
        return False

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Buffer rows; all are inserts."""
        self._buffer.append(rows)
        self._buffer_bytes += rows.nbytes
        if self._exclusive and self._buffer_bytes >= ROW_GROUP_BYTES and self._spilled is None:
            self._wait_for_encoder()
            if self._encoder is None:
                self._encoder = ThreadPoolExecutor(1, thread_name_prefix="paimon-encode")
            self._encoding = self._encoder.submit(self._files.write, self._take_buffer())

    def flush(self) -> None:
        """Release all rows from memory."""
        self._wait_for_encoder()
        enough = self.buffered >= ROW_GROUP_BYTES or self._spilled_bytes + self._buffer_bytes >= SPILLED_BYTES
        stays = enough and self._open_files.admit(self)
        if not stays and self._spill():
            return
        self._write_out()
        self._files.release_memory()
        if not stays:
            self._files.finish()
        elif not self._open_files.fits(self, self._files.footer_bytes):
            self._files.finish()
            self._open_files.leave(self)

    def _spill(self) -> bool:
        """Spill the buffered rows. Return False if there is no space, and the caller must write files."""
        size = self._buffer_bytes
        if self._space is None or not self._space.reserve(size):
            return False
        if size:
            if self._spilled is None:
                self._spilled = self._space.new_run()
            self._space.put(self._spilled, size, self._take_buffer())
            self._spilled_bytes += size
        return True

    def _write_out(self) -> None:
        """Write all spilled and buffered rows to the files, in order of arrival."""
        if self._spilled is not None:
            batches = (pa.Table.from_batches([batch]) for batch in self._spilled(1))
            for rows in gathered(batches, ROW_GROUP_BYTES):
                self._files.write(rows)
            self._forget_spilled()
        if self._buffer:
            self._files.write(self._take_buffer())

    def _forget_spilled(self) -> None:
        if self._spilled is not None and self._space is not None:
            self._space.drop([self._spilled])
        self._spilled, self._spilled_bytes = None, 0

    def _take_buffer(self) -> pa.Table:
        batches, self._buffer, self._buffer_bytes = self._buffer, [], 0
        return pa.Table.from_batches(batches)

    def _wait_for_encoder(self) -> None:
        """Wait until the encoder has written its rows. If it failed, every call raises its error: its rows are lost."""
        if self._encoding is not None:
            self._encoding.result()
            self._encoding = None

    def refresh(self, state: BucketState) -> None:
        """Continue from this state: number rows above its largest sequence number, and compact its files."""
        self._files.number_behind(state.max_sequence_number)
        if self._compaction is not None:
            self._compaction.refresh(state.files)

    def finish(self, *, full: bool = False) -> None:
        """Finish every file and compact small files. REQUIRES: called once before `prepare_commit`."""
        self._wait_for_encoder()
        self._write_out()
        self._stop_encoder()
        self._written = self._files.close()
        self._open_files.leave(self)
        if self._compaction is not None and (self._written or full):
            self._compacted = self._compaction.run(self._written, full=full)

    def prepare_commit(self) -> CommitMessage | None:
        """Return a message with the files written and compacted since the last call. `None`: no files."""
        files, compacted = self._written, self._compacted
        self._written, self._compacted = [], Concatenated()
        self._files.release()
        if self._compaction is not None:
            self._compaction.release()
        message = replace(compacted.message(self._bucket), new_files=tuple(files))
        return None if message.is_empty else message

    def abort(self) -> None:
        """Drop the buffered rows and delete every file that was not released."""
        self._buffer, self._buffer_bytes = [], 0
        self._forget_spilled()
        with suppress(Exception):  # the rows are dropped anyway
            self._wait_for_encoder()
        self._stop_encoder()
        if self._compaction is not None:
            self._compaction.abort()
        self._files.abort()

    def _stop_encoder(self) -> None:
        if self._encoder is not None:
            self._encoder.shutdown()
            self._encoder = None
