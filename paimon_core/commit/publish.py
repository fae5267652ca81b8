"""Publish a snapshot with one create-if-absent, and report the outcome: published, lost, unknown or indeterminate.

Winning the create does not prove that the snapshot id was never used. If another committer used the id and its snapshot
has since expired, the create succeeds again. The result is an orphan: it has no predecessor and no successor.
"""

from dataclasses import dataclass

from paimon_core.errors import PaimonError
from paimon_core.manifest.entry import ADD
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import ignore_if_expired
from paimon_core.store.file_store import FileStore

_ATTEMPTS = 5  # attempts to read a following snapshot, which may expire meanwhile


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome that the snapshot is visible."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The outcome that another commit has the snapshot id: ours provably does not exist."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The outcome that the storage did not answer: the snapshot may exist, or may still appear."""

    cause: Exception


@dataclass(frozen=True, slots=True)
class Indeterminate:
    """The outcome that snapshots expired which could have decided: another attempt might commit twice."""


Outcome = Published | Lost | Unknown | Indeterminate


def publish(store: FileStore, snapshot: Snapshot, added: frozenset[str]) -> Outcome:
    """Create the snapshot's file unless one of its id exists. ``added``: names of the data files that it adds."""
    path = store.snapshots.path(snapshot.id)
    try:
        if store.io.create_exclusive(path, snapshot.to_json()):
            return _check_predecessor(store, snapshot, added)
        published = store.snapshots.get(snapshot.id)
    except (OSError, PaimonError) as error:
        return Unknown(error)
    # A storage client may repeat a request whose first answer was lost, and then meet its own file.
    return Published() if is_ours(published, snapshot) else Lost()


def _check_predecessor(store: FileStore, ours: Snapshot, added: frozenset[str]) -> Outcome:
    """Check that the snapshot id was never used before.

    Snapshots expire oldest first, so if snapshot ``id - 1`` still exists, this id is new. Otherwise a following
    snapshot decides: it contains ours if its base lists the added files. An orphan is deleted.
    """
    if ours.id > 1 and store.snapshots.exists(ours.id - 1):
        return Published()
    following = None
    for _ in range(_ATTEMPTS):
        newer = [number for number in store.snapshots.ids() if number > ours.id]
        if not newer:
            return Published()
        following = store.snapshots.find(newer[0])
        if following is None:
            continue
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
    """Return True if a published snapshot is of this very attempt: names of manifest lists are unique."""
    return (
        published.delta_manifest_list == ours.delta_manifest_list
        and published.base_manifest_list == ours.base_manifest_list
    )
