"""Make a snapshot visible: one create-if-absent, and an honest answer about what became of it.

That a number was free does not say that nobody had it: snapshots expire, and where few are kept a committer may be slow
enough to find the number it lost free again. What it made then follows nothing and is followed by nobody.
"""

from dataclasses import dataclass

from paimon_core.errors import PaimonError
from paimon_core.manifest.entry import ADD
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import ignore_if_expired
from paimon_core.store.file_store import FileStore

_LOOKS = 5  # at snapshots that expire while they are looked at


@dataclass(frozen=True, slots=True)
class Published:
    """The snapshot is visible."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Somebody else holds the number: ours is provably not there."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The storage did not say: the snapshot may be there, or may still appear."""

    cause: Exception


@dataclass(frozen=True, slots=True)
class Indeterminate:
    """So much expired since that nobody can tell any more: another attempt might do it twice."""


Outcome = Published | Lost | Unknown | Indeterminate


def publish(store: FileStore, snapshot: Snapshot, added: frozenset[str]) -> Outcome:
    """Create the snapshot's file unless one of its number exists. ``added``: names of the data files it adds."""
    path = store.snapshots.path(snapshot.id)
    try:
        if store.io.create_exclusive(path, snapshot.to_json()):
            return _check_predecessor(store, snapshot, added)
        there = store.snapshots.get(snapshot.id)
    except (OSError, PaimonError) as error:
        return Unknown(error)
    # A storage client may repeat a request whose first answer was lost, and then meet its own file.
    return Published() if is_ours(there, snapshot) else Lost()


def _check_predecessor(store: FileStore, ours: Snapshot, added: frozenset[str]) -> Outcome:
    """What a number is worth that was free. Snapshots expire in their order: with the one before there, it was new."""
    if ours.id > 1 and store.snapshots.exists(ours.id - 1):
        return Published()
    following = None
    for _ in range(_LOOKS):
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
    else:  # what came next has expired: if ours were its base, it would have gone before
        outcome = Lost() if store.snapshots.exists(ours.id) else Indeterminate()
    store.io.delete(store.snapshots.path(ours.id))  # in doubt, too: nothing can be built on it any more
    return outcome


def _added(store: FileStore, snapshot: Snapshot) -> set[str]:
    """Names of data files that were added before a snapshot, as far as its manifests go back."""
    metas = store.manifests.read_list(snapshot.base_manifest_list)
    entries = (e for m in metas for e in store.manifests.read(m.file_name, m.file_size, with_stats=False))
    return {e.file.file_name for e in entries if e.kind == ADD}


def is_ours(there: Snapshot, ours: Snapshot) -> bool:
    """Whether a published snapshot is this very attempt: manifest lists are named uniquely."""
    return there.delta_manifest_list == ours.delta_manifest_list and there.base_manifest_list == ours.base_manifest_list
