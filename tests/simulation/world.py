"""Make a simulation repeatable: the scheduler controls time, names, random numbers, threads and stores."""

import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from paimon_core.fileio.fileio import FileIO
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import SimulatedIO, SimulatedStorage


@contextmanager
def simulated(scheduler: Scheduler, storage: SimulatedStorage) -> Iterator[None]:
    """Inside, all engines in the threads of clients live in the simulation; other threads are as before."""
    io = SimulatedIO(storage)
    chance = random.Random(0)

    def ours(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: simulated(*given) if scheduler.is_client else real(*given, **named)

    named = uuid.UUID
    replaced = {
        "time.sleep": ours(time.sleep, lambda seconds: scheduler.wait(max(1, round(seconds * 1000)))),
        "time.monotonic": ours(time.monotonic, lambda: scheduler.now / 1000),
        "time.time": ours(time.time, lambda: scheduler.now / 1000),
        "time.time_ns": ours(time.time_ns, lambda: scheduler.now * 1_000_000),
        "uuid.uuid4": ours(uuid.uuid4, lambda: named(scheduler.new_name())),
        "random.random": ours(random.random, chance.random),
        "os.urandom": ours(os.urandom, chance.randbytes),
        "paimon_core.store.file_store.uuid4": ours(uuid.uuid4, lambda: named(scheduler.new_name())),
        "paimon_core.fileio.threads.SharedThreads.start": lambda threads, job: False,  # the caller runs all calls
        "paimon_core.fileio.parallel.default_threads": lambda: 1,
    }
    with ExitStack() as stack:
        for target, replacement in replaced.items():
            stack.enter_context(mock.patch(target, replacement))
        stack.enter_context(mock.patch.object(FileIO, "of", return_value=io))
        yield
