"""Operations that run at once, stepped at their FileIO calls in an order that the test decides.

Every operation runs in a thread of its own on a FileIO of its own over one shared store. A call waits until it is
given the turn, is carried out alone, and the next turn is dealt when all operations have come to a call or to their
end. So an interleaving is a list of numbers: it can be drawn, shrunk and repeated.
"""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from paimon_core.fileio.fileio import FileIO
from tests.support.faulty_io import FaultyIO

T = TypeVar("T")
Operation = Callable[[FileIO], Any]
_PATIENCE = 300.0 if os.environ.get("PAIMON_TEST_STORE") else 60.0
"""Seconds until a silent operation counts as hanging. The client of a store may repeat a request for minutes."""


def interleave(io: FileIO, operations: Sequence[Operation], turns: Iterable[tuple[int, int]]) -> list[Any]:
    """Run the operations; returns what each returned, or the exception it ended with.

    ``turns`` are (operation, number of calls): who goes on for how long. When they are used up, or name an operation
    that has ended, the first that has not goes on.
    """
    return _Stage(io, operations).play([who for who, calls in turns for _ in range(calls)])


class _Stage:
    def __init__(self, io: FileIO, operations: Sequence[Operation]) -> None:
        self._changed = threading.Condition()
        self._waiting = [0] * len(operations)
        self._ended = [False] * len(operations)
        self._turn: int | None = None
        self._acting = False
        self._results: list[Any] = [None] * len(operations)
        self._threads = [
            threading.Thread(target=self._run, args=(who, operation, _SteppedIO(io, self, who)), daemon=True)
            for who, operation in enumerate(operations)
        ]

    def play(self, turns: list[int]) -> list[Any]:
        for thread in self._threads:
            thread.start()
        while True:
            with self._changed:
                settled = self._changed.wait_for(self._settled, timeout=_PATIENCE)
                assert settled, f"an operation neither called its FileIO nor ended for {_PATIENCE} s"
                if all(self._ended):
                    break
                self._turn, self._acting = self._next(turns), True
                self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        return self._results

    def _next(self, turns: list[int]) -> int:
        while turns:
            who = turns.pop(0)
            if not self._ended[who]:
                return who
        return self._ended.index(False)

    def _settled(self) -> bool:
        return not self._acting and all(
            ended or waiting for ended, waiting in zip(self._ended, self._waiting, strict=True)
        )

    def _run(self, who: int, operation: Operation, io: FileIO) -> None:
        try:
            self._results[who] = operation(io)
        except Exception as error:
            self._results[who] = error
        finally:
            with self._changed:
                self._ended[who] = True
                self._changed.notify_all()

    def call(self, who: int, act: Callable[[], T]) -> T:
        with self._changed:
            self._waiting[who] += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._turn == who)
            self._turn = None
            self._waiting[who] -= 1
        try:
            return act()
        finally:
            with self._changed:
                self._acting = False
                self._changed.notify_all()


class _SteppedIO(FaultyIO):
    """Waits for its turn at every call."""

    def __init__(self, inner: FileIO, stage: _Stage, who: int) -> None:
        super().__init__(inner)
        self._stage, self._who = stage, who

    def _call(self, verb: str, path: str, act: Callable[[], T], half: Callable[[], object] | None = None) -> T:
        return self._stage.call(self._who, act)
