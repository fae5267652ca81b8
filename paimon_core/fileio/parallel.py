"""Threads: a map over many small reads, an iterator that computes its next item ahead, and an iterator with a timer.

The pools are pools of `concurrent.futures`. They do not limit the number of waiting results, so this module does.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import islice
from time import perf_counter
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

_END = object()


def default_threads() -> int:
    """Return the number of threads for I/O: 4 per core because they mostly wait, at most 32."""
    return min(32, 4 * (os.cpu_count() or 1))


def parallel_map(fn: Callable[[A], B], items: Iterable[A], threads: int | None = None) -> Iterator[B]:
    """Yield ``fn(item)`` for every item, in order, computed by up to ``threads`` threads.

    Memory: at most ``2 * threads`` results wait at a time. The first error, in the order of the items, is raised
    unchanged. After an error, or when the caller stops early, no further call starts. A single item, or a single
    thread, runs in the caller's thread. Calls see the context variables of the caller.
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
    pool = ThreadPoolExecutor(workers, thread_name_prefix="paimon-io")
    pending: deque[Future[B]] = deque()

    def submit(item: A) -> Future[B]:
        return pool.submit(copy_context().run, fn, item)

    try:
        pending.extend(submit(item) for item in first)
        pending.extend(submit(item) for item in islice(source, 2 * workers - len(first)))
        while pending:
            yield pending.popleft().result()
            pending.extend(submit(item) for item in islice(source, 1))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def ahead(items: Iterator[A]) -> Iterator[A]:
    """Yield the same items; a thread computes the next item while the caller uses the last one.

    Memory: one item in addition to the caller's item. An error is raised at the position of its item. If the caller
    stops early, the next item is still computed and then dropped, and ``items`` is closed if it is a generator.
    """
    with _closing(items), ThreadPoolExecutor(1, thread_name_prefix="paimon-ahead") as pool:
        following = pool.submit(next, items, _END)
        while (item := following.result()) is not _END:
            following = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]
            del item


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
