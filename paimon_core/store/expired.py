"""Files that are missing because their snapshot has expired: a reader that was too slow, no damage."""

from collections.abc import Iterator
from contextlib import contextmanager

from paimon_core.errors import CorruptedError, NotFoundError, OutOfRangeError
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


def is_missing(error: CorruptedError) -> bool:
    """Return True if ``error`` is about a missing file, not about the content of a file."""
    return isinstance(error.__cause__, FileNotFoundError)


@contextmanager
def raise_if_expired(store: FileStore, snapshot_id: int | None) -> Iterator[None]:
    """Translate errors of a block that reads files of a snapshot.

    Raises OutOfRangeError if a file is missing because the snapshot has expired, NotFoundError if the table was
    dropped. ``snapshot_id``: `None` or 0 is no snapshot, and errors pass unchanged.
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
    """End a block that reads files of a snapshot, without error, if a file is missing because of expiry."""
    try:
        yield
    except CorruptedError as error:
        if snapshot is None or not is_missing(error) or store.snapshots.exists(snapshot.id):
            raise
