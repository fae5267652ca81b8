"""Repeated statements of one process: after several conflicts, a statement runs without new competitors.

Many sessions of a server may change one table all the time. Each attempt then has a conflict with the same probability,
so some statement would lose every attempt. Other processes are not kept waiting.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from threading import Lock, RLock
from typing import ClassVar, TypeVar
from weakref import WeakValueDictionary

from paimon_core.engine import retry_on_conflict
from paimon_spark.interruption import check_interrupted

T = TypeVar("T")
PARALLEL_ATTEMPTS = 3
"""The attempts of a statement that run at the same time as attempts of other statements."""
_CHECK_SECONDS = 0.5


class _TableTurns:
    """The turns of the statements that change one table in this process."""

    _of_tables: ClassVar[WeakValueDictionary[str, "_TableTurns"]] = WeakValueDictionary()
    _finding: ClassVar[Lock] = Lock()

    def __init__(self) -> None:
        self._lock = RLock()

    @classmethod
    def of(cls, root: str) -> "_TableTurns":
        """Return the turns of the table in a directory."""
        with cls._finding:
            return cls._of_tables.setdefault(root, cls())

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the statement that has the turn, and keep others waiting during the block; Ctrl-C ends the wait."""
        while not self._lock.acquire(timeout=_CHECK_SECONDS):
            check_interrupted()
        try:
            yield
        finally:
            self._lock.release()


def retry_in_turn(root: str, attempt: Callable[[], T], times: int) -> T:
    """Call ``attempt`` as `retry_on_conflict` does, with a turn of its own after `PARALLEL_ATTEMPTS` conflicts.

    Attempts of other statements on the table that run already may cause one more conflict; later ones wait.

    Args:
        root: the directory of the table.
        attempt: reads the newest snapshot, and commits.
        times: the most attempts.

    Raises the errors of `retry_on_conflict`.
    """
    turns, numbers = _TableTurns.of(root), count(1)
    with ExitStack() as turn:

        def in_turn() -> T:
            number = next(numbers)
            if number <= PARALLEL_ATTEMPTS:
                with turns.taken():  # wait for a statement that has the turn
                    pass
            elif number == PARALLEL_ATTEMPTS + 1:
                turn.enter_context(turns.taken())
            return attempt()

        return retry_on_conflict(in_turn, times)
