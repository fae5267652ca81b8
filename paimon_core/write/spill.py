"""Full write buffers on local disk: sorted, waiting to be merged into one file instead of becoming a small one each."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import pyarrow as pa

from paimon_core.options.lsm import WRITE_BUFFER_SPILL_MAX_DISK_SIZE, WRITE_BUFFER_SPILLABLE
from paimon_core.options.option import Options
from paimon_core.read.external_merge import SpilledRun, spill_codec
from paimon_core.types.selection import Positions

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
    def of(options: Options) -> "SpillSpace | None":
        """Return a space, or ``None`` where ``write-buffer-spillable`` is false."""
        return SpillSpace(options) if options.value(WRITE_BUFFER_SPILLABLE) else None

    def reserve(self, size: int) -> bool:
        """Set room for about so many bytes aside; False where there is not so much."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def new_run(self) -> SpilledRun:
        """Return a run that holds nothing yet."""
        with self._lock:
            self._count += 1
            if self._directory is None:
                self._directory = tempfile.TemporaryDirectory(prefix="paimon-write-")
            return SpilledRun(Path(self._directory.name) / f"{self._count}.arrow", _BATCH_BYTES)

    def put(self, run: SpilledRun, reserved: int, rows: pa.Table, starts: Positions | None = None) -> None:
        """Add the rows to the run, in the room reserved for them; ``starts`` as `SpilledRun.put` has it."""
        before = run.size
        run.put((rows,), self._codec, starts)
        self._give_back(reserved - (run.size - before))

    def drop(self, runs: Sequence[SpilledRun]) -> None:
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
