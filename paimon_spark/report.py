"""Errors of the engine and of storage in Spark's Python workers: the message first, then a few lines of traceback.

A worker sends Spark the text of an exception: the whole traceback, then the message. With SPARK_HIDE_TRACEBACK in its
environment, it sends only the message. Methods that Spark calls therefore raise errors whose message ends with a short
traceback, and this variable is set as long as the error exists.

Other exceptions keep their traceback. Outside of Spark's workers nothing changes.
"""

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import isgeneratorfunction
from traceback import extract_tb
from types import FunctionType
from typing import Any, TypeVar

from paimon_core.errors import PaimonError

TRACE_LINES = 5
"""The maximum number of lines after the message: the cause of the error, and the innermost frames."""
_HIDE = "SPARK_HIDE_TRACEBACK"
_MAX_CAUSE_LENGTH = 200  # characters

_AS_IN_WORKER = ContextVar("_AS_IN_WORKER", default=False)
Kind = TypeVar("Kind")


class _Reported(PaimonError):
    """The base of the classes that replace the engine's error classes in a worker."""


def message_first(kind: type[Kind]) -> type[Kind]:
    """Decorate a class that Spark calls, so that its public methods raise the engine's errors message first."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(kind, name, reporting(member))
    return kind


def reporting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function or generator so that it raises the engine's errors message first."""
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
    except (PaimonError, OSError) as error:  # an OSError concerns the storage: its clients' errors are translated
        if not _in_worker():
            raise
        raise _with_trace(error) from error  # no variable refers to the new error, so it is freed once handled


@contextmanager
def as_in_worker() -> Iterator[None]:
    """Let a block that runs Spark's planning functions in this process raise the engine's original errors.

    Inside the block they are wrapped as in a worker: from an UnsupportedError of a reader, Spark would conclude that
    the reader has no partitions, and read no rows.
    """
    token = _AS_IN_WORKER.set(True)
    try:
        yield
    except _Reported as error:
        raise (error.__cause__ or error) from None
    finally:
        _AS_IN_WORKER.reset(token)


def _in_worker() -> bool:
    """Return True in a Python process that Spark started, or while this process does the work of one."""
    if _AS_IN_WORKER.get():
        return True
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name.startswith("pyspark.")


def _with_trace(error: Exception) -> PaimonError:
    """Return an error of the same class name whose text ends with traceback lines. While it exists, Spark adds none.

    The new class inherits only from `_Reported`: UnsupportedError is a NotImplementedError, from which Spark's planner
    would conclude that the reader has no partitions, and read no rows.
    """
    kind = type(error)
    same_name = type(kind.__name__, (_Reported,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
    reported: PaimonError = same_name("\n".join([str(error), *_trace(error)]))
    if _HIDE not in os.environ:
        os.environ[_HIDE] = "1"
        weakref.finalize(reported, os.environ.pop, _HIDE, None)
    return reported


def error_text(error: PaimonError) -> str:
    """Return the text that a worker sends for an error: its class, its message, and lines of its traceback."""
    kind = type(error)
    return "\n".join([f"{kind.__module__}.{kind.__qualname__}: {error}", *_trace(error)])


def _trace(error: Exception) -> list[str]:
    """Return at most TRACE_LINES lines: the cause, if any, then the frames, innermost first."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    lines = []
    if cause is not None:
        kind = type(cause)
        text = " ".join(str(cause).split())[:_MAX_CAUSE_LENGTH]
        lines.append(f"  caused by {kind.__module__}.{kind.__qualname__}: {text}")
    frames = [frame for frame in reversed(extract_tb(error.__traceback__)) if frame.filename != __file__]
    lines += [f"  at {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    return lines[:TRACE_LINES]
