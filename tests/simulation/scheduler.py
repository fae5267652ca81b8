"""The scheduler: processes that take turns, and what happens to each of their steps.

Each client is a thread, and only the client with the baton runs. At every step of its storage, at the beginning of each
operation and at each wait it gets a decision:

- ``delay``: the others first take a number of steps;
- ``fail``: an error, and nothing was done;
- ``lost``: it was done, and an error says that it was not;
- ``kill``: the process dies before it; ``killed-after``: right after it; ``torn``: in the middle of it, as far as the
  store is not atomic.

A client goes on until one of these happens, so a history is its operations and a short list of `Event`. A `Draw`
decides by a seed and notes each event; a `Listed` repeats a list. Time is counted in steps: a step takes a millisecond.
"""

import errno
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeVar

T = TypeVar("T")
What = Literal["delay", "fail", "lost", "kill", "killed-after", "torn"]
START: Final = 1_750_000_000_000
"""The epoch milliseconds at which a simulation begins."""
_DELAYS = (1, 2, 4, 8, 16, 32, 64, 128, 400)
_READS = frozenset({"read", "open", "list", "exists", "sync"})
_READ_FAULTS: Sequence[What] = ("fail", "kill")
_FAULTS: Sequence[What] = ("fail", "lost", "kill", "killed-after", "torn")
_TURNING = frozenset({"create_exclusive", "rename", "begin"})
"""Steps before which a delay is most likely to matter."""


class Killed(BaseException):
    """The process died here; nothing after this point runs."""


class Stopped(BaseException):
    """The simulation ends, because the oracle has found something."""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """A decision at step ``at`` (0: the beginning) of an operation; ``steps``: the length of a delay."""

    operation: int
    at: int
    what: What
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.operation}@{self.at} {self.what}{f' {self.steps}' if self.steps else ''}"


class Decisions(Protocol):
    """Decides each step."""

    events: list[Event]

    def decide(self, operation: int, at: int, verb: str) -> Event | None:
        """Return what happens at this step; `None`: it is carried out."""


class Listed:
    """The events of a list, and no other."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = sorted(events)
        self._at = {(event.operation, event.at): event for event in self.events}

    def decide(self, operation: int, at: int, verb: str) -> Event | None:
        return self._at.get((operation, at))


class Draw:
    """Events drawn from a seed, for each operation by itself.

    Args:
        seed: the seed of the history.
        delays: the chance of a delay at a step.
        faults: the chance of a fault at a step.
        unhurt: operations that meet no faults.
    """

    def __init__(self, seed: object, delays: float, faults: float, unhurt: Callable[[int], bool]) -> None:
        self._seed, self._delays, self._faults, self._unhurt = seed, delays, faults, unhurt
        self._random: dict[int, random.Random] = {}
        self.events: list[Event] = []

    def decide(self, operation: int, at: int, verb: str) -> Event | None:
        rng = self._random.get(operation)
        if rng is None:
            rng = self._random[operation] = random.Random(f"{self._seed}/{operation}")
        event = self._event(rng, operation, at, verb)
        if event is not None:
            self.events.append(event)
        return event

    def _event(self, rng: random.Random, operation: int, at: int, verb: str) -> Event | None:
        chance = rng.random()
        if chance < (min(0.5, self._delays * 6) if verb in _TURNING else self._delays):
            return Event(operation, at, "delay", rng.choice(_DELAYS))
        if chance > 1 - self._faults and verb != "begin" and not self._unhurt(operation):
            return Event(operation, at, rng.choice(_READ_FAULTS if verb in _READS else _FAULTS))
        return None


@dataclass
class Client:
    """A thread that runs operations one after the other; each operation is a process of its own."""

    number: int
    run: Callable[["Client"], None]
    turn: Any = field(default_factory=threading.Lock)
    wake: int = 0
    delayed: bool = False
    waits_for: Callable[[], bool] | None = None
    ended: bool = False
    operation: int = -1
    at: int = 0
    dead: bool = False
    uninterrupted: bool = False
    faults: int = 0


class Scheduler:
    """Runs clients one at a time; `step` is called by their storage.

    Args:
        decisions: what happens at each step.
        most_steps: after which the simulation is taken for an endless loop.
    """

    def __init__(self, decisions: Decisions, most_steps: int = 50_000) -> None:
        self.decisions, self.steps, self._most = decisions, 0, most_steps
        self.time = 0
        self.clients: list[Client] = []
        self.error: BaseException | None = None
        self.trace: list[tuple[int, int, int, str, str]] = []
        """Operation, its step, the time, verb and path of each step."""
        self._names = 0
        self._current: Client | None = None
        self._threads: dict[int, Client] = {}
        self._done = threading.Event()

    # ---- as a store and a clock

    @property
    def now(self) -> int:
        """Epoch milliseconds."""
        return START + self.time

    @property
    def operation(self) -> int:
        """The id of the operation that runs; -1: none."""
        return -1 if self._current is None else self._current.operation

    @property
    def current(self) -> int:
        """The number of the client that runs."""
        assert self._current is not None
        return self._current.number

    @property
    def is_client(self) -> bool:
        """True in the thread of a client."""
        return threading.get_ident() in self._threads

    def new_name(self) -> str:
        """Return a unique name, shaped as a UUID, the same in every run."""
        self._names += 1
        return f"{self._names:08x}-0000-4000-8000-{max(self.operation, 0):012x}"

    def step(self, verb: str, path: str, act: Callable[[], T], partly: Callable[[], object] | None = None) -> T:
        """Let happen what is decided for this step of the current operation, and carry it out."""
        client = self._current
        assert client is not None
        if client.dead:
            raise Killed(verb, path)
        if self.error is not None:
            raise Stopped
        if client.uninterrupted:
            self.time += 1
            return act()
        if any(other.delayed and other.wake <= self.time for other in self.clients):
            client.wake = self.time
            self._switch(client)
        client.at += 1
        self.steps += 1
        self.time += 1
        self.trace.append((client.operation, client.at, self.time, verb, path))
        if self.steps > self._most:
            raise AssertionError(f"{self._most} steps: the operations do not end")
        event = self.decisions.decide(client.operation, client.at, verb)
        if event is None:
            return act()
        if event.what == "delay":
            self.wait(event.steps)
            return act()
        client.faults += 1
        if event.what == "fail":
            raise OSError(errno.EIO, "injected: nothing was done", path)
        if event.what == "lost":
            act()
            raise OSError(errno.ETIMEDOUT, "injected: done, but the answer was lost", path)
        client.dead = True
        if event.what == "killed-after":
            act()
        elif event.what == "torn" and partly is not None:
            partly()
        raise Killed(verb, path)

    def begin(self, operation: int, may_begin: Callable[[], bool] | None = None) -> None:
        """Begin an operation of the current client: a new process."""
        client = self._current
        assert client is not None
        client.operation, client.at, client.dead, client.faults = operation, 0, False, 0
        event = self.decisions.decide(operation, 0, "begin")
        if event is not None and event.what == "delay":
            self.wait(event.steps)
        if may_begin is not None and not may_begin():
            client.waits_for = may_begin
            self._switch(client)
            client.waits_for = None

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Let the steps of the current client be one: no other runs in between, and nothing fails."""
        client = self._current
        assert client is not None
        client.uninterrupted = True
        try:
            yield
        finally:
            client.uninterrupted = False

    def wait(self, steps: int) -> None:
        """Let the others take a number of steps."""
        client = self._current
        assert client is not None
        if client.uninterrupted:
            self.time += steps
            return
        if client.dead:
            raise Killed("wait")
        client.wake, client.delayed = self.time + steps, True
        self._switch(client)

    # ---- running

    def run(self, runs: Sequence[Callable[[Client], None]]) -> None:
        """Run the clients until all have ended; raises what one of them, or the oracle, has raised."""
        self.clients = [Client(number, run) for number, run in enumerate(runs)]
        threads = [threading.Thread(target=self._main, args=(client,), daemon=True) for client in self.clients]
        for client in self.clients:
            client.turn.acquire()
        for thread in threads:
            thread.start()
        first = self._next()
        if first is not None:
            self._current = first
            first.turn.release()
            assert self._done.wait(timeout=600), "the clients do not end"
        for thread in threads:
            thread.join(timeout=60)
        self._current = None
        if self.error is not None:
            raise self.error

    def _main(self, client: Client) -> None:
        self._threads[threading.get_ident()] = client
        client.turn.acquire()
        try:
            client.run(client)
        except Stopped:
            pass
        except BaseException as error:
            if self.error is None:
                self.error = error
        finally:
            client.ended = True
            following = self._next()
            if following is None:
                self._done.set()
            else:
                self._current = following
                following.turn.release()

    def _switch(self, client: Client) -> None:
        """Give the baton to the client whose turn it is, and wait for the next turn of this one."""
        following = self._next()
        assert following is not None
        if following is not client:
            self._current = following
            following.turn.release()
            client.turn.acquire()
        if self.error is not None:
            raise Stopped

    def _next(self) -> Client | None:
        """Return the client that wakes first; time goes on to that moment if all are asleep."""
        waiting = [client for client in self.clients if not client.ended]
        if not waiting:
            return None
        able = [c for c in waiting if c.waits_for is None or self.error is not None or c.waits_for()] or waiting
        chosen = min(able, key=lambda one: (max(one.wake, self.time), not one.delayed, one.wake, one.number))
        self.time, chosen.delayed = max(self.time, chosen.wake), False
        return chosen
