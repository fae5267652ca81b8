"""Listeners: functions that receive the measurements of every commit, compaction, scan and read of this process.

A listener cannot affect an operation: its errors are logged. Scans and reads are measured only if there is a listener,
a collection, or a logger that is enabled for them.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.metrics.values import CommitMetrics, CompactionMetrics, Metrics, ReadMetrics, ScanMetrics

Listener: TypeAlias = Callable[[Metrics], None]
M = TypeVar("M", bound=Metrics)

LOGGER: Final = "paimon_core.metrics"
"""Name of the logger, which gets one record per event: commits and compactions at INFO, scans and reads at DEBUG."""
_log = logging.getLogger(LOGGER)
_lock = Lock()
_listeners: tuple[Listener, ...] = ()
_collections: "ContextVar[tuple[OperationMetrics, ...]]" = ContextVar("paimon_metrics", default=())


@dataclass(frozen=True, slots=True)
class OperationMetrics:
    """The measurements of one operation, which may commit, compact, scan and read several times.

    A sum is `None` if there is nothing to add.
    """

    events: list[Metrics] = field(default_factory=list)
    """All measurements, in the order of their events."""
    only: type[Metrics] = field(default=Metrics, compare=False)
    """The class of measurements to collect; all others are dropped."""

    def of(self, kind: type[M]) -> list[M]:
        """Return the measurements of one class."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def commits(self) -> list[CommitMetrics]:
        """The commits that created a snapshot."""
        return [commit for commit in self.of(CommitMetrics) if commit.error is None]

    @property
    def failures(self) -> list[CommitMetrics]:
        """The commits that failed; an operation that succeeded has repeated them."""
        return [commit for commit in self.of(CommitMetrics) if commit.error is not None]

    @property
    def compactions(self) -> list[CompactionMetrics]:
        """The compactions."""
        return self.of(CompactionMetrics)

    @property
    def scans(self) -> list[ScanMetrics]:
        """The scans planned."""
        return self.of(ScanMetrics)

    @property
    def reads(self) -> list[ReadMetrics]:
        """The reads of splits."""
        return self.of(ReadMetrics)

    @property
    def commit(self) -> CommitMetrics | None:
        """The sum of all commits except commits of kind COMPACT."""
        return total([commit for commit in self.commits if commit.commit_kind != "COMPACT"])

    @property
    def compaction(self) -> CompactionMetrics | None:
        """The sum of the compactions."""
        return total(self.compactions)

    @property
    def read(self) -> ReadMetrics | None:
        """The sum of the reads of splits."""
        return total(self.reads)


def total(metrics: list[M]) -> M | None:
    """Return the sum of measurements of one class; `None` if the list is empty."""
    result = None
    for event in metrics:
        result = event if result is None else result + event
    return result


def add_listener(listener: Listener) -> None:
    """Call ``listener`` with the measurements of every later event of this process, in the thread of the event.

    A listener that is added twice is called once. An error of the listener is logged and has no other effect.
    Raises InvalidInputError for an object that is not callable.
    """
    global _listeners
    if not callable(listener):
        raise InvalidInputError(f"a listener is a function of one argument, the metrics, not {listener!r}")
    with _lock:
        if listener not in _listeners:
            _listeners = (*_listeners, listener)


def remove_listener(listener: Listener) -> None:
    """Remove a listener. Raises InvalidInputError if it was not added."""
    global _listeners
    with _lock:
        if listener not in _listeners:
            raise InvalidInputError(f"{listener!r} is not a listener: pass the function given to add_listener()")
        _listeners = tuple(added for added in _listeners if added != listener)


@contextmanager
def collect(*, all_threads: bool = False, only: type[Metrics] = Metrics) -> Iterator[OperationMetrics]:
    """Collect the measurements of the operations in a ``with`` block, of this thread or coroutine only.

    Work that an operation delegates to its own threads is included. ``all_threads``: also collect from all other
    threads of this process, such as the thread in which a Spark SQL statement calls Python. ``only``: the class of
    measurements to collect, of this thread; without it, scans and reads are measured too.
    """
    collected = OperationMetrics(only=only)
    if all_threads:
        add_listener(collected.events.append)
        try:
            yield collected
        finally:
            remove_listener(collected.events.append)
        return
    token = _collections.set((*_collections.get(), collected))
    try:
        yield collected
    finally:
        _collections.reset(token)


def listening(kind: type[Metrics]) -> bool:
    """Return True if a listener, a collection or the log receives measurements of this class."""
    collecting = any(issubclass(kind, collected.only) for collected in _collections.get())
    return bool(_listeners or collecting or _log.isEnabledFor(kind.level))


def emit(metrics: Metrics) -> None:
    """Send measurements to the log, to the collections of this thread, and to all listeners."""
    if _log.isEnabledFor(metrics.level):
        values = metrics.to_dict()
        # "context" is the record field that Spark's log of Python workers stores; its values must be texts
        texts = {f"paimon.{name}": str(value) for name, value in values.items()}
        _log.log(metrics.level, "%s", _text(values), extra={"paimon": values, "context": texts})
    for collected in _collections.get():
        if isinstance(metrics, collected.only):
            collected.events.append(metrics)
    for listener in _listeners:
        _call(listener, metrics)


def _call(listener: Listener, metrics: Metrics) -> None:
    try:
        listener(metrics)
    except Exception as error:
        text = hide_secrets(f"{type(error).__name__}: {error}")
        _log.warning("the listener %r failed for the metrics of a %s: %s", listener, metrics.event, text)


def _text(values: dict[str, object]) -> str:
    """Return a log line: the event, the table, and all other values that are not 0, except the times by phase."""
    left_out = ("event", "table", "phase_seconds")
    shown = {name: value for name, value in values.items() if name not in left_out and value}
    texts = (f"{name}={value:.4f}" if isinstance(value, float) else f"{name}={value}" for name, value in shown.items())
    return f"{values['event']} {values['table']}: {', '.join(texts)}"
