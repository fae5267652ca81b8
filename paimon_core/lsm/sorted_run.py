"""Sorted runs: files in key order without overlap."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paimon_core.manifest.data_file import DataFileMeta


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files sorted by key whose key ranges do not overlap. ``level`` is the highest of the files' levels.

    ``ages[i]`` is the position of ``files[i]`` in the order of commits, the oldest file first. Empty if no other file
    can hold a row with an equal sequence number.
    """

    level: int
    files: tuple[DataFileMeta, ...]
    ages: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.file_size for file in self.files)

    @property
    def row_count(self) -> int:
        """Rows of all files, deletes included."""
        return sum(file.row_count for file in self.files)

    @property
    def min_sequence_number(self) -> int:
        """The sequence number of the oldest row."""
        return min(file.min_sequence_number for file in self.files)

    @property
    def max_sequence_number(self) -> int:
        """The sequence number of the newest row."""
        return max(file.max_sequence_number for file in self.files)


def files_by_age(runs: Iterable[SortedRun]) -> list[DataFileMeta]:
    """Return the files of all runs, the oldest first (decision 13).

    A file of a higher level is older. Files of one level keep the order of their commits.
    """
    aged = [(-file.level, age, file) for run in runs for file, age in zip(run.files, _ages(run), strict=True)]
    return [file for _, _, file in sorted(aged, key=lambda entry: entry[:2])]


def _ages(run: SortedRun) -> Sequence[int]:
    return run.ages or (0,) * len(run.files)
