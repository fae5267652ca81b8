"""Snapshots whose rows have expired while their changes are kept: a directory of the same small files (format 10.5)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from paimon_core.fileio.directory import NumberedDirectory
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Changelogs:
    """Those below ``root``, a table's or a branch's. Of such a snapshot only what it added can still be read."""

    io: FileIO
    root: str = field(repr=False)

    def ids(self) -> list[int]:
        """All ids by listing, ascending."""
        return self._files.ids()

    def earliest_id(self) -> int | None:
        """The oldest id; None where there are none."""
        return self._files.earliest_id()

    def latest_id(self) -> int | None:
        """The newest id; None where there are none."""
        return self._files.latest_id()

    def path(self, snapshot_id: int) -> str:
        """Return where the changelog of this snapshot is kept, if it is."""
        return self._files.path(snapshot_id)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """What is kept of this snapshot, or None."""
        try:
            data = self._files.read(snapshot_id)
        except FileNotFoundError:
            return None
        return Snapshot.from_json(data, self._files.path(snapshot_id), snapshot_id)

    def all(self) -> Iterator[Snapshot]:
        """Everything kept, oldest first; what expires meanwhile is left out."""
        return (found for found in parallel_map(self.find, self._files.ids()) if found is not None)

    def keep(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep the changes of these, which are in order, before they expire. Kept ones may be kept again."""
        for snapshot in snapshots:
            self.io.write(self._files.path(snapshot.id), snapshot.to_json())
        if snapshots:
            self._files.write_hint("LATEST", snapshots[-1].id)

    def remove(self, ids: Sequence[int]) -> None:
        """Forget these, the oldest, in order; what they name stays."""
        for number in ids:
            self.io.delete(self._files.path(number))
        if ids:
            self._files.write_hint("EARLIEST", ids[-1] + 1)

    @property
    def _files(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, join(self.root, "changelog"), "changelog-")
