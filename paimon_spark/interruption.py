"""Ctrl-C between two jobs of a statement: what the statement does next ends it.

Ctrl-C cancels the running jobs (`paimon_spark.sql.bridge.interrupts`). A statement between two jobs continues in a
thread of its own, so it asks here before each job and before it commits.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Interrupts:
    """The number of times that Ctrl-C was pressed."""

    number = 0


_begun = threading.local()


def note_interrupt() -> None:
    """Let `check_interrupted` end every statement that has begun."""
    _Interrupts.number += 1


@contextmanager
def statement() -> Iterator[None]:
    """Run a statement, or a part of one, in this thread."""
    outer = getattr(_begun, "at", None)
    _begun.at = _Interrupts.number if outer is None else outer
    try:
        yield
    finally:
        _begun.at = outer


def check_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed since the statement of this thread began; else do nothing."""
    begun = getattr(_begun, "at", None)
    if begun is not None and begun != _Interrupts.number:
        raise KeyboardInterrupt("Ctrl-C ended the statement")
