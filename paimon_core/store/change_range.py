"""The snapshots and changelogs from which the changes of a table can be read."""

from collections.abc import Iterator
from contextlib import contextmanager

from paimon_core.errors import CorruptedError, OutOfRangeError
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import is_missing
from paimon_core.store.file_store import FileStore


def earliest_change(store: FileStore) -> int | None:
    """Return the id of the oldest snapshot or changelog whose changes can be read; `None`: no commit yet."""
    ids = store.changelogs.earliest_id(), store.snapshots.earliest_id()
    return min((i for i in ids if i is not None), default=None)


def find_change(store: FileStore, snapshot_id: int) -> Snapshot | None:
    """Return the snapshot, or its long-lived changelog; `None`: both have expired."""
    return store.snapshots.find(snapshot_id) or store.changelogs.find(snapshot_id)


@contextmanager
def raise_if_changes_expired(store: FileStore, snapshot_id: int) -> Iterator[None]:
    """Raise OutOfRangeError if the block misses a file because the changes of the snapshot have expired."""
    try:
        yield
    except CorruptedError as error:
        if is_missing(error) and find_change(store, snapshot_id) is None:
            raise changes_expired(store, snapshot_id, f" ({error})") from error
        raise


def changes_expired(store: FileStore, snapshot_id: int, cause: str = "") -> OutOfRangeError:
    """Return the error for a snapshot that expired before its changes were read. ``cause``: the end of the message."""
    return OutOfRangeError(
        f"snapshot {snapshot_id} of {store.root} has expired before it was read; the oldest that can be read is "
        f"{earliest_change(store)}. Start a new reader with its own stream state, and keep snapshots longer "
        f"('snapshot.time-retained', 'changelog.time-retained') or give the reader a 'consumer-id'{cause}"
    )
