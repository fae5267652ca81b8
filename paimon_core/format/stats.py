"""Bounds and null counts of a file's columns, gathered batch by batch (format 5.7, 5.8).

Arrow's minimum and maximum of a batch are what costs: a few percent of encoding it. Bounds may be wider than the
values (that is what truncation does) but never narrower, and are left out where they could mislead.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import AtomicType, DataField, DataType

_TRUNCATE = re.compile(r"truncate\(\s*([0-9]+)\s*\)\Z", re.IGNORECASE)
_UNBOUNDED = frozenset({"BINARY", "VARBINARY", "VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"})
_LAST_POINT = 0x10FFFF
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000


@dataclass(frozen=True, slots=True)
class StatsMode:
    """How much is kept of a column: ``none``, ``counts``, ``truncate`` (to ``length``) or ``full``."""

    kind: Literal["none", "counts", "truncate", "full"]
    length: int = 0


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Internal values no row is below or above, None where unknown; how many rows are null, None where not counted."""

    min: Any
    max: Any
    null_count: int | None


def parse_mode(text: str) -> StatsMode:
    """A mode from its text: ``none``, ``counts``, ``full``, ``truncate(16)``; InvalidInputError for anything else."""
    word = text.strip().lower()
    if word == "none":
        return StatsMode("none")
    if word == "counts":
        return StatsMode("counts")
    if word == "full":
        return StatsMode("full")
    match = _TRUNCATE.match(word)
    if match and int(match[1]) > 0:
        return StatsMode("truncate", int(match[1]))
    raise InvalidInputError(f"statistics mode {text!r} is not one of none, counts, truncate(<length>), full")


class StatsCollector:
    """Statistics of the rows given to `update`, one `ColumnBounds` per field."""

    def __init__(self, fields: Sequence[DataField], modes: Sequence[StatsMode]) -> None:
        self._columns = [_Column(f, mode) for f, mode in zip(fields, modes, strict=True)]

    def update(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take in rows; columns by name, in the canonical Arrow types of the fields."""
        for column in self._columns:
            column.update(batch.column(column.name))

    def result(self) -> list[ColumnBounds]:
        """The statistics so far."""
        return [column.result() for column in self._columns]


class _Column:
    """Null count and extremes of one column so far."""

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
            self._bounded, self._extremes = False, None  # NaN is in no order all readers agree on
            return
        found = pc.min_max(values)
        low, high = _internal(found["min"]), _internal(found["max"])
        if self._extremes is not None:
            low, high = min(low, self._extremes[0]), max(high, self._extremes[1])
        self._extremes = low, high

    def result(self) -> ColumnBounds:
        if self._mode.kind == "none":
            return ColumnBounds(None, None, None)
        if self._extremes is None:
            return ColumnBounds(None, None, self._nulls)
        low, high = self._extremes
        if isinstance(low, float):
            low, high = low if low else -0.0, high if high else 0.0  # whichever zero there is lies between
        elif isinstance(low, str | bytes) and self._mode.kind == "truncate":
            low, high = truncate_min(low, self._mode.length), truncate_max(high, self._mode.length)
            if high is None:
                low = None
        return ColumnBounds(low, high, self._nulls)


def has_bounds(t: DataType) -> bool:
    """Whether the type has bounds: all but nested ones and bytes, which the Java engine would compare wrongly."""
    return isinstance(t, AtomicType) and t.root not in _UNBOUNDED


def truncate_min(value: Any, length: int) -> Any:
    """The first ``length`` characters or bytes: not above the value."""
    return value[:length]


def truncate_max(value: Any, length: int) -> Any:
    """The shortest text or bytes of at most ``length`` that is not below the value; None when there is none.

    What is not longer stays; otherwise the last character (or byte) of the prefix that has a successor becomes it, and
    all behind goes. Surrogates are no characters and are passed over.
    """
    if len(value) <= length:
        return value
    if isinstance(value, bytes):
        kept = value[:length].rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    kept = value[:length].rstrip(chr(_LAST_POINT))
    if not kept:
        return None
    point = ord(kept[-1]) + 1
    return kept[:-1] + chr(_AFTER_SURROGATES if point == _SURROGATES else point)


def _internal(value: pa.Scalar) -> Any:
    """A scalar as an internal value: days, milliseconds of day and timestamps as the integers they are."""
    return value.value if pa.types.is_temporal(value.type) else value.as_py()
