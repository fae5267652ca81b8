"""Retries of a commit: their number, and the waits between them."""

import pytest

from paimon_core.commit.find_commit import CommitSearch
from paimon_core.commit.prepared_snapshot import Identity
from paimon_core.commit.retry import CommitAttempts, RetryPolicy, retry_on_conflict
from paimon_core.errors import CommitConflictError, InvalidInputError, OutOfRangeError
from paimon_core.options.option import Options
from paimon_core.snapshot.snapshot import CommitKind

SEARCH = CommitSearch(Identity("we", 1), CommitKind.APPEND, None)


def test_options_set_limits():
    options = {
        "commit.max-retries": "3",
        "commit.min-retry-wait": "20 ms",
        "commit.max-retry-wait": "5 s",
        "commit.timeout": "1 min",
    }
    assert RetryPolicy.of(Options(options)) == RetryPolicy(3, 0.02, 5.0, 60.0)


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 10), (1000, 10)])
def test_wait_doubles_up_to_limit_with_jitter(attempt, seconds):
    policy = RetryPolicy(9, 1.0, 10.0, None)
    assert all(seconds <= policy.wait(attempt) <= 1.2 * seconds for _ in range(20))


@pytest.mark.parametrize("retries", [0, 2])
def test_commit_has_one_attempt_more_than_retries(retries):
    attempts = CommitAttempts(SEARCH, RetryPolicy(retries, 0.0, 0.0, None))
    count = 0
    while not attempts.exhausted:
        count += 1
        attempts.wait_for_next()
    assert count == retries + 1


def test_timeout_never_prevents_first_attempt():
    attempts = CommitAttempts(SEARCH, RetryPolicy(9, 0.0, 0.0, -1.0))
    assert not attempts.exhausted
    attempts.wait_for_next()
    assert attempts.exhausted


@pytest.mark.parametrize("error", [CommitConflictError, OutOfRangeError])
def test_conflicts_are_retried(error):
    outcomes = iter([error("1"), error("2"), "done"])

    def attempt():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert retry_on_conflict(attempt, 3) == "done"


@pytest.mark.parametrize(("error", "calls"), [(CommitConflictError, 3), (InvalidInputError, 1)])
def test_last_conflict_and_every_other_error_are_raised(error, calls):
    made = []

    def attempt():
        made.append(error(str(len(made))))
        raise made[-1]

    with pytest.raises(error, match=str(calls - 1)):
        retry_on_conflict(attempt, 3)
    assert len(made) == calls
