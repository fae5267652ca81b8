"""Days of all years: ``datetime.date`` has the years 1 to 9999 only. The Gregorian calendar repeats after 400 years."""

from datetime import date, timedelta

_EPOCH = date(1970, 1, 1).toordinal()
_FIRST_DAY = (date.min - date(1970, 1, 1)).days
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097


def days_of(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01. Raises ValueError for a day that its month does not have."""
    cycles, rest = divmod(year - 1, _CYCLE_YEARS)
    return date(rest + 1, month, day).toordinal() - _EPOCH + cycles * _CYCLE_DAYS


def iso_date(days: int) -> str:
    """Return a day, in days since 1970-01-01, as ISO text; years before 0 and after 9999 have a sign."""
    cycles, rest = divmod(days - _FIRST_DAY, _CYCLE_DAYS)
    day = date.min + timedelta(days=rest)
    return f"{_year(day.year + _CYCLE_YEARS * cycles)}-{day.month:02d}-{day.day:02d}"


def _year(year: int) -> str:
    if year > 9999:
        return f"+{year}"
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"
