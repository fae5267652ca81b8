"""Order, bounds and errors of overlapped work."""

import threading

import pytest

from paimon_core.fileio.parallel import default_threads, parallel_map


@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_results_come_in_order(threads, count):
    assert list(parallel_map(lambda n: n * n, range(count), threads)) == [n * n for n in range(count)]


def test_input_is_drawn_no_further_than_the_window():
    drawn = []
    results = parallel_map(lambda n: n, (drawn.append(n) or n for n in range(1000)), 2)
    assert next(results) == 0
    assert len(drawn) <= 5
    results.close()
    assert len(drawn) <= 5


def test_the_first_error_is_raised_as_it_is_and_cancels_the_rest():
    started = []

    def work(n):
        started.append(n)
        if n == 3:
            raise KeyError("three")
        return n

    with pytest.raises(KeyError, match="three"):
        list(parallel_map(work, range(1000), 2))
    assert len(started) < 20
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("paimon-io")]


def test_one_item_runs_in_the_callers_thread():
    assert list(parallel_map(lambda _: threading.current_thread(), [1])) == [threading.current_thread()]
    assert 1 <= default_threads() <= 32
