"""Processes share tables, are killed at random, and lose no acknowledged write: a short `python -m tests.processes`."""

import pytest

from tests.processes.killing import Killing, check, place


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.spark
@pytest.mark.parametrize("name", ["disk", pytest.param("s3", marks=pytest.mark.places)])
def test_killed_processes_lose_no_acknowledged_write(tmp_path, name, seed):
    with place(name, tmp_path) as at:
        run = Killing(tmp_path, at, seed)
        run.run(180)
        print(check(run))
