"""Corrections of metadata: the newest snapshot, published again with other metadata of the same rows."""

from collections.abc import Callable

from paimon_core.commit.changes import Changes
from paimon_core.commit.publisher import Publisher
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore


def publish_corrected(store: FileStore, corrected: Callable[[Snapshot], Changes | None]) -> Snapshot | None:
    """Publish the newest snapshot again, as a COMPACT with corrected metadata. `None`: nothing to correct.

    Args:
        store: the table to correct.
        corrected: a function from the base of an attempt to changes with `Corrections`. `None`: nothing to correct.
    """
    publisher = Publisher(store)

    def decide(base: Snapshot | None) -> Changes | None:
        return None if base is None else corrected(base)

    return publisher.publish(publisher.identity(), decide, CommitKind.COMPACT)
