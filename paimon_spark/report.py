"""What Spark's Python workers report when the engine raises an error: its message, then a few lines of trace.

A worker ends with the exception that reaches it and sends Spark its text, which is all that a user's session gets to
see: the whole trace first, the message last. With SPARK_HIDE_TRACEBACK in its environment it sends the exception alone.
So that variable is set while an error of the engine is on its way out of what Spark calls, with the end of the trace in
the error's own text. It is taken back when the error is gone, should anything catch it.

Exceptions of other kinds keep their trace, and outside of Spark's workers nothing is changed at all.
"""

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from traceback import extract_tb
from types import FunctionType
from typing import Any, TypeVar

from paimon_core.errors import PaimonError

TRACE_LINES = 5
"""Lines that follow the message: the exception that caused the error, and the innermost frames."""
_HIDE = "SPARK_HIDE_TRACEBACK"
_MOST_OF_CAUSE = 200  # characters

Kind = TypeVar("Kind")


class _Reported(PaimonError):
    """Root of the classes that stand in for the engine's own."""


def message_first(kind: type[Kind]) -> type[Kind]:
    """Let the public methods of a class that Spark calls raise errors of the engine fit to be reported."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(kind, name, reporting(member))
    return kind


def reporting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, or a generator, that raises errors of the engine fit to be reported; else it is the same."""
    if isgeneratorfunction(function):

        @wraps(function)
        def generate(*args: Any, **named: Any) -> Iterator[Any]:
            with _reported():
                yield from function(*args, **named)

        return generate

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        with _reported():
            return function(*args, **named)

    return call


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except _Reported:
        raise
    except PaimonError as error:
        if not _in_worker():
            raise
        raise _stand_in(error) from error  # and no variable holds it: it goes when it is caught


def _in_worker() -> bool:
    """Return True in a process that Spark has started to run Python for it."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name.startswith("pyspark.")


def _stand_in(error: PaimonError) -> PaimonError:
    """Return an error of the same name whose text ends in lines of trace. While it lives, Spark adds none.

    Its class has no other base: Spark takes a NotImplementedError at planning for a reader without partitions, and
    reads no rows.
    """
    kind = type(error)
    same_name = type(kind.__name__, (_Reported,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
    reported: PaimonError = same_name("\n".join([str(error), *_trace(error)]))
    if _HIDE not in os.environ:
        os.environ[_HIDE] = "1"
        weakref.finalize(reported, os.environ.pop, _HIDE, None)
    return reported


def _trace(error: PaimonError) -> list[str]:
    """Return at most TRACE_LINES lines: the cause, if there is one, and the frames, where it was raised first."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    lines = []
    if cause is not None:
        kind = type(cause)
        text = " ".join(str(cause).split())[:_MOST_OF_CAUSE]
        lines.append(f"  caused by {kind.__module__}.{kind.__qualname__}: {text}")
    frames = [frame for frame in reversed(extract_tb(error.__traceback__)) if frame.filename != __file__]
    lines += [f"  at {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    return lines[:TRACE_LINES]
