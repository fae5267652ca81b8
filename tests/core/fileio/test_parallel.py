"""Order, bounds and errors of overlapped work."""

import threading

import pytest

from paimon_core.fileio.parallel import ahead, default_threads, parallel_map


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
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("paimon-ahead")]
