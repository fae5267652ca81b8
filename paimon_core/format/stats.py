"""Bounds and null counts of a file's columns, collected batch by batch (format 5.7, 5.8).

Bounds may be wider than the values, because of truncation, but never narrower. Columns with NaN have no bounds. Cost:
the minimum and maximum of each batch, a few percent of the cost of encoding it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import AtomicType, DataField, DataType

_TRUNCATE = re.compile(r"truncate\(\s*([0-9]+)\s*\)\Z", re.IGNORECASE)
_SIMPLE_MODES = ("none", "counts", "full")
_UNBOUNDED = frozenset({"BINARY", "VARBINARY", "VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"})
_LAST_POINT = 0x10FFFF
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000


@dataclass(frozen=True, slots=True)
class StatsMode:
    """The statistics of a column: ``none``, ``counts`` of nulls, ``full`` bounds, or ``truncate`` to ``length``."""

    kind: str
    length: int = 0  # characters or bytes


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Bounds and null count of a column."""

    min: Any
    """An internal value that is a lower bound of all rows; `None`: unknown."""
    max: Any
    """An internal value that is an upper bound of all rows; `None`: unknown."""
    null_count: int | None
    """The number of NULLs; `None`: not counted."""


def parse_mode(text: str) -> StatsMode:
    """Return the mode for ``none``, ``counts``, ``full`` or ``truncate(<length>)``.

    Raises InvalidInputError for any other text.
    """
    word = text.strip().lower()
    if word in _SIMPLE_MODES:
        return StatsMode(word)
    match = _TRUNCATE.match(word)
    if match and int(match[1]) > 0:
        return StatsMode("truncate", int(match[1]))
    raise InvalidInputError(f"statistics mode {text!r} is not one of none, counts, truncate(<length>), full")


class StatsCollector:
    """A collector of the statistics of rows, one `ColumnBounds` per field."""

    def __init__(self, fields: Sequence[DataField], modes: Sequence[StatsMode]) -> None:
        self._columns = [_Column(f, mode) for f, mode in zip(fields, modes, strict=True)]

    def update(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Include rows; columns by name, in the canonical Arrow types of the fields."""
        for column in self._columns:
            column.update(batch.column(column.name))

    def result(self) -> list[ColumnBounds]:
        """Return the statistics of all rows so far, in the order of the fields."""
        return [column.result() for column in self._columns]


class _Column:
    """The null count and the extremes of one column so far."""

    def __init__(self, field: DataField, mode: StatsMode) -> None:
        self.name = field.name
        self._type, self._mode = field.type, mode
        self._bounded = mode.kind in ("truncate", "full") and has_bounds(field.type)
        self._nulls = 0
        self._extremes: tuple[Any, Any] | None = None

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        if self._mode.kind == "none":
            return
        self._nulls += values.null_count
        if not self._bounded or values.null_count == len(values):
            return
        if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            self._bounded, self._extremes = False, None  # readers disagree on the order of NaN
            return
        extremes = pc.min_max(values)
        low, high = internal_value(extremes["min"]), internal_value(extremes["max"])
        if self._extremes is not None:
            low, high = min(low, self._extremes[0]), max(high, self._extremes[1])
        self._extremes = low, high

    def result(self) -> ColumnBounds:
        low, high = (None, None) if self._extremes is None else self._extremes
        return in_mode(ColumnBounds(low, high, self._nulls), self._mode)


def in_mode(exact: ColumnBounds, mode: StatsMode) -> ColumnBounds:
    """Return the statistics of a column as its mode stores them."""
    if mode.kind == "none":
        return ColumnBounds(None, None, None)
    low, high = exact.min, exact.max
    if low is None or high is None or mode.kind == "counts":
        return ColumnBounds(None, None, exact.null_count)
    if isinstance(low, float):
        low, high = low if low else -0.0, high if high else 0.0  # the bounds include both zeros
    elif isinstance(low, str | bytes) and mode.kind == "truncate":
        low, high = truncate_min(low, mode.length), truncate_max(high, mode.length)
        if high is None:
            low = None
    return ColumnBounds(low, high, exact.null_count)


def has_bounds(t: DataType) -> bool:
    """Return True for types with bounds: not nested types, and not bytes, which the Java engine compares wrongly."""
    return isinstance(t, AtomicType) and t.root not in _UNBOUNDED


def truncate_min(value: Any, length: int) -> Any:
    """Return the first ``length`` characters or bytes, which are not above the value."""
    return value[:length]


def truncate_max(value: Any, length: int) -> Any:
    """Return a text or bytes of at most ``length`` that are not below the value; `None` if none exists.

    A longer value is cut to ``length``. Then its last character or byte that has a successor is replaced by the
    successor, and the rest is removed. A successor is never a surrogate.
    """
    if len(value) <= length:
        return value
    if isinstance(value, bytes):
        prefix = value[:length].rstrip(b"\xff")
        return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None
    prefix = value[:length].rstrip(chr(_LAST_POINT))
    if not prefix:
        return None
    point = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(_AFTER_SURROGATES if point == _SURROGATES else point)


def internal_value(value: pa.Scalar) -> Any:
    """Return a scalar as an internal value; dates, times and timestamps as integers of their unit."""
    return value.value if pa.types.is_temporal(value.type) else value.as_py()
