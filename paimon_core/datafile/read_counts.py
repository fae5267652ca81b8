"""Counts of a reader of data files: the files, bytes and rows behind the metrics of a read."""

from dataclasses import dataclass

from paimon_core.manifest.data_file import DataFileMeta


@dataclass(slots=True)
class ReadCounts:
    """Counts of the files that one task reads, updated during the read by one thread at a time.

    ``rows_stored``: rows of the files, from their metadata. ``rows_deleted``: rows that deletion vectors left out.
    ``rows_decoded``: rows yielded to the caller. All other rows are never decoded, or left out by file indexes.
    ``bytes``: encoded bytes of the decoded columns and row groups; for formats other than Parquet, of whole files.
    """

    files: int = 0
    files_skipped: int = 0
    bytes: int = 0
    rows_stored: int = 0
    rows_deleted: int = 0
    rows_decoded: int = 0

    @property
    def rows_skipped(self) -> int:
        """Stored rows that are neither decoded nor deleted."""
        return self.rows_stored - self.rows_deleted - self.rows_decoded

    def begin(self, meta: DataFileMeta, part: range | None) -> None:
        """Count a file, or a part of its rows; the first part counts as the file."""
        self.files += part is None or part.start == 0
        self.rows_stored += meta.row_count if part is None else len(part)

    def add_bytes(self, number: int) -> None:
        """Count encoded bytes."""
        self.bytes += number
