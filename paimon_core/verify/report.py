"""What the verification of a table has found."""

from collections.abc import Iterable
from dataclasses import dataclass

from paimon_core.errors import hide_secrets


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a table that contradicts the format.

    ``kind``: a short name, such as "missing-manifest"; ``path``: the file or directory in which it shows; ``message``:
    what was found and what was expected.
    """

    kind: str
    path: str
    message: str

    def __str__(self) -> str:
        return hide_secrets(f"{self.kind}: {self.message} ({self.path})")


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The faults of a table, in the order in which they were found, and how much was looked through.

    ``branches``, ``snapshots`` (tags and changelogs included), ``files`` (data files, indexes and changelog files) and
    ``rows`` (read in deep mode) are numbers.
    """

    faults: tuple[Fault, ...]
    branches: int
    snapshots: int
    files: int
    rows: int = 0

    @property
    def sound(self) -> bool:
        """True if nothing was found."""
        return not self.faults

    @property
    def kinds(self) -> list[str]:
        """The kinds of the faults, sorted and distinct."""
        return sorted({fault.kind for fault in self.faults})

    def __str__(self) -> str:
        through = f"{self.branches} branches, {self.snapshots} snapshots, {self.files} files"
        read = f", {self.rows} rows read" if self.rows else ""
        return "\n".join([f"{len(self.faults)} faults in {through}{read}", *map(str, self.faults)])


def sorted_out(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults without repetitions: what several snapshots name is reported once."""
    return tuple(dict.fromkeys(faults))
