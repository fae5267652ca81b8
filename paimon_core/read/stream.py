"""A stream with a position: for engines that ask for what is new, and keep how far they are themselves."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from paimon_core.read.changes import ChangeRead
from paimon_core.scan.position import Position
from paimon_core.scan.stream_scan import NO_LIMITS, ChangeSplit, Limits, StreamScan

__all__ = ["Stream"]


class Stream:
    """The changes of a table as they come. It starts where the options of the table say."""

    def __init__(self, scan: StreamScan, reader: ChangeRead) -> None:
        self._scan, self._position = scan, scan.start()
        self.reader = reader
        """Reads the splits of a plan, wherever it is taken to."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of every batch."""
        return self.reader.schema

    def plan(self, limits: Limits = NO_LIMITS) -> list[ChangeSplit]:
        """What is new since the last plan, or as much of it as ``limits`` allow; empty where nothing is.

        Raises OutOfRangeError where it has expired or was rolled back, InvalidInputError where the columns changed.
        """
        after = self._position
        self._position = self._scan.advance(after, limits)
        return self._scan.plan(after, self._position)

    def to_batches(self, limits: Limits = NO_LIMITS) -> Iterator[pa.RecordBatch]:
        """The rows of the next plan, read here."""
        for split in self.plan(limits):
            yield from self.reader.to_batches(split)

    def checkpoint(self) -> dict[str, Any]:
        """How far it is, as a JSON object: whatever was planned before is behind it."""
        return self._position.to_json()

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Go on from a checkpoint. InvalidInputError where it is none."""
        self._position = Position.from_json(checkpoint)
