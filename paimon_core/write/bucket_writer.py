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

    def add(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> None:
        """Take rows in; ``kinds`` as int8, None where all are inserts."""

    def flush(self) -> None:
        """Write what is buffered and let go of it."""

    def renew(self, state: BucketState) -> None:
        """Go on from what the bucket holds now. REQUIRES: nothing was added since the last `prepare_commit`."""

    def prepare_commit(self, *, full: bool = False) -> CommitMessage | None:
        """Flush, and say what was written since the last call; None when nothing was. ``full``: compacted wholly."""

    def abort(self) -> None:
        """Drop what is buffered and delete every file not handed out yet."""
