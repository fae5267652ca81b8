"""Ctrl-C between two jobs of a statement: the statement ends before its next job or commit.

Ctrl-C cancels running jobs (`paimon_spark.sql.bridge.interrupts`). A statement between two jobs runs in a thread of its
own, so it calls `check_interrupted` before each job and before its commit.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Interrupts:
    """A counter of Ctrl-C."""

    number = 0


_begun = threading.local()


def note_interrupt() -> None:
    """Make `check_interrupted` end every statement that is running."""
    _Interrupts.number += 1


@contextmanager
def statement() -> Iterator[None]:
    """Run the block as a statement, or as a part of an outer statement, in this thread."""
    outer = getattr(_begun, "at", None)
    _begun.at = _Interrupts.number if outer is None else outer
    try:
        yield
    finally:
        _begun.at = outer


def check_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed since the statement of this thread started."""
    begun = getattr(_begun, "at", None)
    if begun is not None and begun != _Interrupts.number:
        raise KeyboardInterrupt("Ctrl-C ended the statement")
