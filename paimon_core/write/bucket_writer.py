"""What the writer of a table asks of the writer of one of its buckets."""

from typing import Protocol

import pyarrow as pa

from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.write.restore import BucketState


class BucketWriter(Protocol):
    """Takes the rows of one (partition, bucket) and makes files of them."""

    @property
    def buffered(self) -> int:
        """Bytes that a flush would let go of."""

    @property
    def memory_heavy(self) -> bool:
        """Whether what it may do on a flush takes so much memory that it is done alone."""

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Take rows in; ``kinds`` as int8, None where all are inserts."""

    def flush(self) -> None:
        """Write what is buffered and let go of it."""

    def refresh(self, state: BucketState) -> None:
        """Go on from what the bucket holds now. REQUIRES: nothing was added since the last `prepare_commit`."""

    def finish(self, *, full: bool = False) -> None:
        """Flush, finish every file, and compact as is due before a commit, or wholly. The files stay this writer's."""

    def prepare_commit(self) -> CommitMessage | None:
        """Hand out what was written since the last call; None when nothing was. REQUIRES: settled; does no I/O."""

    def abort(self) -> None:
        """Drop what is buffered and delete every file not handed out yet."""
