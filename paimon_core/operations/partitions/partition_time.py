"""Parse the time in a partition's values with patterns and Java date formats (behaviour 7.15).

Times are local times without a zone, in microseconds since 1970-01-01T00:00. They are integers because Python's
datetime cannot hold a partition value such as 12024-01-01.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from paimon_core.errors import UnsupportedError
from paimon_core.options.bucket import PARTITION_TIMESTAMP_FORMATTER

TimeParser = Callable[[str], int | None]
"""A function that parses a text as a time; it returns ``None`` if the text does not have this form."""
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
    """Return the text of a partition's time: its first value, or the pattern with ``$column`` replaced by values."""
    if pattern is None:
        return next(iter(values.values()))
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    return re.sub(rf"\$({names})", lambda match: values[match[1]], pattern)


def time_parser(format: str | None) -> TimeParser:
    """Return the parser for a format; ``None``: ``yyyy-MM-dd[ HH:mm:ss[.SSS]]``, where numbers may overflow.

    Raises UnsupportedError for a format with fields other than numbers from the year to the fraction of a second.
    """
    return _lenient if format is None else partial(_strict, _compiled(format))


def _lenient(text: str) -> int | None:
    """Parse the default format, with overflow: 2024-13-01 is 2025-01-01, and 25:00:00 is 01:00 of the next day."""
    match = _DEFAULT.fullmatch(text)
    if match is None:
        return None
    fields = match.groupdict()
    fraction = fields.pop("fraction")
    return _micros({name: int(value or 0) for name, value in fields.items()}, fraction)


def _strict(pattern: re.Pattern[str], text: str) -> int | None:
    """Parse with a compiled format. The 31st of a shorter month is its last day, as in Java."""
    match = pattern.fullmatch(text)
    if match is None:
        return None
    texts = {name: value for name, value in match.groupdict().items() if value is not None}
    fraction, short = texts.pop("fraction", None), texts.pop("short", None)
    numbers = {name: int(value) for name, value in texts.items()} | (
        {} if short is None else {"year": 2000 + int(short)}
    )
    if not {"year", "month", "day"} <= numbers.keys():
        return None
    if any(not low <= numbers[name] <= high for name, (low, high) in _LIMITS.items() if name in numbers):
        return None
    if "hour" not in numbers:
        numbers, fraction = {name: numbers[name] for name in ("year", "month", "day")}, None
    first = _day({**numbers, "day": 1})
    following = _day({**numbers, "day": 1, "month": numbers["month"] + 1})
    return _micros({**numbers, "day": min(numbers["day"], following - first)}, fraction)


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
            literal = token["other"]
            if literal in _OTHERS:
                raise _unsupported(format, literal)
            parts.append({"[": "(?:", "]": ")?"}.get(literal) or re.escape(literal))
        else:
            digits_follow = after is not None and after["letter"] is not None
            parts.append(_group(token["letter"], len(token[0]), digits_follow, format))
    try:
        return re.compile("".join(parts), re.ASCII)
    except re.error as error:
        raise _unsupported(format, str(error)) from error


def _group(letter: str, width: int, digits_follow: bool, format: str) -> str:
    """Return the regular expression group of a field: ``width`` digits, or more where Java accepts more.

    A single letter accepts any number of digits, and so do four letters of a year unless another field follows.
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
    """Return the number of days since 1970-01-01; months and days may overflow."""
    cycles, year = divmod(number["year"], 400)  # the calendar repeats every 400 years, so numpy's range suffices
    months = (year - 1970) * 12 + number["month"] - 1
    first = int(np.datetime64(months, "M").astype("datetime64[D]").astype(np.int64))
    return first + number["day"] - 1 + cycles * 146_097


def _unsupported(format: str, part: str) -> UnsupportedError:
    return UnsupportedError(
        f"option {PARTITION_TIMESTAMP_FORMATTER.key!r} is {format!r}, and {part!r} in it is not supported: use "
        "numbers such as yyyy, MM, dd, HH, mm, ss and SSS, texts in quotes, and [ ] around optional parts"
    )
