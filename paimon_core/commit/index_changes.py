"""Index files of a snapshot: those of its base, with what a commit adds, replaces and drops (format 8.1).

An index manifest lists every live index file, so a commit that changes none carries the manifest itself along.

A file of deletion vectors that a commit replaces is named in the form the commit knows it: with the ranges that the new
files, or the rewriting of the data files, take the place of. Only these go, and that they are still there is what tells
that nobody else has deleted rows of these data files meanwhile.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from paimon_core.commit.changes import Changes
from paimon_core.commit.conflict import Conflict
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, DeletionRange, IndexManifestEntry

__all__ = ["apply_indexes", "vector_conflict"]

_Mark = tuple[str, DeletionRange]  # the name of an index file, and a vector in it


def apply_indexes(
    base: Sequence[IndexManifestEntry],
    *,
    added: Sequence[IndexManifestEntry] = (),
    deleted: Sequence[IndexManifestEntry] = (),
    cleared_buckets: Collection[tuple[bytes, int]] = (),
    gone: Collection[str] = (),
    one_a_bucket: bool = True,
) -> list[IndexManifestEntry]:
    """The index files after a commit.

    ``added`` come in; ``deleted`` go: of files of deletion vectors, the ranges named. ``cleared_buckets``: buckets all
    of whose files are replaced, whose indexes go with them. ``gone``: data files that are no longer live, whose
    deletion vectors go with them. ``one_a_bucket``: a hash index, or a file of deletion vectors, takes the place of the
    one its bucket has; tables without buckets have many files of deletion vectors. Kinds not known here are carried
    along. An entry that keeps only some of its ranges keeps its name: its file holds more than it says.
    """
    replaced = {(e.partition, e.bucket, e.index_type) for e in added if one_a_bucket or e.index_type == HASH}
    whole = {e.file_name for e in deleted if e.index_type != DELETION_VECTORS}
    marks = _marks(deleted)
    kept = (
        _without(entry, gone, marks)
        for entry in base
        if entry.file_name not in whole
        and (entry.partition, entry.bucket) not in cleared_buckets
        and (entry.partition, entry.bucket, entry.index_type) not in replaced
    )
    return [*(entry for entry in kept if entry is not None), *added]


def _marks(entries: Sequence[IndexManifestEntry]) -> set[_Mark]:
    return {(e.file_name, r) for e in entries if e.index_type == DELETION_VECTORS for r in e.deletion_ranges or ()}


def _without(entry: IndexManifestEntry, gone: Collection[str], marks: Collection[_Mark]) -> IndexManifestEntry | None:
    """The entry without vectors of these data files, and without these; None where that leaves nothing to say."""
    if entry.index_type != DELETION_VECTORS or entry.deletion_ranges is None:
        return entry
    left = tuple(r for r in entry.deletion_ranges if r.data_file not in gone and (entry.file_name, r) not in marks)
    if len(left) == len(entry.deletion_ranges):
        return entry
    return replace(entry, deletion_ranges=left, row_count=len(left)) if left else None


def vector_conflict(
    changes: Changes, base: Sequence[IndexManifestEntry], live: Collection[str], *, one_a_bucket: bool
) -> Conflict | None:
    """Whether rows would be deleted in vain, or come back, where ``base`` lists the deletion vectors there are.

    ``live``: the data files, at least those of the buckets that ``changes`` touch. A vector to be replaced must be the
    one that is there; a file that goes must have no other vector than the commit knows of, and one whose vector is
    new, or grows, must be live. (Java 1.4.2 may leave vectors behind when it compacts files away: these stay what they
    are.)
    """
    there, known = _marks(base), _marks(changes.deleted_indexes)
    for _, found in known - there:
        return Conflict(f"which rows of the file {found.data_file} are deleted has changed meanwhile")
    added = [e for e in changes.new_indexes if e.index_type == DELETION_VECTORS]
    marked = [found.data_file for e in added for found in e.deletion_ranges or ()]
    buckets = {(e.partition, e.bucket) for e in added} if one_a_bucket else set()
    touched = {*changes.gone, *marked}
    for entry in base:
        for found in entry.deletion_ranges or ():
            ours = found.data_file in touched or (entry.partition, entry.bucket) in buckets
            if ours and (entry.file_name, found) not in known:
                return Conflict(f"rows of the file {found.data_file} were deleted by another commit meanwhile")
    left = (set(live) | changes.added) - changes.gone
    carried = {(r.data_file, r.cardinality) for _, r in known if r.cardinality is not None}
    grown = [r.data_file for e in added for r in e.deletion_ranges or () if (r.data_file, r.cardinality) not in carried]
    dead = next((name for name in grown if name not in left), None)
    if dead is not None:
        return Conflict(f"rows of the file {dead} are to be deleted, which is no longer part of the table")
    if len(set(marked)) < len(marked):
        return Conflict("it gives a data file two deletion vectors")
    return None
