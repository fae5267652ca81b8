"""What one writer did to one bucket, on its way to the committer."""

from dataclasses import dataclass

from paimon_core.manifest.data_file import DataFileMeta

__all__ = ["CommitMessage"]


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """New and deleted files of one bucket, and what compaction replaced there; changelog files of both."""

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFileMeta, ...] = ()
    deleted_files: tuple[DataFileMeta, ...] = ()
    changelog_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    compact_changelog: tuple[DataFileMeta, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        appended = self.new_files or self.deleted_files or self.changelog_files
        return not (appended or self.compact_before or self.compact_after or self.compact_changelog)
