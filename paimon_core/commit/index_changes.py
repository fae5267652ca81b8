"""Index files of a snapshot: the files of its base, with the additions and removals of a commit (format 8.1).

An index manifest lists every live index file, so a commit that changes no index file reuses the manifest of its base.

A commit that replaces deletion vectors lists the exact ranges it replaces. Only these ranges are removed. If one of
them is no longer in the base snapshot, another commit deleted rows of the same data file, and this commit conflicts.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from paimon_core.commit.changes import Changes
from paimon_core.commit.conflict import Conflict
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, DeletionRange, IndexManifestEntry

_VectorRef = tuple[str, DeletionRange]  # the name of an index file, and a vector in it


def apply_indexes(
    base: Sequence[IndexManifestEntry],
    *,
    added: Sequence[IndexManifestEntry] = (),
    deleted: Sequence[IndexManifestEntry] = (),
    cleared_buckets: Collection[BucketRef] = (),
    removed_files: Collection[str] = (),
    single_index: bool = True,
) -> list[IndexManifestEntry]:
    """Return the index files after a commit.

    Index types that this engine does not know are kept. An entry that keeps only some of its ranges keeps its name: its
    file holds more vectors than the entry lists.

    Args:
        base: the index files of the base snapshot.
        added: index files that the commit adds.
        deleted: index files that the commit removes. For deletion vector files, only the listed ranges are removed.
        cleared_buckets: buckets (partition, bucket number) whose files are all replaced, including indexes.
        removed_files: names of data files that are removed, including their deletion vectors.
        single_index: True if an added deletion vector file replaces the previous file of its bucket. False for tables
            without buckets, which have many of these files. An added hash index always replaces the previous one.
    """
    replaced = {(e.bucket_ref, e.index_type) for e in added if single_index or e.index_type == HASH}
    whole = {e.file_name for e in deleted if e.index_type != DELETION_VECTORS}
    replaced_vectors = _vectors_of(deleted)
    remaining = (
        _without(entry, removed_files, replaced_vectors)
        for entry in base
        if entry.file_name not in whole
        and entry.bucket_ref not in cleared_buckets
        and (entry.bucket_ref, entry.index_type) not in replaced
    )
    return [*(entry for entry in remaining if entry is not None), *added]


def _vectors_of(entries: Sequence[IndexManifestEntry]) -> set[_VectorRef]:
    return {(e.file_name, r) for e in entries if e.index_type == DELETION_VECTORS for r in e.deletion_ranges or ()}


def _without(
    entry: IndexManifestEntry, removed_files: Collection[str], replaced: Collection[_VectorRef]
) -> IndexManifestEntry | None:
    """Return the entry without the vectors of removed data files and ``replaced`` vectors. ``None``: it is empty."""
    if entry.index_type != DELETION_VECTORS or entry.deletion_ranges is None:
        return entry
    remaining = tuple(
        r for r in entry.deletion_ranges if r.data_file not in removed_files and (entry.file_name, r) not in replaced
    )
    if len(remaining) == len(entry.deletion_ranges):
        return entry
    return replace(entry, deletion_ranges=remaining, row_count=len(remaining)) if remaining else None


def deleted_counts(entries: Sequence[IndexManifestEntry]) -> dict[str, object]:
    """Return, by data file, a value that changes when rows of the file are deleted: the number of deleted rows.

    For a vector that does not store its number of rows, this is its location.
    """
    vectors = ((entry.file_name, vector) for entry in entries for vector in entry.deletion_ranges or ())
    return {v.data_file: (name, v) if v.cardinality is None else v.cardinality for name, v in vectors}


def grown_vectors(changes: Changes) -> list[str]:
    """Return the data files with new deletion vectors, except vectors that are only copied to new index files."""
    old = deleted_counts([e for e in changes.deleted_indexes if e.index_type == DELETION_VECTORS])
    new = deleted_counts([e for e in changes.new_indexes if e.index_type == DELETION_VECTORS])
    return [name for name, count in new.items() if old.get(name) != count]


def vector_conflict(
    changes: Changes, base: Sequence[IndexManifestEntry], live: Collection[str], *, single_index: bool
) -> Conflict | None:
    """Return a conflict if a delete would be lost, or if deleted rows would come back.

    A replaced vector must still be in ``base``. A removed file must have no vector that the commit does not
    replace. A file whose vector is new, or grows, must be live. (Java 1.4.2 may leave vectors of files that it
    compacted: these are ignored.)

    Args:
        changes: the changes of the commit.
        base: the index files of the base snapshot.
        live: names of live data files, at least of all files in the buckets of ``changes``.
        single_index: as in `apply_indexes`.
    """
    existing, replaced_vectors = _vectors_of(base), _vectors_of(changes.deleted_indexes)
    for _, vector in replaced_vectors - existing:
        return Conflict(f"another commit changed the deleted rows of the file {vector.data_file}")
    added = [e for e in changes.new_indexes if e.index_type == DELETION_VECTORS]
    marked = [vector.data_file for e in added for vector in e.deletion_ranges or ()]
    buckets = {e.bucket_ref for e in added} if single_index else set()
    touched = {*changes.removed_files, *marked}
    for entry in base:
        for vector in entry.deletion_ranges or ():
            ours = vector.data_file in touched or entry.bucket_ref in buckets
            if ours and (entry.file_name, vector) not in replaced_vectors:
                return Conflict(f"rows of the file {vector.data_file} were deleted by another commit")
    live_after = (set(live) | changes.added) - changes.removed_files
    not_live = next((name for name in grown_vectors(changes) if name not in live_after), None)
    if not_live is not None:
        return Conflict(f"it deletes rows of the file {not_live}, which is no longer part of the table")
    if len(set(marked)) < len(marked):
        return Conflict("it gives a data file two deletion vectors")
    return None
