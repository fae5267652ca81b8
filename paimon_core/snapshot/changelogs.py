"""Snapshots whose rows have expired while their changes are kept: a directory of the same small files (format 10.5)."""

from dataclasses import dataclass

from paimon_core.fileio.directory import NumberedDirectory
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Changelogs:
    """Those below ``root``, a table's or a branch's. Of such a snapshot only what it added can still be read."""

    io: FileIO
    root: str

    def ids(self) -> list[int]:
        """All ids by listing, ascending."""
        return self._files.ids()

    def earliest_id(self) -> int | None:
        """The oldest id; None where there are none."""
        return self._files.earliest_id()

    def find(self, snapshot_id: int) -> Snapshot | None:
        """What is kept of this snapshot, or None."""
        try:
            data = self._files.read(snapshot_id)
        except FileNotFoundError:
            return None
        return Snapshot.from_json(data, self._files.path(snapshot_id))

    @property
    def _files(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, join(self.root, "changelog"), "changelog-")
