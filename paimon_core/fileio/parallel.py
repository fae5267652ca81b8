"""Threads: a map over many small reads, an iterator that computes its next item ahead, and an iterator with a timer.

`paimon_core.fileio.threads` starts any number of threads, so this module limits the calls and the waiting results.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from itertools import chain, islice
from threading import Lock
from time import perf_counter
from typing import Generic, TypeVar

from paimon_core.fileio.threads import resolve, shared_threads, submit

A = TypeVar("A")
B = TypeVar("B")

_END = object()


def default_threads() -> int:
    """Return the number of threads for I/O: 4 per core because they mostly wait, at most 32."""
    return min(32, 4 * (os.cpu_count() or 1))


def parallel_map(fn: Callable[[A], B], items: Iterable[A], threads: int | None = None) -> Iterator[B]:
    """Yield ``fn(item)`` for every item, in order, with up to ``threads`` calls at a time.

    Memory: at most ``2 * threads`` results wait at a time. The first error, in the order of the items, is raised
    unchanged. After an error, or when the caller stops early, no further call starts, and running calls finish.
    Calls run in shared threads, and in the caller's thread while it waits for a result that no thread computes: a
    single item, or a single thread, needs no other thread. Calls see the context variables of the caller.
    """
    source = iter(items)
    first = list(islice(source, 2))
    workers = default_threads() if threads is None else max(1, threads)
    if workers == 1 or len(first) < 2:
        for item in first:
            yield fn(item)
        for item in source:
            yield fn(item)
        return
    calls = _Calls(fn, workers)
    try:
        for item in chain(first, islice(source, 2 * workers - len(first))):
            calls.add(item)
        while calls.pending:
            yield calls.next_result()
            for item in islice(source, 1):
                calls.add(item)
    finally:
        calls.cancel()


class _Call(Generic[B]):
    """A call of a function, and the future of its result."""

    __slots__ = ("function", "future")

    def __init__(self, function: Callable[[], B]) -> None:
        self.function = function
        self.future: Future[B] = Future()


class _Calls(Generic[A, B]):
    """The calls of one map, in order.

    A call waits, runs and is done. The lock guards the calls that wait and the number of calls that run, which never
    exceeds the limit. When a call is done, its thread runs the next one, so calls that wait need no signal.
    """

    def __init__(self, fn: Callable[[A], B], limit: int) -> None:
        self._fn, self._limit = fn, limit
        self._threads = shared_threads()
        self._lock = Lock()
        self.pending: deque[_Call[B]] = deque()
        """The calls whose results have not been returned."""
        self._waiting: deque[_Call[B]] = deque()
        self._running = 0
        self._starting = 0  # threads that have not taken their first call

    def add(self, item: A) -> None:
        """Add a call. The limit minus one thread is enough, because the caller runs calls too."""
        call = _Call(partial(copy_context().run, self._fn, item))
        self.pending.append(call)
        with self._lock:
            self._waiting.append(call)
        self._start_threads(self._limit - 1)

    def next_result(self) -> B:
        """Return the result of the first pending call, or raise its error."""
        call = self.pending[0]
        if self._take_first(call):
            resolve(call.future, call.function)
            with self._lock:
                self._running -= 1
        self._start_threads(self._limit)  # the caller runs no calls while it uses the result
        call.future.exception()  # if the wait is interrupted, the call stays pending
        self.pending.popleft()
        try:
            return call.future.result()
        finally:
            del call  # the traceback of an error refers to this frame

    def cancel(self) -> None:
        """Drop the calls that wait, and wait for the calls that run."""
        if self._threads is not shared_threads():
            return  # this is a fork of the process that runs the calls
        with self._lock:
            dropped = set(self._waiting)
            self._waiting.clear()
        for call in self.pending:
            if call not in dropped:
                call.future.exception()

    def _take_first(self, call: _Call[B]) -> bool:
        """Return True if the first pending call waits and may run; it then counts as running."""
        with self._lock:
            waits = bool(self._waiting) and self._waiting[0] is call and self._running < self._limit
            if waits:
                self._waiting.popleft()
                self._running += 1
            return waits

    def _start_threads(self, most: int) -> None:
        """Start threads for the calls that wait, while fewer than ``most`` threads run calls."""
        while True:
            with self._lock:
                if self._running + self._starting >= most or self._starting >= len(self._waiting):
                    return
                self._starting += 1
            if not self._threads.start(self._work):
                with self._lock:
                    self._starting -= 1
                return

    def _work(self) -> None:
        """Run calls, in a shared thread, until none waits or the limit is reached."""
        with self._lock:
            self._starting -= 1
        call = self._next()
        while call is not None:
            resolve(call.future, call.function)
            call = self._next(done=1)

    def _next(self, done: int = 0) -> _Call[B] | None:
        """Return the next call to run. ``done``: the number of calls that this thread has finished since it asked."""
        with self._lock:
            self._running -= done
            if not self._waiting or self._running >= self._limit:
                return None
            self._running += 1
            return self._waiting.popleft()


def ahead(items: Iterator[A]) -> Iterator[A]:
    """Yield the same items; another thread computes the next item while the caller uses the last one.

    Memory: one item in addition to the caller's item. An error is raised at the position of its item. If the caller
    stops early, the next item is still computed and then dropped, and ``items`` is closed if it is a generator.
    """
    threads = shared_threads()
    with _closing(items):
        following = submit(partial(next, items, _END))
        try:
            while (item := following.result()) is not _END:
                following = submit(partial(next, items, _END))
                yield item
                del item
        finally:
            if threads is shared_threads():  # else this is a fork of the process that computes the item
                following.exception()
            del following  # the traceback of an error refers to this frame


def timed(items: Iterator[A], spend: Callable[[float], None]) -> Iterator[A]:
    """Yield the same items; call ``spend`` with the seconds that each next item takes."""
    with _closing(items):
        while True:
            started = perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                spend(perf_counter() - started)
            yield item


@contextmanager
def _closing(items: Iterator[A]) -> Iterator[None]:
    """Close ``items`` at the end if it is a generator."""
    try:
        yield
    finally:
        if isinstance(items, Generator):
            items.close()
