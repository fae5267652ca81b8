"""Days of years that Python's dates do not have."""

from datetime import date

import numpy as np
import pytest

from paimon_core.types.calendar import days_of, iso_date


@pytest.mark.parametrize("year", [-290_000, -401, -44, -1, 0, 1, 1582, 1900, 2000, 2024, 9999, 10_000, 12_020, 290_000])
def test_days_of_numpy(year):
    for month, day in ((1, 1), (2, 28), (3, 1), (12, 31)):
        shown = f"{'-' if year < 0 else '+' if year > 9999 else ''}{abs(year):04}-{month:02}-{day:02}"
        days = int((np.datetime64(0, "Y") + (year - 1970)).astype("M8[M]").astype(int)) + month - 1
        expected = int(np.datetime64(days, "M").astype("M8[D]").astype(int)) + day - 1
        assert days_of(year, month, day) == expected
        assert iso_date(expected) == shown


def test_days_of_python():
    for day in (date(1, 1, 1), date(400, 12, 31), date(401, 1, 1), date(2024, 2, 29), date(9999, 12, 31)):
        days = (day - date(1970, 1, 1)).days
        assert (days_of(day.year, day.month, day.day), iso_date(days)) == (days, day.isoformat())


@pytest.mark.parametrize(
    ("year", "month", "day"), [(2023, 2, 29), (-1, 2, 29), (10_100, 2, 29), (2024, 13, 1), (0, 1, 0)]
)
def test_days_that_do_not_exist_are_refused(year, month, day):
    with pytest.raises(ValueError, match=r"day|month"):
        days_of(year, month, day)
