"""Commit files that already exist: files of other tools, or files of another branch."""

from collections.abc import Callable, Sequence

from paimon_core.commit.changes import Changes
from paimon_core.commit.publisher import Publisher
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.snapshot.snapshot import CommitKind, Snapshot


def add_existing(
    publisher: Publisher, missing: Callable[[Snapshot | None], Sequence[ManifestEntry]]
) -> Snapshot | None:
    """Add existing files in an APPEND snapshot, and return it. `None`: no file to add. Deletes no file.

    Args:
        publisher: the publisher of the table.
        missing: a function from the base snapshot of an attempt to the entries to add. Its errors reach the caller.
    """

    def decide(base: Snapshot | None) -> Changes | None:
        entries = tuple(missing(base))
        return Changes(CommitKind.APPEND, entries, built_on_base=True) if entries else None

    return publisher.publish(publisher.identity(), decide, CommitKind.APPEND)
