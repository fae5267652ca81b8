"""Files that are gone because their snapshot is: no damage, but a reader that came too late."""

from collections.abc import Iterator
from contextlib import contextmanager

from paimon_core.errors import CorruptedError, NotFoundError, OutOfRangeError
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

__all__ = ["ignore_if_expired", "is_missing", "raise_if_expired"]


def is_missing(error: CorruptedError) -> bool:
    """Whether it is for a file that is not there, not for what is in it."""
    return isinstance(error.__cause__, FileNotFoundError)


@contextmanager
def raise_if_expired(store: FileStore, snapshot_id: int | None) -> Iterator[None]:
    """Inside, files of a snapshot are read. OutOfRangeError where one is missing because the snapshot has expired,
    NotFoundError where the whole table is gone.

    None and 0 are no snapshot.
    """
    try:
        yield
    except CorruptedError as error:
        if snapshot_id and is_missing(error) and not store.snapshots.exists(snapshot_id):
            if not store.schemas.ids():
                raise NotFoundError(f"the table at {store.root} was dropped while it was read ({error})") from error
            raise OutOfRangeError(
                f"snapshot {snapshot_id} of {store.root} expired while it was read: read the table again; where reads "
                "take longer than snapshots are kept, raise snapshot.time-retained or snapshot.num-retained.min, or "
                f"read a tag ({error})"
            ) from error
        raise


@contextmanager
def ignore_if_expired(store: FileStore, snapshot: Snapshot | None) -> Iterator[None]:
    """Inside, files of a snapshot are read; the rest is left out where one is missing because it has expired."""
    try:
        yield
    except CorruptedError as error:
        if snapshot is None or not is_missing(error) or store.snapshots.exists(snapshot.id):
            raise
