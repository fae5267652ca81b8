"""Parsers of option texts: sizes, durations, numbers, choices, lists and maps.

Every parser takes the text and returns the value, or raises a ValueError that names the accepted texts.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

from paimon_core.options.per_field import split_list

MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
NOTHING: Final[tuple[str, ...]] = ()
NO_LEVELS: Final[Mapping[int, str]] = {}
NO_WEIGHTS: Final[tuple[Decimal, ...]] = ()

_NUMBERS = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?", re.ASCII)
_MOST_NUMBERS: Final = 1_000_000
_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.ASCII)
_DURATION = re.compile(r"(\d+)\s*([a-zµ]*)")  # µ is U+00B5; text with U+03BC is folded to it below

_BYTES_OF_UNIT: Final[dict[str, int]] = {
    unit: 1 << 10 * power
    for power, units in enumerate(
        (
            ("", "b", "bytes"),
            ("k", "kb", "kibibytes"),
            ("m", "mb", "mebibytes"),
            ("g", "gb", "gibibytes"),
            ("t", "tb", "tebibytes"),
        )
    )
    for unit in units
}

_NANOS_OF_UNIT: Final[dict[str, int]] = {
    unit: nanos
    for units, nanos in (
        (("d", "day", "days"), 86_400 * 10**9),
        (("h", "hour", "hours"), 3_600 * 10**9),
        (("min", "m", "minute", "minutes"), 60 * 10**9),
        (("s", "sec", "secs", "second", "seconds"), 10**9),
        (("", "ms", "milli", "millis", "millisecond", "milliseconds"), 10**6),
        (("µs", "micro", "micros", "microsecond", "microseconds"), 10**3),
        (("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
    )
    for unit in units
}


def text(value: str) -> str:
    """Return the text unchanged."""
    return value


def lower_text(value: str) -> str:
    """Return the text in lower case, without blanks around it."""
    return value.strip().lower()


def name_part(value: str) -> str:
    """Return the text if a file name can begin with it."""
    if "/" in value or "\0" in value:
        raise ValueError("must be part of a file name, without a separator")
    return value


def path_within(value: str) -> str:
    """Return a relative path if it stays within its base directory."""
    if ".." in value.split("/") or "\0" in value:
        raise ValueError("must stay within the table: no '..'")
    return value


def boolean(value: str) -> bool:
    """Parse ``true`` or ``false``, in any case."""
    match value.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("must be true or false")


def number(least: int = -(2**31), most: int = MAX_INT) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``least`` to ``most``, both included."""

    def parse(value: str) -> int:
        digits = value.strip()
        if not re.fullmatch(r"[+-]?\d+", digits, re.ASCII) or not least <= int(digits) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(digits)

    return parse


integer = number()
long = number(-(2**63), MAX_LONG)


def fraction(value: str) -> float:
    """Parse a finite decimal number."""
    try:
        result = float(value)
    except ValueError:
        result = float("nan")
    if result != result or result in (float("inf"), float("-inf")):
        raise ValueError("must be a number")
    return result


def memory_size(value: str) -> int:
    """Parse a size such as ``128 mb`` to bytes; units are powers of 1024, no unit means bytes."""
    match = _SIZE.fullmatch(value.strip().lower())
    if match is None or match[2] not in _BYTES_OF_UNIT:
        raise ValueError("must be a size: a whole number and b, kb, mb, gb or tb, such as '128 mb'")
    size = int(match[1]) * _BYTES_OF_UNIT[match[2]]
    if size > MAX_LONG:
        raise ValueError("is more bytes than 64 bits can count")
    return size


def size_from(least: int) -> Callable[[str], int]:
    """Return a parser of sizes of at least ``least`` bytes, a number of megabytes."""

    def parse(value: str) -> int:
        size = memory_size(value)
        if size < least:
            raise ValueError(f"must be at least {least >> 20} mb")
        return size

    return parse


def duration(value: str) -> timedelta:
    """Parse a duration such as ``10 s`` or ``1 h``; no unit means milliseconds.

    Nanoseconds are rounded down to whole microseconds, the finest a timedelta holds.
    """
    match = _DURATION.fullmatch(value.strip().lower().replace("\u03bc", "\u00b5"))
    if match is None or match[2] not in _NANOS_OF_UNIT:
        raise ValueError("must be a duration: a whole number and d, h, min, s, ms, µs or ns, such as '10 min'")
    try:
        return timedelta(microseconds=int(match[1]) * _NANOS_OF_UNIT[match[2]] // 1000)
    except OverflowError as error:
        raise ValueError("is longer than 999999999 days") from error


def enum(*choices: str) -> Callable[[str], str]:
    """Return a parser of ``choices`` in any case, with ``_`` equal to ``-``; it returns the spelling in ``choices``."""
    by_folded = {_folded(choice): choice for choice in choices}

    def parse(value: str) -> str:
        try:
            return by_folded[_folded(value.strip())]
        except KeyError:
            raise ValueError(f"must be one of {', '.join(choices)}") from None

    return parse


def _folded(choice: str) -> str:
    return choice.lower().replace("_", "-")


def comma_list(value: str) -> tuple[str, ...]:
    """Return the comma-separated items without surrounding blanks and empty items."""
    return tuple(split_list(value))


def text_map(value: str) -> dict[str, str]:
    """Parse ``k1:v1,k2:v2`` to a map; a value may contain colons."""
    result: dict[str, str] = {}
    for part in comma_list(value):
        key, colon, text_value = part.partition(":")
        if not colon or not key.strip() or not text_value.strip():
            raise ValueError("must be a map such as 'k1:v1,k2:v2'")
        if key.strip() in result:
            raise ValueError(f"names {key.strip()!r} twice")
        result[key.strip()] = text_value.strip()
    return result


def level_map(value: str) -> Mapping[int, str]:
    """Parse ``0:avro,3:parquet`` to a map from level to text."""
    try:
        return {number(0)(level): chosen for level, chosen in text_map(value).items()}
    except ValueError as error:
        raise ValueError("must be a map from level to value such as '0:avro,3:parquet'") from error


def weights(value: str) -> tuple[Decimal, ...]:
    """Parse comma-separated positive numbers."""
    try:
        result = tuple(map(Decimal, comma_list(value)))
    except ArithmeticError:
        result = (Decimal("nan"),)
    if not all(weight.is_finite() and weight > 0 for weight in result):
        raise ValueError("must be comma-separated positive numbers")
    return result


def number_list(text: str) -> list[int]:
    """Return the distinct numbers of a list such as "0-99,150" in ascending order; a range includes both ends."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = _NUMBERS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < _MOST_NUMBERS:
            raise ValueError("must be numbers and ranges separated by commas, such as '0-99,150'")
        numbers.update(range(first, last + 1))
    return sorted(numbers)


def column_list(text: str) -> tuple[str, ...]:
    """Return the column names of a list separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("must be a list of column names separated by commas")
    if len(set(names)) < len(names):
        raise ValueError("names a column twice")
    return names
