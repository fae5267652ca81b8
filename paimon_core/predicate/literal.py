"""Conversion of a filter's literals to values of the column's type.

A literal need not be a value of the type: for an INT column, 5.5 is between two values, and 10^12 is above all values.
:func:`fit` finds the nearest value. A comparison rewritten with this value has the same result for every row.
"""

import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import timestamp_unit
from paimon_core.types.calendar import days_of
from paimon_core.types.datatype import BINARY_ROOTS, TEXT_ROOTS, AtomicType

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64, "DATE": 32, "TIMESTAMP": 64, "TIMESTAMP_LTZ": 64}
_DAY = 86_400_000_000_000  # nanoseconds
_NANOS = {"ms": 1_000_000, "us": 1_000, "ns": 1}
_EPOCH = dt.datetime(1970, 1, 1)
_TIME_TEXT = re.compile(
    r"(?:(?P<year>\d{4}|[+-]\d{4,9})-(?P<month>\d\d)-(?P<day>\d\d)(?:[ T](?=\d)|$))?"
    r"(?:(?P<time>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d{1,9}))?\s*(?P<zone>Z|[+-]\d\d:\d\d)?)?"
)


@dataclass(frozen=True, slots=True)
class Fit:
    """The position of a literal in the order of a type's values.

    ``floor`` is the largest value that is not above the literal; ``exact`` is True if ``floor`` equals the literal.
    ``beyond`` is 1 for a literal above all values and -1 for a literal below all values; ``floor`` is then undefined.
    """

    floor: Any
    exact: bool
    beyond: int = 0


def fit(value: Any, kind: AtomicType, column: str) -> Fit:
    """Return the position of ``value`` (not None) in the order of the column type's values.

    A numeric column accepts a number. A temporal column accepts text, a date, a datetime or the internal number. Only a
    TIMESTAMP_LTZ column accepts a datetime with a zone; it reads one without a zone as UTC. Columns of text, bytes and
    booleans accept only values of their type. For FLOAT and DOUBLE, a number becomes a DOUBLE, as in SQL. For DECIMAL,
    a Python float means its shortest decimal form. Raises InvalidInputError, naming ``column``, for any other value.
    """
    try:
        position = _fit(value, kind)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"filter on {column!r}: {value!r} is not a value of type {kind}: {error}") from error
    if position is None:
        literal = f"{value!r} ({type(value).__name__})"
        raise InvalidInputError(f"filter on {column!r}: a column of type {kind} cannot be compared with {literal}")
    return position


def _fit(value: Any, kind: AtomicType) -> Fit | None:
    root = kind.root
    if root == "BOOLEAN":
        return Fit(value, True) if isinstance(value, bool) else None
    if root in TEXT_ROOTS:
        return _text(value)
    if root in BINARY_ROOTS:
        return Fit(bytes(value), True) if isinstance(value, bytes | bytearray | memoryview) else None
    if root in ("FLOAT", "DOUBLE"):
        return _floating(value, single=root == "FLOAT")
    if root == "DECIMAL":
        return _decimal(value, kind.precision or 0, kind.scale or 0)
    if root == "TIME":
        return _discrete(_time(value), 0, _DAY // 1_000_000 - 1)
    if root not in _BITS:
        return None
    number = _number(value) if root.endswith("INT") else _ticks(value, kind)
    half = 1 << _BITS[root] - 1
    return _discrete(number, -half, half - 1)


def _text(value: Any) -> Fit | None:
    if not isinstance(value, str):
        return None
    value.encode()  # raises for a lone surrogate, which has no UTF-8 bytes to compare
    return Fit(value, True)


def _number(value: Any) -> Fraction | float | None:
    """Return the exact number; NaN and infinities as floats; `None` if the value is not a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return (
        Fraction(value) if isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool) else None
    )


def _discrete(value: Fraction | float | None, low: int, high: int) -> Fit | None:
    """Return the position among the integers from ``low`` to ``high``; `None` for `None`."""
    if value is None:
        return None
    if isinstance(value, float):  # NaN is larger than every number
        return Fit(0, False, -1 if value < 0 else 1)
    floor = math.floor(value)
    if not low <= floor <= high:
        return Fit(0, False, 1 if floor > high else -1)
    return Fit(floor, floor == value)


def _decimal(value: Any, precision: int, scale: int) -> Fit | None:
    number = _number(Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else value)
    most = 10**precision - 1
    position = _discrete(number * 10**scale if isinstance(number, Fraction) else number, -most, most)
    return position and Fit(Decimal(f"{position.floor}E-{scale}"), position.exact, position.beyond)


def _floating(value: Any, *, single: bool) -> Fit | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        double = float(value)
    except OverflowError:
        double = math.inf if value > 0 else -math.inf
    if not single or math.isnan(double):
        return Fit(double, True)
    with np.errstate(over="ignore"):
        near = np.float32(double)
    if float(near) <= double:
        return Fit(float(near), float(near) == double)
    return Fit(float(np.nextafter(near, np.float32(-np.inf))), False)


def _time(value: Any) -> Fraction | None:
    """Return milliseconds of the day; `None` if the value is not a time of day."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, str):
        nanos, date, zone = _parse_time(value)
        return None if date or zone is not None else Fraction(nanos, 1_000_000)
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        return None
    return Fraction(_of_day(value), 1_000_000)


def _ticks(value: Any, kind: AtomicType) -> Fraction | None:
    """Return days, or ticks of the column's timestamps, since the epoch; `None` if the value is not comparable."""
    unit = _DAY if kind.root == "DATE" else _NANOS[timestamp_unit(kind.precision or 0)]
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    nanos, zoned = _since_epoch(value)
    if nanos is None or (zoned and kind.root != "TIMESTAMP_LTZ"):  # an instant cannot be compared with wall-clock times
        return None
    return Fraction(nanos, unit)


def _since_epoch(value: Any) -> tuple[int | None, bool]:
    """Return the nanoseconds since the epoch and True if the value has a zone; `None`: the value is not a time."""
    if isinstance(value, str):
        nanos, date, zone = _parse_time(value)
        if not date:
            raise ValueError("it has no date")
        return nanos, zone is not None
    if isinstance(value, dt.datetime):
        zone = value.utcoffset()
        wall = value.replace(tzinfo=None) - (zone or dt.timedelta())
        extra = getattr(value, "nanosecond", 0)  # subclasses such as pandas.Timestamp have more digits
        return (wall.date() - _EPOCH.date()).days * _DAY + _of_day(wall.time()) + extra, zone is not None
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days * _DAY, False
    return None, False


def _of_day(time: dt.time) -> int:
    return (((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond) * 1_000


def _parse_time(text: str) -> tuple[int, bool, dt.timedelta | None]:
    """Parse ``2026-01-31 10:20:30.123456789+01:00`` or a part of it; other years than 0 to 9999 have a sign.

    Returns nanoseconds in UTC, True if the text has a date, and its zone (`None`: no zone). Raises ValueError.
    """
    parts = _TIME_TEXT.fullmatch(text.strip())
    if parts is None or not text.strip():
        raise ValueError("write it as 2026-01-31, 2026-01-31 10:20:30.5 or 10:20:30.5")
    year, time, fraction, zone = parts["year"], parts["time"], parts["fraction"], parts["zone"]
    nanos = int((fraction or "").ljust(9, "0"))
    if year:
        nanos += days_of(int(year), int(parts["month"]), int(parts["day"])) * _DAY
    if time:
        nanos += _of_day(dt.time.fromisoformat(time))
    if zone is None:
        return nanos, bool(year), None
    offset = dt.timedelta()
    if zone != "Z":
        offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:])) * (-1 if zone[0] == "-" else 1)
    return nanos - offset // dt.timedelta(microseconds=1) * 1_000, bool(year), offset
