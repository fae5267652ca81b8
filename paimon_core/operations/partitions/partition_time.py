"""The time that the values of a partition mean, by patterns and by formats of Java (behaviour 7.15).

Times are local times without a zone, in microseconds since 1970-01-01T00:00. They are integers, because a partition may
be called 12024-01-01, which Python's datetime cannot hold.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from paimon_core.errors import UnsupportedError
from paimon_core.options.bucket import PARTITION_TIMESTAMP_FORMATTER

TimeParser = Callable[[str], int | None]
"""A function from a text to a time; ``None``: the text is no time of this form."""
_DEFAULT: Final = re.compile(
    r"(?P<year>-?\d{1,10})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?: (?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?",
    re.ASCII,
)
_TOKEN: Final = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letter>[A-Za-z])(?P=letter)*|(?P<other>.)", re.DOTALL)
_FIELDS: Final = {
    "y": "year", "u": "year", "M": "month", "L": "month", "d": "day", "H": "hour", "m": "minute", "s": "second",
    "S": "fraction",
}  # fmt: skip
_LIMITS: Final = {"month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
_OTHERS: Final = frozenset("{}#'")
_DAY: Final = 86_400


def time_text(pattern: str | None, values: Mapping[str, str]) -> str:
    """Return the text of a partition's time: its first value, or the pattern with values for ``$column``."""
    if pattern is None:
        return next(iter(values.values()))
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    return re.sub(rf"\$({names})", lambda match: values[match[1]], pattern)


def time_parser(format: str | None) -> TimeParser:
    """Return the parser of a format; ``None``: ``yyyy-MM-dd[ HH:mm:ss[.SSS]]``, whose numbers may be too large.

    Raises UnsupportedError for a format with anything but numbers, from the year to the fraction of a second.
    """
    return _lenient if format is None else partial(_strict, _compiled(format))


def _lenient(text: str) -> int | None:
    """Parse the default form: 2024-13-01 is 2025-01-01, and 25:00:00 is one o'clock of the next day."""
    match = _DEFAULT.fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    fraction = found.pop("fraction")
    return _micros({name: int(value or 0) for name, value in found.items()}, fraction)


def _strict(pattern: re.Pattern[str], text: str) -> int | None:
    """Parse by a compiled format. The 31st of a shorter month is its last day, as in Java."""
    match = pattern.fullmatch(text)
    if match is None:
        return None
    given = {name: value for name, value in match.groupdict().items() if value is not None}
    fraction, short = given.pop("fraction", None), given.pop("short", None)
    found = {name: int(value) for name, value in given.items()} | ({} if short is None else {"year": 2000 + int(short)})
    if not {"year", "month", "day"} <= found.keys():
        return None
    if any(not low <= found[name] <= high for name, (low, high) in _LIMITS.items() if name in found):
        return None
    if "hour" not in found:
        found, fraction = {name: found[name] for name in ("year", "month", "day")}, None
    first = _day({**found, "day": 1})
    following = _day({**found, "day": 1, "month": found["month"] + 1})
    return _micros({**found, "day": min(found["day"], following - first)}, fraction)


def _compiled(format: str) -> re.Pattern[str]:
    """Return the regular expression of a format, with a group for each field; ``[...]`` is optional."""
    parts: list[str] = []
    tokens = list(_TOKEN.finditer(format))
    if "".join(token[0] for token in tokens) != format:
        raise _unsupported(format, format)
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        if token["quoted"] is not None:
            parts.append(re.escape(token["quoted"].replace("''", "'") or "'"))
        elif token["letter"] is None:
            other = token["other"]
            if other in _OTHERS:
                raise _unsupported(format, other)
            parts.append({"[": "(?:", "]": ")?"}.get(other) or re.escape(other))
        else:
            digits_follow = after is not None and after["letter"] is not None
            parts.append(_group(token["letter"], len(token[0]), digits_follow, format))
    try:
        return re.compile("".join(parts), re.ASCII)
    except re.error as error:
        raise _unsupported(format, str(error)) from error


def _group(letter: str, width: int, digits_follow: bool, format: str) -> str:
    """Return the group of a field: ``width`` digits, or more where Java takes more.

    One letter takes any number of digits, and so do four letters of a year unless another field follows.
    """
    name = _FIELDS.get(letter)
    if name is None or (name not in ("year", "fraction") and width > 2):
        raise _unsupported(format, letter * width)
    if name == "year" and width == 2:
        return r"(?P<short>\d{2})"
    if name == "fraction" or width == 2:
        return rf"(?P<{name}>\d{{{width}}})"
    if width == 1:
        return rf"(?P<{name}>\d{{1,19}})"
    return rf"(?P<{name}>\d{{{width}}})" if digits_follow else rf"(?P<{name}>\d{{{width}}}|\+\d{{{width + 1},19}})"


def _micros(number: Mapping[str, int], fraction: str | None) -> int:
    hour, minute, second = (number.get(name, 0) for name in ("hour", "minute", "second"))
    seconds = _day(number) * _DAY + hour * 3600 + minute * 60 + second
    return seconds * 10**6 + int(((fraction or "") + "000000")[:6])


def _day(number: Mapping[str, int]) -> int:
    """Return the day since 1970-01-01; months and days may be too large."""
    cycles, year = divmod(number["year"], 400)  # the calendar repeats, so that numpy's range is enough
    months = (year - 1970) * 12 + number["month"] - 1
    first = int(np.datetime64(months, "M").astype("datetime64[D]").astype(np.int64))
    return first + number["day"] - 1 + cycles * 146_097


def _unsupported(format: str, found: str) -> UnsupportedError:
    return UnsupportedError(
        f"option {PARTITION_TIMESTAMP_FORMATTER.key!r} is {format!r}, and {found!r} in it is not supported: use "
        "numbers such as yyyy, MM, dd, HH, mm, ss and SSS, texts in quotes, and [ ] around optional parts"
    )
