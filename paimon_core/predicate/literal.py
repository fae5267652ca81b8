"""Literals of a filter fitted to the type of the column they are compared with."""

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import AtomicType

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EPOCH = dt.datetime(1970, 1, 1)
_UTC_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True, slots=True)
class Fit:
    """A literal among the values of a type: the largest value not above it, and whether that is the literal itself.

    ``beyond`` is 1 or -1 for a literal above or below all values of the type; ``floor`` then means nothing.
    """

    floor: Any
    exact: bool
    beyond: int = 0


def fit(value: Any, kind: AtomicType, column: str) -> Fit:
    """``value`` among the values of the column's type; InvalidInputError when the two cannot be compared."""
    try:
        found = _fit(value, kind)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise InvalidInputError(f"filter on {column!r}: {value!r} is no {kind}: {error}") from error
    if found is None:
        raise InvalidInputError(
            f"filter on {column!r}: cannot compare a {kind} with {value!r} ({type(value).__name__})"
        )
    return found


def _fit(value: Any, kind: AtomicType) -> Fit | None:
    root = kind.root
    if root == "BOOLEAN":
        return Fit(value, True) if isinstance(value, bool) else None
    if root in ("CHAR", "VARCHAR"):
        return Fit(value, True) if isinstance(value, str) else None
    if root in ("BINARY", "VARBINARY", "BLOB"):
        return Fit(bytes(value), True) if isinstance(value, bytes | bytearray) else None
    if root in _BITS:
        return _discrete(_number(value), 1, -(1 << _BITS[root] - 1), (1 << _BITS[root] - 1) - 1)
    if root == "DECIMAL":
        scale, most = 10 ** (kind.scale or 0), 10 ** (kind.precision or 10) - 1
        found = _discrete(_number(value), scale, -most, most)
        return found and Fit(Decimal(found.floor).scaleb(-(kind.scale or 0)), found.exact, found.beyond)
    if root in ("FLOAT", "DOUBLE"):
        return _floating(value, single=root == "FLOAT")
    return _temporal(value, kind)


def _number(value: Any) -> Fraction | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return Fraction(value) if isinstance(value, int | float | Decimal) else None


def _discrete(value: Fraction | float | None, scale: int, low: int, high: int) -> Fit | None:
    """Whole numbers of 1/scale from low to high."""
    if value is None:
        return None
    if isinstance(value, float):  # NaN counts as larger than every number
        return Fit(0, False, -1 if value < 0 else 1)
    floor = math.floor(value * scale)
    if floor > high or floor < low:
        return Fit(0, False, 1 if floor > high else -1)
    return Fit(floor, floor == value * scale)


def _floating(value: Any, *, single: bool) -> Fit | None:
    if isinstance(value, str) and value.lower() in ("nan", "inf", "-inf", "infinity", "-infinity"):
        value = float(value)
    number = _number(value)
    if number is None:
        return None
    near = float(number) if not single else float(np.float32(float(number)))
    if isinstance(number, float) or not math.isfinite(near):
        return Fit(near, True) if isinstance(number, float) else Fit(near, False, 1 if near > 0 else -1)
    if Fraction(near) == number:
        return Fit(near, True)
    if Fraction(near) > number:
        near = float(np.nextafter(np.float32(near), np.float32("-inf"))) if single else math.nextafter(near, -math.inf)
    return Fit(near, False)


def _temporal(value: Any, kind: AtomicType) -> Fit | None:
    match kind.root:
        case "DATE":
            return _date(value)
        case "TIME":
            return _time(value)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _timestamp(value, kind)
    return None


def _date(value: Any) -> Fit | None:
    if isinstance(value, str):
        value = dt.date.fromisoformat(value)
    if isinstance(value, dt.datetime):
        since = value.replace(tzinfo=None) - _EPOCH
        return Fit(since.days, not (since.seconds or since.microseconds))
    return Fit((value - _EPOCH.date()).days, True) if isinstance(value, dt.date) else None


def _time(value: Any) -> Fit | None:
    if isinstance(value, str):
        value = dt.time.fromisoformat(value)
    if not isinstance(value, dt.time):
        return None
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return Fit(micros // 1000, micros % 1000 == 0)


def _timestamp(value: Any, kind: AtomicType) -> Fit | None:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if not isinstance(value, dt.datetime):
        return None
    if kind.root == "TIMESTAMP_LTZ":
        since = (value.replace(tzinfo=dt.timezone.utc) if value.tzinfo is None else value) - _UTC_EPOCH
    elif value.tzinfo is not None:
        return None  # a moment has no place among wall-clock times
    else:
        since = value - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    precision = 6 if kind.precision is None else kind.precision
    if precision > 6:
        return Fit(micros * 1000, True)
    return Fit(micros // 1000, micros % 1000 == 0) if precision <= 3 else Fit(micros, True)
