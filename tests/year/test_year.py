"""A year of two tables, shortened; with ``-m slow`` all of its days with a commit every half an hour."""

import pytest

from tests.year.end import GrowthError, check_growth, simulate
from tests.year.year import Length, Sample


def test_short_year_keeps_rows_and_bounds(seed):
    year = simulate(Length(days=28, rate=2, seed=seed, checks=14), seconds=False)
    assert year.done["write"] == 56
    assert year.done["partitions expired"] > 15
    assert year.done["orphan files"] > 3
    assert max(sample.count for samples in year.sizes.values() for sample in samples) < 500


@pytest.mark.slow
def test_year_keeps_rows_and_bounds(seed):
    simulate(Length(seed=seed), seconds=True)


def test_growth_is_found():
    steady = [Sample(day, 10, 1.0) for day in range(200)]
    check_growth("calls", steady, 1.5)
    growing = [Sample(day, day, 1.0) for day in range(200)]
    with pytest.raises(GrowthError, match="calls grew from"):
        check_growth("calls", growing, 1.5)
