"""The world of a simulated year: true time, machines whose clocks differ from it, and a store in memory."""

import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any, TypeVar
from unittest import mock

from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.simulation.store import Disk, SimulatedIO, SimulatedStorage

T = TypeVar("T")
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
WAREHOUSE = "/simulated/w"
ZONE = "Europe/Berlin"
"""The zone of all machines: it has daylight saving time."""


class Clock:
    """The true time, in epoch milliseconds, and by machine how far its clock is ahead of it."""

    def __init__(self, begin: int) -> None:
        self.time = begin
        self.ahead: dict[str, int] = {}

    def of(self, machine: str) -> Callable[[], int]:
        """Return the clock of a machine."""
        return lambda: self.time + self.ahead.get(machine, 0)

    @property
    def day(self) -> str:
        """The local date."""
        return f"{datetime.fromtimestamp(self.time / 1000):%Y-%m-%d}"


class Calls:
    """The requests to the store, counted; the store's clock is the true time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.count = 0
        self.operation = 0

    @property
    def now(self) -> int:
        """Epoch milliseconds."""
        return self._clock.time

    def step(self, verb: str, path: str, act: Callable[[], T], partly: Callable[[], object] | None = None) -> T:
        """Carry out a request."""
        self.count += 1
        return act()

    def new_name(self) -> str:
        """Return a unique name."""
        return str(uuid.uuid4())


class World:
    """A clock, a store, and the tables in it."""

    def __init__(self, begin: int) -> None:
        self.clock = Clock(begin)
        self.calls = Calls(self.clock)
        self.disk = Disk("local", remembers=False)
        self.io = SimulatedIO(SimulatedStorage(self.disk, self.calls))

    def create(self, name: str, schema: Schema) -> None:
        """Create a table."""
        create_table(self.io, f"{WAREHOUSE}/{name}", schema, self.clock.of("steady"))

    def open(self, name: str, machine: str = "steady", branch: str = "main") -> Table:
        """Open a table, or a branch of it, on a machine."""
        root = f"{WAREHOUSE}/{name}"
        directory = root if branch == "main" else f"{root}/branch/branch-{branch}"
        schema = Schemas(self.io, directory).latest()
        assert schema is not None
        return Table(FileStore(self.io, root, schema, branch, now=self.clock.of(machine)))

    def files(self, name: str) -> tuple[int, int]:
        """Return the number of files of a table, and their bytes."""
        sizes = [len(file.data) for path, file in self.disk.files.items() if path.startswith(f"{WAREHOUSE}/{name}/")]
        return len(sizes), sum(sizes)


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """Let this process be in a time zone."""
    with ExitStack() as stack:
        stack.callback(time.tzset)  # after the environment is restored
        stack.enter_context(mock.patch.dict(os.environ, TZ=zone))
        time.tzset()
        yield


@contextmanager
def unexpected_warnings() -> Iterator[list[str]]:
    """Yield the list of the engine's warnings inside, except those about the clocks that are ahead."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    handler.addFilter(lambda record: "ahead of the clock of the store" not in record.getMessage())
    logger = logging.getLogger("paimon_core")
    with mock.patch.object(logger, "propagate", False):
        logger.addHandler(handler)
        try:
            yield found
        finally:
            logger.removeHandler(handler)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the caller do all work, so that counts are repeatable."""
    replaced: dict[str, Any] = {
        "paimon_core.fileio.threads.SharedThreads.start": lambda threads, job: False,
        "paimon_core.fileio.parallel.default_threads": lambda: 1,
    }
    with ExitStack() as stack:
        for target, replacement in replaced.items():
            stack.enter_context(mock.patch(target, replacement))
        yield
