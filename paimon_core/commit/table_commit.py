"""Commits: messages of writers become snapshots, exactly once, beside any number of other committers.

The loop (behaviour 7.2): look at the newest snapshot; has an earlier attempt of ours landed? do the changes still
hold? write metadata; create the snapshot file if absent. Losing the number means another round. When the storage does
not say what became of a request, nothing is deleted and the table itself is asked. Files are deleted only after a
provable loss. A crash at any point leaves the old table or the new one, and files nobody refers to.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from paimon_core.commit.changes import Changes, append_changes, compact_changes
from paimon_core.commit.compaction import RejectedCompaction, has_compaction, still_valid, written_files
from paimon_core.commit.conflict import (
    Conflict,
    bucket_conflict,
    replacement_conflict,
    row_conflict,
    slice_conflict,
)
from paimon_core.commit.find_commit import CommitSearch
from paimon_core.commit.hash_indexes import delete_indexes, drop_joined, routes_by_hash, with_hash_indexes
from paimon_core.commit.index_changes import vector_conflict
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
from paimon_core.datafile.deletion_vectors import single_index_per_bucket, vector_entries
from paimon_core.errors import (
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    OutOfRangeError,
    PaimonError,
    UnsupportedError,
)
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.options.bucket import POSTPONED
from paimon_core.options.snapshot import (
    COMMIT_FORCE_CREATE_SNAPSHOT,
    COMMIT_MAX_RETRIES,
    COMMIT_MAX_RETRY_WAIT,
    COMMIT_MIN_RETRY_WAIT,
    COMMIT_TIMEOUT,
    COMMIT_USER_PREFIX,
    SNAPSHOT_IGNORE_EMPTY_COMMIT,
)
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.entries import PartitionFilter, live_entries, partitions_predicate
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER as BATCH
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.expired import ignore_if_expired
from paimon_core.store.file_store import FileStore

T = TypeVar("T")
Decide = Callable[[Snapshot | None], Changes | None]


@dataclass(frozen=True, slots=True)
class Retries:
    """How long a commit goes on against others: attempts after the first, seconds between and in all."""

    attempts: int
    min_wait: float
    max_wait: float
    timeout: float | None

    def wait(self, attempt: int) -> float:
        """Seconds to wait before attempt number ``attempt + 1``: doubling, with jitter so that two part."""
        return min(self.min_wait * 2.0 ** min(attempt, 30), self.max_wait) * (1 + random.random() / 5)


class _Rounds:
    """Where the loop of one commit stands."""

    def __init__(self, search: CommitSearch) -> None:
        self._started = time.monotonic()
        self.attempts = 0
        self.search = search
        self.doubt: Exception | None = None
        self.synced: set[str] = set()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def over(self, retries: Retries) -> bool:
        """Whether no further attempt may start."""
        late = retries.timeout is not None and self.seconds > retries.timeout
        return self.attempts > 0 and (late or self.attempts > retries.attempts)

    def next(self, retries: Retries) -> None:
        """Wait for the next attempt, unless there is none."""
        self.attempts += 1
        if not self.over(retries):
            time.sleep(retries.wait(self.attempts - 1))


class TableCommit:
    """Commits to one table as one user.

    ``user`` (default: a fresh one) with a commit's identifier is what makes a repeated commit recognisable: a caller
    that may repeat itself after a crash gives both and gets the first outcome back.
    """

    def __init__(self, store: FileStore, user: str | None = None) -> None:
        check_writable(store.schema)
        store.io.check_can_commit()
        self._store = store
        self._given_user = user is not None
        self._recovered: set[str] = set()  # commit kinds whose past was looked up
        self._tried = 0  # snapshots that were to be published and may be there
        self.late: frozenset[tuple[bytes, int]] = frozenset()
        """Buckets (by partition and number) whose compaction came too late to be part of the last commit."""
        self.user = user if user is not None else _fresh_user(store)
        options = store.options
        timeout = options.value(COMMIT_TIMEOUT)
        self._retries = Retries(
            options.value(COMMIT_MAX_RETRIES),
            options.value(COMMIT_MIN_RETRY_WAIT).total_seconds(),
            options.value(COMMIT_MAX_RETRY_WAIT).total_seconds(),
            None if timeout is None else timeout.total_seconds(),
        )

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
        after: int | None = None,
    ) -> Snapshot | None:
        """Publish what the messages say; returns the last snapshot made, None when there was nothing to commit.

        Nothing to commit makes a snapshot with an identifier, or as ``commit.force-create-snapshot`` and
        ``snapshot.ignore-empty-commit`` say; the latter decides.
        Rows become one snapshot, what the writers compacted a second one. Where others replaced the same files
        meanwhile, that part of the compaction is dropped: it changes no row.
        ``base_id``: the snapshot the writers looked at, if any; a partition rewritten since with another number of
        buckets is then noticed. With ``identifier`` a commit that landed before is returned, not repeated.
        ``unchanged_since``: the snapshot whose rows decided what was written; the commit is refused where others have
        since changed rows of a bucket it goes to.
        ``after``: an earlier run can have made this commit after that snapshot, with other files. Then AlreadyCommitted
        is raised, or HistoryExpired if snapshots that could be that commit have expired (see IdempotentCommits).
        Raises CommitConflictError (nothing changed) or CommitUnknownError (files kept: look before retrying).
        """
        identity = Identity(self.user, BATCH if identifier is None else identifier, properties or {}, watermark, after)
        appended = replace(append_changes(messages), read_at=unchanged_since)
        compacting = any(map(has_compaction, messages))
        made = None
        if not appended.is_empty or self.shows_empty(identifier is not None and not compacting):
            with self._dropped_if_interrupted(messages):
                made = self._publish(identity, self._following(appended, messages, base_id), appended.kind, base_id)
            if made is not None and routes_by_hash(messages):
                drop_joined(self._store, messages, made)
        if not compacting:
            return made
        if made is not None:
            return self._compact_after(made, identity, messages)
        made, left_out = self._compact(identity, messages)
        if made is None:
            raise CommitConflictError(
                f"commit to {self._store.root} conflicts with another one: {left_out[0].conflict.reason}"
            )
        self._drop(left_out)
        return made

    def shows_empty(self, otherwise: bool) -> bool:
        """Return True where a commit without changes makes a snapshot, as the options have it, or ``otherwise``."""
        options = self._store.options
        ignored = options.value(SNAPSHOT_IGNORE_EMPTY_COMMIT)
        return (otherwise or options.value(COMMIT_FORCE_CREATE_SNAPSHOT)) if ignored is None else not ignored

    def compact(self, messages: Sequence[CommitMessage]) -> tuple[Snapshot | None, list[CommitMessage]]:
        """Publish compactions as one snapshot; returns it, and the messages whose files others replaced meanwhile.

        What these made is deleted. The snapshot is None where nothing is left. Raises CommitConflictError when the
        table was always taken by others, or CommitUnknownError (files kept).
        """
        made, left_out = self._compact(Identity(self.user, BATCH), messages)
        self._drop(left_out)
        return made, [late.message for late in left_out]

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        partition: Spec | str | None = None,
        identifier: int | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
        after: int | None = None,
    ) -> Snapshot | None:
        """Replace the whole table (``partition=None``), one partition, or those the messages touch ("dynamic").

        What is replaced is what is live when the snapshot is made, rows committed meanwhile included. A dynamic
        overwrite without new files changes nothing and returns None; any other makes a snapshot even when empty.
        ``after`` is that of a commit.
        """
        identity = Identity(self.user, BATCH if identifier is None else identifier, properties or {}, watermark, after)
        touched = distinct_partitions(messages)
        if partition == DYNAMIC and not self._store.schema.partition_keys:
            partition = None
        if partition and self._store.schema.is_cross_partition and messages:
            raise UnsupportedError(
                f"cannot overwrite some partitions of {self._store.root}: its keys may move between partitions, and "
                "would stay in the others too. Overwrite the whole table, or drop the partitions and write the rows"
            )
        if partition == DYNAMIC:
            if not touched:
                return None
            where: Predicate | None = None
        elif isinstance(partition, str):
            raise InvalidInputError(f"partition must be a mapping, None or {DYNAMIC!r}, not {partition!r}")
        elif not partition:
            where, touched = None, set()
        else:
            where = partition_predicate(self._store, [partition])
            test = PartitionFilter(where, self._store.schema.partition_arrow)
            check_inside(self._store, messages, test.matching({m.partition for m in messages}), partition)
            touched = set()
        made = self._replace(identity, where, touched, messages)
        return self._compact_after(made, identity, messages) if made is not None else None

    def rewrite(self, partition: bytes, messages: Sequence[CommitMessage], read_at: Snapshot) -> Snapshot | None:
        """Put the same rows into one partition again, as they were read at a snapshot.

        Raises CommitConflictError where the partition has changed since, if only by a compaction.
        """
        identity = Identity(self.user, BATCH)
        where = partitions_predicate(self._store, {partition})
        made = self._replace(identity, where, {partition}, messages, read_at)
        return self._compact_after(made, identity, messages) if made is not None else None

    def truncate(self) -> Snapshot | None:
        """Remove every row."""
        return self._replace(Identity(self.user, BATCH), None, set(), [])

    def drop_partitions(self, specs: Sequence[Spec]) -> Snapshot | None:
        """Remove the rows of partitions given as {column: value}; a spec may leave columns out."""
        return self.drop_matching(partition_predicate(self._store, specs))

    def drop_matching(self, partitions: Predicate) -> Snapshot | None:
        """Remove the rows of the partitions that match a bound predicate on partition columns."""
        return self._replace(Identity(self.user, BATCH), partitions, set(), [])

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files made for these messages. REQUIRES: they were not committed, and will not be."""
        for message in messages:
            for file in (*message.new_files, *message.changelog_files):
                self._store.delete_file(message.partition, message.bucket, file)
            for entry in message.new_indexes:
                self._store.delete_index(entry)
        self._discard(messages)

    def or_abort(self, messages: Sequence[CommitMessage], commit: Callable[[], T]) -> T:
        """Return what ``commit`` gives; where it fails, and provably nothing came of it, the files of the messages go.

        That holds where it is interrupted, too, unless a snapshot was on its way already.
        """
        self._tried = 0
        try:
            return commit()
        except CommitUnknownError:
            raise  # the snapshot may refer to the files
        except BaseException as error:
            if isinstance(error, Exception) or not self._tried:
                with suppress(OSError):  # what went wrong first is what is told
                    self.abort(messages)
            raise

    # ---- compaction

    def _compact_after(self, made: Snapshot, identity: Identity, messages: Sequence[CommitMessage]) -> Snapshot:
        """What compaction adds to a commit whose rows are in, and that is a success whatever becomes of it.

        Files of a failed attempt stay, for it may have landed; those of a compaction that came too late go.
        """
        tried = self._tried
        with self._dropped_if_interrupted(messages, lambda: self._tried == tried), suppress(Exception):
            too, left_out = self._compact(identity, self._complete(messages, made))
            made = too or made
            self.late = frozenset((late.message.partition, late.message.bucket) for late in left_out)
            self._drop(left_out)
        return made

    def _complete(self, messages: Sequence[CommitMessage], made: Snapshot) -> list[CommitMessage]:
        """Those whose files are there: when a commit is repeated, what its first time left out has been deleted."""
        if not self._given_user or made.commit_identifier == BATCH:
            return list(messages)
        store = self._store
        return [
            m
            for m in messages
            if all(store.io.exists(store.file_path(m.partition, m.bucket, f)) for f in written_files(m))
        ]

    def _compact(
        self, identity: Identity, messages: Sequence[CommitMessage]
    ) -> tuple[Snapshot | None, list[RejectedCompaction]]:
        """Publish the compactions that hold on the base met, and say which do not and why."""
        compactions = [m for m in messages if has_compaction(m)]
        left_out: list[RejectedCompaction] = []

        def decide(base: Snapshot | None) -> Changes | None:
            held, left_out[:] = still_valid(self._store, base, compactions)
            return replace(compact_changes(held), built_on_base=True) if held else None

        made = self._publish(identity, decide, CommitKind.COMPACT, None) if compactions else None
        return made, left_out

    @contextmanager
    def _dropped_if_interrupted(
        self, messages: Sequence[CommitMessage], unpublished: Callable[[], bool] = lambda: True
    ) -> Iterator[None]:
        """Delete what was compacted where Ctrl-C ends what is inside, if it is ``unpublished``."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception) and unpublished():
                with suppress(OSError):
                    self._discard(messages)
            raise

    def _drop(self, left_out: Sequence[RejectedCompaction]) -> None:
        """Delete what was made in vain, as far as that can be done: the commit itself is over."""
        with suppress(OSError):
            self._discard([late.message for late in left_out])

    def _discard(self, messages: Sequence[CommitMessage]) -> None:
        for message in messages:
            for file in written_files(message):
                self._store.delete_file(message.partition, message.bucket, file)
            for entry in message.compact_new_indexes:
                self._store.delete_index(entry)

    # ---- the loop

    def _following(self, changes: Changes, messages: Sequence[CommitMessage], seen: int | None) -> Decide:
        """The changes themselves, but for tables with dynamic buckets: there keys must still be where they were."""
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
        follow = self._following(append_changes(messages), messages, None)

        def decide(base: Snapshot | None) -> Changes:
            appended = follow(None)
            assert appended is not None  # there always is something to follow, if it is nothing
            if read_at is not None and contents(self._store, base, where) != contents(self._store, read_at, where):
                raise CommitConflictError(
                    f"commit to {self._store.root} conflicts with another one: what was to be written again has changed"
                )
            live = live_entries(self._store, base, partition=where).live if base is not None else []
            gone = [
                ManifestEntry(DELETE, e.partition, e.bucket, e.total_buckets, e.file)
                for e in live
                if not only or e.partition in only
            ]
            cleared_buckets = frozenset((e.partition, e.bucket) for e in gone) | indexed_buckets(
                self._store, base, where, only
            )
            return replace(
                appended,
                kind=CommitKind.OVERWRITE,
                entries=(*gone, *appended.entries),
                built_on_base=True,
                changelog=(),
                cleared_buckets=cleared_buckets,
            )

        with self._dropped_if_interrupted(messages):
            made = self._publish(identity, decide, CommitKind.OVERWRITE, None)
        if made is not None and routes_by_hash(messages):
            drop_joined(self._store, messages, made)
        return made

    def _publish(self, identity: Identity, decide: Decide, kind: str, seen: int | None) -> Snapshot | None:
        """The snapshot made, or found to have been made before; None where ``decide`` finds nothing left to do."""
        rounds = _Rounds(CommitSearch(identity, kind, self._seen_of(identity, kind)))
        try:
            while True:
                base = self._store.snapshots.latest()
                landed = rounds.search.find(self._store.snapshots, base)
                if landed is not None:
                    return landed
                if rounds.over(self._retries) or (rounds.doubt is not None and rounds.search.some_expired):
                    break
                made = None
                with ignore_if_expired(self._store, base):  # then it was lost to others, who committed since
                    changes = decide(base)
                    if changes is None:
                        return None
                    made = self._attempt(changes, base, identity, seen, rounds)
                if made is not None:
                    return made
                rounds.next(self._retries)
        except (OSError, PaimonError) as error:
            if rounds.doubt is None:
                raise
            raise self._unknown(identity) from error
        if rounds.doubt is not None:
            raise self._unknown(identity) from rounds.doubt
        raise CommitConflictError(
            f"commit to {self._store.root} lost against other writers {rounds.attempts} times in "
            f"{rounds.seconds:.1f} s: raise commit.max-retries or commit.timeout, or write again"
        )

    def _attempt(
        self, changes: Changes, base: Snapshot | None, identity: Identity, seen: int | None, rounds: "_Rounds"
    ) -> Snapshot | None:
        """One round; None when the number was lost, or when the storage did not say."""
        try:
            conflict = self._conflict(changes, base, seen)
            if conflict is not None:
                raise CommitConflictError(f"commit to {self._store.root} conflicts with another one: {conflict.reason}")
            draft = write_attempt(self._store, base, changes, identity)
            try:
                self._make_durable(draft, changes, rounds)
            except BaseException:
                draft.discard(self._store)
                raise
        except BaseException:
            delete_indexes(self._store, changes.written_indexes)
            raise
        rounds.search.own_manifest_lists.add(draft.snapshot.delta_manifest_list)
        match self._try(draft):
            case Published():
                self._store.snapshots.write_hint("LATEST", draft.snapshot.id)  # best effort: else others list
                return draft.snapshot
            case Lost():
                draft.discard(self._store)
                delete_indexes(self._store, changes.written_indexes)
            case Unknown(cause):
                rounds.doubt = cause
            case Indeterminate():
                raise self._unknown(identity)
        return None

    def _make_durable(self, draft: PreparedSnapshot, changes: Changes, rounds: "_Rounds") -> None:
        """Push what the snapshot names, and none before it named, to the disk; over all rounds once per file."""
        store, gone = self._store, {e.file.file_name for e in changes.entries if e.kind == DELETE}
        added = [e for e in changes.entries if e.kind == ADD and e.file.file_name not in gone]
        data = [path for e in (*added, *changes.changelog) for path in store.file_paths(e.partition, e.bucket, e.file)]
        named = {*data, *map(store.index_path, changes.new_indexes), *draft.paths(store)}
        store.sync(named - rounds.synced)
        rounds.synced |= named

    def _unknown(self, identity: Identity) -> CommitUnknownError:
        return CommitUnknownError(
            f"the storage did not say whether the commit to {self._store.root} landed (user {identity.user}, "
            f"identifier {identity.identifier}): look for that user in the table's snapshots before writing again; "
            "no file was deleted"
        )

    def _try(self, draft: PreparedSnapshot) -> Outcome:
        self._tried += 1
        try:
            outcome = publish(self._store, draft.snapshot, draft.added)
            self._tried -= isinstance(outcome, Lost)
            return outcome
        except Exception as error:  # not knowing is the one thing never to be mistaken for failure
            return Unknown(error)

    def _seen_of(self, identity: Identity, kind: str) -> int | None:
        """Up to which snapshot nothing of this commit can be found; None means all there are.

        A user that was given to us may have committed in an earlier life: all snapshots are looked at, once.
        """
        if identity.after is not None:
            return identity.after
        if not self._given_user or kind in self._recovered or identity.identifier == BATCH:
            return None
        self._recovered.add(kind)
        return 0

    def _snapshot(self, snapshot_id: int) -> Snapshot | None:
        try:
            return self._store.snapshots.get(snapshot_id)
        except OutOfRangeError:  # expired since it was listed
            return None

    def _conflict(self, changes: Changes, base: Snapshot | None, seen: int | None) -> Conflict | None:
        if base is None:
            return (
                Conflict("it deletes files of a table that holds none")
                if any(e.kind == DELETE for e in changes.entries)
                else None
            )
        if changes.read_at is not None:
            conflict = self._read_conflict(changes, changes.read_at, base)
            if conflict is not None:
                return conflict
        if self._store.schema.is_cross_partition and changes.kind == CommitKind.APPEND and changes.entries:
            return self._moved_conflict(base, seen)
        if seen is not None:
            conflict = bucket_conflict(changes, self._added_since(seen, base))
            if conflict is not None:
                return conflict
        if changes.replaces_columns:
            partitions = {e.partition for e in changes.entries}
            found = live_entries(self._store, base, partition=partitions_predicate(self._store, partitions))
            return slice_conflict(changes, [e for e in found.live if e.partition in partitions], seen)
        if not changes.needs_check:
            return None
        touched = {(e.partition, e.bucket) for e in changes.entries}
        touched |= {(e.partition, e.bucket) for e in changes.new_indexes}
        where = partitions_predicate(self._store, {partition for partition, _ in touched})
        live = live_entries(self._store, base, partition=where, buckets=touched, with_stats=False).live
        return replacement_conflict(
            changes, live, self._store.schema.key_arrow if self._store.schema.primary_keys else None
        ) or vector_conflict(
            changes,
            vector_entries(self._store, base),
            {e.file.file_name for e in live},
            one_a_bucket=single_index_per_bucket(self._store),
        )

    def _read_conflict(self, changes: Changes, read_at: int, base: Snapshot) -> Conflict | None:
        """Return why rows of snapshot ``read_at`` may not be those of ``base`` in the buckets the changes go to.

        Raises UnsupportedError where the changes would follow postponed rows, which the reader has not seen.
        """
        waiting = {(e.partition, e.bucket) for e in changes.entries if e.bucket == POSTPONED}
        where = partitions_predicate(self._store, {partition for partition, _ in waiting})
        if waiting and live_entries(self._store, base, partition=where, buckets=waiting, with_stats=False).live:
            raise UnsupportedError(
                f"what was read of {self._store.root} lacks the rows that wait in bucket {POSTPONED}: compact() first"
            )
        for snapshot, entries in self._deltas(range(read_at + 1, base.id + 1), lambda _: True):
            if snapshot is None:
                return Conflict(f"what was committed since snapshot {read_at} has expired: read again")
            conflict = row_conflict(changes, snapshot, entries)
            if conflict is not None:
                return conflict
        return None

    def _deltas(
        self, numbers: Iterable[int], wanted: Callable[[Snapshot], bool]
    ) -> Iterator[tuple[Snapshot | None, list[ManifestEntry]]]:
        """Yield snapshots with the entries of their own, empty unless ``wanted``; None in place of an expired one."""
        manifests = self._store.manifests

        def read(number: int) -> tuple[Snapshot | None, list[ManifestEntry]]:
            snapshot = self._snapshot(number)
            if snapshot is not None:
                with ignore_if_expired(self._store, snapshot):
                    metas = manifests.read_list(snapshot.delta_manifest_list) if wanted(snapshot) else []
                    return snapshot, [e for m in metas for e in manifests.read(m.file_name, with_stats=False)]
            return None, []

        return parallel_map(read, numbers)

    def _moved_conflict(self, base: Snapshot, seen: int | None) -> Conflict | None:
        """Where keys may move between partitions nobody else may have written since the writers looked."""
        if seen is None:
            raise InvalidInputError(
                f"keys of {self._store.root} may move between partitions: a commit must say which snapshot its writer "
                "looked at (base_id=writer.base_id)"
            )
        for snapshot in map(self._snapshot, range(seen + 1, base.id + 1)):
            if snapshot is None or snapshot.commit_kind != CommitKind.COMPACT:
                return Conflict("rows were written meanwhile, and may have moved the same keys: write again")
        return None

    def _added_since(self, seen: int, base: Snapshot) -> list[ManifestEntry]:
        """Entries added after snapshot ``seen`` by commits that may give a partition another number of buckets.

        Where one of the commits has expired, all there are.
        """
        store = self._store
        by_partition = store.schema.bucket == POSTPONED  # the first who writes to a partition decides
        entries = []
        for snapshot, added in self._deltas(
            range(seen + 1, base.id + 1), lambda s: s.commit_kind == CommitKind.OVERWRITE or by_partition
        ):
            if snapshot is None:
                return live_entries(store, base, with_stats=False).live
            entries += added
        return entries


def _fresh_user(store: FileStore) -> str:
    prefix = store.options.value(COMMIT_USER_PREFIX)
    return f"{prefix}_{uuid.uuid4()}" if prefix else str(uuid.uuid4())
