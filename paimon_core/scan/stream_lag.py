"""The lag of a stream: the changes that are committed and not read yet."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from paimon_core.errors import OutOfRangeError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.scan.position import ALL, Position
from paimon_core.scan.starting_scanner import starting_position
from paimon_core.scan.stream_scan import ChangeSplit, StreamScan
from paimon_core.store.change_range import find_change


@dataclass(frozen=True, slots=True)
class StreamLag:
    """The distance of a stream from the newest snapshot.

    Args:
        snapshots: number of snapshots not read to their end, including compactions, which may hold no change.
        rows: stored rows of the changes to read; merging and filters may return fewer. `None`: not counted.
        bytes: size of the files of these rows. `None`: not counted.
        seconds: time since the oldest of these snapshots was committed. `None`: this snapshot has expired.
    """

    snapshots: int = 0
    rows: int | None = 0
    bytes: int | None = 0
    seconds: float | None = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not `None` as a JSON object."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class LagCounter:
    """A counter of the lag of one stream. It remembers the rows of each snapshot, so it reads every manifest once."""

    def __init__(self, scan: StreamScan) -> None:
        self._scan = scan
        self._counted: dict[int, tuple[int, int]] = {}  # rows and bytes of the changes of a snapshot, by its id

    def lag(self, after: Position, most: int | None = None) -> StreamLag:
        """Return the lag of a stream that has read everything up to ``after``.

        Cost: two manifest lists and their manifests for each snapshot that was not counted before, in parallel.

        Args:
            after: the position of the stream.
            most: maximum number of snapshots to count now; if there are more, rows and bytes are `None`. `None`: no
                limit.

        Raises OutOfRangeError if a snapshot to count has expired, InvalidInputError if its columns changed.
        """
        scan, store = self._scan, self._scan.store
        after = starting_position(store) if after.undecided else after
        newest = scan.latest()
        if after.undecided or after.order >= newest.order:
            return StreamLag()
        if after.scan_snapshot and after.index != ALL:
            begun = [_size(scan.plan(after, replace(after, index=ALL)))]
        elif after.index != ALL:
            begun = [_size(scan.plan(after, Position(after.snapshot_id, ALL)))]
        else:
            begun = []
        whole = range(after.snapshot_id + 1, newest.snapshot_id + 1)
        self._count(whole, most)
        sizes = [*begun, *(self._counted[number] for number in whole if number in self._counted)]
        complete = len(sizes) == len(begun) + len(whole)
        oldest = find_change(store, after.next_snapshot)
        return StreamLag(
            newest.snapshot_id + 1 - after.next_snapshot,
            sum(rows for rows, _ in sizes) if complete else None,
            sum(size for _, size in sizes) if complete else None,
            None if oldest is None else max(0.0, (store.now() - oldest.time_millis) / 1000),
        )

    def _count(self, snapshots: range, most: int | None) -> None:
        """Count the changes of the snapshots that are not counted yet, and forget snapshots that were read."""
        for number in [counted for counted in self._counted if counted not in snapshots]:
            del self._counted[number]
        missing = [number for number in snapshots if number not in self._counted]
        for number, size in parallel_map(self._changes_of, missing if most is None else missing[:most]):
            self._counted[number] = size

    def _changes_of(self, number: int) -> tuple[int, tuple[int, int]]:
        return number, _size(self._scan.plan(Position(number - 1, ALL), Position(number, ALL)))


def lag_of(scan: StreamScan, next_snapshot: int) -> StreamLag:
    """Return the lag of a reader that reads ``next_snapshot`` next; rows and bytes are `None` if it has expired."""
    after, counter = Position(next_snapshot - 1, ALL), LagCounter(scan)
    try:
        return counter.lag(after)
    except OutOfRangeError:
        return counter.lag(after, most=0)


def _size(splits: Sequence[ChangeSplit]) -> tuple[int, int]:
    return sum(split.row_count for split in splits), sum(split.size for split in splits)
