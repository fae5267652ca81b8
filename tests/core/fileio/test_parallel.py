"""Order, bounds and errors of overlapped work."""

import contextvars
import gc
import threading
import time
import weakref

import pytest

from paimon_core.fileio.parallel import ahead, default_threads, parallel_map
from paimon_core.fileio.threads import SharedThreads


@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_results_come_in_order(threads, count):
    assert list(parallel_map(lambda n: n * n, range(count), threads)) == [n * n for n in range(count)]


def test_input_is_read_up_to_window():
    drawn = []
    results = parallel_map(lambda n: n, (drawn.append(n) or n for n in range(1000)), 2)
    assert next(results) == 0
    assert len(drawn) <= 5
    results.close()
    assert len(drawn) <= 5


def test_first_error_is_raised_unchanged_and_cancels_rest():
    started, ended = [], []

    def work(n):
        started.append(n)
        try:
            if n == 3:
                raise KeyError("three")
            return n
        finally:
            ended.append(n)

    with pytest.raises(KeyError, match="three"):
        list(parallel_map(work, range(1000), 2))
    assert len(started) < 20
    assert sorted(started) == sorted(ended)


def test_early_end_waits_for_running_calls():
    begun, ended = threading.Event(), []

    def work(n):
        if n:
            begun.set()
            time.sleep(0.05)
            ended.append(n)
        return n

    results = parallel_map(work, range(2), 2)
    assert next(results) == 0
    assert begun.wait(10)
    results.close()
    assert ended == [1]


@pytest.mark.parametrize("limit", [2, 3, 5])
def test_calls_at_a_time_reach_limit_and_never_exceed_it(limit):
    lock, running, peaks = threading.Lock(), [], []

    def work(n):
        with lock:
            running.append(n)
            peaks.append(len(running))
        time.sleep(0.002)
        with lock:
            running.remove(n)
        return n

    assert list(parallel_map(work, range(60), limit)) == list(range(60))
    assert max(peaks) == limit


def test_nested_maps_end():
    def inner(n):
        return sum(parallel_map(lambda m: n * m, range(10), 8))

    def outer(n):
        return sum(parallel_map(inner, range(n, n + 10), 8))

    assert list(parallel_map(outer, range(20), 8)) == [45 * sum(range(n, n + 10)) for n in range(20)]


def test_calls_see_context_of_caller_and_do_not_change_it():
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("caller's")

    def work(n):
        seen = variable.get()
        variable.set(n)
        return seen

    assert set(parallel_map(work, range(50), 4)) == {"caller's"}
    assert variable.get() == "caller's"


def test_results_are_freed_once_returned():
    class Result:
        pass

    results = parallel_map(lambda _: Result(), range(3), 2)
    first = weakref.ref(next(results))
    next(results)
    gc.collect()
    assert first() is None
    results.close()


def test_error_keeps_no_reference_to_itself():
    class WorkError(Exception):
        pass

    def work(n):
        raise WorkError(n)

    gc.collect()
    gc.disable()
    try:
        for function in (lambda: list(parallel_map(work, range(2), 2)), lambda: list(ahead(map(work, [1])))):
            with pytest.raises(WorkError) as caught:
                function()
            error = weakref.ref(caught.value)
            del caught
            assert error() is None
    finally:
        gc.enable()


def test_map_runs_without_threads(monkeypatch):
    monkeypatch.setattr(SharedThreads, "start", lambda self, job: False)
    assert list(parallel_map(lambda n: n * n, range(50), 4)) == [n * n for n in range(50)]
    assert list(ahead(iter(range(50)))) == list(range(50))


def test_one_item_runs_in_callers_thread():
    assert list(parallel_map(lambda _: threading.current_thread(), [1])) == [threading.current_thread()]
    assert 1 <= default_threads() <= 32


def test_ahead_gives_same_items():
    for count in (0, 1, 2, 50):
        assert list(ahead(iter(range(count)))) == list(range(count))


def test_ahead_makes_next_item_while_caller_works():
    made = threading.Event()

    def items():
        yield 1
        made.set()
        yield 2

    results = ahead(items())
    assert next(results) == 1
    assert made.wait(10), "nothing was made while the caller held the first item"
    assert list(results) == [2]


def test_ahead_keeps_one_item():
    drawn = []
    results = ahead(drawn.append(n) or n for n in range(100))
    for expected in range(5):
        assert next(results) == expected
        assert len(drawn) <= expected + 2
    results.close()


def test_error_is_raised_at_its_position_and_early_end_closes_source():
    closed = []

    def items():
        try:
            yield 1
            yield 2
            raise KeyError("three")
        finally:
            closed.append(True)

    results = ahead(items())
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(KeyError, match="three"):
        next(results)
    stopped = ahead(items())
    assert next(stopped) == 1
    stopped.close()
    assert closed == [True, True]
