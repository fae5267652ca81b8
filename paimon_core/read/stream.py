"""A stream with a position, for engines that store the position themselves."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from paimon_core.read.changed_rows import ChangeRead
from paimon_core.scan.batch_limits import NO_LIMITS, Limits
from paimon_core.scan.position import Position
from paimon_core.scan.stream_lag import LagCounter, StreamLag
from paimon_core.scan.stream_scan import ChangeSplit, StreamScan


class Stream:
    """The changes of a table from the start position that the table's options define.

    Examples:
        >>> import pyarrow as pa
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> stream = table.stream()
        >>> sum(batch.num_rows for batch in stream.to_batches())  # first all rows
        2
        >>> snapshot = table.write(pa.table({"id": [3], "name": ["cup"]}))
        >>> [batch.to_pylist() for batch in stream.to_batches()]  # then changes
        [[{'id': 3, 'name': 'cup'}]]
    """

    def __init__(self, scan: StreamScan, reader: ChangeRead) -> None:
        self._scan, self._position = scan, scan.start()
        self._counter: LagCounter | None = None
        self.reader = reader
        """The reader of a plan's splits; it can be sent to other processes."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of every batch."""
        return self.reader.schema

    def plan(self, limits: Limits = NO_LIMITS) -> list[ChangeSplit]:
        """Return the splits of the changes since the last plan, up to ``limits``; empty if there are no changes.

        Raises OutOfRangeError if a snapshot has expired or was rolled back, InvalidInputError if the columns changed.
        """
        after = self._position
        self._position = self._scan.advance(after, limits)
        return self._scan.plan(after, self._position)

    def to_batches(self, limits: Limits = NO_LIMITS) -> Iterator[pa.RecordBatch]:
        """Read the rows of the next plan in this process; ``limits`` bounds the plan, as for `plan`."""
        for split in self.plan(limits):
            yield from self.reader.to_batches(split)

    def lag(self) -> StreamLag:
        """Return what is committed and not planned yet: snapshots, rows, bytes and seconds.

        Cost: manifests of the snapshots that no earlier call has counted. Raises the errors of `plan`.
        """
        if self._counter is None:
            self._counter = LagCounter(self._scan)
        return self._counter.lag(self._position)

    def checkpoint(self) -> dict[str, Any]:
        """Return the position after the last plan as a JSON object."""
        return self._position.to_json()

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Continue from a checkpoint. InvalidInputError if the object is not a checkpoint."""
        self._position = Position.from_json(checkpoint)
