"""The writer of the postponed bucket -2 of a partition: all rows unmerged, in order of arrival."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from paimon_core.datafile.spec import DataFileSpec
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.errors import UnsupportedError
from paimon_core.format.avro_types import avro_schema
from paimon_core.manifest.bucket import BucketLocation
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.file import DATA_FILE_PREFIX, FILE_FORMAT, FILE_FORMAT_PER_LEVEL
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import escape
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.bucket_state import BucketState

_UNNUMBERED = -1  # the compaction that routes the rows numbers them


def postponing(store: FileStore, commit_user: str, writer: int) -> FileStore:
    """Return the store for postponed files: without statistics, with user and writer in the file names.

    The files are Avro, or have the table's format if Avro cannot represent its types or column names. A compaction
    replays the files of each writer in order of creation, so names must identify the writer.

    Args:
        store: the table to write.
        commit_user: the user of the commit.
        writer: the number of the writer in its job.
    """
    prefix = f"{store.options.value(DATA_FILE_PREFIX)}-u-{escape(commit_user)}-s-{writer}-w-"
    options = {"metadata.stats-mode": "none", "metadata.stats-mode.per.level": None, DATA_FILE_PREFIX.key: prefix}
    if _fits_avro(DataFileSpec.of(store).fields):
        options |= {FILE_FORMAT.key: "avro", FILE_FORMAT_PER_LEVEL.key: None}
    return store.with_options(options)


def _fits_avro(fields: Sequence[DataField]) -> bool:
    """Return True if Avro can represent the types and names of all columns."""
    try:
        avro_schema(fields)
    except UnsupportedError:
        return False
    return True


class PostponeWriter:
    """A `BucketWriter` that writes rows with their kinds in order of arrival."""

    def __init__(self, store: FileStore, bucket: BucketLocation) -> None:
        self._bucket = bucket
        self._buffer: list[pa.RecordBatch] = []
        self._files = DataFileWriter(store, bucket.ref, DataFileSpec.of(store))
        self._written: list[DataFileMeta] = []
        self._last_created = 0
        self.buffered = 0

    @property
    def memory_heavy(self) -> bool:
        """False: no merging."""
        return False

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Buffer rows. ``kinds``: int8; `None`: all inserts."""
        numbers = pa.array(np.full(rows.num_rows, _UNNUMBERED, np.int64))
        kinds = pa.array(np.zeros(rows.num_rows, np.int8)) if kinds is None else kinds
        names = [*rows.schema.names, SEQUENCE_NUMBER.name, VALUE_KIND.name]
        self._buffer.append(pa.RecordBatch.from_arrays([*rows.columns, numbers, kinds], names=names))
        self.buffered += rows.nbytes

    def flush(self) -> None:
        """Write the buffered rows and release their memory."""
        if self._buffer:
            table = pa.Table.from_batches(self._buffer)
            self._buffer, self.buffered = [], 0
            self._files.write(table)

    def refresh(self, state: BucketState) -> None:
        """Do nothing: new rows do not depend on the files of the bucket."""

    def finish(self, *, full: bool = False) -> None:
        """Flush and finish every file. Each file gets its own creation time, because these define the file order."""
        self.flush()
        for file in self._files.close():
            self._last_created = max(self._last_created + 1, file.creation_time or 0)
            self._written.append(replace(file, creation_time=self._last_created))

    def prepare_commit(self) -> CommitMessage | None:
        """Return a message with the files written since the last call. `None`: no files."""
        files, self._written = self._written, []
        self._files.release()
        message = CommitMessage(*self._bucket, new_files=tuple(files))
        return None if message.is_empty else message

    def abort(self) -> None:
        """Drop the buffered rows and delete every file that was not released."""
        self._buffer, self.buffered, self._written = [], 0, []
        self._files.abort()
