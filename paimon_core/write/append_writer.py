"""The rows of one bucket of an append table: to the rolling file, in the order they come."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

import pyarrow as pa

from paimon_core.datafile.spec import DataFileSpec
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.read.external_merge import SpilledRun
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import InlineAppend, Joined
from paimon_core.write.restore import BucketState
from paimon_core.write.spill import SpillSpace

PIECE_BYTES = 4 << 20  # of Arrow memory; fewer rows make no row group worth having
SPILLED_BYTES = 32 << 20  # of Arrow memory that waits on local disk, from which it is worth a file that stays open


class OpenFiles:
    """The files that the append writers of one job keep open between flushes: at most ``most``.

    An open file holds what its sink has not sent off, up to 50 MiB on an object store, whatever a flush lets go of.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._writers: set[object] = set()
        self._lock = Lock()

    def admit(self, writer: object) -> bool:
        """Return True if the file of this writer may stay open."""
        with self._lock:
            if writer in self._writers or len(self._writers) < self._most:
                self._writers.add(writer)
                return True
            return False

    def leave(self, writer: object) -> None:
        """Take note that the writer has no open file any more."""
        with self._lock:
            self._writers.discard(writer)


class AppendWriter:
    """Buffers rows of one (partition, bucket) and writes them in order of arrival; files grow over flushes.

    With ``inline`` the bucket's small files are put together as well, before a commit. ``sole``: all rows come to this
    one writer; then a thread of its own encodes them by pieces while others are on their way.

    A flush lets go of all rows: they become a row group where they are enough for one and ``open_files`` admits one
    more, wait on local disk where ``space`` has room, and make files of their own where neither is so.
    """

    def __init__(
        self,
        store: FileStore,
        place: tuple[bytes, int, int],
        shape: DataFileSpec,
        first_sequence: int,
        inline: InlineAppend | None,
        shared: tuple[OpenFiles, SpillSpace | None],
        *,
        sole: bool,
    ) -> None:
        self._partition, self._bucket, self._total_buckets = place
        self._inline, self._sole = inline, sole
        self._open_files, self._space = shared
        self._spilled: SpilledRun | None = None  # rows before those of the pieces
        self._spilled_bytes = 0  # of Arrow memory
        self._pieces: list[pa.RecordBatch] = []
        self._files = DataFileWriter(store, self._partition, self._bucket, shape, first_sequence)
        self._written: list[DataFileMeta] = []
        self._joined = Joined()
        self._encoder: ThreadPoolExecutor | None = None
        self._encoding: Future[None] | None = None
        self._pieces_bytes = 0

    @property
    def buffered(self) -> int:
        """Bytes of the rows in memory, those that the open file holds included."""
        return self._pieces_bytes + self._files.held_bytes

    @property
    def memory_heavy(self) -> bool:
        """Files are put together a batch at a time."""
        return False

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Take rows in; all are inserts."""
        self._pieces.append(rows)
        self._pieces_bytes += rows.nbytes
        if self._sole and self._pieces_bytes >= PIECE_BYTES and self._spilled is None:
            self._encoded()
            if self._encoder is None:
                self._encoder = ThreadPoolExecutor(1, thread_name_prefix="paimon-encode")
            self._encoding = self._encoder.submit(self._files.write, self._let_go())

    def flush(self) -> None:
        """Let go of all rows in memory."""
        self._encoded()
        enough = self.buffered >= PIECE_BYTES or self._spilled_bytes + self._pieces_bytes >= SPILLED_BYTES
        stays = enough and self._open_files.admit(self)
        if not stays and self._spill():
            return
        self._write_out()
        self._files.release_memory()
        if not stays:
            self._files.finish()

    def _spill(self) -> bool:
        """Put the rows of the pieces onto local disk; False where they must become files."""
        size = self._pieces_bytes
        if self._space is None or not self._space.reserve(size):
            return False
        if size:
            if self._spilled is None:
                self._spilled = self._space.new_run()
            self._space.put(self._spilled, size, self._let_go())
            self._spilled_bytes += size
        return True

    def _write_out(self) -> None:
        """Write all rows that came and are in no file yet, in order of arrival."""
        if self._spilled is not None:
            for rows in _gathered(self._spilled(1)):
                self._files.write(rows)
            self._forget_spilled()
        if self._pieces:
            self._files.write(self._let_go())

    def _forget_spilled(self) -> None:
        if self._spilled is not None and self._space is not None:
            self._space.drop([self._spilled])
        self._spilled, self._spilled_bytes = None, 0

    def _let_go(self) -> pa.Table:
        pieces, self._pieces, self._pieces_bytes = self._pieces, [], 0
        return pa.Table.from_batches(pieces)

    def _encoded(self) -> None:
        """Wait for the rows handed on before. What went wrong with them is raised again and again: they are lost."""
        if self._encoding is not None:
            self._encoding.result()
            self._encoding = None

    def refresh(self, state: BucketState) -> None:
        """Go on from what the bucket holds now: number rows behind its rows, compact its files."""
        self._files.number_behind(state.max_sequence_number)
        if self._inline is not None:
            self._inline.refresh(state.files)

    def finish(self, *, full: bool = False) -> None:
        """Finish every file, and put small files together. REQUIRES: called once before `prepare_commit`."""
        self._encoded()
        self._write_out()
        self._stop_encoder()
        self._written = self._files.close()
        self._open_files.leave(self)
        if self._inline is not None and (self._written or full):
            self._joined = self._inline.run(self._written, full=full)

    def prepare_commit(self) -> CommitMessage | None:
        """Hand out what was written and compacted since the last call; None when nothing was."""
        files, joined = self._written, self._joined
        self._written, self._joined = [], Joined()
        self._files.release()
        if self._inline is not None:
            self._inline.release()
        message = CommitMessage(
            self._partition,
            self._bucket,
            self._total_buckets,
            new_files=tuple(files),
            compact_before=joined.before,
            compact_after=joined.after,
            compact_deleted_indexes=joined.vectors,
        )
        return None if message.is_empty else message

    def abort(self) -> None:
        """Drop what is buffered and delete every file not handed out yet."""
        self._pieces, self._pieces_bytes = [], 0
        self._forget_spilled()
        with suppress(Exception):  # the rows are thrown away
            self._encoded()
        self._stop_encoder()
        if self._inline is not None:
            self._inline.abort()
        self._files.abort()

    def _stop_encoder(self) -> None:
        if self._encoder is not None:
            self._encoder.shutdown()
            self._encoder = None


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in tables of about `PIECE_BYTES`."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= PIECE_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
