"""The threads of this process that all maps share. Starting a thread takes about as long as reading a small file."""

import atexit
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread
from typing import TypeVar

A = TypeVar("A")

IDLE_SECONDS = 5.0
Job = Callable[[], None]


class SharedThreads:
    """Threads that start each job at once: if no thread is idle, a new one starts.

    So a job may wait for jobs that it submits. Callers limit the number of their jobs.

    Args:
        idle_seconds: a thread ends after this time without a job.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()  # `None`: the thread ends
        self._idle = 0  # waiting threads, minus the jobs in the queue
        self._threads: set[Thread] = set()
        self._closed = False

    def start(self, job: Job) -> bool:
        """Run a job in a thread; return False if no thread can start. REQUIRES: the job raises no error."""
        with self._lock:
            if self._closed:
                return False
            if self._idle:
                self._idle -= 1
                self._jobs.put(job)
                return True
            thread = Thread(target=self._work, args=(job,), name="paimon-io", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the process has too many threads, or ends
                return False
            self._threads.add(thread)
        return True

    def _work(self, first: Job) -> None:
        job: Job | None = first
        del first
        while job is not None:
            job()
            del job  # frees what it refers to while the thread waits
            with self._lock:
                self._idle += 1
            job = self._next()
        with self._lock:
            self._threads.discard(current_thread())

    def _next(self) -> Job | None:
        """Return the next job; `None`: the thread ends."""
        try:
            return self._jobs.get(timeout=self._idle_seconds)
        except Empty:
            with self._lock:
                if self._idle:
                    self._idle -= 1
                    return None
        return self._jobs.get()  # the queue has a job for each thread that waits

    def close(self) -> None:
        """Wait for all jobs, and end all threads. Later jobs do not start."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
            for _ in threads:
                self._jobs.put(None)
        for thread in threads:
            thread.join()


_shared = SharedThreads()


def shared_threads() -> SharedThreads:
    """Return the threads of this process. A forked process has its own."""
    return _shared


def submit(function: Callable[[], A]) -> "Future[A]":
    """Call a function in a shared thread, or at once if no thread can start; return the future of its result."""
    future: Future[A] = Future()
    if not _shared.start(partial(resolve, future, function)):
        resolve(future, function)
    return future


def resolve(future: "Future[A]", function: Callable[[], A]) -> None:
    """Call a function and set its result or its error in a future."""
    try:
        result = function()
    except BaseException as error:
        future.set_exception(error)
        del future, function  # the traceback of the error refers to this frame
    else:
        future.set_result(result)


def _after_fork() -> None:
    global _shared
    _shared = SharedThreads()  # a child has no thread but its first, and locks may be held


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _shared.close())
