"""Literals of a filter among the values of the column they are compared with.

A literal need not be a value of the column's type: 5.5 lies between two INTs, 10^12 above all of them. :func:`fit`
finds its place, so a comparison can be rewritten to one with a value of the type that every row answers alike.
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
from paimon_core.types.datatype import BINARY_ROOTS, TEXT_ROOTS, AtomicType

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64, "DATE": 32, "TIMESTAMP": 64, "TIMESTAMP_LTZ": 64}
_DAY = 86_400_000_000_000  # nanoseconds
_NANOS = {"ms": 1_000_000, "us": 1_000, "ns": 1}
_EPOCH = dt.datetime(1970, 1, 1)
_MOMENT = re.compile(
    r"(?:(?P<date>\d{4}-\d\d-\d\d)(?:[ T](?=\d)|$))?"
    r"(?:(?P<time>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d{1,9}))?\s*(?P<zone>Z|[+-]\d\d:\d\d)?)?"
)


@dataclass(frozen=True, slots=True)
class Fit:
    """The place of a literal among the values of a type.

    ``floor`` is the largest value not above the literal, ``exact`` whether that is the literal itself. ``beyond`` is 1
    or -1 for a literal above or below all values; ``floor`` then means nothing.
    """

    floor: Any
    exact: bool
    beyond: int = 0


def fit(value: Any, kind: AtomicType, column: str) -> Fit:
    """``value`` (not None) among the values of the column's type.

    Accepted are: a number for a numeric column; text, a date, a datetime or the internal number for a temporal one (a
    datetime with a zone only for a local-zone timestamp, where one without counts as UTC); text, bytes and booleans for
    their own types. A number compared with FLOAT or DOUBLE is taken as a DOUBLE, as SQL does; a Python float compared
    with DECIMAL by its shortest decimal form. Raises InvalidInputError for anything else.
    """
    try:
        found = _fit(value, kind)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"filter on {column!r}: {value!r} is no {kind}: {error}") from error
    if found is None:
        given = f"{value!r} ({type(value).__name__})"
        raise InvalidInputError(f"filter on {column!r}: a column of type {kind} cannot be compared with {given}")
    return found


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
    number = _number(value) if root.endswith("INT") else _moment(value, kind)
    half = 1 << _BITS[root] - 1
    return _discrete(number, -half, half - 1)


def _text(value: Any) -> Fit | None:
    if not isinstance(value, str):
        return None
    value.encode()  # a lone surrogate has no UTF-8 form: nothing could be compared with it
    return Fit(value, True)


def _number(value: Any) -> Fraction | float | None:
    """Exact, or one of NaN and the infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return (
        Fraction(value) if isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool) else None
    )


def _discrete(value: Fraction | float | None, low: int, high: int) -> Fit | None:
    """Whole numbers from low to high."""
    if value is None:
        return None
    if isinstance(value, float):  # NaN counts as larger than every number
        return Fit(0, False, -1 if value < 0 else 1)
    floor = math.floor(value)
    if not low <= floor <= high:
        return Fit(0, False, 1 if floor > high else -1)
    return Fit(floor, floor == value)


def _decimal(value: Any, precision: int, scale: int) -> Fit | None:
    number = _number(Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else value)
    most = 10**precision - 1
    found = _discrete(number * 10**scale if isinstance(number, Fraction) else number, -most, most)
    return found and Fit(Decimal(f"{found.floor}E-{scale}"), found.exact, found.beyond)


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
    """Milliseconds of the day."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, str):
        nanos, date, zone = _read(value)
        return None if date or zone is not None else Fraction(nanos, 1_000_000)
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        return None
    return Fraction(_of_day(value), 1_000_000)


def _moment(value: Any, kind: AtomicType) -> Fraction | None:
    """Days, or ticks of the column's timestamps, since the epoch."""
    unit = _DAY if kind.root == "DATE" else _NANOS[timestamp_unit(kind.precision or 0)]
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    nanos, zoned = _since_epoch(value)
    if nanos is None or (zoned and kind.root != "TIMESTAMP_LTZ"):  # a moment has no place among wall-clock times
        return None
    return Fraction(nanos, unit)


def _since_epoch(value: Any) -> tuple[int | None, bool]:
    """Nanoseconds, and whether a zone was given."""
    if isinstance(value, str):
        nanos, date, zone = _read(value)
        if not date:
            raise ValueError("it has no date")
        return nanos, zone is not None
    if isinstance(value, dt.datetime):
        zone = value.utcoffset()
        wall = value.replace(tzinfo=None) - (zone or dt.timedelta())
        extra = getattr(value, "nanosecond", 0)  # of subclasses that are finer than datetime
        return (wall.date() - _EPOCH.date()).days * _DAY + _of_day(wall.time()) + extra, zone is not None
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days * _DAY, False
    return None, False


def _of_day(time: dt.time) -> int:
    return (((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond) * 1_000


def _read(text: str) -> tuple[int, bool, dt.timedelta | None]:
    """``2026-01-31 10:20:30.123456789+01:00`` or a part of it: nanoseconds, whether it has a date, its zone."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None or not text.strip():
        raise ValueError("write it as 2026-01-31, 2026-01-31 10:20:30.5 or 10:20:30.5")
    date, time, fraction, zone = found["date"], found["time"], found["fraction"], found["zone"]
    nanos = int((fraction or "").ljust(9, "0"))
    if date:
        nanos += (dt.date.fromisoformat(date) - _EPOCH.date()).days * _DAY
    if time:
        nanos += _of_day(dt.time.fromisoformat(time))
    if zone is None:
        return nanos, bool(date), None
    offset = dt.timedelta()
    if zone != "Z":
        offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:])) * (-1 if zone[0] == "-" else 1)
    return nanos - offset // dt.timedelta(microseconds=1) * 1_000, bool(date), offset
