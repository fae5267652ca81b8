"""Files that follow each other in key order."""

from dataclasses import dataclass

from paimon_core.manifest.data_file import DataFileMeta

__all__ = ["SortedRun"]


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files sorted by key, whose key ranges do not overlap. ``level`` is the highest of its files' levels."""

    level: int
    files: tuple[DataFileMeta, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.file_size for file in self.files)

    @property
    def row_count(self) -> int:
        """Rows of all files, deletes included."""
        return sum(file.row_count for file in self.files)

    @property
    def max_sequence_number(self) -> int:
        """The newest row's."""
        return max(file.max_sequence_number for file in self.files)
