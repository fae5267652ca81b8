"""Commits of files that exist already: files of other tools, and files of another branch."""

from collections.abc import Callable, Sequence

from paimon_core.commit.changes import Changes
from paimon_core.commit.publisher import Publisher
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.snapshot.snapshot import CommitKind, Snapshot


def add_existing(
    publisher: Publisher, missing: Callable[[Snapshot | None], Sequence[ManifestEntry]]
) -> Snapshot | None:
    """Add existing files in an APPEND; return its snapshot; `None`: there are none. No file is deleted.

    Args:
        publisher: the publisher of the table.
        missing: returns the entries for the base of every attempt; it may raise what the caller gets.
    """

    def decide(base: Snapshot | None) -> Changes | None:
        entries = tuple(missing(base))
        return Changes(CommitKind.APPEND, entries, built_on_base=True) if entries else None

    return publisher.publish(publisher.identity(), decide, CommitKind.APPEND)
