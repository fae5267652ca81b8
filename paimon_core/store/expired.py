"""Errors for files that are missing because their snapshot has expired: the reader was too slow, nothing is damaged."""

from collections.abc import Iterator
from contextlib import contextmanager

from paimon_core.errors import CorruptedError, NotFoundError, OutOfRangeError
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

EXPIRED = "expired while it was read: read the table again"
"""A part of the error for an expired snapshot, which callers search for in the text of a Spark error."""


def is_missing(error: CorruptedError) -> bool:
    """Return True if ``error`` is about a missing file, not about the content of a file."""
    return isinstance(error.__cause__, FileNotFoundError)


@contextmanager
def raise_if_expired(store: FileStore, snapshot: Snapshot | int | None) -> Iterator[None]:
    """Translate errors of a block that reads files of a snapshot.

    Raises OutOfRangeError if a file is missing because the snapshot has expired, or because another snapshot has its id
    by now; NotFoundError if the table was dropped.

    Args:
        store: the table that is read.
        snapshot: the snapshot, or its id; `None` or 0: no snapshot, and errors pass unchanged.
    """
    try:
        yield
    except CorruptedError as error:
        expired = expiry(store, snapshot, str(error)) if snapshot and is_missing(error) else None
        if expired is not None:
            raise expired from error
        raise


def expiry(store: FileStore, snapshot: Snapshot | int, reason: str) -> NotFoundError | OutOfRangeError | None:
    """Return the error for a read whose files are missing because of expiry, or because the table was dropped.

    Args:
        store: the table that is read.
        snapshot: the snapshot that was read, or its id.
        reason: the message of the reader's error.

    Returns `None` if the snapshot still exists.
    """
    if _still_there(store, snapshot):
        return None
    if not store.schemas.ids():
        return NotFoundError(f"the table at {store.root} was dropped while it was read ({reason})")
    number = snapshot if isinstance(snapshot, int) else snapshot.id
    return OutOfRangeError(
        f"snapshot {number} of {store.root} {EXPIRED}; where reads take longer than snapshots are kept, raise "
        f"snapshot.time-retained or snapshot.num-retained.min, or read a tag ({reason})"
    )


@contextmanager
def ignore_if_expired(store: FileStore, snapshot: Snapshot | None) -> Iterator[None]:
    """End a block that reads files of a snapshot without an error if a file is missing because of expiry."""
    try:
        yield
    except CorruptedError as error:
        if snapshot is None or not is_missing(error) or _still_there(store, snapshot):
            raise


def _still_there(store: FileStore, snapshot: Snapshot | int) -> bool:
    """Return True if the snapshot exists, and no rollback or new table has given its id to another snapshot."""
    if isinstance(snapshot, int):
        return store.snapshots.exists(snapshot)
    now = store.snapshots.find(snapshot.id)
    return now is not None and now.fingerprint == snapshot.fingerprint
