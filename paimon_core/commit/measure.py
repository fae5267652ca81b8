"""Metrics of commits and compactions, computed from their changes and attempts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from paimon_core.commit.changes import Changes
from paimon_core.commit.compaction import has_compaction
from paimon_core.commit.find_commit import AlreadyCommitted, HistoryExpired
from paimon_core.commit.prepared_snapshot import Identity, PreparedSnapshot
from paimon_core.commit.retry import CommitAttempts
from paimon_core.errors import hide_secrets
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.metrics.listeners import emit, listening
from paimon_core.metrics.values import CommitMetrics, CompactionMetrics
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore


class CommitReport:
    """The report of one commit to the listeners: its changes and its snapshot, or the error that ended it.

    Args:
        store: the table to commit to.
        identity: the identity of the commit.
        kind: the commit kind of the snapshot.
        messages: the messages of the writers, with the measurements of their work.
    """

    def __init__(self, store: FileStore, identity: Identity, kind: str, messages: Sequence[CommitMessage]) -> None:
        self._store, self._identity, self._kind, self._messages = store, identity, kind, messages

    def published(self, attempts: CommitAttempts, snapshot: Snapshot) -> None:
        """Report the snapshot, unless an earlier run of the commit published it."""
        if attempts.last is not None and listening(CommitMetrics):
            received = sum(m.rows_received for m in self._messages)
            counts = {"snapshot_id": snapshot.id, "total_rows": snapshot.total_record_count, "rows_received": received}
            emit(self._metrics(attempts, **counts, **_changed(*attempts.last)))

    def failed(self, attempts: CommitAttempts, error: Exception) -> None:
        """Report the error, unless it means that an earlier run made the commit, or may have made it."""
        if not isinstance(error, AlreadyCommitted | HistoryExpired) and listening(CommitMetrics):
            emit(self._metrics(attempts, error=type(error).__name__))

    def _metrics(self, attempts: CommitAttempts, **counts: Any) -> CommitMetrics:
        return CommitMetrics(
            table=hide_secrets(self._store.root),
            branch=self._store.branch,
            commit_kind=self._kind,
            commit_user=self._identity.user,
            commit_identifier=self._identity.identifier,
            seconds=attempts.seconds,
            phase_seconds=dict(attempts.phase_seconds),
            attempts=attempts.begun,
            lost_attempts=attempts.lost,
            write_seconds=sum(m.write_seconds for m in self._messages),
            **counts,
        )


def report_compaction(
    store: FileStore, snapshot: Snapshot | None, valid: Sequence[CommitMessage], rejected: int
) -> None:
    """Report the compactions of messages to the listeners.

    Args:
        store: the table to commit to.
        snapshot: the snapshot that published the compactions; `None`: all were rejected.
        valid: the messages whose compactions were published.
        rejected: the number of rejected compactions.
    """
    if not listening(CompactionMetrics):
        return
    compactions = [m for m in valid if has_compaction(m)]
    before = [(m.bucket_ref, file) for m in compactions for file in m.compact_before]
    after = [(m.bucket_ref, file) for m in compactions for file in m.compact_after]
    old, new = ({(ref, file.file_name) for ref, file in files} for files in (before, after))
    read = [file for ref, file in before if (ref, file.file_name) not in new]
    written = [file for ref, file in after if (ref, file.file_name) not in old]
    changelog = [file for m in compactions for file in m.compact_changelog]
    emit(
        CompactionMetrics(
            table=hide_secrets(store.root),
            branch=store.branch,
            snapshot_id=None if snapshot is None else snapshot.id,
            seconds=sum(m.compact_seconds for m in compactions),
            buckets=len({m.bucket_ref for m in compactions}),
            rejected=rejected,
            files_in=len(read),
            rows_in=_rows(read),
            bytes_in=_bytes(read),
            files_out=len(written),
            rows_out=_rows(written),
            bytes_out=_bytes(written),
            files_moved=len(old & new),
            level_0_files=max(Counter(ref for ref, file in before if file.level == 0).values(), default=0),
            changelog_files=len(changelog),
            changelog_rows=_rows(changelog),
            changelog_bytes=_bytes(changelog),
        )
    )


def operation_metrics(store: FileStore, snapshot: Snapshot) -> dict[str, int]:
    """Return counts of what a snapshot of any engine changed, by field name of `CommitMetrics`.

    Only data files and changelog files are counted, because manifests list them. Cost: two manifest lists and their
    manifests. Raises OutOfRangeError if the snapshot has expired.
    """
    with raise_if_expired(store, snapshot):
        lists = (snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
        entries, changelog = ([] if name is None else _entries(store, name) for name in lists)
    return _counts(entries, changelog)


def _entries(store: FileStore, manifest_list: str) -> list[ManifestEntry]:
    metas = store.manifests.read_list(manifest_list)
    return [e for m in metas for e in store.manifests.read(m.file_name, m.file_size, with_stats=False)]


def _changed(changes: Changes, prepared: PreparedSnapshot) -> dict[str, int]:
    """Return the counts of the changes, their indexes and their manifests, by field name."""
    touched = [*changes.entries, *changes.changelog, *changes.new_indexes]
    return {
        **_counts(changes.entries, changes.changelog),
        "rows_marked": _marked(changes.new_indexes) - _marked(changes.deleted_indexes),
        "index_files_added": len(changes.new_indexes),
        "partitions": len({entry.partition for entry in touched}),
        "buckets": len({entry.bucket_ref for entry in touched}),
        "manifests_written": prepared.manifests_written,
        "manifests_merged": prepared.manifests_merged,
    }


def _counts(entries: Sequence[ManifestEntry], changelog_entries: Sequence[ManifestEntry]) -> dict[str, int]:
    """Return the counts of files, rows and bytes, by field name."""
    names = [{(e.bucket_ref, e.file.file_name) for e in entries if e.kind == kind} for kind in (ADD, DELETE)]
    moved = names[0] & names[1]
    added, deleted = (
        [e.file for e in entries if e.kind == kind and (e.bucket_ref, e.file.file_name) not in moved]
        for kind in (ADD, DELETE)
    )
    changelog = [e.file for e in changelog_entries]
    touched = [*entries, *changelog_entries]
    return {
        "files_added": len(added),
        "rows_added": _rows(added),
        "delete_rows_added": sum(file.delete_row_count or 0 for file in added),
        "bytes_added": _bytes(added),
        "files_deleted": len(deleted),
        "rows_deleted": _rows(deleted),
        "bytes_deleted": _bytes(deleted),
        "files_moved": len(moved),
        "changelog_files": len(changelog),
        "changelog_rows": _rows(changelog),
        "changelog_bytes": _bytes(changelog),
        "partitions": len({entry.partition for entry in touched}),
        "buckets": len({entry.bucket_ref for entry in touched}),
    }


def _rows(files: Iterable[DataFileMeta]) -> int:
    return sum(file.row_count for file in files)


def _bytes(files: Iterable[DataFileMeta]) -> int:
    return sum(file.file_size for file in files)


def _marked(indexes: Iterable[IndexManifestEntry]) -> int:
    """Return the number of rows that the deletion vectors of index files mark. Vectors without a count add 0."""
    return sum(r.cardinality or 0 for index in indexes for r in index.deletion_ranges or ())
