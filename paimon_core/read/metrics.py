"""Metrics of a read: rows in and out, bytes, and time by phase, as one value that adds up over tasks.

A read measures only if somebody asks: give a `ReadRecorder` to `TableRead`, read, and take `ReadRecorder.metrics`. A
read without a recorder tests one reference for each batch; one with a recorder takes about ten readings of the clock
for each batch. A read is measured so:

    recorder = ReadRecorder()
    batches = TableRead(store, fields, recorder=recorder).to_batches(split)   # read them to the end
    total = recorder.metrics() + other_task.metrics()
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import Any, Final

from paimon_core.datafile.read_counts import ReadCounts

PHASES: Final = ("plan", "decode", "wait", "merge", "filter", "hand_over")
"""The phases of a read, in their order: see `ReadMetrics`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMetrics:
    """The measurements of the reads of one task, or of several: ``a + b`` adds every field.

    For reads that went on to their end ``rows_stored`` is the sum of ``rows_skipped``, ``rows_deleted``,
    ``rows_merged``, ``rows_retracted``, ``rows_filtered`` and ``rows``.

    Args:
        splits: splits that were read.
        files: data files that were opened or skipped; the parts of one file count once.
        files_skipped: the part of these that an index file excluded.
        bytes: encoded bytes of the columns and row groups that were decoded; of other formats than Parquet whole files.
        rows_stored: rows in the files, by their metadata.
        rows_skipped: rows that statistics of row groups or file indexes excluded.
        rows_deleted: rows that deletion vectors left out.
        rows_merged: older rows of their keys, which the merge took in; with data evolution, rows joined to others.
        rows_retracted: rows of kind "-U" and "-D" that no older row of their key followed.
        rows_filtered: rows that do not match the filter.
        rows: rows of the result.
        batches: batches of the result.
        seconds: from the first to the last batch; seconds of parallel tasks add up.
        phase_seconds: the time by phase. "plan": metadata to splits. "decode": files to batches, with deletion vectors
            and changes of the schema. "wait": the merge waits for "decode", which another thread does. "merge": sort
            and fold. "filter": compare rows. "hand_over": make the batches of the result, and what the caller
            adds to pass them on. "decode" runs beside "merge", so the sum may exceed ``seconds``.
    """

    splits: int = 0
    files: int = 0
    files_skipped: int = 0
    bytes: int = 0
    rows_stored: int = 0
    rows_skipped: int = 0
    rows_deleted: int = 0
    rows_merged: int = 0
    rows_retracted: int = 0
    rows_filtered: int = 0
    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    phase_seconds: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    def __add__(self, other: "ReadMetrics") -> "ReadMetrics":
        if not isinstance(other, ReadMetrics):
            return NotImplemented
        sums: dict[str, Any] = {
            f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "phase_seconds"
        }
        one, two = self.phase_seconds, other.phase_seconds
        return ReadMetrics(**sums, phase_seconds={p: one.get(p, 0.0) + two.get(p, 0.0) for p in {**one, **two}})

    def with_phase(self, phase: str, seconds: float) -> "ReadMetrics":
        """Return the metrics with ``seconds`` more in a phase, and in all."""
        spent = {**self.phase_seconds, phase: self.phase_seconds.get(phase, 0.0) + seconds}
        return replace(self, seconds=self.seconds + seconds, phase_seconds=spent)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as values of JSON."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "phase_seconds": dict(self.phase_seconds)}


class ReadRecorder:
    """A recorder of the reads of one task: splits, one after another. Tasks of several threads take one each.

    The thread that decodes and the thread that merges write different counts.
    """

    def __init__(self) -> None:
        self.counts = ReadCounts()
        """The counts of the reader of data files."""
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._splits = self._compared = self._retracted = self._rows = self._batches = 0
        self._whole = 0.0

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
    def split(self) -> Iterator[None]:
        """Measure the read of one split, from the start of the block to its end."""
        self._splits += 1
        started = perf_counter()
        try:
            yield
        finally:
            self._whole += perf_counter() - started

    def retracted(self, rows: int) -> None:
        """Count rows that retract, which the merge left and the read drops."""
        self._retracted += rows

    def compared(self, rows: int) -> None:
        """Count rows that reach the filter."""
        self._compared += rows

    def handed_over(self, rows: int) -> None:
        """Count a batch of the result."""
        self._rows += rows
        self._batches += 1

    def metrics(self) -> ReadMetrics:
        """Return what was measured so far."""
        counts, seconds = self.counts, dict(self._seconds)
        seconds["merge"] = max(0.0, seconds["merge"] - seconds["wait"])  # the merge is measured with its waits
        return ReadMetrics(
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
