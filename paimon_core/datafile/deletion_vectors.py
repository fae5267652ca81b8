"""The deletion vectors of a table: index files of a snapshot, and new index files that the options define."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from paimon_core.deletion.vector import DeletionVector
from paimon_core.deletion.vector_files import StoredVector, VectorWriter, load_vectors
from paimon_core.manifest.bucket import BucketRef, group_by_bucket
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import DELETION_VECTORS, IndexManifestEntry
from paimon_core.options.merge import (
    DELETION_VECTOR_INDEX_FILE_TARGET_SIZE,
    DELETION_VECTORS_BITMAP64,
)
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


def vector_entries(store: FileStore, snapshot: Snapshot | None) -> list[IndexManifestEntry]:
    """Return the index files with deletion vectors of a snapshot; empty if ``deletion-vectors.enabled`` is off."""
    if not store.traits.deletion_vectors or snapshot is None or snapshot.index_manifest is None:
        return []
    entries = store.manifests.read_index(snapshot.index_manifest)
    return [entry for entry in entries if entry.index_type == DELETION_VECTORS]


def vectors_by_bucket(store: FileStore, snapshot: Snapshot | None) -> dict[BucketRef, tuple[IndexManifestEntry, ...]]:
    """Return the index files of `vector_entries` by bucket."""
    return {bucket: tuple(group) for bucket, group in group_by_bucket(vector_entries(store, snapshot)).items()}


def stored_vectors(store: FileStore, entries: Iterable[IndexManifestEntry]) -> dict[str, StoredVector]:
    """Return the location of each vector of these index files, by data file."""
    return {
        location.data_file: StoredVector(store.index_path(entry), location)
        for entry in entries
        for location in entry.deletion_ranges or ()
    }


def read_entries(store: FileStore, entries: Iterable[IndexManifestEntry]) -> dict[str, DeletionVector]:
    """Read all vectors of these index files, by data file. Raises CorruptedError naming a corrupt index file."""
    return load_vectors(store.io, stored_vectors(store, entries).values())


def restrict_to_files(
    entries: Iterable[IndexManifestEntry], data_files: Collection[str]
) -> tuple[IndexManifestEntry, ...]:
    """Return the index files with vectors of these data files, without the ranges of other data files."""
    narrowed = []
    for entry in entries:
        ranges = tuple(r for r in entry.deletion_ranges or () if r.data_file in data_files)
        if ranges:
            narrowed.append(replace(entry, deletion_ranges=ranges, row_count=len(ranges)))
    return tuple(narrowed)


def deleted_rows(entries: Iterable[IndexManifestEntry], files: Sequence[DataFileMeta]) -> dict[str, int]:
    """Return the number of deleted rows by file name; files without any are absent.

    If an old entry lacks the number, all rows of the file count as deleted.
    """
    rows = {f.file_name: f.row_count for f in files}
    ranges = (r for entry in entries for r in entry.deletion_ranges or () if r.data_file in rows)
    return {r.data_file: rows[r.data_file] if r.cardinality is None else r.cardinality for r in ranges}


def rows_left(files: Iterable[DataFileMeta], entries: Iterable[IndexManifestEntry]) -> int | None:
    """Return the number of rows that these index files do not delete; `None`: unknown.

    REQUIRES: ``entries`` hold vectors of ``files`` only.
    """
    deleted = [r.cardinality for entry in entries for r in entry.deletion_ranges or ()]
    if None in deleted:
        return None
    return sum(f.row_count for f in files) - sum(d for d in deleted if d is not None)


def single_index_per_bucket(store: FileStore) -> bool:
    """Return True if a bucket has one vector file, which each new file replaces; otherwise it may have several."""
    return bool(store.schema.primary_keys) or store.schema.bucket > 0


def write_vectors(
    store: FileStore, bucket: BucketRef, vectors: Mapping[str, DeletionVector]
) -> tuple[IndexManifestEntry, ...]:
    """Write new index files, not yet in a snapshot, with these vectors by data file; see :class:`VectorWriter`."""
    target = None if single_index_per_bucket(store) else store.options.value(DELETION_VECTOR_INDEX_FILE_TARGET_SIZE)
    writer = VectorWriter(store.io, store.new_name, store.options.value(DELETION_VECTORS_BITMAP64), target)
    return writer.write(store.index_directory(bucket), bucket, vectors)
