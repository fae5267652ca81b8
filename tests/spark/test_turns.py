"""Statements that lose several times: the others of the process wait, and every wait ends."""

import threading

import pytest

from paimon_core.errors import CommitConflictError
from paimon_spark import interruption
from paimon_spark.row_level.turns import PARALLEL_ATTEMPTS, retry_in_turn


def losing(times, then):
    """Return an attempt that has this many conflicts before it calls a function."""
    left = iter(range(times))

    def attempt():
        if next(left, None) is not None:
            raise CommitConflictError("lost")
        return then()

    return attempt


def test_other_statements_wait_for_one_that_lost_several_times():
    has_turn, may_end, order = threading.Event(), threading.Event(), []

    def last_attempt():
        has_turn.set()
        assert may_end.wait(60)
        order.append("lost")

    loser = threading.Thread(target=retry_in_turn, args=("/t", losing(PARALLEL_ATTEMPTS, last_attempt), 10))
    loser.start()
    assert has_turn.wait(60)
    others = [threading.Thread(target=retry_in_turn, args=("/t", lambda: order.append("other"), 10)) for _ in range(3)]
    for other in others:
        other.start()
    retry_in_turn("/u", lambda: order.append("other table"), 10)
    others[0].join(0.2)
    assert order == ["other table"]
    may_end.set()
    for thread in (loser, *others):
        thread.join(60)
    assert order == ["other table", "lost", "other", "other", "other"]


@pytest.mark.parametrize("times", [PARALLEL_ATTEMPTS, 10])
def test_turn_ends_with_an_error(times):
    for _ in range(2):
        with pytest.raises(CommitConflictError, match="lost"):
            retry_in_turn("/t", losing(times, lambda: None), times)
    other = threading.Thread(target=retry_in_turn, args=("/t", lambda: None, 1))
    other.start()
    other.join(60)
    assert not other.is_alive()


def test_interrupt_ends_the_wait():
    has_turn, may_end = threading.Event(), threading.Event()

    def last_attempt():
        has_turn.set()
        assert may_end.wait(60)

    loser = threading.Thread(target=retry_in_turn, args=("/t", losing(PARALLEL_ATTEMPTS, last_attempt), 10))
    loser.start()
    assert has_turn.wait(60)
    with interruption.statement():
        interruption.note_interrupt()
        with pytest.raises(KeyboardInterrupt):
            retry_in_turn("/t", lambda: None, 1)
    may_end.set()
    loser.join(60)
