"""The snapshots of a table or branch: a directory of small immutable files."""

from collections.abc import Iterator
from contextlib import suppress
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

    Every call reads the storage, because other processes commit and expire at the same time.
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
        """Return the id of the snapshot that `latest` returns; `None`: no snapshot yet."""
        hint = self._files.hint("LATEST")
        if hint is not None and not self._files.exists(hint + 1) and self._files.exists(hint):
            return hint
        latest = self._newest(hint)
        return None if latest is None else latest.id

    def earliest_id(self) -> int | None:
        """Return the oldest id that has not expired; `None`: no snapshot yet."""
        return self._files.earliest_id()

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot of the history; `None`: no snapshot yet.

        A committer creates its snapshot file and then checks the history (decision 30). If it dies in between, its
        snapshot may be built on a history that a rollback has since replaced. That snapshot is left out. The hint is
        written after the check, so only a snapshot that the hint does not name is checked again.

        The call tries again if a rollback or an expiry happens at the same time. Raises OutOfRangeError after 10 tries,
        also if the snapshot before the newest one is missing while older ones exist, or if the hint names a snapshot
        but the directory is empty.
        """
        hint = self._files.hint("LATEST")
        if hint is not None and not self._files.exists(hint + 1):
            snapshot = self.find(hint)
            if snapshot is not None:
                return snapshot
        return self._newest(hint)

    def _newest(self, hint: int | None) -> Snapshot | None:
        """Return the newest snapshot from a listing, with the results and errors of `latest`.

        ``hint``: the id in the hint ``LATEST``; `None`: there is no hint.
        """
        for last_try in (*[False] * (_TRIES - 1), True):
            ids = self.ids()
            if not ids:
                hint = None if hint is None else self.hinted()  # a dropped table has no hint either
                if hint is None:
                    return None
                if last_try:
                    raise self._lost(hint)
            newest = self._newest_of(ids, last_try=last_try)
            if newest is not None:
                return newest
        raise self._unstable()

    def _newest_of(self, ids: list[int], *, last_try: bool) -> Snapshot | None:
        """Return the newest listed snapshot whose predecessor is also listed; `None`: list the snapshots again."""
        while ids:
            newest = self.find(ids.pop())
            if newest is None:  # expired or rolled back since it was listed
                return None
            before = self.find(ids[-1]) if ids and newest.parent_delta_manifest_list is not None else None
            if before is None:
                return newest if not ids or newest.parent_delta_manifest_list is None else None
            if before.id == newest.id - 1:
                if newest.was_built_on(before):
                    return newest
                continue
            if not last_try:  # a rollback or a commit is in progress
                return None
            raise OutOfRangeError(
                f"snapshot {newest.id} of {self.root} follows snapshot {newest.id - 1}, which is missing, while "
                f"snapshot {before.id} exists: a rollback is in progress, a commit was killed during one, or the "
                f"file was lost. Try again; if the error stays, roll back to snapshot {before.id}, or to "
                f"{newest.id} if its rows are right"
            )
        return None

    def earliest(self) -> Snapshot | None:
        """Return the oldest snapshot that does not expire during the call; `None`: no snapshot."""
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
        snapshot = self.find(snapshot_id)
        if snapshot is None:
            raise OutOfRangeError(f"snapshot {snapshot_id} of {self.root} does not exist; {self._range()}")
        return snapshot

    def all(self, threads: int | None = None) -> Iterator[Snapshot]:
        """Yield every snapshot that does not expire during the call, oldest first. Reads ahead in parallel."""
        return (snapshot for snapshot in parallel_map(self.find, self.ids(), threads) if snapshot is not None)

    def at_or_before(self, millis: int) -> Snapshot | None:
        """Return the newest snapshot committed at or before ``millis`` (epoch ms); `None`: all are newer.

        Commit times never decrease from one snapshot to the next, so a binary search reads few files. Raises
        OutOfRangeError if snapshots disappear during each of 10 tries.
        """
        for _ in range(_TRIES):
            ids = self.ids()
            low, high, best = 0, len(ids), None
            while low < high:
                middle = (low + high) // 2
                snapshot = self.find(ids[middle])
                if snapshot is None:
                    break  # expired or rolled back during the search: list the ids again
                if snapshot.time_millis <= millis:
                    best, low = snapshot, middle + 1
                else:
                    high = middle
            else:
                return best
        raise self._unstable()

    def write_hint(self, which: Hint, snapshot_id: int) -> bool:
        """Replace the hint ``LATEST`` or ``EARLIEST``. Return False on failure, which costs readers only a listing."""
        return self._files.write_hint(which, snapshot_id)

    def hinted(self) -> int | None:
        """Return the id in the hint ``LATEST``, unchecked; `None`: no hint."""
        return self._files.hint("LATEST")

    def point_to(self, snapshot_id: int) -> None:
        """Point the hint ``LATEST`` at a new snapshot, unless a rollback has removed the snapshot. Never fails.

        Other engines trust the hint if no snapshot follows the named snapshot.
        """
        with suppress(OSError):
            if self.write_hint("LATEST", snapshot_id) and not self.exists(snapshot_id):
                ids = self.ids()
                if ids:
                    self.write_hint("LATEST", ids[-1])
                else:
                    self.io.delete(join(self._files.directory, "LATEST"))

    def exists(self, snapshot_id: int) -> bool:
        """Return True if the snapshot exists."""
        return self._files.exists(snapshot_id)

    @property
    def _files(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, join(self.root, "snapshot"), "snapshot-")

    def _range(self) -> str:
        ids = self.ids()
        return f"available: {ids[0]} to {ids[-1]}" if ids else "the table has no snapshots"

    def _lost(self, hint: int) -> OutOfRangeError:
        return OutOfRangeError(
            f"{self._files.directory} has no snapshot, although its hint LATEST names snapshot {hint}: an expiry was "
            "killed while a rollback ran, or the file was lost. Restore it; a table without the hint counts as empty"
        )

    def _unstable(self) -> OutOfRangeError:
        return OutOfRangeError(
            f"snapshots in {self._files.directory} disappeared {_TRIES} times while being read: the table is being "
            "rolled back, expired or deleted; try again when that is done"
        )
