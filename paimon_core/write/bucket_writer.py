"""The interface between the writer of a table and the writers of its buckets."""

from typing import Protocol

import pyarrow as pa

from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.write.bucket_state import BucketState


class BucketWriter(Protocol):
    """A writer of the rows of one (partition, bucket) to data files.

    Lifecycle: `add` and `flush` (any number), `finish`, `prepare_commit`; `refresh` before the next `add`.
    """

    @property
    def buffered(self) -> int:
        """Bytes that a flush would release."""

    @property
    def memory_heavy(self) -> bool:
        """True if a flush may need much memory, so that no other writer may flush at the same time."""

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Buffer rows. ``kinds``: int8, one per row; `None`: all inserts."""

    def flush(self) -> None:
        """Write or spill the buffered rows, and release their memory."""

    def refresh(self, state: BucketState) -> None:
        """Continue from the bucket's current state. REQUIRES: no `add` since the last `prepare_commit`."""

    def finish(self, *, full: bool = False) -> None:
        """Flush, finish every file, and run the compactions that are due before a commit.

        ``full``: True for a full compaction. The files still belong to this writer.
        """

    def prepare_commit(self) -> CommitMessage | None:
        """Return the changes since the last call. Their files then belong to the caller. `None`: no changes.

        Does no I/O. REQUIRES: `finish` was called.
        """

    def abort(self) -> None:
        """Drop the buffered rows and delete every file that was not released."""
