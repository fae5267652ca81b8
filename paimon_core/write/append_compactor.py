"""Files of one append bucket rewritten as larger ones, in bounded memory; by upkeep, or by the writer of the bucket."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from paimon_core.datafile.deletion_vectors import deleted_rows, read_entries, restrict_to_files, vector_entries
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.datafile.spec import TARGET_SIZE_APPEND, DataFileSpec
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CommitConflictError, CorruptedError
from paimon_core.lsm.append_compaction import AppendCompactionPolicy, Group
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.options.merge import DELETION_VECTORS_ENABLED
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField

__all__ = [
    "InlineAppend",
    "Joined",
    "append_compaction_policy",
    "check_no_newer",
    "concatenate",
    "stored_fields",
    "write_compacted",
]

_NONE: Mapping[str, DeletionVector] = MappingProxyType({})


def append_compaction_policy(store: FileStore) -> AppendCompactionPolicy:
    """How the table's options have files picked."""
    return AppendCompactionPolicy.of(store.options, TARGET_SIZE_APPEND)


def check_no_newer(store: FileStore, files: Sequence[DataFileMeta]) -> None:
    """CommitConflictError where a file was written under a newer schema: rewritten here, its columns would be lost."""
    newer = next((f for f in files if f.schema_id > store.schema.id), None)
    if newer is not None:
        raise CommitConflictError(
            f"file {newer.file_name} of {store.root} was written under schema {newer.schema_id}: compacted under "
            f"schema {store.schema.id} it would lose what changed since; open the table again"
        )


def stored_fields(store: FileStore) -> tuple[DataField, ...]:
    """What has to be read of rows that are to be written anew: their columns, and what tells them apart for good."""
    return (*store.schema.fields, *tracking_fields(store.schema))


def concatenate(
    store: FileStore, partition: bytes, bucket: int, files: Group, deleted: Mapping[str, DeletionVector] = _NONE
) -> tuple[DataFileMeta, ...]:
    """The rows of the files, one after another, in new files of about the target size; no file where none is left.

    ``deleted``: rows to be left out for good, by file. Written in the table's schema and format of now; numbered on
    from the first file, whose place they take. On an error nothing is left behind.
    """
    fields = stored_fields(store)
    rows = (
        pa.Table.from_batches([batch])
        for file in files
        for batch in read_file(
            store, partition, bucket, file, fields, ReadOptions(deletions=deleted.get(file.file_name))
        )
    )
    check_no_newer(store, files)
    expected = sum(f.row_count - (deleted[f.file_name].cardinality if f.file_name in deleted else 0) for f in files)
    return write_compacted(store, partition, bucket, rows, expected, first_sequence=files[0].min_sequence_number)


def write_compacted(
    store: FileStore,
    partition: bytes,
    bucket: int,
    rows: Iterable[pa.Table],
    expected: int | None,
    *,
    first_sequence: int = 0,
    ordered: bool = False,
) -> tuple[DataFileMeta, ...]:
    """Write rows in the order they come as the result of a compaction. On an error nothing is left behind.

    ``ordered``: that order is one by columns that filters ask for.

    Raises CorruptedError where there are not ``expected`` rows, if that is known: no compaction may lose one.
    """
    shape = replace(DataFileSpec.of(store, 0, FileSource.COMPACT), ordered=ordered)
    writer = DataFileWriter(store, partition, bucket, shape, first_sequence)
    try:
        for piece in rows:
            writer.write(piece)
        written = writer.close()
        found = sum(f.row_count for f in written)
        if expected is not None and found != expected:
            raise CorruptedError(
                f"compaction of {store.bucket_path(partition, bucket)} came to {found} rows from files of {expected}; "
                "the table was not changed"
            )
    except BaseException:
        writer.abort()
        raise
    return tuple(written)


@dataclass(frozen=True, slots=True)
class Joined:
    """Files replaced, those in their place, and the index files of the deletion vectors that went into these."""

    before: Group = ()
    after: Group = ()
    vectors: tuple[IndexManifestEntry, ...] = ()


class InlineAppend:
    """The files of one bucket with ordered rows between two commits of the writer that compacts them."""

    def __init__(self, store: FileStore, place: tuple[bytes, int, int], files: Sequence[DataFileMeta]) -> None:
        self._store, self._place = store, place
        self._picks = append_compaction_policy(store)
        self._files = list(files)
        self._made: list[DataFileMeta] = []

    def refresh(self, files: Sequence[DataFileMeta]) -> None:
        """Go on from these files."""
        self._files = list(files)

    def run(self, written: Sequence[DataFileMeta], *, full: bool) -> Joined:
        """Add what was written and compact what is due, without the rows that are deleted by now.

        Files of a newer schema are left to writers that know it.
        """
        self._files += written
        before: list[DataFileMeta] = []
        used: list[IndexManifestEntry] = []
        partition, bucket, _ = self._place
        entries = [e for e in self._vectors() if (e.partition, e.bucket) == (partition, bucket)]
        for group in self._picks.ordered(self._files, full=full, deleted=deleted_rows(entries, self._files)):
            if all(f.schema_id <= self._store.schema.id for f in group):
                vectors = restrict_to_files(entries, {f.file_name for f in group})
                self._made += concatenate(self._store, partition, bucket, group, read_entries(self._store, vectors))
                before += group
                used += vectors
        gone, after = {f.file_name for f in before}, tuple(self._made)
        self._files = [*(f for f in self._files if f.file_name not in gone), *after]
        return Joined(tuple(before), after, tuple(used))

    def _vectors(self) -> list[IndexManifestEntry]:
        """Only where rows can be deleted the newest snapshot is looked at."""
        marks = self._store.options.value(DELETION_VECTORS_ENABLED)
        return vector_entries(self._store, self._store.snapshots.latest()) if marks else []

    def release(self) -> None:
        """What was made is the caller's now."""
        self._made = []

    def abort(self) -> None:
        """Delete what was made and not handed out."""
        partition, bucket, _ = self._place
        for file in self._made:
            self._store.delete_file(partition, bucket, file)
        self._made = []
