"""The snapshots of a table or branch: a directory of small immutable files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from paimon_core.errors import OutOfRangeError
from paimon_core.fileio.directory import Hint, NumberedDirectory
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import Snapshot

_TRIES = 10


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots below ``root``, the directory of a table or branch.

    Every call asks the storage, because other processes commit and expire at the same time.
    """

    io: FileIO
    root: str = field(repr=False)

    def path(self, snapshot_id: int) -> str:
        """Return the path of a snapshot's file."""
        return self._files.path(snapshot_id)

    def ids(self) -> list[int]:
        """Return all ids, ascending, by listing the directory."""
        return self._files.ids()

    def latest_id(self) -> int | None:
        """Return the newest id; `None`: no snapshot yet."""
        return self._files.latest_id()

    def earliest_id(self) -> int | None:
        """Return the oldest id that has not expired; `None`: no snapshot yet."""
        return self._files.earliest_id()

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot; `None`: no snapshot yet.

        A rollback or an expiry during the call is met by another try. Raises OutOfRangeError after 10 tries.
        """
        hint = self._files.hint("LATEST")
        if hint is not None and not self._files.exists(hint + 1):
            found = self.find(hint)
            if found is not None:
                return found
        for _ in range(_TRIES):
            ids = self.ids()
            if not ids:
                return None
            found = self.find(ids[-1])
            if found is not None:
                return found
        raise self._restless()

    def earliest(self) -> Snapshot | None:
        """Return the oldest snapshot, without those that expire during the call; `None`: no snapshot."""
        return next(self.all(threads=1), None)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot; `None`: no such snapshot."""
        path = self.path(snapshot_id)
        try:
            data = self.io.read(path)
        except FileNotFoundError:
            return None
        return Snapshot.from_json(data, path, snapshot_id)

    def get(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot. Raises OutOfRangeError with the available range if no such snapshot exists."""
        found = self.find(snapshot_id)
        if found is None:
            raise OutOfRangeError(f"snapshot {snapshot_id} of {self.root} does not exist; {self._range()}")
        return found

    def all(self, threads: int | None = None) -> Iterator[Snapshot]:
        """Yield every snapshot, oldest first, without those that expire during the call; reads ahead in parallel."""
        return (found for found in parallel_map(self.find, self.ids(), threads) if found is not None)

    def at_or_before(self, millis: int) -> Snapshot | None:
        """Return the newest snapshot committed at or before ``millis`` (epoch ms); `None`: all are newer.

        Commit times never decrease from one snapshot to the next, so a binary search reads few files. Raises
        OutOfRangeError if snapshots vanish during each of 10 tries.
        """
        for _ in range(_TRIES):
            ids = self.ids()
            low, high, best = 0, len(ids), None
            while low < high:
                middle = (low + high) // 2
                found = self.find(ids[middle])
                if found is None:
                    break  # expired or rolled back during the search: list the ids again
                if found.time_millis <= millis:
                    best, low = found, middle + 1
                else:
                    high = middle
            else:
                return best
        raise self._restless()

    def write_hint(self, which: Hint, snapshot_id: int) -> bool:
        """Replace the hint ``LATEST`` or ``EARLIEST``. Return False on failure, which costs readers only a listing."""
        return self._files.write_hint(which, snapshot_id)

    def exists(self, snapshot_id: int) -> bool:
        """Return True if the snapshot exists."""
        return self._files.exists(snapshot_id)

    def remove(self, ids: Sequence[int]) -> None:
        """Delete the oldest snapshots one by one, so that the remaining ids have no gap.

        The files that the snapshots name stay. REQUIRES: ``ids`` ascending, beginning with the oldest.
        """
        for number in ids:
            self.io.delete(self.path(number))
        if ids:
            self.write_hint("EARLIEST", ids[-1] + 1)

    @property
    def _files(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, join(self.root, "snapshot"), "snapshot-")

    def _range(self) -> str:
        ids = self.ids()
        return f"available: {ids[0]} to {ids[-1]}" if ids else "the table has no snapshots"

    def _restless(self) -> OutOfRangeError:
        return OutOfRangeError(
            f"snapshots in {self._files.directory} vanished {_TRIES} times while being read: somebody rolls the table "
            "back, expires or deletes it; try again when that is done"
        )
