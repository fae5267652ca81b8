"""Run one case in a process with a limit of its data (``RLIMIT_DATA``), and measure its peak.

The process first runs the case on a small table, so that libraries, threads and caches exist. Then it limits its
data to what it has plus ``memory-limit``, and runs the case on the large table. The limit counts all memory that the
process can write; unlike the address space, it leaves out what an allocator reserves.
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from paimon_core.table import Table
from tests.memory.cases import CASES, MIB

_SMALL = 4 * MIB
_STACK_KB = 1024  # of a thread: the limit counts whole stacks, and a thread uses little of its stack


@dataclass(frozen=True)
class Measured:
    """The result of a case: megabytes of rows, megabytes of memory at the peak, seconds, and the error of a failure."""

    megabytes: int
    peak: int
    seconds: float
    error: str | None = None


def measure(name: str, directory: Path, limit: int, times: float, enforced: int | None = None) -> Measured:
    """Make the tables of a case, and run it in another process.

    Args:
        name: a name of `CASES`.
        directory: where to make the tables.
        limit: ``memory-limit`` in megabytes.
        times: the size of the rows, in limits.
        enforced: megabytes that the process may take beyond what it has when it is idle; `None`: the limit; 0: any.
    """
    case, size = CASES[name], int(limit * times * MIB)
    content = case.content(size)
    megabytes = content.rows * (1 if case.disjoint else content.runs) * case.rows.row_bytes // MIB
    case.make(str(directory / "small"), _SMALL)
    case.make(str(directory / "large"), size)
    environment = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "65536",
                   "PYTHONPATH": ":".join(p for p in sys.path if p), "PATH": "/usr/bin:/bin",
                   "TMPDIR": str(directory)}  # fmt: skip
    numbers = map(str, (limit, limit if enforced is None else enforced, size))
    started = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -S -s {_STACK_KB}; exec "$0" "$@"', sys.executable, "-m", "tests.memory.limited",
         name, str(directory), *numbers],
        env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    seconds = time.monotonic() - started
    if done.returncode:
        return Measured(megabytes, 0, seconds, done.stderr[-4000:] or f"signal {-done.returncode}")
    return Measured(megabytes, json.loads(done.stdout)["peak"], seconds)


def main(name: str, directory: str, limit: int, enforced: int, size: int) -> None:
    """Run the case, and print the peak of the resident memory in megabytes, beyond the memory of the idle process."""
    case = CASES[name]
    options = {"memory-limit": f"{limit} mb"}
    case.run(Table.open(f"{directory}/small", options=options), case.rows, case.content(_SMALL))
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    if enforced:
        most = _status("VmData") * 1024 + enforced * MIB
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    case.run(Table.open(f"{directory}/large", options=options), case.rows, case.content(size))
    print(json.dumps({"peak": (_status("VmHWM") - before) // 1024}))


def _status(name: str) -> int:
    """Return a number of kilobytes of the status of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
