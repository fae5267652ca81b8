"""Retries of a commit: their limits, and their state."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from paimon_core.commit.changes import Changes
from paimon_core.commit.find_commit import CommitSearch
from paimon_core.commit.prepared_snapshot import PreparedSnapshot
from paimon_core.errors import CommitConflictError, OutOfRangeError, TableChangedError
from paimon_core.options.option import Options
from paimon_core.options.snapshot import (
    COMMIT_MAX_RETRIES,
    COMMIT_MAX_RETRY_WAIT,
    COMMIT_MIN_RETRY_WAIT,
    COMMIT_TIMEOUT,
)
from paimon_core.store.environment import NotLockedError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of the retries of a commit.

    ``attempts``: retries after the first attempt. ``min_wait``, ``max_wait``: seconds between two attempts.
    ``timeout``: seconds for all attempts together; ``None``: no limit.
    """

    attempts: int
    min_wait: float
    max_wait: float
    timeout: float | None

    @staticmethod
    def of(options: Options) -> "RetryPolicy":
        """Return the policy that the table's ``commit.*`` options define."""
        timeout = options.value(COMMIT_TIMEOUT)
        return RetryPolicy(
            options.value(COMMIT_MAX_RETRIES),
            options.value(COMMIT_MIN_RETRY_WAIT).total_seconds(),
            options.value(COMMIT_MAX_RETRY_WAIT).total_seconds(),
            None if timeout is None else timeout.total_seconds(),
        )

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait before attempt ``attempt + 1``.

        The wait doubles with every attempt. Random jitter of up to 20 % separates committers that collided.
        """
        return min(self.min_wait * 2.0 ** min(attempt, 30), self.max_wait) * (1 + random.random() / 5)


class CommitAttempts:
    """The attempts of one commit: their number, time, search and unknown outcomes."""

    def __init__(self, search: CommitSearch, policy: RetryPolicy) -> None:
        self._started, self._policy = time.monotonic(), policy
        self.count = 0
        self.search = search
        self.unknown: Exception | None = None
        """The error of an attempt whose outcome is unknown; ``None``: every outcome is known."""
        self.synced: set[str] = set()
        """Paths that are already synced to disk."""
        self.begun = 0
        """Attempts that found something to commit."""
        self.lost = 0
        """Attempts whose snapshot id another commit took first."""
        self.last: tuple[Changes, PreparedSnapshot] | None = None
        """The last attempt that was to be published."""
        self.blocked_since: dict[str, float] = {}
        """The time (monotonic seconds) when an orphan with this commit's snapshot id was first seen, by fingerprint."""
        self.phase_seconds: dict[str, float] = {}
        """Seconds in each phase of all attempts."""

    @property
    def seconds(self) -> float:
        """Seconds since the first attempt began."""
        return time.monotonic() - self._started

    @property
    def exhausted(self) -> bool:
        """True if no more attempts may start."""
        late = self._policy.timeout is not None and self.seconds > self._policy.timeout
        return self.count > 0 and (late or self.count > self._policy.attempts)

    def wait_for_next(self) -> None:
        """Count an attempt, and wait before the next one if it may start."""
        self.count += 1
        if not self.exhausted:
            with self.phase("wait"):
                time.sleep(self._policy.wait(self.count - 1))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds of the block to a phase."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.phase_seconds[name] = self.phase_seconds.get(name, 0.0) + time.monotonic() - started


def retry_on_conflict(attempt: Callable[[], T], times: int) -> T:
    """Call ``attempt`` up to ``times`` times until it has no conflict, and return its result.

    An attempt reads the newest snapshot. It is repeated if another commit changed the same rows, or if the snapshot
    expired. Raises the CommitConflictError or OutOfRangeError of the last attempt. A TableChangedError is raised at
    once, because the attempts use the table as it was opened, and so is a NotLockedError, after a long wait.
    """
    for remaining in reversed(range(times)):
        try:
            return attempt()
        except (CommitConflictError, OutOfRangeError) as error:  # noqa: PERF203
            if not remaining or isinstance(error, TableChangedError | NotLockedError):
                raise
    raise AssertionError("times is at least 1")
