"""Idempotent commits: their source numbers them, and each number is committed once, even if a rerun wrote other files.

Each number is committed exactly once, because:

- Before an attempt at number ``n`` publishes anything, it reads the newest snapshot id, then the intent of ``n``. If
  the intent is missing, the attempt creates it with that snapshot as base.
- So if an attempt finds no intent of ``n``, no snapshot of ``n`` existed when it read the newest one. If it finds an
  intent, no snapshot of ``n`` is at or below the base of the intent.
- Every attempt checks all snapshots after the base, up to the one it builds on. Snapshot ids are taken one at a time,
  so of two processes that commit ``n``, the later one finds the snapshot of the other.
- A number below the newest intent is committed, because its source begins a number only after the previous number is
  committed. A number with a ``landed-<n>`` file is committed too.
- If a process died before it wrote that file, and snapshots after the base have expired since, it is unknown if ``n``
  is committed. Then ``on_unknown`` decides.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from paimon_core.commit.commit_messages import commit_messages, makes_empty_snapshot
from paimon_core.commit.find_commit import AlreadyCommitted, CommitSearch, HistoryExpired
from paimon_core.commit.intents import Intent, Intents
from paimon_core.commit.overwrite import Spec
from paimon_core.commit.overwrite_partitions import overwrite_partitions
from paimon_core.commit.prepared_snapshot import Identity
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitUnknownError, InvalidInputError, OutOfRangeError, PaimonError, hide_secrets
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.predicate.expr import Predicate
from paimon_core.snapshot.automatic_tags import AutomaticTags
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER as BATCH
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)
ON_UNKNOWN_OPTION: Final = "write.stream.on-doubt"
OnUnknown: TypeAlias = Literal["fail", "commit", "skip"]


class IdempotentCommits:
    """Numbered commits of one user to one table. Numbers grow; a number is repeated only until it is committed.

    Args:
        store: the table to commit to.
        user: the commit user.
        consecutive: True if numbers count up from 0 one by one, so that a gap is an error. False: a number below the
            last one counts as already committed.
        source: the name of the job that numbers the commits, if several jobs share one user. A number that another
            source has used is not a repetition, and is refused. `None`: the sources are not compared.
        on_unknown: the action if it is unknown whether a number is committed: fail, commit it, or skip it.
    """

    def __init__(
        self,
        store: FileStore,
        user: str,
        *,
        consecutive: bool = False,
        source: str | None = None,
        on_unknown: OnUnknown = "fail",
    ) -> None:
        self._store, self._user, self._source = store, user, source
        self._consecutive, self._on_unknown = consecutive, on_unknown
        self._publisher = Publisher(store, user)
        self._intents = Intents(store.io, store.branch_root, user)

    def last(self) -> int | None:
        """Return the number of the last commit begun. ``None``: the user has begun no commit."""
        return max(self._intents.numbers(), default=None)

    def is_committed(self, number: int) -> bool:
        """Return True if this commit is certainly in the table, so that its rows need not be written.

        Writes nothing.
        """
        begun = self._intents.numbers()
        if begun and begun[-1] > number:
            return True
        intent = self._intents.find(number) if number in begun else None
        if intent is None:
            return False
        if self._intents.is_finished(number):
            return True
        latest = self._store.snapshots.latest()
        identity = Identity(self._user, number, after=intent.base, after_fingerprint=intent.fingerprint)
        try:
            CommitSearch.of(identity, CommitKind.APPEND, intent.base).find(self._store.snapshots, latest)
        except AlreadyCommitted:
            return True
        except HistoryExpired:
            return False
        return False

    def check_source(self, number: int) -> None:
        """Raise InvalidInputError if this number, or a later one, was used by another source."""
        last = self.last()
        if last is not None and number <= last:
            self._check_same_source(number, last, self._intents.find(last))

    def _check_same_source(self, number: int, last: int, intent: Intent | None) -> None:
        """Raise InvalidInputError if another source has begun the commit ``last`` with this intent."""
        if intent is not None and intent.source is not None and self._source not in (None, intent.source):
            raise InvalidInputError(
                f"this is commit {number} of {self._user!r} from {self._source}, but the table at {self._store.root} "
                f"has the commits up to {last} from {intent.source}, so it is not a repetition. If the query was "
                "started with a new checkpointLocation, give it another app_id (txnAppId)"
            )

    def commit(
        self,
        messages: Sequence[CommitMessage],
        number: int,
        *,
        started_from: StartedFrom | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Commit like `TableCommit.commit`, at most once for this number.

        Without changes, no snapshot is published unless the options or a due tag require one. The files of the messages
        are deleted if an earlier run committed its own files, and after any error except CommitUnknownError.

        Args:
            messages: the messages of all writers of the job.
            number: the number of the commit, from 0 to 2^63 - 2.
            started_from: the snapshot that the writers read; `None`: they read no snapshot.
            watermark: epoch milliseconds to store in the snapshot.
            properties: properties to store in the snapshot; `None`: no properties.

        Returns the snapshot of this run or of an earlier run. ``None``: no snapshot, or it has expired.
        """
        shows = makes_empty_snapshot(self._store, False) or self._tag_is_due()
        empty = all(m.is_empty for m in messages) and not shows
        return self._write_once(
            _Write(tuple(messages), number, watermark, started_from=started_from, empty=empty, properties=properties)
        )

    def _tag_is_due(self) -> bool:
        """Return True if an automatic tag is due, and needs a snapshot that may not exist yet."""
        rule = AutomaticTags.of(self._store.options)
        store = self._store
        return rule is not None and rule.wants_snapshot(store.now(), store.snapshots.latest(), store.tags.list())

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        number: int,
        partition: Spec | Predicate | str | None = None,
        *,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Overwrite like `TableCommit.overwrite`, at most once for this number; results and errors as in `commit`."""
        return self._write_once(
            _Write(tuple(messages), number, watermark, replaces=True, partition=partition, properties=properties)
        )

    def _write_once(self, write: "_Write") -> Snapshot | None:
        number, root = write.number, hide_secrets(self._store.root)
        try:
            with self._publisher.deleting_unless_published(write.messages):
                after = self._begin(number)
                snapshot = None if write.empty else self._publish(write, after)
        except AlreadyCommitted as earlier:
            _log.info("commit %d of %s to %s is done already: %s", number, self._user, root, earlier)
            snapshot = earlier.snapshot
        except _Skipped:
            _log.info("commit %d of %s to %s is skipped: it was done before", number, self._user, root)
            return None
        if snapshot is not None:
            self._intents.finish(number, snapshot.id)
        return snapshot

    def _publish(self, write: "_Write", after: Intent) -> Snapshot | None:
        try:
            return self._publish_after(write, after)
        except HistoryExpired as expired:
            if expired.attempted:  # then the files may be in the table
                raise CommitUnknownError(self._history_expired(write.number, after.base)) from expired
            self._resolve_unknown(OutOfRangeError(self._history_expired(write.number, after.base)))
        return self._publish_after(write, self._intent_now())

    def _intent_now(self) -> Intent:
        newest = self._store.snapshots.latest()
        return Intent(0, self._source) if newest is None else Intent(newest.id, self._source, newest.fingerprint)

    def _publish_after(self, write: "_Write", after: Intent) -> Snapshot | None:
        identity = self._publisher.identity(
            write.number, write.properties, write.watermark, after.base, after.fingerprint
        )
        if write.replaces:
            return overwrite_partitions(self._publisher, write.messages, write.partition, identity).snapshot
        return commit_messages(self._publisher, write.messages, identity, write.started_from).snapshot

    def _begin(self, number: int) -> Intent:
        """Return the intent of this commit, whose base is older than any snapshot of the commit.

        Raises _Skipped if the commit is certainly done.
        """
        if not 0 <= number < BATCH:
            raise InvalidInputError(f"commits are numbered from 0 to 2^63 - 2, but this is number {number}")
        now = self._intent_now()  # REQUIRES: read before the intents (module docstring)
        begun = self._intents.numbers()
        last = begun[-1] if begun else self._last_in_snapshots(number)
        if last == number and not begun:
            raise _Skipped
        self.check_source(number)
        if last > number and not self._consecutive:
            raise _Skipped
        if number in begun and self._intents.is_finished(number):
            raise _Skipped
        if self._consecutive and not last <= number <= last + 1:
            self._resolve_unknown(self._out_of_order(number, last))
        if number in begun:
            intent = self._intents.find(number)
        else:
            intent = self._intents.begin(number, now)
            self._check_same_source(number, number, intent)  # another one may have begun it since
        for old in begun:
            if old < number:
                self._intents.forget(old)
        if intent is None:  # another process is past this number
            raise _Skipped
        return intent

    def _last_in_snapshots(self, number: int) -> int:
        """Return the last number in the snapshots of a user without intents. ``-1``: no number."""
        if number == 0:
            return -1
        ours = (s.commit_identifier for s in self._store.snapshots.all() if s.commit_user == self._user)
        return max((n for n in ours if n != BATCH), default=-1)

    def _resolve_unknown(self, problem: PaimonError) -> None:
        match self._on_unknown:
            case "fail":
                raise problem
            case "skip":
                raise _Skipped

    def _out_of_order(self, number: int, last: int) -> InvalidInputError:
        batches = "has no batch of it" if last < 0 else f"has its batches up to {last}"
        why = "the checkpoint is older" if number < last else "the table was created again or restored"
        return InvalidInputError(
            f"this is batch {number} of the query {self._user}, but the table at {self._store.root} {batches}: either "
            f"{why}, or the checkpoint belongs to another table. Start the query with a new checkpointLocation. If "
            f"the batch is certainly missing from the table, start it once with the option {ON_UNKNOWN_OPTION} = commit"
        )

    def _history_expired(self, number: int, base: int) -> str:
        return (
            f"batch {number} of {self._user} is repeated, and it is unknown whether it is in the table at "
            f"{self._store.root}: its snapshot would come after snapshot {base}, and some later snapshots have "
            f"expired. Check if its rows are in the table, then start it once with the option {ON_UNKNOWN_OPTION} = "
            "skip if they are, or = commit if they are not. To prevent this, keep snapshots for longer than writers "
            "are down (snapshot.time-retained)"
        )


@dataclass(frozen=True, slots=True)
class _Write:
    """One numbered write: an append or, if ``replaces``, an overwrite of ``partition``."""

    messages: tuple[CommitMessage, ...]
    number: int
    watermark: int | None
    started_from: StartedFrom | None = None
    replaces: bool = False
    partition: Spec | Predicate | str | None = None
    empty: bool = False
    properties: Mapping[str, str] | None = None


class _Skipped(Exception):
    """A signal that a commit needs no work."""
