"""Threads: many small reads at once, and the next item made while the last one is used.

The pools are those of `concurrent.futures`; only the bound on waiting items is written by hand.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

_END = object()


def default_threads() -> int:
    """Threads for I/O: more than cores, for they mostly wait; never more than 32."""
    return min(32, 4 * (os.cpu_count() or 1))


def parallel_map(fn: Callable[[A], B], items: Iterable[A], threads: int | None = None) -> Iterator[B]:
    """Yield ``fn(item)`` for every item, in order, computed by up to ``threads`` threads.

    Items are drawn as results are taken: at most twice ``threads`` results wait at a time. The first error
    (in order) is raised as it is; what has not started by then never does, and the same holds when the
    caller stops early. A single item, or a single thread, runs in the caller's thread.
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
    try:
        pending.extend(pool.submit(fn, item) for item in first)
        pending.extend(pool.submit(fn, item) for item in islice(source, 2 * workers - len(first)))
        while pending:
            yield pending.popleft().result()
            pending.extend(pool.submit(fn, item) for item in islice(source, 1))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def ahead(items: Iterator[A]) -> Iterator[A]:
    """Yield the same items; a thread makes the next one while the caller works on the last.

    One item is held beyond the caller's own. An error comes in its place; where the caller stops early, what is being
    made is waited for and thrown away, and a generator behind ``items`` is closed.
    """
    with _closing(items), ThreadPoolExecutor(1, thread_name_prefix="paimon-ahead") as pool:
        following = pool.submit(next, items, _END)
        while (item := following.result()) is not _END:
            following = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]
            del item


@contextmanager
def _closing(items: Iterator[A]) -> Iterator[None]:
    """Close ``items`` at the end, if it is something to be closed."""
    try:
        yield
    finally:
        if isinstance(items, Generator):
            items.close()
