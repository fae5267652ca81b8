"""The spill space of a writer: sorted write buffers on local disk, to be merged into one file before a commit."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import pyarrow as pa

from paimon_core.options.lsm import WRITE_BUFFER_SPILL_MAX_DISK_SIZE, WRITE_BUFFER_SPILLABLE
from paimon_core.options.option import Options
from paimon_core.read.external_merge import SpilledRun, spill_codec
from paimon_core.types.selection import Positions

_BATCH_BYTES = 1 << 18  # per run when it is read again: there may be a hundred runs


class SpillSpace:
    """A temporary directory of one table writer, created on first use. Thread-safe.

    ``write-buffer-spill.max-disk-size`` limits its bytes. Until a buffer is written, it counts with its size in memory.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._available: int = options.value(WRITE_BUFFER_SPILL_MAX_DISK_SIZE)
        self._codec = spill_codec(options)
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
            return SpilledRun(Path(self._directory.name) / f"{self._count}.arrow", _BATCH_BYTES)

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
