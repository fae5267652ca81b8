"""The changes of a commit, as manifest entries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, IndexManifestEntry
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.snapshot.started_from import StartedFrom


@dataclass(frozen=True, slots=True)
class Corrections:
    """Corrected metadata for a snapshot that changes no rows, as a repair publishes it."""

    live: tuple[ManifestEntry, ...]
    """All live files, in the order of their commits; new manifests name them."""
    indexes: tuple[IndexManifestEntry, ...] | None = None
    """All index files. ``None``: the base's index files."""
    next_row_id: int | None = None
    """The first id for new rows. ``None``: the base's value."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Entries that become one snapshot.

    ``built_on_base``: True if the entries were computed from the base snapshot that they will follow, so they cannot
    conflict with it.
    """

    kind: str
    entries: tuple[ManifestEntry, ...]
    built_on_base: bool = False
    changelog: tuple[ManifestEntry, ...] = ()
    """Changelog files of this snapshot."""
    new_indexes: tuple[IndexManifestEntry, ...] = ()
    deleted_indexes: tuple[IndexManifestEntry, ...] = ()
    """Index files that the commit replaces. For deletion vector files, only the replaced ranges."""
    cleared_buckets: frozenset[BucketRef] = frozenset()
    """Buckets that lose all their files and indexes."""
    written_indexes: tuple[IndexManifestEntry, ...] = ()
    """The part of ``new_indexes`` that was written for one attempt. An attempt on another base cannot use it."""
    started_from: StartedFrom | None = None
    """The snapshot that the changes were computed from. ``None``: they depend on no snapshot."""
    statistics: str | None = None
    """The name of a new statistics file. ``None``: the snapshot keeps the statistics of its base."""
    next_row_id: int | None = None
    """The first unused row id, if all rows keep their ids from another table; else ``None``."""
    corrections: Corrections | None = None
    """REQUIRES: no entries, and ``new_indexes`` are the corrections' index files that the base does not have."""

    @property
    def is_empty(self) -> bool:
        """Return True if there is nothing to publish."""
        return not (self.entries or self.changelog or self.new_indexes or self.deleted_indexes)

    @property
    def copies_table(self) -> bool:
        """Return True if the snapshot becomes a copy of a snapshot of another table."""
        return self.next_row_id is not None

    @property
    def changes_indexes(self) -> bool:
        """Return True if the snapshot may need another index manifest than its base has."""
        return bool(self.new_indexes or self.deleted_indexes or self.cleared_buckets or self.removed_files)

    @property
    def adds_vectors(self) -> bool:
        """Return True if there are new deletion vectors."""
        return any(entry.index_type == DELETION_VECTORS for entry in self.new_indexes)

    @property
    def removed_files(self) -> frozenset[str]:
        """Return the names of data files that the commit removes from the table."""
        return frozenset(e.file.file_name for e in self.entries if e.kind == DELETE) - self.added

    @property
    def added(self) -> frozenset[str]:
        """Return the names of data files that the commit adds, if only to another level."""
        return frozenset(e.file.file_name for e in self.entries if e.kind == ADD)

    @property
    def needs_check(self) -> bool:
        """Return True if the base must still have the deleted files: for compactions and all changes that delete."""
        return self.kind != CommitKind.APPEND and not self.built_on_base

    @property
    def replaces_columns(self) -> bool:
        """Return True if files hold new columns of existing rows. Only existing rows have ids before their commit.

        An overwrite by the rows of another table, which keep their ids, replaces no columns.
        """
        adds = self.kind == CommitKind.APPEND or (self.kind == CommitKind.OVERWRITE and self.next_row_id is None)
        return adds and any(e.file.first_row_id is not None for e in self.entries if e.kind == ADD)

    @property
    def record_delta(self) -> int:
        """Return the stored rows of added files minus the stored rows of deleted files."""
        return sum(e.file.row_count if e.kind == ADD else -e.file.row_count for e in self.entries)


def append_changes(messages: Sequence[CommitMessage]) -> Changes:
    """Return the changes of the writers, with their changelog. If files or rows are deleted, the kind is OVERWRITE."""
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
    """Return the changes of compactions, with their changelog."""
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
    return [ManifestEntry(kind, *message.location, f) for f in files]
