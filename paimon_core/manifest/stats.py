"""Statistics of a set of rows as stored: two serialised rows and counts of nulls (format 5.7)."""

from dataclasses import dataclass
from typing import Final

__all__ = ["EMPTY_STATS", "SimpleStats"]

_EMPTY_ROW: Final = bytes(12)


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Smallest and largest values and null counts of some columns.

    ``min_values`` and ``max_values`` are BinaryRows with arity prefix, one field per column, null where unknown;
    ``null_counts`` has one item per column, None where unknown. Which columns is said elsewhere.
    """

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


EMPTY_STATS: Final = SimpleStats(_EMPTY_ROW, _EMPTY_ROW, ())
"""Statistics of no column."""
