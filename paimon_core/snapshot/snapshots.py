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
    """Snapshots below ``root``, a table's or a branch's. Always asks the store; others commit and expire meanwhile."""

    io: FileIO
    root: str = field(repr=False)

    def path(self, snapshot_id: int) -> str:
        """The file of this snapshot."""
        return self._files.path(snapshot_id)

    def ids(self) -> list[int]:
        """All ids by listing, ascending."""
        return self._files.ids()

    def latest_id(self) -> int | None:
        """The newest id; None before the first commit."""
        return self._files.latest_id()

    def earliest_id(self) -> int | None:
        """The oldest id that is still there; None before the first commit."""
        return self._files.earliest_id()

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None before the first commit. Survives rollback and expiry under its feet."""
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
        """The oldest snapshot; one that expires meanwhile is passed over for the next."""
        return next(self.all(threads=1), None)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot, or None if it is not there."""
        path = self.path(snapshot_id)
        try:
            data = self.io.read(path)
        except FileNotFoundError:
            return None
        return Snapshot.from_json(data, path, snapshot_id)

    def get(self, snapshot_id: int) -> Snapshot:
        """The snapshot; OutOfRangeError, naming the range there is, if it expired or never was."""
        found = self.find(snapshot_id)
        if found is None:
            raise OutOfRangeError(f"snapshot {snapshot_id} of {self.root} does not exist; {self._range()}")
        return found

    def all(self, threads: int | None = None) -> Iterator[Snapshot]:
        """Every snapshot, oldest first, read ahead in parallel; those that expire meanwhile are left out."""
        return (found for found in parallel_map(self.find, self.ids(), threads) if found is not None)

    def at_or_before(self, millis: int) -> Snapshot | None:
        """The newest snapshot committed at or before this moment (epoch ms); None if all are younger.

        Commit times do not fall from one snapshot to the next, so a binary search reads few files.
        """
        for _ in range(_TRIES):
            ids = self.ids()
            low, high, best = 0, len(ids), None
            while low < high:
                middle = (low + high) // 2
                found = self.find(ids[middle])
                if found is None:
                    break  # expired or rolled back meanwhile: look at what is left
                if found.time_millis <= millis:
                    best, low = found, middle + 1
                else:
                    high = middle
            else:
                return best
        raise self._restless()

    def write_hint(self, which: Hint, snapshot_id: int) -> bool:
        """Replace ``LATEST`` or ``EARLIEST``; False if that failed, which costs others only a listing."""
        return self._files.write_hint(which, snapshot_id)

    def exists(self, snapshot_id: int) -> bool:
        """Whether this snapshot is there."""
        return self._files.exists(snapshot_id)

    def remove(self, ids: Sequence[int]) -> None:
        """Forget these, the oldest, one after another, so that those left have no gap; what they name stays."""
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
