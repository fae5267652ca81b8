"""The state of a table from which the work of a commit started, and what must not have changed since.

A commit may follow any newer snapshot of the same history. A rollback, a fast-forward, or a table that was dropped and
created again replaces the history: snapshot ids are used again for other snapshots. So a starting point is an id *and*
the fingerprint of its snapshot.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import Final

from paimon_core.errors import CommitConflictError
from paimon_core.snapshot.snapshot import Snapshot


class Guard(Flag):
    """A part of the table that other commits must not have changed since the work started."""

    HISTORY = 0
    """Only the history itself: the starting snapshot is still, or was until it expired, part of the table."""
    LAYOUT = auto()
    """The number of buckets of each partition, and the bucket of each key."""
    ROWS = auto()
    """The rows of every bucket that the commit writes to."""
    KEYS = auto()
    """With ROWS: only the rows whose keys the commit writes."""
    STATEMENT = auto()
    """The rows that a DELETE, UPDATE or MERGE read: no other statement may have changed rows of the table."""


@dataclass(frozen=True, slots=True)
class StartedFrom:
    """The snapshot from which the work of a commit started.

    Attributes:
        snapshot_id: the id of the snapshot; 0: the table had no snapshot.
        fingerprint: the fingerprint of that snapshot; `None`: the table had no snapshot, or only the id is known.
        guards: the parts of the table that other commits must not have changed since.
        others: id and fingerprint of later snapshots that some tasks of the same job started from.
    """

    snapshot_id: int
    fingerprint: str | None = None
    guards: Guard = Guard.LAYOUT
    others: frozenset[tuple[int, str | None]] = frozenset()

    @staticmethod
    def of(snapshot: Snapshot | None, guards: Guard = Guard.LAYOUT) -> "StartedFrom":
        """Return the starting point at a snapshot; `None`: the table has no snapshot."""
        if snapshot is None:
            return StartedFrom(0, None, guards)
        return StartedFrom(snapshot.id, snapshot.fingerprint, guards)

    @staticmethod
    def oldest(starting_points: "Iterable[StartedFrom | None]") -> "StartedFrom | None":
        """Return the oldest starting point of the tasks of one job; `None`: no task read a snapshot.

        The snapshots of the other tasks must be part of the history as well.
        """
        points = sorted({point for point in starting_points if point is not None}, key=lambda point: point.snapshot_id)
        if not points:
            return None
        snapshots = {(point.snapshot_id, point.fingerprint) for point in points}.union(
            *(point.others for point in points)
        )
        first = points[0]
        return replace(first, others=frozenset(snapshots - {(first.snapshot_id, first.fingerprint)}))

    @property
    def snapshots(self) -> list[tuple[int, str | None]]:
        """Id and fingerprint of every snapshot that the work read; a table without snapshots is left out."""
        return [
            snapshot
            for snapshot in ((self.snapshot_id, self.fingerprint), *sorted(self.others, key=str))
            if snapshot[0]
        ]

    def joined(self, tasks: "StartedFrom | None") -> "StartedFrom":
        """Return this starting point of a job with the guards and snapshots of its tasks; `None`: no snapshots."""
        if tasks is None:
            return self
        snapshots = {*self.others, *tasks.snapshots} - {(self.snapshot_id, self.fingerprint)}
        return replace(self, guards=self.guards | tasks.guards, others=frozenset(snapshots))

    def check(self, snapshot: Snapshot, root: str) -> None:
        """Raise CommitConflictError unless the work started from ``snapshot``, which has the same id."""
        if self.fingerprint not in (None, snapshot.fingerprint):
            raise CommitConflictError(
                f"snapshot {self.snapshot_id} of {root} is not the snapshot that this write started from: the table "
                "was rolled back or created again; write again"
            )


EMPTY: Final = StartedFrom(0)
"""The starting point of work on a table without snapshots."""
