"""Publish a snapshot with one create-if-absent, and check what the snapshot follows before its commit is acknowledged.

A snapshot is published if its file was created *and* the snapshot it was built on is still the one before it in the
same table (decision 30). A rollback, a fast-forward or a dropped table may have removed or replaced that snapshot
between the moment it was read and the creation of the file; then the file is deleted again.

Winning the create does not prove that the snapshot id was never used either. If another committer used the id and its
snapshot has since expired, the create succeeds again. The result is an orphan: it has no predecessor and no successor.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from paimon_core.errors import PaimonError
from paimon_core.fileio.storage import MissingDirectoryError
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.current_schema import is_same_table
from paimon_core.store.environment import NotLockedError, RefusedError
from paimon_core.store.expired import ignore_if_expired
from paimon_core.store.file_store import FileStore

_ATTEMPTS = 5  # attempts to read a following snapshot, which may expire before it is read
SELF_DELETION_SECONDS = 5.0
"""A committer deletes its own orphan only within this time: later, another process may have replaced the file."""


@dataclass(frozen=True, slots=True)
class Published:
    """The snapshot is visible, and follows its base."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The snapshot provably does not exist: another commit has its id, or its base was removed."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A snapshot that was built on another history has the id: ours provably does not exist."""

    orphan: Snapshot


@dataclass(frozen=True, slots=True)
class Unknown:
    """The storage did not answer: the snapshot may exist, or may still appear."""

    cause: Exception


@dataclass(frozen=True, slots=True)
class Indeterminate:
    """The snapshots that could have decided no longer exist: another attempt might commit twice."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The catalog published nothing, for a reason that another attempt does not change."""

    cause: PaimonError


Outcome = Published | Lost | Blocked | Unknown | Indeterminate | Refused


def still_newest(store: FileStore, base: Snapshot | None) -> bool:
    """Return True if ``base``, which was the newest snapshot, still exists. After other commits it may have expired.

    ``base``: `None`: the table had no snapshot.
    """
    if base is None:
        return True
    now = store.snapshots.find(base.id)
    return now is not None and now.fingerprint == base.fingerprint


def publish(
    store: FileStore,
    snapshot: Snapshot,
    base: Snapshot | None,
    added: frozenset[str],
    entries: Sequence[ManifestEntry] = (),
) -> Outcome:
    """Create the snapshot if it is absent, through the table's catalog, and check that it follows its base.

    Args:
        store: the table to commit to.
        snapshot: the snapshot to publish.
        base: the snapshot that it was built on; `None`: it is the first snapshot.
        added: names of the data files that it adds.
        entries: the data files that it adds and deletes.
    """
    started = time.monotonic()
    try:
        if not store.environment.publish_snapshot(store, snapshot, entries):
            server = store.environment.decided_by_server
            other = store.snapshots.find(snapshot.id) if server else store.snapshots.get(snapshot.id)
            if other is None:
                return Lost()  # the server refuses what follows another snapshot than its newest one
            # A storage client may repeat a request whose response was lost, and then find its own file.
            if not is_ours(other, snapshot):
                return Lost() if server or other.was_built_on(base) else Blocked(other)
        return _check_base(store, snapshot, base, added, started)
    except NotLockedError as error:
        return Refused(error)
    except RefusedError as refused:
        return Refused(refused.cause)
    except MissingDirectoryError:
        return Lost()  # the table was dropped or renamed: nothing was created
    except (OSError, PaimonError) as error:
        return Unknown(error)


def _check_base(
    store: FileStore, ours: Snapshot, base: Snapshot | None, added: frozenset[str], started: float
) -> Outcome:
    """Return the outcome of a snapshot whose file was created at ``started`` (monotonic seconds)."""
    if base is not None and still_newest(store, base):
        return Published()
    ids = store.snapshots.ids()
    if base is not None and any(number <= base.id for number in ids):
        # Snapshots expire oldest first, so the base was removed by a rollback, not by expiry.
        if store.environment.decided_by_server:
            return Indeterminate()  # only the server may remove the snapshot
        return withdraw(store, ours, started)
    if store.environment.decided_by_server:
        return Published()
    if any(number > ours.id for number in ids):
        return _follows(store, ours, added)
    if is_same_table(store.schemas, store.schema):
        return Published()  # the base has expired since, if there was one
    return withdraw(store, ours, started)


def withdraw(store: FileStore, ours: Snapshot, started: float) -> Outcome:
    """Delete a snapshot that does not follow its base; return Lost if nothing can have been built on it.

    Its file is deleted only if it is still ours and has no successor. If the file no longer exists, another process has
    moved or dropped the table with our snapshot in it, or has rolled it back.

    ``started``: when the creation of its file began, or earlier (monotonic seconds).
    """
    existing = store.snapshots.find(ours.id)
    if existing is None:
        return Lost() if is_same_table(store.schemas, store.schema) else Indeterminate()
    if not is_ours(existing, ours):
        return Lost()
    if store.snapshots.exists(ours.id + 1) or time.monotonic() - started > SELF_DELETION_SECONDS:
        return Indeterminate()
    store.io.delete(store.snapshots.path(ours.id))
    return Lost()


def _follows(store: FileStore, ours: Snapshot, added: frozenset[str]) -> Outcome:
    """Return the outcome if neither the base nor an older snapshot exists, but later ones do.

    Snapshots expire oldest first, so the base has expired. A following snapshot decides if our id had been used before:
    it contains our snapshot if its base lists the added files. An orphan is deleted.
    """
    following = None
    for _ in range(_ATTEMPTS):
        ids = [number for number in store.snapshots.ids() if number > ours.id]
        if not ids:
            return Published()
        following = store.snapshots.find(ids[0])
        if following is None:
            continue
        if following.id == ours.id + 1 and following.parent_delta_manifest_list == ours.fingerprint:
            return Published()
        with ignore_if_expired(store, following):
            if added and added <= _added(store, following):
                return Published()
            break
    if following is not None and following.id == ours.id + 1:
        outcome: Outcome = Lost() if added else Indeterminate()
    else:  # the next snapshot has expired: if ours were its base, ours would have expired first
        outcome = Lost() if store.snapshots.exists(ours.id) else Indeterminate()
    store.io.delete(store.snapshots.path(ours.id))  # if indeterminate, too: no snapshot can follow it
    return outcome


def _added(store: FileStore, snapshot: Snapshot) -> set[str]:
    """Return the names of the data files that the base manifests of a snapshot list as added."""
    metas = store.manifests.read_list(snapshot.base_manifest_list)
    entries = (e for m in metas for e in store.manifests.read(m.file_name, m.file_size, with_stats=False))
    return {e.file.file_name for e in entries if e.kind == ADD}


def is_ours(published: Snapshot, ours: Snapshot) -> bool:
    """Return True if a published snapshot is from this attempt: names of manifest lists are unique."""
    return (
        published.delta_manifest_list == ours.delta_manifest_list
        and published.base_manifest_list == ours.base_manifest_list
    )
