"""The commit loop: publish changes as the next snapshot, on top of the history, table and schema they were built on.

One attempt (behaviour 7.2):

1. Read the newest snapshot. If it, or an older snapshot, is from an earlier attempt of this commit, return that one.
2. Check that the changes can follow it (`commit.conflict_check`), and that the table still has the schema they fit
   (`commit.schema_check`).
3. Write the manifests.
4. Check that the snapshot of step 1 is still there, create the file of the next snapshot if it is absent, and check
   again (`commit.publish`).
5. If another commit took the snapshot id, or the history was replaced, try again (`commit.retry`).

If the outcome of a request is unknown, no file is deleted, and the next attempt searches the table. Files are deleted
only after a provable loss. A crash leaves the old table or the new one, and files that no snapshot names.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.changes import Changes
from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.conflict_check import ConflictCheck
from paimon_core.commit.find_commit import CommitSearch
from paimon_core.commit.hash_indexes import delete_indexes
from paimon_core.commit.measure import CommitReport
from paimon_core.commit.prepared_snapshot import Identity, PreparedSnapshot, write_attempt
from paimon_core.commit.publish import (
    Blocked,
    Indeterminate,
    Lost,
    Outcome,
    Published,
    Refused,
    Unknown,
    publish,
    still_newest,
)
from paimon_core.commit.retry import CommitAttempts, RetryPolicy
from paimon_core.commit.schema_check import keep_vectors_on
from paimon_core.errors import CommitConflictError, CommitUnknownError, PaimonError
from paimon_core.iceberg.sync import check_iceberg, sync_after_change
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import ADD, DELETE
from paimon_core.options.snapshot import COMMIT_USER_PREFIX
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER as BATCH
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import ignore_if_expired
from paimon_core.store.file_store import FileStore

P = ParamSpec("P")
T = TypeVar("T")
Decide = Callable[[Snapshot | None], Changes | None]
"""A function from the base snapshot, if any, to the changes to commit on it; ``None``: nothing to commit."""

ORPHAN_SECONDS = 10.0
"""The time after which a snapshot of another history is deleted: its committer would have deleted it, or has died."""


class Publisher:
    """A publisher of the commits of one user to one table.

    Args:
        store: the table to commit to, with the schema that the rows were written with.
        user: the commit user. A user who may repeat a commit after a crash passes the same name again, and gets the
            snapshot of the first run; `None`: a new name.
        operation: the operation to store in the snapshots, of `Operation`; `None`: the usual one of the commit kind.
    """

    def __init__(self, store: FileStore, user: str | None = None, *, operation: str | None = None) -> None:
        check_writable(store.schema)
        store.check_can_commit()
        check_iceberg(store)
        self.store = store
        self.operation = operation
        self.named_user = user is not None
        self.user = user if user is not None else _fresh_user(store)
        self.may_exist = 0
        """The number of snapshots of this object that exist, or may exist."""
        self._recovered: set[str] = set()  # commit kinds for which all older snapshots were searched
        self._retry = RetryPolicy.of(store.options)
        self._check = ConflictCheck(store)

    def identity(
        self,
        identifier: int | None = None,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
        after: int | None = None,
        after_fingerprint: str | None = None,
    ) -> Identity:
        """Return the identity of a commit of this user.

        Args:
            identifier: the number of the commit, unique for its user; `None`: a batch commit, which has no number.
            properties: texts to store in the snapshot.
            watermark: epoch milliseconds to store in the snapshot.
            after: id of a snapshot after which an earlier run, with other files, can have made this commit. Then
                `publish` raises AlreadyCommitted, or HistoryExpired if some snapshots since then have expired.
            after_fingerprint: the fingerprint of that snapshot; `None`: unknown, or there was no snapshot.
        """
        number = BATCH if identifier is None else identifier
        return Identity(self.user, number, properties or {}, watermark, after, after_fingerprint, self.operation)

    def publish(
        self, identity: Identity, decide: Decide, kind: str, messages: Sequence[CommitMessage] = ()
    ) -> Snapshot | None:
        """Publish one snapshot. Return it, or the snapshot of an earlier run. ``None``: nothing to commit.

        Args:
            identity: the commit, as `identity` returns it.
            decide: called with the base of every attempt.
            kind: the commit kind of the snapshot. A search for an earlier run looks for this kind.
            messages: the messages of the writers, whose work is reported with the commit.

        Raises CommitConflictError (nothing changed), TableChangedError (the same, and the table must be opened again)
        or CommitUnknownError (files kept: check before retrying).
        """
        attempts = CommitAttempts(CommitSearch.of(identity, kind, self._checked_until(identity, kind)), self._retry)
        report = CommitReport(self.store, identity, kind, messages)
        try:
            snapshot = self._attempt_until_published(identity, decide, attempts)
        except Exception as error:
            with best_effort("reporting a failed commit", Exception):  # ``error`` is the one to raise
                report.failed(attempts, error)
            raise
        if snapshot is not None:
            with best_effort("reporting a commit", Exception):  # the files are in the table: no error may delete them
                report.published(attempts, snapshot)
            sync_after_change(self.store)
            if attempts.last is not None and attempts.last[0].adds_vectors:
                keep_vectors_on(self.store, snapshot)
        return snapshot

    def publish_or_delete(
        self,
        commit: Callable[Concatenate["Publisher", Sequence[CommitMessage], P], T],
        messages: Sequence[CommitMessage],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Commit the messages of finished writers; delete their files if the commit provably published nothing.

        Args:
            commit: the function that commits them, such as `commit_messages`, `overwrite_partitions`, `replace_files`
                or `commit_compactions`. It takes this publisher, the messages and the other arguments.
            messages: the messages to commit.

        Returns the result of ``commit``, and raises its errors.
        """
        with self.deleting_unless_published(messages):
            return commit(self, messages, *args, **kwargs)

    @contextmanager
    def deleting_unless_published(self, messages: Sequence[CommitMessage]) -> Iterator[None]:
        """Delete the files of the messages if the block fails and provably published nothing.

        An error or an interrupt (Ctrl-C) after a snapshot may have been published leaves the files. Use it where the
        block also writes files, or commits messages whose files must stay; otherwise use `publish_or_delete`.

        Args:
            messages: the messages of the files; the block may append to the list.
        """
        self.may_exist = 0
        try:
            yield
        except CommitUnknownError:
            raise  # the snapshot may refer to the files
        except BaseException:
            if not self.may_exist:
                with best_effort("deleting the files of a failed write"):  # the first error is the one to report
                    delete_written_files(self.store, messages)
            raise

    def conflict(self, reason: str) -> CommitConflictError:
        """Return the error for a commit that conflicts with another one."""
        return CommitConflictError(f"commit to {self.store.root} conflicts with another one: {reason}")

    # ---- the loop

    def _attempt_until_published(self, identity: Identity, decide: Decide, attempts: CommitAttempts) -> Snapshot | None:
        """Attempt the commit until it is published; arguments and result as for `publish`."""
        try:
            while True:
                with attempts.phase("plan"):
                    base = self.store.snapshots.latest()
                    earlier = attempts.search.find(self.store.snapshots, base)
                if earlier is not None:
                    return earlier
                if attempts.exhausted or (attempts.unknown is not None and attempts.search.some_expired):
                    break
                snapshot = None
                with ignore_if_expired(self.store, base):  # the base expired, so others committed: try again
                    with attempts.phase("plan"):
                        changes = decide(base)
                    if changes is None:
                        return None
                    snapshot = self._attempt(changes, base, identity, attempts)
                if snapshot is not None:
                    return snapshot
                attempts.wait_for_next()
        except (OSError, PaimonError) as error:
            if attempts.unknown is None:
                raise
            raise self._unknown(identity) from error
        if attempts.unknown is not None:
            raise self._unknown(identity) from attempts.unknown
        raise CommitConflictError(
            f"commit to {self.store.root} lost against other writers {attempts.count} times in "
            f"{attempts.seconds:.1f} s: raise commit.max-retries or commit.timeout, or write again"
        )

    def _attempt(
        self, changes: Changes, base: Snapshot | None, identity: Identity, attempts: CommitAttempts
    ) -> Snapshot | None:
        """Try once. Return ``None`` if the snapshot provably does not exist, or if the outcome is unknown."""
        attempts.begun += 1
        try:
            with attempts.phase("check"):
                conflict = self._check.find(changes, base)
            if conflict is not None:
                raise self.conflict(conflict.reason)
            with attempts.phase("write"):
                prepared = write_attempt(self.store, base, changes, identity)
            try:
                with attempts.phase("sync"):
                    self._make_durable(prepared, changes, attempts)
                with attempts.phase("check"):
                    follows = still_newest(self.store, base)
            except BaseException:
                prepared.discard(self.store)
                raise
        except BaseException:
            delete_indexes(self.store, changes.written_indexes)
            raise
        attempts.search.own_manifest_lists.add(prepared.snapshot.delta_manifest_list)
        attempts.last = changes, prepared
        with attempts.phase("publish"):
            outcome = self._create(prepared, base, changes) if follows else Lost()
        match outcome:
            case Published():
                self.store.snapshots.point_to(prepared.snapshot.id)
                with best_effort("registering a commit in the catalog", Exception):
                    self.store.environment.snapshot_published(self.store, prepared.snapshot, changes.entries)
                return prepared.snapshot
            case Lost() | Blocked() | Refused():
                attempts.lost += 1
                prepared.discard(self.store)
                delete_indexes(self.store, changes.written_indexes)
                if isinstance(outcome, Refused):
                    raise outcome.cause
                if isinstance(outcome, Blocked):
                    self._remove_orphan(outcome.orphan, base, attempts)
            case Unknown(cause):
                attempts.unknown = cause
            case Indeterminate():
                raise self._unknown(identity)
        return None

    def _create(self, prepared: PreparedSnapshot, base: Snapshot | None, changes: Changes) -> Outcome:
        """Create the snapshot, and check what it follows; return the outcome."""
        self.may_exist += 1
        try:
            outcome = publish(self.store, prepared.snapshot, base, prepared.added, changes.entries)
        except Exception as error:  # an unknown outcome must never be mistaken for a failure
            return Unknown(error)
        self.may_exist -= isinstance(outcome, Lost | Blocked | Refused)
        return outcome

    def _remove_orphan(self, orphan: Snapshot, base: Snapshot | None, attempts: CommitAttempts) -> None:
        """Delete the snapshot of a committer that died, once it has blocked this commit for long enough."""
        since = attempts.blocked_since.setdefault(orphan.fingerprint, time.monotonic())
        if time.monotonic() - since < ORPHAN_SECONDS or not still_newest(self.store, base):
            return
        now = self.store.snapshots.find(orphan.id)
        if now is not None and now.fingerprint == orphan.fingerprint:
            self.store.io.delete(self.store.snapshots.path(orphan.id))

    def _make_durable(self, prepared: PreparedSnapshot, changes: Changes, attempts: CommitAttempts) -> None:
        """Sync the files that this snapshot is the first to name, each file once in all attempts."""
        store, replaced = self.store, [e.file for e in changes.entries if e.kind == DELETE]
        removed = {name for file in replaced for name in (file.file_name, *file.extra_files)}
        added = [e for e in changes.entries if e.kind == ADD]
        paths = store.paths_of_files((e.bucket_ref, e.file) for e in (*added, *changes.changelog))
        data = [path for several in paths for path in several]
        data = [path for path in data if path.rpartition("/")[2] not in removed]
        named = {*data, *map(store.index_path, changes.new_indexes), *prepared.paths(store)}
        store.sync(named - attempts.synced)
        attempts.synced |= named

    def _unknown(self, identity: Identity) -> CommitUnknownError:
        return CommitUnknownError(
            f"the storage did not confirm the commit to {self.store.root}, which may be done (user {identity.user}, "
            f"identifier {identity.identifier}): look for that user in the table's snapshots before writing again; "
            "no file was deleted"
        )

    def _checked_until(self, identity: Identity, kind: str) -> int | None:
        """Return the id of the last snapshot that cannot be from this commit. ``None``: no existing snapshot can be.

        If the caller named the user, an earlier process may have committed. Then all snapshots are searched, once.
        """
        if identity.after is not None:
            return identity.after
        if not self.named_user or kind in self._recovered or identity.identifier == BATCH:
            return None
        self._recovered.add(kind)
        return 0


def _fresh_user(store: FileStore) -> str:
    prefix = store.options.value(COMMIT_USER_PREFIX)
    return f"{prefix}_{uuid.uuid4()}" if prefix else str(uuid.uuid4())
