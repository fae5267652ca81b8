"""Listeners: functions that get the measurements of every commit, compaction, scan and read of this process.

A listener never changes what happens: its errors are logged. Without a listener, a collection or a logger that asks,
scans and reads measure nothing.
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
"""The logger of one record for each event: commits and compactions at level INFO, others at DEBUG."""
_log = logging.getLogger(LOGGER)
_lock = Lock()
_listeners: tuple[Listener, ...] = ()
_collections: "ContextVar[tuple[OperationMetrics, ...]]" = ContextVar("paimon_metrics", default=())


@dataclass(frozen=True, slots=True)
class OperationMetrics:
    """The measurements of one operation, which may commit, compact, scan and read several times.

    Sums are `None` if they are empty.
    """

    events: list[Metrics] = field(default_factory=list)
    """All measurements, in the order of their events."""

    def of(self, kind: type[M]) -> list[M]:
        """Return the measurements of one class."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def commits(self) -> list[CommitMetrics]:
        """The commits that made a snapshot."""
        return [commit for commit in self.of(CommitMetrics) if commit.error is None]

    @property
    def failures(self) -> list[CommitMetrics]:
        """The commits that failed: those of an operation that succeeds were repeated."""
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
        """The sum of the commits of rows: those of another kind than COMPACT."""
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
    """Return the sum of measurements of one class; `None`: there are none."""
    result = None
    for one in metrics:
        result = one if result is None else result + one
    return result


def add_listener(listener: Listener) -> None:
    """Call ``listener`` with the measurements of every later event of this process, in the thread of the event.

    A listener that was added before is called once. An error of the listener is logged, and changes nothing else.
    Raises InvalidInputError for an object that cannot be called.
    """
    global _listeners
    if not callable(listener):
        raise InvalidInputError(f"a listener is a function of one argument, the metrics, not {listener!r}")
    with _lock:
        if listener not in _listeners:
            _listeners = (*_listeners, listener)


def remove_listener(listener: Listener) -> None:
    """Call the listener no more. Raises InvalidInputError if it was not added."""
    global _listeners
    with _lock:
        if listener not in _listeners:
            raise InvalidInputError(f"{listener!r} is no listener: give the function that add_listener() got")
        _listeners = tuple(known for known in _listeners if known != listener)


@contextmanager
def collect(*, all_threads: bool = False) -> Iterator[OperationMetrics]:
    """Collect the measurements of the operations in a ``with`` block, of this thread or coroutine alone.

    Work that an operation gives to threads of its own belongs to it. ``all_threads``: those of every other thread of
    this process, too, such as the one in which a statement of Spark SQL asks Python.
    """
    collected = OperationMetrics()
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
    """Return True if somebody gets measurements of this class, so that measuring is worth its time."""
    return bool(_listeners or _collections.get() or _log.isEnabledFor(kind.level))


def emit(metrics: Metrics) -> None:
    """Give measurements to the log, to the collections of this thread, and to all listeners."""
    if _log.isEnabledFor(metrics.level):
        values = metrics.to_dict()
        # "context" is the field of a record that Spark's log of Python workers stores; it takes texts
        texts = {f"paimon.{name}": str(value) for name, value in values.items()}
        _log.log(metrics.level, "%s", _text(values), extra={"paimon": values, "context": texts})
    for collected in _collections.get():
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
    """Return one line of a log: the event, the table, and the other values that are not 0, without their parts."""
    left_out = ("event", "table", "phase_seconds")
    shown = {name: value for name, value in values.items() if name not in left_out and value}
    texts = (f"{name}={value:.4f}" if isinstance(value, float) else f"{name}={value}" for name, value in shown.items())
    return f"{values['event']} {values['table']}: {', '.join(texts)}"
