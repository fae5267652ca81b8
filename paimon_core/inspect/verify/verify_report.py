"""The result of verifying a table."""

from collections.abc import Iterable
from dataclasses import dataclass

from paimon_core.errors import hide_secrets
from paimon_core.types.human_text import count

KINDS = frozenset(
    {
        "added-twice",
        "deleted-without-add",
        "missing-data-file",
        "missing-index-file",
        "missing-index-manifest",
        "missing-manifest",
        "missing-manifest-list",
        "missing-schema",
        "missing-snapshot",
        "missing-statistics",
        "overlapping-files",
        "several-bucket-numbers",
        "stray-vector",
        "unreadable-changelog",
        "unreadable-consumer",
        "unreadable-data-file",
        "unreadable-file-index",
        "unreadable-index-manifest",
        "unreadable-key",
        "unreadable-manifest",
        "unreadable-manifest-list",
        "unreadable-schema",
        "unreadable-snapshot",
        "unreadable-statistics",
        "unreadable-tag",
        "unreadable-vector",
        "wrong-bucket",
        "wrong-delete-count",
        "wrong-file-index",
        "wrong-file-metadata",
        "wrong-hint",
        "wrong-index",
        "wrong-key-order",
        "wrong-key-range",
        "wrong-manifest-counts",
        "wrong-manifest-ranges",
        "wrong-parent",
        "wrong-record-count",
        "wrong-row-ids",
        "wrong-sequences",
        "wrong-size",
        "wrong-statistics",
        "wrong-vector",
    }
)
"""The kinds of faults; docs/guides/verify-and-repair.md says what each means."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a table that contradicts the format.

    ``kind``: one of `KINDS`, such as "missing-manifest"; ``path``: the file or directory with the fault; ``message``:
    the actual and the expected state; ``data_file``: the name of the data file whose metadata is wrong, else `None`.
    """

    kind: str
    path: str
    message: str
    data_file: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind of fault")

    def __str__(self) -> str:
        return hide_secrets(f"{self.kind}: {self.message} ({self.path})")


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The faults of a table in the order of detection, and the numbers of objects that were checked.

    ``branches``, ``snapshots`` (including tags and changelogs), ``files`` (data files, indexes and changelog files) and
    ``rows`` (read in deep mode) are numbers.
    """

    faults: tuple[Fault, ...]
    branches: int
    snapshots: int
    files: int
    rows: int = 0

    def __repr__(self) -> str:
        result = f"faults: {len(self.faults)} ({', '.join(self.kinds)})" if self.faults else "sound"
        through = f"branches: {self.branches}, snapshots: {self.snapshots}, files: {self.files}, rows read: {self.rows}"
        return f"VerifyReport({result}, {through})"

    @property
    def sound(self) -> bool:
        """True if no fault was found."""
        return not self.faults

    @property
    def kinds(self) -> list[str]:
        """The kinds of the faults, sorted and distinct."""
        return sorted({fault.kind for fault in self.faults})

    def __str__(self) -> str:
        branches, snapshots = count(self.branches, "branch", "branches"), count(self.snapshots, "snapshot")
        read = f", {count(self.rows, 'row')} read" if self.rows else ""
        through = f"{branches}, {snapshots}, {count(self.files, 'file')}{read}"
        return "\n".join([f"{count(len(self.faults), 'fault')} in {through}", *map(str, self.faults)])


def distinct_faults(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults without repetitions, because several snapshots can refer to the same file."""
    return tuple(dict.fromkeys(faults))
