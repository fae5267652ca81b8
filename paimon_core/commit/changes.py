"""What a commit wants to change, as manifest entries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, IndexManifestEntry
from paimon_core.snapshot.snapshot import CommitKind


@dataclass(frozen=True, slots=True)
class Changes:
    """Entries that become one snapshot; ``built_on_base`` from the base they will follow, they cannot conflict with
    it."""

    kind: str
    entries: tuple[ManifestEntry, ...]
    built_on_base: bool = False
    changelog: tuple[ManifestEntry, ...] = ()
    """Changelog files of this snapshot."""
    new_indexes: tuple[IndexManifestEntry, ...] = ()
    deleted_indexes: tuple[IndexManifestEntry, ...] = ()
    """Index files that others take the place of; of files of deletion vectors, the ranges that go."""
    cleared_buckets: frozenset[tuple[bytes, int]] = frozenset()
    """Buckets all of whose files go, and their indexes with them."""
    written_indexes: tuple[IndexManifestEntry, ...] = ()
    """Those of the new indexes that were written for one attempt: of no use on another base."""
    read_at: int | None = None
    """The snapshot whose rows decided these changes: they hold while the buckets they go to hold the same rows."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to publish."""
        return not (self.entries or self.changelog or self.new_indexes or self.deleted_indexes)

    @property
    def changes_indexes(self) -> bool:
        """Whether the snapshot gets another index manifest than its base has."""
        return bool(self.new_indexes or self.deleted_indexes or self.cleared_buckets or self.gone)

    @property
    def gone(self) -> frozenset[str]:
        """Data files that are not live any more."""
        return frozenset(e.file.file_name for e in self.entries if e.kind == DELETE) - self.added

    @property
    def added(self) -> frozenset[str]:
        """Data files that come in, if only to another level."""
        return frozenset(e.file.file_name for e in self.entries if e.kind == ADD)

    @property
    def needs_check(self) -> bool:
        """Whether they only hold on a base that still has what they delete: compactions, anything that deletes."""
        return self.kind != CommitKind.APPEND and not self.built_on_base

    @property
    def replaces_columns(self) -> bool:
        """Whether files hold columns of rows that are there: new rows get their ids only when they are committed."""
        return self.kind == CommitKind.APPEND and any(e.file.first_row_id is not None for e in self.entries)

    @property
    def record_delta(self) -> int:
        """Rows added minus rows deleted, as stored."""
        return sum(e.file.row_count if e.kind == ADD else -e.file.row_count for e in self.entries)


def append_changes(messages: Sequence[CommitMessage]) -> Changes:
    """What writers added and deleted, with its changelog; deleting files, or rows of files, makes it an overwrite."""
    entries = [e for m in messages for e in (*_entries(m, DELETE, m.deleted_files), *_entries(m, ADD, m.new_files))]
    indexes = tuple(e for m in messages for e in m.new_indexes)
    deletes = any(e.kind == DELETE for e in entries) or any(e.index_type == DELETION_VECTORS for e in indexes)
    return Changes(
        CommitKind.OVERWRITE if deletes else CommitKind.APPEND,
        tuple(entries),
        changelog=tuple(e for m in messages for e in _entries(m, ADD, m.changelog_files)),
        new_indexes=indexes,
        deleted_indexes=tuple(e for m in messages for e in m.deleted_indexes if e.index_type != HASH),
    )


def compact_changes(messages: Sequence[CommitMessage]) -> Changes:
    """What compaction replaced, with its changelog."""
    entries = [
        e for m in messages for e in (*_entries(m, DELETE, m.compact_before), *_entries(m, ADD, m.compact_after))
    ]
    return Changes(
        CommitKind.COMPACT,
        tuple(entries),
        changelog=tuple(e for m in messages for e in _entries(m, ADD, m.compact_changelog)),
        new_indexes=tuple(e for m in messages for e in m.compact_new_indexes),
        deleted_indexes=tuple(e for m in messages for e in m.compact_deleted_indexes),
    )


def _entries(message: CommitMessage, kind: int, files: Iterable[DataFileMeta]) -> list[ManifestEntry]:
    return [ManifestEntry(kind, message.partition, message.bucket, message.total_buckets, f) for f in files]
