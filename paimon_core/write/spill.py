"""The spill space of a writer: sorted write buffers on local disk, to be merged into one file before a commit."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import pyarrow as pa

from paimon_core.memory import MemoryShares
from paimon_core.options.lsm import (
    LOCAL_SORT_MAX_NUM_FILE_HANDLES,
    WRITE_BUFFER_SPILL_MAX_DISK_SIZE,
    WRITE_BUFFER_SPILLABLE,
)
from paimon_core.options.option import Options
from paimon_core.read.external_merge import SpilledRun, batch_bytes, open_runs, spill_codec
from paimon_core.types.selection import Positions

_BATCH_BYTES = 1 << 18  # the most per run when it is read again: there may be a hundred runs


class SpillSpace:
    """A temporary directory of one table writer, created on first use. Thread-safe.

    ``write-buffer-spill.max-disk-size`` limits its bytes. Until a buffer is written, it counts with its size in memory.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._available: int = options.value(WRITE_BUFFER_SPILL_MAX_DISK_SIZE)
        self._codec, self.shares = spill_codec(options), MemoryShares.of(options)
        self._most_runs = max(2, options.value(LOCAL_SORT_MAX_NUM_FILE_HANDLES))
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0
        self._lock = Lock()

    @staticmethod
    def of(options: Options) -> "SpillSpace | None":
        """Return a spill space. `None`: ``write-buffer-spillable`` is false."""
        return SpillSpace(options) if options.value(WRITE_BUFFER_SPILLABLE) else None

    def reserve(self, size: int) -> bool:
        """Reserve space for about ``size`` bytes; return False if less is available."""
        with self._lock:
            if size > self._available:
                return False
            self._available -= size
            return True

    def new_run(self) -> SpilledRun:
        """Return a new empty run."""
        with self._lock:
            self._count += 1
            if self._directory is None:
                self._directory = tempfile.TemporaryDirectory(prefix="paimon-write-")
            size = min(_BATCH_BYTES, batch_bytes(self.shares, self._most_runs))
            return SpilledRun(Path(self._directory.name) / f"{self._count}.arrow", size)

    def open_runs(self, runs: Sequence[SpilledRun]) -> int:
        """Return the maximum number of these runs to merge at once, at least two; fewer if rows are long."""
        return open_runs(self.shares, self._most_runs, max((run.row_bytes for run in runs), default=1))

    def put(self, run: SpilledRun, reserved: int, rows: pa.Table, starts: Positions | None = None) -> None:
        """Add the rows to the run.

        Args:
            run: a run of this space.
            reserved: the bytes that were reserved for the rows.
            rows: the rows to add.
            starts: see `SpilledRun.put`.
        """
        before = run.size
        run.put((rows,), self._codec, starts)
        self._give_back(reserved - (run.size - before))

    def drop(self, runs: Sequence[SpilledRun]) -> None:
        """Delete the runs and free their space."""
        for run in runs:
            run.delete()
            self._give_back(run.size)

    def close(self) -> None:
        """Delete the directory."""
        with self._lock:
            if self._directory is not None:
                self._directory.cleanup()
                self._directory = None

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._available += size
