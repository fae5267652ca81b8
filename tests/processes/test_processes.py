"""Processes share tables, are killed at random, and lose no acknowledged write: a short `python -m tests.processes`."""

import pytest

from tests.processes.killing import Killing, check, place
from tests.processes.mutants import MUTANTS
from tests.support.edits import BROKEN

SHORT, LONG = 180, 1800  # seconds


@pytest.mark.java
@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        pytest.param("disk", SHORT, marks=pytest.mark.minutes),
        pytest.param("disk", LONG, marks=pytest.mark.slow),
        pytest.param("hdfs", LONG, marks=[pytest.mark.slow, pytest.mark.places]),
        pytest.param("s3", LONG, marks=[pytest.mark.slow, pytest.mark.places]),
    ],
)
def test_killed_processes_lose_no_acknowledged_write(tmp_path, name, seconds, seed):
    with place(name, tmp_path) as at:
        run = Killing(tmp_path, at, seed)
        run.run(seconds)
        print(check(run))


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("mutant", MUTANTS)
def test_missing_guard_is_found(tmp_path, mutant, seed):
    with place("disk", tmp_path) as at:
        run = Killing(tmp_path, at, seed, ("server", "sql", "stream"), mutant)
        with pytest.raises(AssertionError) as found:  # noqa: PT012, because a process may end, or the check find it
            run.run(300)
            check(run)
    assert not any(error in str(found.value) for error in BROKEN)
