"""A model of a table in plain Python: the reference that the engine is compared with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


class KeyedModel:
    """A primary-key table with the deduplicate engine: a dict from key to row, one history entry per commit.

    With ``sequence`` columns the row whose sequence values are largest wins, NULL being smallest, and of equal ones the
    row written last; ``descending`` turns the order of values that are not NULL.
    """

    def __init__(self, key: Sequence[str], sequence: Sequence[str] = (), *, descending: bool = False) -> None:
        self.key, self.sequence, self.descending = tuple(key), tuple(sequence), descending
        self._newest: dict[tuple, tuple[str, Row]] = {}
        self.history: list[list[dict]] = []

    def upsert(self, rows: Iterable[tuple[str, Row]]) -> None:
        """One commit of (kind, row)."""
        for kind, row in rows:
            key = tuple(row[k] for k in self.key)
            old = self._newest.get(key)
            if old is None or not self._before(row, old[1]):
                self._newest[key] = (kind, row)
        self.history.append(self.rows())

    def overwrite(self, rows: Iterable[tuple[str, Row]], gone: Callable[[Row], bool] = lambda row: True) -> None:
        """One commit that first forgets the rows ``gone`` is true for, retracted ones included."""
        self._newest = {key: entry for key, entry in self._newest.items() if not gone(entry[1])}
        self.upsert(rows)

    def rows(self) -> list[dict]:
        """The rows a reader sees, ordered by key."""
        live = [(key, dict(row)) for key, (kind, row) in self._newest.items() if kind in ("+I", "+U")]
        return [row for _, row in sorted(live, key=lambda pair: pair[0])]

    def _before(self, one: Row, other: Row) -> bool:
        for column in self.sequence:
            a, b = one[column], other[column]
            if a == b:
                continue
            if a is None or b is None:
                return a is None
            return a > b if self.descending else a < b
        return False


def same(found: Iterable[Row], expected: Iterable[Row]) -> bool:
    """Equal as bags of rows; the message of a failure shows both in one order."""
    one, other = sorted(map(repr, found)), sorted(map(repr, expected))
    assert one == other
    return True
