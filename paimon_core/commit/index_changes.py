"""Index files of a snapshot: those of its base, with what a commit adds, replaces and drops (format 8.1).

An index manifest lists every live index file, so a commit that changes none carries the manifest itself along.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from paimon_core.commit.conflict import Conflict
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, IndexManifestEntry

__all__ = ["apply_indexes", "index_conflict"]


def apply_indexes(
    base: Sequence[IndexManifestEntry],
    *,
    added: Sequence[IndexManifestEntry] = (),
    deleted: Collection[str] = (),
    emptied: Collection[tuple[bytes, int]] = (),
    gone: Collection[str] = (),
    one_a_bucket: bool = True,
) -> list[IndexManifestEntry]:
    """The index files after a commit.

    ``added`` come in; ``deleted`` names files that go. ``emptied``: buckets all of whose files are replaced, whose
    indexes go with them. ``gone``: data files that are no longer live, whose deletion vectors go with them.
    ``one_a_bucket``: a hash index, or a file of deletion vectors, takes the place of the one its bucket has; tables
    without buckets have many files of deletion vectors, replaced by name. Kinds not known here are carried along.
    """
    replaced = {(e.partition, e.bucket, e.index_type) for e in added if one_a_bucket or e.index_type == HASH}
    kept = (
        _without(entry, gone)
        for entry in base
        if entry.file_name not in deleted
        and (entry.partition, entry.bucket) not in emptied
        and (entry.partition, entry.bucket, entry.index_type) not in replaced
    )
    return [*(entry for entry in kept if entry is not None), *added]


def _without(entry: IndexManifestEntry, gone: Collection[str]) -> IndexManifestEntry | None:
    """The entry without vectors of these data files; None where that leaves nothing to say."""
    if entry.index_type != DELETION_VECTORS or not gone or entry.deletion_ranges is None:
        return entry
    left = tuple(r for r in entry.deletion_ranges if r.data_file not in gone)
    if len(left) == len(entry.deletion_ranges):
        return entry
    return replace(entry, deletion_ranges=left, row_count=len(left)) if left else None


def index_conflict(
    base: Iterable[IndexManifestEntry], added: Sequence[IndexManifestEntry], deleted: Collection[str]
) -> Conflict | None:
    """Every index file to be replaced by name must be there, and no data file may get deletion vectors twice."""
    there = {e.file_name: e for e in base}
    missing = sorted(set(deleted) - set(there))
    if missing:
        return Conflict(f"the index file {missing[0]}, which is to be replaced, is no longer part of the table")
    vectors: set[tuple[bytes, int, str]] = set()
    left = (e for name, e in there.items() if name not in deleted)
    for entry in (*left, *added):
        for found in entry.deletion_ranges or ():
            at = (entry.partition, entry.bucket, found.data_file)
            if at in vectors:
                return Conflict(f"rows of the file {found.data_file} were deleted by another commit meanwhile")
            vectors.add(at)
    return None
