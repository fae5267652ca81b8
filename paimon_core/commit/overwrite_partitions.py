"""Commits that replace or remove the rows of partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from paimon_core.commit.changes import Changes, append_changes
from paimon_core.commit.commit_messages import (
    CommitResult,
    compact_after,
    compacted_deleted_on_interrupt,
    with_indexes,
)
from paimon_core.commit.hash_indexes import delete_merged, routes_by_hash
from paimon_core.commit.overwrite import (
    DYNAMIC,
    Spec,
    check_inside,
    contents,
    distinct_partitions,
    indexed_buckets,
    partition_predicate,
)
from paimon_core.commit.prepared_snapshot import Identity
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import DELETE, ManifestEntry
from paimon_core.metrics.listeners import collect
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.entries import PartitionFilter, live_entries
from paimon_core.snapshot.snapshot import CommitKind, Snapshot


def overwrite_partitions(
    publisher: Publisher,
    messages: Sequence[CommitMessage],
    partition: Spec | Predicate | str | None = None,
    identity: Identity | None = None,
) -> CommitResult:
    """Replace the whole table, some partitions, or the partitions of the messages.

    All rows that are live when the snapshot is published are replaced, including rows that other writers committed
    after the messages were written. A dynamic overwrite without new files changes nothing. Any other overwrite
    publishes a snapshot, even an empty one.

    Args:
        publisher: the publisher of the table and the user.
        messages: the messages of all writers of the job; their files replace the rows.
        partition: a {column: value}, which may leave partition columns out; a bound predicate on partition columns;
            ``"dynamic"``: the partitions that the messages write to; `None`: the whole table.
        identity: the commit; `None`: a batch commit.

    Raises InvalidInputError for a wrong partition or for messages outside of it, UnsupportedError if keys of the
    table may move between partitions, and as `Publisher.publish`.
    """
    identity = publisher.identity() if identity is None else identity
    with collect() as metrics:
        result = _overwrite(publisher, identity, messages, partition)
    return replace(result, metrics=metrics)


def _overwrite(
    publisher: Publisher,
    identity: Identity,
    messages: Sequence[CommitMessage],
    partition: Spec | Predicate | str | None,
) -> CommitResult:
    store, touched = publisher.store, distinct_partitions(messages)
    if partition == DYNAMIC and not store.schema.partition_keys:
        partition = None
    if isinstance(partition, Mapping) and not partition:
        partition = None
    if partition is not None and store.schema.is_cross_partition and messages:
        raise UnsupportedError(
            f"cannot overwrite some partitions of {store.root}: its keys may move between partitions, and "
            "would remain in the others. Overwrite the whole table, or drop the partitions and write the rows"
        )
    if partition == DYNAMIC:
        if not touched:
            return CommitResult(None)
        where: Predicate | None = None
    elif isinstance(partition, str):
        raise InvalidInputError(f"partition must be a mapping, None or {DYNAMIC!r}, not {partition!r}")
    elif partition is None:
        where, touched = None, set()
    else:
        where = partition if isinstance(partition, Predicate) else partition_predicate(store, [partition])
        test = PartitionFilter(where, store.schema.partition_arrow)
        check_inside(store, messages, test.matching({m.partition for m in messages}), partition)
        touched = set()
    return replace_files(publisher, messages, where, only=touched, identity=identity)


def replace_files(
    publisher: Publisher,
    messages: Sequence[CommitMessage],
    where: Predicate | None = None,
    *,
    only: set[bytes] | frozenset[bytes] = frozenset(),
    read_at: Snapshot | None = None,
    identity: Identity | None = None,
) -> CommitResult:
    """Replace the live files of partitions with the files of the messages, then publish the messages' compactions.

    Args:
        publisher: the publisher of the table and the user.
        messages: the messages of the writers; empty: the rows are removed.
        where: a bound predicate on partition columns; ``None``: all partitions.
        only: the partitions to replace, serialised; empty: all partitions that match ``where``.
        read_at: the snapshot whose files must still be live; ``None``: any files are replaced.
        identity: the commit; ``None``: a batch commit.

    Raises CommitConflictError if the files have changed since ``read_at``, and as `Publisher.publish`.
    """
    store = publisher.store
    identity = publisher.identity() if identity is None else identity
    follow = with_indexes(store, append_changes(messages), messages)

    def decide(base: Snapshot | None) -> Changes:
        appended = follow(None)
        assert appended is not None  # empty changes are changes, too
        if read_at is not None and contents(store, base, where) != contents(store, read_at, where):
            raise publisher.conflict("the files to rewrite have changed")
        live = live_entries(store, base, partition=where).live if base is not None else []
        removed = [ManifestEntry(DELETE, *e.location, e.file) for e in live if not only or e.partition in only]
        cleared_buckets = frozenset(e.bucket_ref for e in removed) | indexed_buckets(store, base, where, only)
        return replace(
            appended,
            kind=CommitKind.OVERWRITE,
            entries=(*removed, *appended.entries),
            built_on_base=True,
            changelog=(),
            cleared_buckets=cleared_buckets,
        )

    with compacted_deleted_on_interrupt(store, messages):
        snapshot = publisher.publish(identity, decide, CommitKind.OVERWRITE, messages)
    if snapshot is not None and routes_by_hash(messages):
        delete_merged(store, messages, snapshot)
    if snapshot is None or not messages:
        return CommitResult(snapshot)
    return compact_after(publisher, snapshot, identity, messages)


def drop_partitions(publisher: Publisher, specs: Sequence[Spec]) -> Snapshot | None:
    """Remove the rows of partitions, each a {column: value}; a spec may leave partition columns out."""
    return replace_files(publisher, (), partition_predicate(publisher.store, specs)).snapshot
