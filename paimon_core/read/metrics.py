"""Metrics of reads: rows in and out, bytes, and time by phase.

Reads are measured on request only. A listener, a collection or a log receives the metrics of each split
(`paimon_core.metrics`). Or a caller passes a `ReadRecorder` to `TableRead`, and calls `ReadRecorder.metrics` after the
read. A read that is not measured tests one reference per batch; a measured read reads the clock about ten times per
batch. To measure a read:

    recorder = ReadRecorder()
    batches = TableRead(store, fields, recorder=recorder).to_batches(split)   # read them to the end
    total = recorder.metrics() + other_task.metrics()
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pyarrow as pa

from paimon_core.datafile.read_counts import ReadCounts
from paimon_core.errors import hide_secrets
from paimon_core.metrics.listeners import emit
from paimon_core.metrics.values import PHASES, ReadMetrics
from paimon_core.scan.split import DataSplit
from paimon_core.store.file_store import FileStore


class ReadRecorder:
    """A recorder of one task, which reads splits one after another. Concurrent tasks need a recorder each.

    The thread that decodes and the thread that merges update different counts.
    """

    def __init__(self) -> None:
        self.counts = ReadCounts()
        """The counts of the reader of data files."""
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._splits = self._compared = self._retracted = self._rows = self._batches = 0
        self._whole = 0.0
        self._read: dict[str, Any] = {}
        self._error: str | None = None

    def spend(self, phase: str, seconds: float) -> None:
        """Add seconds to a phase."""
        self._seconds[phase] += seconds

    def spender(self, phase: str) -> Callable[[float], None]:
        """Return a function that adds seconds to a phase."""
        return lambda seconds: self.spend(phase, seconds)

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        started = perf_counter()
        try:
            yield
        finally:
            self.spend(phase, perf_counter() - started)

    @contextmanager
    def split(self, store: FileStore, split: DataSplit) -> Iterator[None]:
        """Measure the read of one split of a table, from the start of the block to its end."""
        self._splits += 1
        snapshot = split.snapshot_id or None
        self._read = {"table": hide_secrets(store.root), "branch": store.branch, "snapshot_id": snapshot}
        started = perf_counter()
        try:
            yield
        except Exception as error:
            self._error = type(error).__name__
            raise
        finally:
            self._whole += perf_counter() - started

    def retracted(self, rows: int) -> None:
        """Count retracting rows, which the merge yields and the read drops."""
        self._retracted += rows

    def compared(self, rows: int) -> None:
        """Count rows that reach the filter."""
        self._compared += rows

    def handed_over(self, rows: int) -> None:
        """Count a batch of the result."""
        self._rows += rows
        self._batches += 1

    def metrics(self) -> ReadMetrics:
        """Return the metrics measured so far."""
        counts, seconds = self.counts, dict(self._seconds)
        seconds["merge"] = max(0.0, seconds["merge"] - seconds["wait"])  # the measured time includes waits
        return ReadMetrics(
            **self._read,
            error=self._error,
            splits=self._splits,
            files=counts.files,
            files_skipped=counts.files_skipped,
            bytes=counts.bytes,
            rows_stored=counts.rows_stored,
            rows_skipped=counts.rows_skipped,
            rows_deleted=counts.rows_deleted,
            rows_merged=counts.rows_decoded - self._retracted - self._compared,
            rows_retracted=self._retracted,
            rows_filtered=self._compared - self._rows,
            rows=self._rows,
            batches=self._batches,
            seconds=self._whole,
            phase_seconds=seconds,
        )


def reported(read: Callable[[ReadRecorder], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a read of one split, and report its metrics to the listeners at its end.

    ``read``: a function that reads with a recorder. A read that its caller stops early is reported too.
    """
    recorder = ReadRecorder()
    try:
        yield from read(recorder)
    finally:
        emit(recorder.metrics())
