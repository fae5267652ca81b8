"""Make a snapshot visible: one create-if-absent, and an honest answer about what became of it."""

from dataclasses import dataclass

from paimon_core.errors import OutOfRangeError
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


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


Outcome = Published | Lost | Unknown


def publish(store: FileStore, snapshot: Snapshot) -> Outcome:
    """Create the snapshot's file unless one of its number exists."""
    path = store.snapshots.path(snapshot.id)
    try:
        if store.io.create_exclusive(path, snapshot.to_json()):
            return Published()
        there = store.snapshots.get(snapshot.id)
    except (OSError, OutOfRangeError) as error:
        return Unknown(error)
    # A storage client may repeat a request whose first answer was lost, and then meet its own file.
    return Published() if is_ours(there, snapshot) else Lost()


def is_ours(there: Snapshot, ours: Snapshot) -> bool:
    """Whether a published snapshot is this very attempt: manifest lists are named uniquely."""
    return there.delta_manifest_list == ours.delta_manifest_list and there.base_manifest_list == ours.base_manifest_list
