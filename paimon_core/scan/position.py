"""The position of a stream: a value that is stored as JSON and does not change its meaning between versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.snapshot.snapshot import Snapshot

ALL: Final = (1 << 31) - 1
"""The index of a position behind every unit of its snapshot, however many there are."""

_KEYS: Final = {"snapshotId": int, "index": int, "scanSnapshot": bool, "mark": str, "table": str}


@dataclass(frozen=True, slots=True)
class Position:
    """The end of change unit ``index`` of a snapshot. -1: before the first unit; `ALL`: after the last unit.

    With ``scan_snapshot`` the units are parts of all rows of the snapshot, else parts of its changes. A range of
    positions excludes its start and includes its end. ``fingerprint`` is the one of the snapshot ("": unknown): after
    a rollback another snapshot may have the same id. ``table`` identifies the table: another table may replace it.
    """

    snapshot_id: int
    index: int
    scan_snapshot: bool = False
    fingerprint: str = ""
    table: str = ""

    @staticmethod
    def end_of(snapshot: Snapshot, table: str = "") -> "Position":
        """Return the position behind all changes of a snapshot."""
        return Position(snapshot.id, ALL, fingerprint=snapshot.fingerprint, table=table)

    @property
    def undecided(self) -> bool:
        """True if the stream begins with all rows of a snapshot that does not exist yet: the table was empty."""
        return self.scan_snapshot and self.snapshot_id == 0

    @property
    def next_snapshot(self) -> int:
        """Id of the first snapshot that the stream still needs, and that must not expire."""
        return self.snapshot_id + 1 if self.index == ALL or self.undecided else self.snapshot_id

    @property
    def order(self) -> tuple[int, int]:
        """Sort key of the positions of one stream."""
        return self.snapshot_id, self.index

    def to_json(self) -> dict[str, Any]:
        """Return the position as a JSON object, for the stored state of a stream."""
        values = (self.snapshot_id, self.index, self.scan_snapshot, self.fingerprint, self.table)
        return dict(zip(_KEYS, values, strict=True))

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> "Position":
        """Return the position that :meth:`to_json` wrote. InvalidInputError: the object comes from another source."""
        invalid = [key for key, kind in _KEYS.items() if type(document.get(key)) is not kind]
        if invalid:
            raise InvalidInputError(
                f"{dict(document)!r} is no position of this source: {invalid[0]!r} is missing or of another type. "
                "The stream state is of another source: give the reader stream state of its own"
            )
        return Position(*(document[key] for key in _KEYS))
