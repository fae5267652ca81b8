"""A year of two tables, shortened; with ``-m slow`` all of its days with a commit every half an hour."""

import dataclasses
import random

import pytest

from tests.year.end import GrowthError, check_growth, simulate
from tests.year.year import TABLES, Length, Sample, Year


def test_short_year_keeps_rows_and_bounds(seed):
    year = simulate(Length(days=28, rate=2, seed=seed, checks=14), seconds=False)
    assert year.done["write"] == 56
    assert year.done["partitions expired"] > 15
    assert year.done["orphan files"] > 3
    assert max(sample.count for samples in year.sizes.values() for sample in samples) < 500


def test_stopped_run_goes_on(seed, tmp_path, monkeypatch):
    length, state = Length(days=14, rate=2, seed=seed, checks=14), tmp_path / "state"
    whole = simulate(length, seconds=False)
    with monkeypatch.context() as patched:
        patched.setattr(Year, "_day", _stopped_on(12, Year._day))
        with pytest.raises(KeyboardInterrupt, match="day 12"):
            simulate(length, seconds=False, state=state)
    resumed = simulate(length, seconds=False, state=state)
    assert resumed.done == whole.done
    assert resumed.models == whole.models
    assert {name: len(samples) for name, samples in resumed.steps.items()} == {
        n: len(s) for n, s in whole.steps.items()
    }
    with pytest.raises(ValueError, match=r"rate=2.*not of .*rate=3"):
        simulate(dataclasses.replace(length, rate=3), seconds=False, state=state)


@pytest.mark.parametrize("name", TABLES)
def test_one_table_alone_has_its_share_of_the_commits(seed, name):
    year = simulate(Length(days=21, rate=2, seed=seed, checks=14, tables=(name,)), seconds=False)
    assert [*year.models] == [*year.sizes] == [name]
    turns = random.Random(f"turns {seed}")
    assert year.done["write"] == sum(turns.choice([*TABLES]) == name for _ in range(42))
    assert bool(year.done["stream"]) == (name == "orders")


def _stopped_on(last, run_day):
    def run(self, day):
        if day == last:
            raise KeyboardInterrupt(f"day {day}")
        run_day(self, day)

    return run


@pytest.mark.slow
def test_year_keeps_rows_and_bounds(seed):
    simulate(Length(seed=seed), seconds=True)


def test_growth_is_found():
    steady = [Sample(day, 10, 1.0) for day in range(200)]
    check_growth("calls", steady, 1.5)
    growing = [Sample(day, day, 1.0) for day in range(200)]
    with pytest.raises(GrowthError, match="calls grew from"):
        check_growth("calls", growing, 1.5)
