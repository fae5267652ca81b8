"""Commit the messages of writers: the rows as one snapshot, the compactions as a second one."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.changes import Changes, append_changes, compact_changes
from paimon_core.commit.clean_up import delete_compacted_files, delete_rejected
from paimon_core.commit.compaction import RejectedCompaction, has_compaction, still_valid, written_files
from paimon_core.commit.hash_indexes import delete_merged, routes_by_hash, with_hash_indexes
from paimon_core.commit.measure import report_compaction
from paimon_core.commit.prepared_snapshot import Identity
from paimon_core.commit.publisher import Decide, Publisher
from paimon_core.errors import hide_secrets
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.metrics.listeners import OperationMetrics, collect
from paimon_core.options.snapshot import COMMIT_FORCE_CREATE_SNAPSHOT, SNAPSHOT_IGNORE_EMPTY_COMMIT
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER as BATCH
from paimon_core.snapshot.snapshot import STATEMENT, CommitKind, Snapshot
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The outcome of a commit: its last snapshot, and the buckets whose compaction was rejected.

    ``snapshot`` is ``None`` if there was nothing to commit. The compaction of a bucket is rejected if another commit
    replaced the same files; the rows are committed anyway. ``metrics`` covers both commits.
    """

    snapshot: Snapshot | None
    rejected: frozenset[BucketRef] = frozenset()
    metrics: OperationMetrics = field(default_factory=OperationMetrics, compare=False)


def commit_messages(
    publisher: Publisher,
    messages: Sequence[CommitMessage],
    identity: Identity | None = None,
    started_from: StartedFrom | None = None,
) -> CommitResult:
    """Publish the messages of writers.

    New rows become one snapshot, and the compactions of the writers a second one. A compaction is rejected if another
    commit replaced its files; no row changes then. Without changes, a snapshot is still published if the identity has a
    number or ``commit.force-create-snapshot`` is true. ``snapshot.ignore-empty-commit``, if set, overrides both.

    Args:
        publisher: the publisher of the table and the user.
        messages: the messages of all writers of the job.
        identity: the commit; `None`: a batch commit.
        started_from: the snapshot that the writers read, with guards on what must not have changed since; `None`: they
            read no snapshot.

    Raises as `Publisher.publish` does.
    """
    identity = publisher.identity() if identity is None else identity
    with collect() as metrics:
        result = _commit(publisher, messages, identity, started_from)
    return replace(result, metrics=metrics)


def _commit(
    publisher: Publisher, messages: Sequence[CommitMessage], identity: Identity, started_from: StartedFrom | None
) -> CommitResult:
    store = publisher.store
    appended = replace(append_changes(messages), started_from=started_from)
    if started_from is not None and Guard.STATEMENT in started_from.guards:
        identity = replace(identity, properties={**identity.properties, STATEMENT: "true"})
    compacting = any(map(has_compaction, messages))
    snapshot = None
    if not appended.is_empty or makes_empty_snapshot(store, identity.identifier != BATCH and not compacting):
        with compacted_deleted_on_interrupt(store, messages):
            snapshot = publisher.publish(identity, with_indexes(store, appended, messages), appended.kind, messages)
        if snapshot is not None and routes_by_hash(messages):
            delete_merged(store, messages, snapshot)
    if not compacting:
        return CommitResult(snapshot)
    if snapshot is not None:
        return compact_after(publisher, snapshot, identity, messages)
    snapshot, rejected = _compact(publisher, identity, messages)
    if snapshot is None:
        raise publisher.conflict(rejected[0].conflict.reason)
    delete_rejected(store, rejected)
    return _result(snapshot, rejected)


def makes_empty_snapshot(store: FileStore, otherwise: bool) -> bool:
    """Return True if a commit without changes publishes a snapshot. ``otherwise``: the result if no option is set."""
    ignored = store.options.value(SNAPSHOT_IGNORE_EMPTY_COMMIT)
    return (otherwise or store.options.value(COMMIT_FORCE_CREATE_SNAPSHOT)) if ignored is None else not ignored


def with_indexes(store: FileStore, changes: Changes, messages: Sequence[CommitMessage]) -> Decide:
    """Return a `Decide` for changes that are the same on every base, except for their hash indexes.

    In tables with dynamic buckets, keys must still belong to the buckets that the writers read.
    """
    if not routes_by_hash(messages):
        return lambda _: changes
    started = changes.started_from
    snapshot_id = started.snapshot_id if started is not None and Guard.LAYOUT in started.guards else None
    return lambda base: with_hash_indexes(store, base, changes, messages, snapshot_id)


def commit_compactions(
    publisher: Publisher, messages: Sequence[CommitMessage]
) -> tuple[Snapshot | None, list[CommitMessage]]:
    """Publish compactions as one snapshot. Return it, and the messages that were rejected.

    A compaction is rejected if another commit replaced its files; the files it wrote are deleted. The snapshot is
    ``None`` if all were rejected. Raises as `Publisher.publish` does.
    """
    snapshot, rejected = _compact(publisher, publisher.identity(), messages)
    delete_rejected(publisher.store, rejected)
    return snapshot, [compaction.message for compaction in rejected]


def compact_after(
    publisher: Publisher, snapshot: Snapshot, identity: Identity, messages: Sequence[CommitMessage]
) -> CommitResult:
    """Publish the compactions of a commit whose rows are published. A failure is only logged.

    Files of a failed attempt are kept, because it may have been published; files of rejected compactions are deleted.

    Args:
        publisher: the publisher of the table and the user.
        snapshot: the snapshot that published the rows.
        identity: the commit.
        messages: the messages of the writers.
    """
    store, published = publisher.store, publisher.may_exist
    try:
        with compacted_deleted_on_interrupt(store, messages, lambda: publisher.may_exist == published):
            compacted, rejected = _compact(publisher, identity, _existing(publisher, messages, snapshot))
    except Exception as error:
        _log.warning(
            "snapshot %d of %s is committed, but its compaction is not; the next write or compact() does it: %s: %s",
            snapshot.id,
            hide_secrets(store.root),
            type(error).__name__,
            hide_secrets(str(error)),
        )
        return CommitResult(snapshot)
    delete_rejected(store, rejected)
    return _result(compacted or snapshot, rejected)


def _existing(publisher: Publisher, messages: Sequence[CommitMessage], snapshot: Snapshot) -> list[CommitMessage]:
    """Return the messages whose compacted files exist.

    If a commit is repeated, its first run may have rejected compactions and deleted their files.
    """
    if not publisher.named_user or snapshot.commit_identifier == BATCH:
        return list(messages)
    store = publisher.store
    return [m for m in messages if all(store.io.exists(store.file_path(m.bucket_ref, f)) for f in written_files(m))]


def _compact(
    publisher: Publisher, identity: Identity, messages: Sequence[CommitMessage]
) -> tuple[Snapshot | None, list[RejectedCompaction]]:
    """Publish the compactions that are valid on the newest snapshot. Return the new snapshot and the rejected ones."""
    store = publisher.store
    compactions = [m for m in messages if has_compaction(m)]
    rejected: list[RejectedCompaction] = []

    def decide(base: Snapshot | None) -> Changes | None:
        valid, rejected[:] = still_valid(store, base, compactions)
        return replace(compact_changes(valid), built_on_base=True) if valid else None

    if not compactions:
        return None, rejected
    published = publisher.may_exist
    snapshot = publisher.publish(identity, decide, CommitKind.COMPACT)
    if snapshot is None or publisher.may_exist > published:  # otherwise an earlier run published and reported it
        refused = {id(compaction.message) for compaction in rejected}
        with best_effort("reporting a compaction", Exception):
            report_compaction(store, snapshot, [m for m in compactions if id(m) not in refused], len(rejected))
    return snapshot, rejected


@contextmanager
def compacted_deleted_on_interrupt(
    store: FileStore, messages: Sequence[CommitMessage], unpublished: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Delete the compacted files of the messages if an interrupt ends the block and they are ``unpublished``."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and unpublished():
            with best_effort("deleting the files of an interrupted compaction"):
                delete_compacted_files(store, messages)
        raise


def _result(snapshot: Snapshot, rejected: Sequence[RejectedCompaction]) -> CommitResult:
    return CommitResult(snapshot, frozenset(r.message.bucket_ref for r in rejected))
