"""One run of one target, in a process of its own, which a crash or a hang of the target ends.

``python -m tests.fuzz.engine MODULE TARGET DIRECTORY SECONDS SEED``. With atheris, libFuzzer chooses inputs by the code
that they reach; without it, inputs are drawn without this knowledge. Faults are written into the directory, and the run
goes on.
"""

import faulthandler
import importlib
import importlib.util
import logging
import os
import random
import resource
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

if importlib.util.find_spec("atheris"):
    import atheris

    _instrumented: Any = atheris.instrument_imports(include=["paimon_core", "paimon_spark"])
else:
    atheris, _instrumented = None, nullcontext()
with _instrumented:
    from paimon_core.fileio import parallel
    from tests.fuzz.corpus import stored
    from tests.fuzz.mutate import MAX_BYTES, SHAPES, of_text
    from tests.fuzz.target import Target, check

    _MODULE = importlib.import_module(f"tests.fuzz.{sys.argv[1]}")  # not all: PySpark takes seconds

_HANG_SECONDS = 30
_HEADROOM = 1 << 30
"""The bytes that the process may allocate beyond what it has before the first input."""


class Run:
    """The inputs of one target, and the faults that they find."""

    def __init__(self, target: Target, directory: Path) -> None:
        self.target, self.directory = target, directory
        self.seeds = list(dict.fromkeys([*target.seeds(), *(data for _, data in stored(target.name))]))
        self._current = os.open(directory / "current", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.executed = 0
        self._found: dict[str, int] = {}

    def one(self, data: bytes) -> None:
        """Run the target on one input, and write a fault with a new place, or with a shorter input."""
        if self.executed == 0:
            _limit_memory()
        self.executed += 1
        os.pwrite(self._current, data, 0)  # a crash leaves it
        os.ftruncate(self._current, len(data))
        fault = check(self.target, data, watched=True)
        if fault is None or self._found.get(fault.key, sys.maxsize) <= len(data):
            return
        self._found[fault.key] = len(data)
        path = self.directory / "faults" / fault.key
        path.with_name(fault.key + ".bin").write_bytes(data)
        path.with_name(fault.key + ".txt").write_text(f"{data[:2000]!r}\n\n{fault.trace}")

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        """Return a changed input."""
        for _ in range(rng.choice((1, 1, 2, 3))):
            if self.target.shape == "text":
                data = of_text(data, rng, self.seeds, self.target.tokens)
            else:
                data = SHAPES[self.target.shape](data, rng, self.seeds)
        return data if len(data) <= MAX_BYTES * 2 else data[:MAX_BYTES]


def _limit_memory() -> None:
    held = int(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmData" in line).split()[1])
    resource.setrlimit(resource.RLIMIT_DATA, ((held << 10) + _HEADROOM, resource.RLIM_INFINITY))


def guided(run: Run, seconds: int, seed: int) -> None:
    """Let libFuzzer choose inputs; it ends the process."""
    inputs, seeds = run.directory / "inputs", run.directory / "seeds"
    for place in (inputs, seeds):
        place.mkdir(exist_ok=True)
    for number, data in enumerate(run.seeds):
        (seeds / str(number)).write_bytes(data)

    def mutate(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)
        return atheris.Mutate(data, max_size) if rng.random() < 0.1 else run.mutated(bytes(data), rng)[:max_size]

    options = {
        "max_total_time": seconds,
        "timeout": _HANG_SECONDS,
        "rss_limit_mb": 6000,
        "max_len": MAX_BYTES * 2,
        "seed": seed,
        "artifact_prefix": f"{run.directory}/faults/",
        "print_final_stats": 1,
        "len_control": 0,
    }
    arguments = [sys.argv[0], str(inputs), str(seeds), *(f"-{key}={value}" for key, value in options.items())]
    atheris.Setup(arguments, run.one, custom_mutator=mutate, internal_libfuzzer=True)
    atheris.Fuzz()


def minimised(run: Run, kept: Path) -> None:
    """Copy the inputs that together reach all code that the run has reached, the shortest first, into ``kept``."""
    kept.mkdir(exist_ok=True)
    arguments = [sys.argv[0], "-merge=1", f"-timeout={_HANG_SECONDS}", str(kept), str(run.directory / "inputs")]
    atheris.Setup(arguments, run.one, internal_libfuzzer=True)
    atheris.Fuzz()


def drawn(run: Run, seconds: int, seed: int) -> None:
    """Draw inputs from the seeds."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    for data in run.seeds:
        run.one(data)
    while time.monotonic() < end:
        data = run.mutated(rng.choice(run.seeds), rng)
        run.one(data)
    print(f"stat::number_of_executed_units: {run.executed}", file=sys.stderr)


def main(arguments: Sequence[str]) -> None:
    """Run one target."""
    name, directory, seconds, seed = arguments[1], Path(arguments[2]), arguments[3], arguments[4]
    logging.disable()
    faulthandler.enable()
    (directory / "faults").mkdir(parents=True, exist_ok=True)
    parallel.default_threads = lambda: 1  # files are in memory, and traces of one thread are easier to read
    run = Run(next(target for target in _MODULE.TARGETS if target.name == name), directory)
    if seconds == "minimise":
        minimised(run, directory / "kept")
    else:
        (guided if atheris else drawn)(run, int(seconds), int(seed))


if __name__ == "__main__":
    main(sys.argv[1:])
