"""What a commit wants to change, as manifest entries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.snapshot.snapshot import CommitKind


@dataclass(frozen=True, slots=True)
class Changes:
    """Entries that become one snapshot; ``derived`` from the base they will follow, they cannot conflict with it."""

    kind: str
    entries: tuple[ManifestEntry, ...]
    derived: bool = False

    @property
    def checked(self) -> bool:
        """Whether they only hold on a base that still has what they delete: compactions, anything that deletes."""
        return self.kind != CommitKind.APPEND and not self.derived

    @property
    def partitions(self) -> set[bytes]:
        """The partitions touched."""
        return {e.partition for e in self.entries}

    @property
    def record_delta(self) -> int:
        """Rows added minus rows deleted, as stored."""
        return sum(e.file.row_count if e.kind == ADD else -e.file.row_count for e in self.entries)


def append_changes(messages: Sequence[CommitMessage]) -> Changes:
    """New and deleted files of the messages; deleting files makes it an overwrite."""
    entries = [e for m in messages for e in (*_entries(m, DELETE, m.deleted_files), *_entries(m, ADD, m.new_files))]
    kind = CommitKind.OVERWRITE if any(e.kind == DELETE for e in entries) else CommitKind.APPEND
    return Changes(kind, tuple(entries))


def compact_changes(messages: Sequence[CommitMessage]) -> Changes:
    """What compaction replaced."""
    entries = [
        e for m in messages for e in (*_entries(m, DELETE, m.compact_before), *_entries(m, ADD, m.compact_after))
    ]
    return Changes(CommitKind.COMPACT, tuple(entries))


def _entries(message: CommitMessage, kind: int, files: Iterable[DataFileMeta]) -> list[ManifestEntry]:
    return [ManifestEntry(kind, message.partition, message.bucket, message.total_buckets, f) for f in files]
