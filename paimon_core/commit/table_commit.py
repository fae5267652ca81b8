"""Commits: turn messages of writers into snapshots, exactly once, beside any number of other committers.

One attempt of a commit (behaviour 7.2):

1. Read the newest snapshot. If an earlier attempt of this commit made it, or a snapshot before it, return that one.
2. Check that the changes can follow it (`commit.conflict_check`).
3. Write the manifests, and create the file of the next snapshot if it is absent (`commit.publish`).
4. If another commit took the snapshot id, try again (`commit.retry`).

If the outcome of a request is unknown, no file is deleted, and the next attempt searches the table. Files are deleted
only after a provable loss. A crash leaves the old table or the new one, and files that no snapshot names.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.changes import Changes, append_changes, compact_changes
from paimon_core.commit.clean_up import delete_compacted_files, delete_rejected, delete_written_files
from paimon_core.commit.compaction import RejectedCompaction, has_compaction, still_valid, written_files
from paimon_core.commit.conflict_check import ConflictCheck
from paimon_core.commit.find_commit import CommitSearch
from paimon_core.commit.hash_indexes import delete_indexes, delete_merged, routes_by_hash, with_hash_indexes
from paimon_core.commit.measure import CommitReport, report_compaction
from paimon_core.commit.overwrite import (
    DYNAMIC,
    Spec,
    check_inside,
    contents,
    distinct_partitions,
    indexed_buckets,
    partition_predicate,
)
from paimon_core.commit.prepared_snapshot import Identity, PreparedSnapshot, write_attempt
from paimon_core.commit.publish import Indeterminate, Lost, Outcome, Published, Unknown, publish
from paimon_core.commit.retry import CommitAttempts, RetryPolicy
from paimon_core.errors import (
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    PaimonError,
    UnsupportedError,
    hide_secrets,
)
from paimon_core.iceberg.sync import check_iceberg, sync_after_change
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.metrics.listeners import OperationMetrics, collect
from paimon_core.options.snapshot import (
    COMMIT_FORCE_CREATE_SNAPSHOT,
    COMMIT_USER_PREFIX,
    MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_TARGET_FILE_SIZE,
    SNAPSHOT_IGNORE_EMPTY_COMMIT,
)
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.entries import PartitionFilter, live_entries, manifest_metas, partitions_predicate
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER as BATCH
from paimon_core.snapshot.snapshot import STATEMENT, CommitKind, Snapshot
from paimon_core.store.expired import ignore_if_expired
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)
Decide = Callable[[Snapshot | None], Changes | None]
"""A function from the base snapshot, if there is one, to the changes to commit on it; ``None``: nothing to commit."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The outcome of a commit: its last snapshot, and the buckets whose compaction was rejected.

    ``snapshot`` is ``None`` if there was nothing to commit. The compaction of a bucket is rejected if another commit
    replaced the same files; the rows are committed anyway. ``metrics`` measures both commits.
    """

    snapshot: Snapshot | None
    rejected: frozenset[BucketRef] = frozenset()
    metrics: OperationMetrics = field(default_factory=OperationMetrics, compare=False)


class TableCommit:
    """A committer of one user to one table.

    ``user`` (default: a fresh one) together with the identifier of a commit makes a repeated commit recognisable. A
    caller that may repeat a commit after a crash passes both, and gets the snapshot of its first run.
    """

    def __init__(self, store: FileStore, user: str | None = None) -> None:
        check_writable(store.schema)
        store.io.check_can_commit()
        check_iceberg(store)
        self._store = store
        self._given_user = user is not None
        self._recovered: set[str] = set()  # commit kinds for which all older snapshots were searched
        self._published = 0  # snapshots that exist, or may exist
        self.user = user if user is not None else _fresh_user(store)
        self._retry = RetryPolicy.of(store.options)
        self._check = ConflictCheck(store)

    # ---- verbs

    def commit(
        self,
        messages: Sequence[CommitMessage],
        identifier: int | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
        base_id: int | None = None,
        unchanged_since: int | None = None,
    ) -> Snapshot | None:
        """Publish the messages of writers; return the last snapshot made, ``None``: there was nothing to commit.

        New rows become one snapshot, and the compactions of the writers a second one. A compaction whose files another
        commit replaced is rejected: it changes no row. Without any change a snapshot is made if an ``identifier`` is
        given, or as ``commit.force-create-snapshot`` and ``snapshot.ignore-empty-commit`` say; the latter decides.

        Args:
            messages: of all writers of the job.
            identifier: of this commit among those of the user. A commit that was published before is returned, not
                repeated.
            properties: texts to store in the snapshot.
            watermark: epoch milliseconds to store in the snapshot.
            base_id: id of the snapshot that the writers read. If given, the commit conflicts with other commits that
                gave a partition another number of buckets since then.
            unchanged_since: id of the snapshot whose rows decided the messages. If given, the commit conflicts with
                other commits that changed rows since then in a bucket it writes to.

        Raises CommitConflictError (nothing changed) or CommitUnknownError (files kept: check before retrying).
        """
        identity = self.identity(identifier, properties, watermark)
        return self.commit_as(identity, messages, base_id=base_id, unchanged_since=unchanged_since).snapshot

    def identity(
        self,
        identifier: int | None = None,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
        after: int | None = None,
    ) -> Identity:
        """Return the identity of a commit of this user.

        ``after``: an earlier run can have made this commit after that snapshot, with other files. Then its commit
        raises AlreadyCommitted, or HistoryExpired if the snapshots since then do not all exist any more.
        """
        return Identity(self.user, BATCH if identifier is None else identifier, properties or {}, watermark, after)

    def commit_as(
        self,
        identity: Identity,
        messages: Sequence[CommitMessage],
        *,
        base_id: int | None = None,
        unchanged_since: int | None = None,
        read_keys: bool = False,
        statement_read_at: int | None = None,
    ) -> CommitResult:
        """Publish the messages under an identity; the arguments are those of `commit`, and

        read_keys: with ``unchanged_since``, the commit conflicts only with changes of the same keys.
        statement_read_at: id of the snapshot that a statement on rows read. If given, the commit conflicts with other
        statements that changed rows since then, and its snapshot says that it is of a statement.
        """
        with collect() as metrics:
            done = self._commit(identity, messages, base_id, unchanged_since, read_keys, statement_read_at)
        return replace(done, metrics=metrics)

    def _commit(
        self,
        identity: Identity,
        messages: Sequence[CommitMessage],
        base_id: int | None,
        unchanged_since: int | None,
        read_keys: bool,
        statement_read_at: int | None,
    ) -> CommitResult:
        appended = replace(
            append_changes(messages), read_at=unchanged_since, read_keys=read_keys, statement_read_at=statement_read_at
        )
        if statement_read_at is not None:
            identity = replace(identity, properties={**identity.properties, STATEMENT: "true"})
        compacting = any(map(has_compaction, messages))
        made = None
        if not appended.is_empty or self.shows_empty(identity.identifier != BATCH and not compacting):
            with self._compacted_deleted_on_interrupt(messages):
                follow = self._following(appended, messages, base_id)
                made = self._publish(identity, follow, appended.kind, base_id, messages)
            if made is not None and routes_by_hash(messages):
                delete_merged(self._store, messages, made)
        if not compacting:
            return CommitResult(made)
        if made is not None:
            return self._compact_after(made, identity, messages)
        made, rejected = self._compact(identity, messages)
        if made is None:
            raise self._conflict(rejected[0].conflict.reason)
        delete_rejected(self._store, rejected)
        return _result(made, rejected)

    def shows_empty(self, otherwise: bool) -> bool:
        """Return True if a commit without changes makes a snapshot: by the options, or by default ``otherwise``."""
        options = self._store.options
        ignored = options.value(SNAPSHOT_IGNORE_EMPTY_COMMIT)
        return (otherwise or options.value(COMMIT_FORCE_CREATE_SNAPSHOT)) if ignored is None else not ignored

    def compact(self, messages: Sequence[CommitMessage]) -> tuple[Snapshot | None, list[CommitMessage]]:
        """Publish compactions as one snapshot; return it, and the messages that were rejected.

        A compaction is rejected if another commit replaced its files; the files it wrote are deleted. The snapshot is
        ``None`` if all were rejected. Raises CommitConflictError if the commit lost against others until its retries
        were exhausted, CommitUnknownError (files kept).
        """
        made, rejected = self._compact(self.identity(), messages)
        delete_rejected(self._store, rejected)
        return made, [compaction.message for compaction in rejected]

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        partition: Spec | str | None = None,
        identifier: int | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
    ) -> Snapshot | None:
        """Replace the whole table, one partition, or the partitions of the messages; return the last snapshot made.

        All rows that are live when the snapshot is made are replaced, rows committed meanwhile included. A dynamic
        overwrite without new files changes nothing and returns ``None``; any other makes a snapshot even if it is
        empty.

        Args:
            messages: of all writers of the job; their files replace the rows.
            partition: a {column: value}, which may leave partition columns out; ``None``: the whole table;
                ``"dynamic"``: the partitions that the messages write to.
            identifier: as in `commit`.
            properties: as in `commit`.
            watermark: as in `commit`.

        Raises InvalidInputError for a wrong partition or for messages outside of it, UnsupportedError if keys of the
        table may move between partitions, CommitConflictError and CommitUnknownError as `commit`.
        """
        return self.overwrite_as(self.identity(identifier, properties, watermark), messages, partition).snapshot

    def overwrite_as(
        self, identity: Identity, messages: Sequence[CommitMessage], partition: Spec | Predicate | str | None = None
    ) -> CommitResult:
        """Overwrite under an identity; the arguments are those of `overwrite`.

        A bound predicate on partition columns replaces the partitions that match.
        """
        with collect() as metrics:
            done = self._overwrite(identity, messages, partition)
        return replace(done, metrics=metrics)

    def _overwrite(
        self, identity: Identity, messages: Sequence[CommitMessage], partition: Spec | Predicate | str | None
    ) -> CommitResult:
        touched = distinct_partitions(messages)
        if partition == DYNAMIC and not self._store.schema.partition_keys:
            partition = None
        if isinstance(partition, Mapping) and not partition:
            partition = None
        if partition is not None and self._store.schema.is_cross_partition and messages:
            raise UnsupportedError(
                f"cannot overwrite some partitions of {self._store.root}: its keys may move between partitions, and "
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
            where = partition if isinstance(partition, Predicate) else partition_predicate(self._store, [partition])
            test = PartitionFilter(where, self._store.schema.partition_arrow)
            check_inside(self._store, messages, test.matching({m.partition for m in messages}), partition)
            touched = set()
        made = self._replace(identity, where, touched, messages)
        return CommitResult(None) if made is None else self._compact_after(made, identity, messages)

    def rewrite(self, partition: bytes, messages: Sequence[CommitMessage], read_at: Snapshot) -> Snapshot | None:
        """Replace the files of one partition by files of the same rows.

        Args:
            partition: serialised.
            messages: of the writers; they hold all rows of the partition.
            read_at: the snapshot that the rows were read from.

        Raises CommitConflictError if the partition has changed since ``read_at``, even by a compaction alone.
        """
        identity = self.identity()
        where = partitions_predicate(self._store, {partition})
        made = self._replace(identity, where, {partition}, messages, read_at)
        return None if made is None else self._compact_after(made, identity, messages).snapshot

    def replace_unchanged(
        self, partitions: Predicate | None, messages: Sequence[CommitMessage], read_at: Snapshot
    ) -> Snapshot | None:
        """Replace the rows of partitions; CommitConflictError if their files have changed since ``read_at``.

        Args:
            partitions: a bound predicate on partition columns; ``None``: all partitions.
            messages: of the writers.
            read_at: the snapshot whose rows are replaced.
        """
        identity = self.identity()
        made = self._replace(identity, partitions, set(), messages, read_at)
        return None if made is None else self._compact_after(made, identity, messages).snapshot

    def truncate(self) -> Snapshot | None:
        """Remove every row."""
        return self._replace(self.identity(), None, set(), [])

    def drop_partitions(self, specs: Sequence[Spec]) -> Snapshot | None:
        """Remove the rows of partitions, each given as {column: value}; a spec may leave partition columns out."""
        return self.drop_matching(partition_predicate(self._store, specs))

    def drop_matching(self, partitions: Predicate) -> Snapshot | None:
        """Remove the rows of the partitions that match a bound predicate on partition columns."""
        return self._replace(self.identity(), partitions, set(), [])

    def drop_unchanged(
        self, partitions: Predicate | None, read_at: Snapshot, properties: Mapping[str, str] | None = None
    ) -> Snapshot | None:
        """Remove the rows of partitions; CommitConflictError if their files have changed since ``read_at``.

        Args:
            partitions: a bound predicate on partition columns; ``None``: all partitions.
            read_at: the snapshot from which the caller knows the rows.
            properties: texts to store in the snapshot.
        """
        return self._replace(self.identity(None, properties), partitions, set(), [], read_at)

    def compact_manifests(self) -> Snapshot | None:
        """Publish the newest snapshot again with as few manifests as possible; `None`: no manifest would change."""
        small = {MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE.key: "1 b", MANIFEST_MERGE_MIN_COUNT.key: "1"}
        commit = TableCommit(self._store.with_options(small), self.user)

        def decide(base: Snapshot | None) -> Changes | None:
            due = base is not None and manifests_to_compact(self._store, base)
            return Changes(CommitKind.COMPACT, (), built_on_base=True) if due else None

        return commit._publish(self.identity(), decide, CommitKind.COMPACT, None)

    def remove_missing(self, names: Collection[str]) -> Snapshot | None:
        """Remove the data files of these names from the table, as far as they are live; `None`: none is.

        REQUIRES: the files do not exist.
        """

        def decide(base: Snapshot | None) -> Changes | None:
            live = [] if base is None else live_entries(self._store, base).live
            entries = tuple(ManifestEntry(DELETE, *e.location, e.file) for e in live if e.file.file_name in names)
            return Changes(CommitKind.OVERWRITE, entries, built_on_base=True) if entries else None

        return self._publish(self.identity(), decide, CommitKind.OVERWRITE, None)

    def add_existing(self, missing: Callable[[Snapshot | None], Sequence[ManifestEntry]]) -> Snapshot | None:
        """Add files that exist already in an APPEND; `None`: there are none. No file is deleted.

        Args:
            missing: returns the entries for the base of every attempt; it may raise what the caller gets.
        """

        def decide(base: Snapshot | None) -> Changes | None:
            entries = tuple(missing(base))
            return Changes(CommitKind.APPEND, entries, built_on_base=True) if entries else None

        return self._publish(self.identity(), decide, CommitKind.APPEND, None)

    def publish_copy(
        self, decide: Decide, kind: str, properties: Mapping[str, str], watermark: int | None
    ) -> Snapshot | None:
        """Publish the state of another table as a snapshot of this one; `None`: nothing differs.

        Args:
            decide: returns the changes for the base of every attempt; it may raise what the caller gets.
            kind: of these changes.
            properties: texts to store in the snapshot.
            watermark: epoch milliseconds to store in the snapshot.
        """
        return self._publish(self.identity(None, properties, watermark), decide, kind, None)

    def correct(self, corrected: Callable[[Snapshot], Changes | None]) -> Snapshot | None:
        """Publish the newest snapshot again, in a COMPACT, with other metadata of the same rows; return it.

        Args:
            corrected: returns, for the base of every attempt, changes with `Corrections`; `None`: nothing is wrong.
        """

        def decide(base: Snapshot | None) -> Changes | None:
            return None if base is None else corrected(base)

        return self._publish(self.identity(), decide, CommitKind.COMPACT, None)

    def analyze(self, statistics: str, schema_id: int) -> Snapshot | None:
        """Publish a file of statistics as a snapshot of the same rows; return it; `None`: there is no snapshot.

        Args:
            statistics: the name of the file in the directory of statistics.
            schema_id: of the schema of its columns.

        Raises CommitConflictError if the table has another schema.
        """

        def decide(base: Snapshot | None) -> Changes | None:
            latest = self._store.schemas.latest()
            if latest is not None and latest.id != schema_id:
                raise self._conflict(f"the statistics are of schema {schema_id}, the table has schema {latest.id} now")
            changes = Changes(CommitKind.ANALYZE, (), built_on_base=True, statistics=statistics)
            return None if base is None else changes

        return self._publish(self.identity(), decide, CommitKind.ANALYZE, None)

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files written for the messages. REQUIRES: they were not committed, and will not be."""
        delete_written_files(self._store, messages)

    @contextmanager
    def aborting_on_failure(self, messages: Sequence[CommitMessage]) -> Iterator[None]:
        """Delete the files of the messages if the block fails and provably nothing of them was published.

        This holds after an interrupt (Ctrl-C) too, unless a snapshot may have been published by then.
        """
        self._published = 0
        try:
            yield
        except CommitUnknownError:
            raise  # the snapshot may refer to the files
        except BaseException as error:
            if isinstance(error, Exception) or not self._published:
                with best_effort("deleting the files of a failed write"):  # ``error`` is the one to report
                    self.abort(messages)
            raise

    # ---- compaction

    def _compact_after(self, made: Snapshot, identity: Identity, messages: Sequence[CommitMessage]) -> CommitResult:
        """Publish the compactions of a commit whose rows are published; a failure is only logged.

        Files of a failed attempt are kept, because it may have been published; files of rejected compactions are
        deleted.
        """
        published = self._published
        try:
            with self._compacted_deleted_on_interrupt(messages, lambda: self._published == published):
                compacted, rejected = self._compact(identity, self._existing(messages, made))
        except Exception as error:
            _log.warning(
                "snapshot %d of %s is committed, but not its compaction; the next write or compact() does it: %s: %s",
                made.id,
                hide_secrets(self._store.root),
                type(error).__name__,
                hide_secrets(str(error)),
            )
            return CommitResult(made)
        delete_rejected(self._store, rejected)
        return _result(compacted or made, rejected)

    def _existing(self, messages: Sequence[CommitMessage], made: Snapshot) -> list[CommitMessage]:
        """Return the messages whose compacted files exist.

        If a commit is repeated, its first run may have rejected compactions and deleted their files.
        """
        if not self._given_user or made.commit_identifier == BATCH:
            return list(messages)
        store = self._store
        return [m for m in messages if all(store.io.exists(store.file_path(m.bucket_ref, f)) for f in written_files(m))]

    def _compact(
        self, identity: Identity, messages: Sequence[CommitMessage]
    ) -> tuple[Snapshot | None, list[RejectedCompaction]]:
        """Publish the compactions that are valid on the newest snapshot; return the new one and the rejected rest."""
        compactions = [m for m in messages if has_compaction(m)]
        rejected: list[RejectedCompaction] = []

        def decide(base: Snapshot | None) -> Changes | None:
            valid, rejected[:] = still_valid(self._store, base, compactions)
            return replace(compact_changes(valid), built_on_base=True) if valid else None

        if not compactions:
            return None, rejected
        published = self._published
        made = self._publish(identity, decide, CommitKind.COMPACT, None)
        if made is None or self._published > published:  # otherwise an earlier run has made and reported it
            refused = {id(compaction.message) for compaction in rejected}
            with best_effort("reporting a compaction", Exception):
                report_compaction(self._store, made, [m for m in compactions if id(m) not in refused], len(rejected))
        return made, rejected

    @contextmanager
    def _compacted_deleted_on_interrupt(
        self, messages: Sequence[CommitMessage], unpublished: Callable[[], bool] = lambda: True
    ) -> Iterator[None]:
        """Delete the compacted files of the messages if an interrupt ends the block and they are ``unpublished``."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception) and unpublished():
                with best_effort("deleting the files of an interrupted compaction"):
                    delete_compacted_files(self._store, messages)
            raise

    # ---- the loop

    def _following(self, changes: Changes, messages: Sequence[CommitMessage], seen: int | None) -> Decide:
        """Return the decision for changes that are the same on every base, but for their hash indexes.

        ``seen``: id of the snapshot that the writers read; in tables with dynamic buckets, their keys must still have
        the same buckets.
        """
        if not routes_by_hash(messages):
            return lambda _: changes
        return lambda base: with_hash_indexes(self._store, base, changes, messages, seen)

    def _replace(
        self,
        identity: Identity,
        where: Predicate | None,
        only: set[bytes],
        messages: Sequence[CommitMessage],
        read_at: Snapshot | None = None,
    ) -> Snapshot | None:
        """Replace the live files of partitions by those of the messages; return the snapshot made.

        Args:
            identity: of the commit.
            where: a bound predicate on partition columns; ``None``: all partitions.
            only: partitions, serialised; empty: all that match ``where``.
            messages: of the writers.
            read_at: the snapshot whose files must still be the live ones; ``None``: any files are replaced.
        """
        follow = self._following(append_changes(messages), messages, None)

        def decide(base: Snapshot | None) -> Changes:
            appended = follow(None)
            assert appended is not None  # empty changes are changes, too
            if read_at is not None and contents(self._store, base, where) != contents(self._store, read_at, where):
                raise self._conflict("the files to be rewritten have changed")
            live = live_entries(self._store, base, partition=where).live if base is not None else []
            removed = [ManifestEntry(DELETE, *e.location, e.file) for e in live if not only or e.partition in only]
            cleared_buckets = frozenset(e.bucket_ref for e in removed) | indexed_buckets(self._store, base, where, only)
            return replace(
                appended,
                kind=CommitKind.OVERWRITE,
                entries=(*removed, *appended.entries),
                built_on_base=True,
                changelog=(),
                cleared_buckets=cleared_buckets,
            )

        with self._compacted_deleted_on_interrupt(messages):
            made = self._publish(identity, decide, CommitKind.OVERWRITE, None, messages)
        if made is not None and routes_by_hash(messages):
            delete_merged(self._store, messages, made)
        return made

    def _publish(
        self,
        identity: Identity,
        decide: Decide,
        kind: str,
        seen: int | None,
        messages: Sequence[CommitMessage] = (),
    ) -> Snapshot | None:
        """Return the snapshot made now or by an earlier run; ``None``: ``decide`` found nothing to commit.

        Args:
            identity: of the commit.
            decide: called with the base of every attempt.
            kind: commit kind of the snapshot, by which an earlier one is recognised.
            seen: id of the snapshot that the writers read; ``None``: unknown.
            messages: of the writers whose work is reported with the commit.
        """
        attempts = CommitAttempts(CommitSearch(identity, kind, self._checked_until(identity, kind)), self._retry)
        report = CommitReport(self._store, identity, kind, messages)
        try:
            made = self._attempt_until_published(identity, decide, seen, attempts)
        except Exception as error:
            with best_effort("reporting a failed commit", Exception):  # ``error`` is the one to raise
                report.failed(attempts, error)
            raise
        if made is not None:
            with best_effort("reporting a commit", Exception):  # the files are in the table: no error may delete them
                report.published(attempts, made)
            sync_after_change(self._store)
        return made

    def _attempt_until_published(
        self, identity: Identity, decide: Decide, seen: int | None, attempts: CommitAttempts
    ) -> Snapshot | None:
        """Attempt the commit until it is published; the arguments and the result are those of `_publish`."""
        try:
            while True:
                with attempts.phase("plan"):
                    base = self._store.snapshots.latest()
                    found = attempts.search.find(self._store.snapshots, base)
                if found is not None:
                    return found
                if attempts.exhausted or (attempts.unknown is not None and attempts.search.some_expired):
                    break
                made = None
                with ignore_if_expired(self._store, base):  # the base expired, so others committed: try again
                    with attempts.phase("plan"):
                        changes = decide(base)
                    if changes is None:
                        return None
                    made = self._attempt(changes, base, identity, seen, attempts)
                if made is not None:
                    return made
                attempts.wait_for_next()
        except (OSError, PaimonError) as error:
            if attempts.unknown is None:
                raise
            raise self._unknown(identity) from error
        if attempts.unknown is not None:
            raise self._unknown(identity) from attempts.unknown
        raise CommitConflictError(
            f"commit to {self._store.root} lost against other writers {attempts.count} times in "
            f"{attempts.seconds:.1f} s: raise commit.max-retries or commit.timeout, or write again"
        )

    def _attempt(
        self, changes: Changes, base: Snapshot | None, identity: Identity, seen: int | None, attempts: CommitAttempts
    ) -> Snapshot | None:
        """Try once; return ``None`` if another commit took the snapshot id, or if the outcome is unknown."""
        attempts.begun += 1
        try:
            with attempts.phase("check"):
                conflict = self._check.find(changes, base, seen)
            if conflict is not None:
                raise self._conflict(conflict.reason)
            with attempts.phase("write"):
                prepared = write_attempt(self._store, base, changes, identity)
            try:
                with attempts.phase("sync"):
                    self._make_durable(prepared, changes, attempts)
            except BaseException:
                prepared.discard(self._store)
                raise
        except BaseException:
            delete_indexes(self._store, changes.written_indexes)
            raise
        attempts.search.own_manifest_lists.add(prepared.snapshot.delta_manifest_list)
        attempts.last = changes, prepared
        with attempts.phase("publish"):
            outcome = self._try(prepared)
        match outcome:
            case Published():
                self._store.snapshots.write_hint("LATEST", prepared.snapshot.id)  # best effort: else readers list
                return prepared.snapshot
            case Lost():
                attempts.lost += 1
                prepared.discard(self._store)
                delete_indexes(self._store, changes.written_indexes)
            case Unknown(cause):
                attempts.unknown = cause
            case Indeterminate():
                raise self._unknown(identity)
        return None

    def _make_durable(self, prepared: PreparedSnapshot, changes: Changes, attempts: CommitAttempts) -> None:
        """Sync the files that this snapshot is the first to name; every file once over all attempts."""
        store, replaced = self._store, [e.file for e in changes.entries if e.kind == DELETE]
        removed = {name for file in replaced for name in (file.file_name, *file.extra_files)}
        added = [e for e in changes.entries if e.kind == ADD]
        data = [path for e in (*added, *changes.changelog) for path in store.file_paths(e.bucket_ref, e.file)]
        data = [path for path in data if path.rpartition("/")[2] not in removed]
        named = {*data, *map(store.index_path, changes.new_indexes), *prepared.paths(store)}
        store.sync(named - attempts.synced)
        attempts.synced |= named

    def _conflict(self, reason: str) -> CommitConflictError:
        return CommitConflictError(f"commit to {self._store.root} conflicts with another one: {reason}")

    def _unknown(self, identity: Identity) -> CommitUnknownError:
        return CommitUnknownError(
            f"the storage did not say whether the commit to {self._store.root} was done (user {identity.user}, "
            f"identifier {identity.identifier}): look for that user in the table's snapshots before writing again; "
            "no file was deleted"
        )

    def _try(self, prepared: PreparedSnapshot) -> Outcome:
        self._published += 1
        try:
            outcome = publish(self._store, prepared.snapshot, prepared.added)
            self._published -= isinstance(outcome, Lost)
            return outcome
        except Exception as error:  # an unknown outcome must never be mistaken for a failure
            return Unknown(error)

    def _checked_until(self, identity: Identity, kind: str) -> int | None:
        """Return the id of the last snapshot that cannot be this commit; ``None``: no existing snapshot can be.

        If the caller named the user, an earlier process may have committed: then all snapshots are searched, once.
        """
        if identity.after is not None:
            return identity.after
        if not self._given_user or kind in self._recovered or identity.identifier == BATCH:
            return None
        self._recovered.add(kind)
        return 0


def manifests_to_compact(store: FileStore, snapshot: Snapshot) -> bool:
    """Return True if a full merge would change manifests: several are small, or one has entries of deleted files."""
    target, metas = store.options.value(MANIFEST_TARGET_FILE_SIZE), manifest_metas(store, snapshot)
    small = sum(meta.file_size < target for meta in metas)
    return small > 1 or (len(metas) > 1 and any(meta.num_deleted_files for meta in metas))


def _result(made: Snapshot, rejected: Sequence[RejectedCompaction]) -> CommitResult:
    return CommitResult(made, frozenset(r.message.bucket_ref for r in rejected))


def _fresh_user(store: FileStore) -> str:
    prefix = store.options.value(COMMIT_USER_PREFIX)
    return f"{prefix}_{uuid.uuid4()}" if prefix else str(uuid.uuid4())
