"""How far a stream has come: a value that travels as JSON and means the same for ever."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from paimon_core.errors import InvalidInputError

__all__ = ["ALL", "Position"]

ALL: Final = (1 << 31) - 1
"""The index of a position behind every unit of its snapshot, however many there are."""

_KEYS: Final = {"snapshotId": int, "index": int, "scanSnapshot": bool, "mark": str, "table": str}


@dataclass(frozen=True, slots=True)
class Position:
    """Behind unit ``index`` of a snapshot: -1 is before its first unit, `ALL` behind its last.

    Units are the smallest parts a batch may take: of all rows of the snapshot where ``scan_snapshot``, else of its
    changes. A range of positions leaves out its start and holds its end. ``mark`` tells this snapshot from another of
    the same id, as there is after a rollback; "" where that is not known. ``table`` tells the table from one that is
    made in its place.
    """

    snapshot_id: int
    index: int
    scan_snapshot: bool = False
    mark: str = ""
    table: str = ""

    @property
    def undecided(self) -> bool:
        """Whether the stream begins with all rows of a snapshot that is yet to come: the table was empty."""
        return self.scan_snapshot and self.snapshot_id == 0

    @property
    def next_snapshot(self) -> int:
        """The first snapshot with anything left to read, which must not expire."""
        return self.snapshot_id + 1 if self.index == ALL or self.undecided else self.snapshot_id

    @property
    def order(self) -> tuple[int, int]:
        """Sorts the positions of one stream."""
        return self.snapshot_id, self.index

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, for checkpoints."""
        values = (self.snapshot_id, self.index, self.scan_snapshot, self.mark, self.table)
        return dict(zip(_KEYS, values, strict=True))

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> "Position":
        """The inverse of :meth:`to_json`. InvalidInputError names what another kind of stream has left there."""
        wrong = [key for key, kind in _KEYS.items() if type(document.get(key)) is not kind]
        if wrong:
            raise InvalidInputError(
                f"{dict(document)!r} is no position of this source: {wrong[0]!r} is missing or of another type. "
                "The checkpoint is of another source: give the query a checkpoint of its own"
            )
        return Position(*(document[key] for key in _KEYS))
