"""The rows of one bucket of an append table: to the rolling file, in the order they come."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa

from paimon_core.datafile.shape import FileShape
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import InlineAppend, Joined
from paimon_core.write.restore import BucketState

PIECE_BYTES = 4 << 20  # of Arrow memory


class AppendWriter:
    """Buffers rows of one (partition, bucket) and writes them in order of arrival; files grow over flushes.

    With ``inline`` the bucket's small files are put together as well, before a commit. ``sole``: all rows come to this
    one writer; then a thread of its own encodes them by pieces while others are on their way.
    """

    def __init__(
        self,
        store: FileStore,
        place: tuple[bytes, int, int],
        shape: FileShape,
        first_sequence: int,
        inline: InlineAppend | None,
        *,
        sole: bool,
    ) -> None:
        self._partition, self._bucket, self._total_buckets = place
        self._inline, self._sole = inline, sole
        self._pieces: list[pa.RecordBatch] = []
        self._files = DataFileWriter(store, self._partition, self._bucket, shape, first_sequence)
        self._written: list[DataFileMeta] = []
        self._joined = Joined()
        self._encoder: ThreadPoolExecutor | None = None
        self._encoding: Future[None] | None = None
        self.buffered = 0

    @property
    def heavy(self) -> bool:
        """Files are put together a batch at a time."""
        return False

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Take rows in; all are inserts."""
        self._pieces.append(rows)
        self.buffered += rows.nbytes
        if self._sole and self.buffered >= PIECE_BYTES:
            self._encoded()
            if self._encoder is None:
                self._encoder = ThreadPoolExecutor(1, thread_name_prefix="paimon-encode")
            self._encoding = self._encoder.submit(self._files.write, self._let_go())

    def flush(self) -> None:
        """Write what is buffered and let go of it."""
        self._encoded()
        if self._pieces:
            self._files.write(self._let_go())

    def _let_go(self) -> pa.Table:
        pieces, self._pieces, self.buffered = self._pieces, [], 0
        return pa.Table.from_batches(pieces)

    def _encoded(self) -> None:
        """Wait for the rows handed on before. What went wrong with them is raised again and again: they are lost."""
        if self._encoding is not None:
            self._encoding.result()
            self._encoding = None

    def renew(self, state: BucketState) -> None:
        """Go on from what the bucket holds now: number rows behind its rows, compact its files."""
        self._files.number_behind(state.max_sequence_number)
        if self._inline is not None:
            self._inline.renew(state.files)

    def settle(self, *, full: bool = False) -> None:
        """Flush, finish every file, and put small files together. REQUIRES: called once before `prepare_commit`."""
        self.flush()
        self._stop_encoder()
        self._written = self._files.close()
        if self._inline is not None and (self._written or full):
            self._joined = self._inline.run(self._written, full=full)

    def prepare_commit(self) -> CommitMessage | None:
        """Hand out what was written and compacted since the last call; None when nothing was."""
        files, joined = self._written, self._joined
        self._written, self._joined = [], Joined()
        self._files.hand_over()
        if self._inline is not None:
            self._inline.hand_over()
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
        self._pieces, self.buffered = [], 0
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
