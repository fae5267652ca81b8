"""The position of a stream: a value that is stored as JSON and keeps its meaning across versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.snapshot.snapshot import Snapshot

ALL: Final = (1 << 31) - 1
"""The index of a position after all units of its snapshot."""

_KEYS: Final = {"snapshotId": int, "index": int, "scanSnapshot": bool, "mark": str, "table": str}


@dataclass(frozen=True, slots=True)
class Position:
    """The end of change unit ``index`` of a snapshot. -1: before the first unit; `ALL`: after the last unit.

    With ``scan_snapshot`` the units are parts of all rows of the snapshot, else parts of its changes. A range of
    positions excludes its start and includes its end. ``fingerprint`` is the snapshot's fingerprint ("": unknown),
    because another snapshot may have the same id after a rollback. ``table`` identifies the table, because another
    table may replace it.
    """

    snapshot_id: int
    index: int
    scan_snapshot: bool = False
    fingerprint: str = ""
    table: str = ""

    @staticmethod
    def end_of(snapshot: Snapshot, table: str = "") -> "Position":
        """Return the position after all changes of a snapshot."""
        return Position(snapshot.id, ALL, fingerprint=snapshot.fingerprint, table=table)

    @property
    def undecided(self) -> bool:
        """True if the stream begins with all rows of a snapshot that does not exist yet: the table was empty."""
        return self.scan_snapshot and self.snapshot_id == 0

    @property
    def next_snapshot(self) -> int:
        """Id of the first snapshot that the stream still needs, which must not expire."""
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
        """Return the position that :meth:`to_json` wrote. InvalidInputError for any other object."""
        invalid = [key for key, kind in _KEYS.items() if type(document.get(key)) is not kind]
        if invalid:
            raise InvalidInputError(
                f"{dict(document)!r} is not a position of this source: {invalid[0]!r} is missing or has another type. "
                "The stream state belongs to another source: start the reader with new stream state"
            )
        return Position(*(document[key] for key in _KEYS))
