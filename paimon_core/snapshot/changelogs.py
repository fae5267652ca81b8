"""Changelogs: copies of expired snapshots, which keep their changes readable (format 10.5)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from paimon_core.fileio.directory import NumberedDirectory
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Changelogs:
    """The changelogs below ``root``, the directory of a table or branch.

    If only the changelog of a snapshot is left, its changes can be read, but not its rows.
    """

    io: FileIO
    root: str = field(repr=False)

    def ids(self) -> list[int]:
        """Return all ids, ascending, by listing the directory."""
        return self._files.ids()

    def earliest_id(self) -> int | None:
        """Return the oldest id; `None`: no changelogs."""
        return self._files.earliest_id()

    def latest_id(self) -> int | None:
        """Return the newest id; `None`: no changelogs."""
        return self._files.latest_id()

    def path(self, snapshot_id: int) -> str:
        """Return the path of a snapshot's changelog, whether the file exists or not."""
        return self._files.path(snapshot_id)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """Return the changelog of a snapshot; `None`: no such changelog."""
        try:
            data = self._files.read(snapshot_id)
        except FileNotFoundError:
            return None
        return Snapshot.from_json(data, self._files.path(snapshot_id), snapshot_id)

    def all(self) -> Iterator[Snapshot]:
        """Yield all changelogs, oldest first, except changelogs that expire during the call."""
        return (changelog for changelog in parallel_map(self.find, self._files.ids()) if changelog is not None)

    def keep(self, snapshots: Sequence[Snapshot]) -> None:
        """Store changelogs of ``snapshots`` before the snapshots expire. Storing a changelog twice is harmless.

        REQUIRES: ``snapshots`` in ascending order of id.
        """
        for snapshot in snapshots:
            self.io.write(self._files.path(snapshot.id), snapshot.to_json())
        if snapshots:
            self._files.write_hint("LATEST", snapshots[-1].id)

    def remove(self, ids: Sequence[int]) -> None:
        """Delete the oldest changelogs, but none of the files that the changelogs name.

        REQUIRES: ``ids`` ascending, beginning with the oldest.
        """
        for number in ids:
            self.io.delete(self._files.path(number))
        if ids:
            self._files.write_hint("EARLIEST", ids[-1] + 1)

    def remove_after(self, snapshot_id: int) -> None:
        """Delete the changelogs of newer snapshots, newest first, but none of the files that the changelogs name."""
        ids = self.ids()
        for number in reversed(ids):
            if number > snapshot_id:
                self.io.delete(self._files.path(number))
        remaining = [number for number in ids if number <= snapshot_id]
        if remaining and remaining != ids:
            self._files.write_hint("LATEST", remaining[-1])

    @property
    def _files(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, join(self.root, "changelog"), "changelog-")
