"""Threads that all maps of a process share: reuse, end, exit and fork."""

import os
import subprocess
import sys
import threading
import time

import pytest

from paimon_core.fileio.parallel import ahead, parallel_map
from paimon_core.fileio.threads import SharedThreads, shared_threads


def test_each_job_starts_at_once_and_idle_threads_are_used_again():
    threads, barrier, seen = SharedThreads(), threading.Barrier(4), []

    def job():
        barrier.wait(10)
        seen.append(threading.get_ident())

    for round in range(3):
        for _ in range(3):
            assert threads.start(job)
        barrier.wait(10)
        while len(seen) < 3 * (round + 1) or threads._idle < 3:
            time.sleep(0.001)
    assert len(set(seen)) == 3
    threads.close()


def test_idle_threads_end():
    threads, done = SharedThreads(idle_seconds=0.01), threading.Event()
    for _ in range(5):
        threads.start(done.set)
    assert done.wait(10)
    deadline = time.monotonic() + 10
    while threads._threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not threads._threads
    assert threads._idle == 0
    done.clear()
    assert threads.start(done.set)
    assert done.wait(10)
    threads.close()


def test_jobs_that_meet_ending_threads_run():
    threads, count, lock = SharedThreads(idle_seconds=0.0005), [0], threading.Lock()

    def job():
        with lock:
            count[0] += 1

    for n in range(500):
        assert threads.start(job)
        if n % 3 == 0:
            time.sleep(0.0005)
    threads.close()
    assert count == [500]


def test_close_waits_for_jobs_and_later_jobs_do_not_start():
    threads, ended = SharedThreads(), []
    threads.start(lambda: (time.sleep(0.05), ended.append(1)))
    threads.close()
    assert ended == [1]
    assert not threads.start(lambda: ended.append(2))
    assert ended == [1]


def test_process_too_full_for_threads_runs_calls_itself(monkeypatch):
    def full(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    monkeypatch.setattr("paimon_core.fileio.threads._shared", SharedThreads())
    me = threading.get_ident()
    assert set(parallel_map(lambda _: threading.get_ident(), range(9), 4)) == {me}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork_has_threads_of_its_own_and_drops_maps_of_its_parent():
    entered, leave = threading.Event(), threading.Event()

    def work(n):
        if n:
            entered.set()
            leave.wait(10)
        return n

    parents, next_item = parallel_map(work, range(3), 3), ahead(map(work, range(3)))
    assert next(parents) == 0
    assert next(next_item) == 0
    assert entered.wait(10)
    before = shared_threads()
    child = os.fork()
    if not child:
        try:
            parents.close()  # its calls run in the parent only
            alive = list(parallel_map(lambda n: n * n, range(50), 4)) == [n * n for n in range(50)]
            os._exit(0 if alive and shared_threads() is not before else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    leave.set()
    assert ended == (child, 0)
    assert list(parents) == [1, 2]
    assert list(next_item) == [1, 2]


_EXIT = """
import atexit, sys, time
from paimon_core.fileio.parallel import parallel_map

def slow(n):
    time.sleep(0.05 if n else 0)
    print("call", n, "has ended", flush=True)
    return n

atexit.register(lambda: print(list(parallel_map(abs, range(5), 3)), flush=True))
results = parallel_map(slow, range(3), 3)
next(results)
sys.results = results
"""


def test_exit_of_process_waits_for_running_calls_only():
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", _EXIT], capture_output=True, text=True, timeout=60)
    assert time.monotonic() - started < 4, "idle threads delay the end of a process"
    assert (done.returncode, done.stderr) == (0, "")
    assert "[0, 1, 2, 3, 4]" in done.stdout
