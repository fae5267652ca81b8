"""Full write buffers on local disk: sorted, waiting to be merged into one file instead of becoming a small one each."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import pyarrow as pa

from paimon_core.merge.engine import MergeEngine
from paimon_core.options.lsm import WRITE_BUFFER_SPILL_MAX_DISK_SIZE, WRITE_BUFFER_SPILLABLE
from paimon_core.options.option import Options
from paimon_core.read.passes import StoredRun, spill_codec

_BATCH_BYTES = 1 << 18  # of each run when it is read again: there may be a hundred


class SpillSpace:
    """A temporary directory of one table writer, made when first needed; several threads may use it.

    ``write-buffer-spill.max-disk-size`` bounds what is there, one buffer's bytes on disk being those it had in memory
    until it is written.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._left: int = options.value(WRITE_BUFFER_SPILL_MAX_DISK_SIZE)
        self._codec = spill_codec(options)
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0
        self._lock = Lock()

    @staticmethod
    def of(options: Options, engine: MergeEngine) -> "SpillSpace | None":
        """Where ``write-buffer-spillable`` is set to true, by whom it may be, and merging in steps gives the same."""
        wished = options.has(WRITE_BUFFER_SPILLABLE) and options.value(WRITE_BUFFER_SPILLABLE)
        return SpillSpace(options) if wished and engine.keeps_rows else None

    def reserve(self, size: int) -> Path | None:
        """A place for about so many bytes; None where there is no room for them."""
        with self._lock:
            if size > self._left:
                return None
            self._left -= size
            self._count += 1
            if self._directory is None:
                self._directory = tempfile.TemporaryDirectory(prefix="paimon-write-")
            return Path(self._directory.name) / f"{self._count}.arrow"

    def put(self, path: Path, reserved: int, rows: pa.Table) -> StoredRun:
        """The sorted rows in a file at the place reserved for them."""
        run = StoredRun(path, _BATCH_BYTES)
        run.put((rows,), self._codec)
        self._give_back(reserved - run.size)
        return run

    def drop(self, runs: Sequence[StoredRun]) -> None:
        """The runs are needed no more."""
        for run in runs:
            run.delete()
            self._give_back(run.size)

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            if self._directory is not None:
                self._directory.cleanup()
                self._directory = None

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._left += size
