"""The rows of one bucket on their way to level 0: buffered as they came, ordered and folded when flushed."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paimon_core.datafile.writer import DataFileWriter, FileShape
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge.fold import Fold
from paimon_core.merge.kway import MergeOrder, sort_rows
from paimon_core.store.file_store import FileStore
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND


@dataclass(frozen=True, slots=True)
class SequenceRule:
    """How rows are numbered: row i of a bucket gets ``first + i * stride + offset``, first rounded up to the stride.

    Writers of one job that may meet in one bucket share a stride and have different offsets. Their numbers differ
    modulo the stride, so no two of them ever give one number to two rows, even when they saw different snapshots.
    """

    offset: int = 0
    stride: int = 1

    def numbers(self, first: int, start: int, count: int) -> np.ndarray:
        """Numbers of rows start..start+count-1 of a bucket whose numbering begins at ``first``."""
        aligned = -(-first // self.stride) * self.stride
        return aligned + self.offset + self.stride * np.arange(start, start + count, dtype=np.int64)


class BucketWriter:
    """Buffers rows of one (partition, bucket) and writes them to level-0 files.

    With ``order`` and ``fold`` (a primary-key table) every flush sorts what is buffered, keeps one row per key and
    makes files of its own; without (an append table) rows go to the rolling file in the order they came.
    """

    def __init__(
        self,
        store: FileStore,
        partition: bytes,
        bucket: int,
        shape: FileShape,
        keyed: tuple[MergeOrder, Fold] | None,
        numbering: tuple[SequenceRule, int],
    ) -> None:
        self._partition, self._bucket, self._keyed = partition, bucket, keyed
        self._rule, self._first = numbering
        self._rows = 0
        self._pieces: list[pa.RecordBatch] = []
        self._files = DataFileWriter(store, partition, bucket, shape, self._first)
        self._written: list[DataFileMeta] = []
        self.buffered = 0

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Take rows in; for a primary-key table each gets its number and its kind (None: all inserts)."""
        if self._keyed is not None:
            numbers = pa.array(self._rule.numbers(self._first, self._rows, rows.num_rows))
            kinds = pa.array(np.zeros(rows.num_rows, np.int8)) if kinds is None else kinds
            rows = pa.RecordBatch.from_arrays(
                [*rows.columns, numbers, kinds], names=[*rows.schema.names, SEQUENCE_NUMBER.name, VALUE_KIND.name]
            )
        self._rows += rows.num_rows
        self._pieces.append(rows)
        self.buffered += rows.nbytes

    def flush(self) -> None:
        """Write what is buffered and let go of it."""
        if not self._pieces:
            return
        table = pa.Table.from_batches(self._pieces)
        self._pieces, self.buffered = [], 0
        if self._keyed is None:
            self._files.write(table)
            return
        order, fold = self._keyed
        window = sort_rows(table.combine_chunks(), order)
        del table
        self._files.write(fold(window))
        self._written += self._files.close()

    def prepare_commit(self, total_buckets: int) -> CommitMessage | None:
        """Flush, and say what was written since the last call; None when nothing was."""
        self.flush()
        files = [*self._written, *self._files.close()]
        self._written = []
        self._files.hand_over()
        if not files:
            return None
        return CommitMessage(self._partition, self._bucket, total_buckets, new_files=tuple(files))

    def abort(self) -> None:
        """Drop what is buffered and delete every file not handed out yet."""
        self._pieces, self.buffered = [], 0
        self._files.abort()
