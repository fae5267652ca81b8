"""A model of the rows of a table, without code of the engine: sums of hashes by day, for every snapshot."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from zlib import crc32

Row = tuple[str, int, int]
"""Day, id and value of a row."""
State = Mapping[str, int]
"""By day the sum of the hashes of its rows."""
_MASK = (1 << 64) - 1


class WrongRowsError(AssertionError):
    """The rows that the engine returns are not the rows of the model."""


@dataclass
class Model:
    """The rows of a table, as values by day and id, and the state of every snapshot that is still of interest."""

    days: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    sums: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    at: dict[int, State] = field(default_factory=dict)
    """By snapshot id, its state."""

    def put(self, rows: Iterable[Row]) -> None:
        """Insert or replace rows."""
        for day, key, value in rows:
            self.take([(day, key)])
            self.days[day][key] = value
            self.sums[day] = (self.sums[day] + _hash((day, key, value))) & _MASK

    def take(self, keys: Iterable[tuple[str, int]]) -> None:
        """Delete rows by day and id; a missing row is not an error."""
        for day, key in keys:
            value = self.days[day].pop(key, None) if day in self.days else None
            if value is not None:
                self.sums[day] = (self.sums[day] - _hash((day, key, value))) & _MASK

    def drop(self, days: Iterable[str]) -> None:
        """Drop the rows of days."""
        for day in days:
            self.days.pop(day, None)
            self.sums.pop(day, None)

    def state(self) -> State:
        """Return the state now, without days that have no rows."""
        return {day: self.sums[day] for day, rows in self.days.items() if rows}


def state_of(rows: Iterable[Row]) -> State:
    """Return the state of rows."""
    found: dict[str, int] = defaultdict(int)
    for row in rows:
        found[row[0]] = (found[row[0]] + _hash(row)) & _MASK
    return dict(found)


def compare(found: State, expected: State, what: str) -> None:
    """Raise WrongRowsError if two states differ, and name the days."""
    if found != expected:
        days = sorted(day for day in {*found, *expected} if found.get(day) != expected.get(day))
        raise WrongRowsError(f"{what}: the rows of {len(days)} days differ from the model: {', '.join(days[:5])}")


def _hash(row: Row) -> int:
    return hash((crc32(row[0].encode()), *row[1:])) & _MASK  # the same in each process, where the hash of a text is not
