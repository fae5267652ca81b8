"""Compaction of one append bucket in bounded memory, by a maintenance job or by the bucket's writer."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from paimon_core.datafile.deletion_vectors import deleted_rows, read_entries, restrict_to_files, vector_entries
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.datafile.spec import TARGET_SIZE_APPEND, DataFileSpec, target_rows
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CorruptedError, TableChangedError
from paimon_core.lsm.append_compaction import AppendCompactionPolicy, Group
from paimon_core.manifest.bucket import BucketLocation, BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.store.file_store import FileStore
from paimon_core.types.combine import gathered
from paimon_core.types.datatype import DataField

_WRITTEN_BYTES = 4 << 20  # of Arrow memory: the fixed cost of each write is higher than the cost of a small file
_NO_VECTORS: Mapping[str, DeletionVector] = MappingProxyType({})


def append_compaction_policy(store: FileStore) -> AppendCompactionPolicy:
    """Return the policy that picks the files to compact, from the table's options."""
    return AppendCompactionPolicy.of(store.options, TARGET_SIZE_APPEND, target_rows(store))


def newer_file(store: FileStore, files: Sequence[DataFileMeta]) -> DataFileMeta | None:
    """Return a file written under a newer schema than ``store`` has. `None`: no file is newer.

    A rewrite would lose the columns that the newer schema added.
    """
    return next((f for f in files if f.schema_id > store.schema.id), None)


def check_no_newer(store: FileStore, files: Sequence[DataFileMeta]) -> None:
    """Raise TableChangedError if `newer_file` finds a file."""
    file = newer_file(store, files)
    if file is not None:
        raise TableChangedError(
            f"file {file.file_name} of {store.root} was written under schema {file.schema_id}: compacting it "
            f"under schema {store.schema.id} would lose later schema changes; open the table again"
        )


def stored_fields(store: FileStore) -> tuple[DataField, ...]:
    """Return the fields to read for a rewrite of rows: the table's columns and the tracking fields."""
    return (*store.schema.fields, *tracking_fields(store.schema))


def concatenate(
    store: FileStore, bucket: BucketRef, files: Group, deleted: Mapping[str, DeletionVector] = _NO_VECTORS
) -> tuple[DataFileMeta, ...]:
    """Concatenate files into new files of about the target size.

    New files have the table's current schema and format, and begin with the first file's sequence number.

    Args:
        store: the table to write.
        bucket: the bucket of the files.
        files: the files to concatenate, in row order.
        deleted: deletion vectors of the rows to leave out, by file name.

    Returns the new files: an empty tuple if all rows are deleted. On an error the new files are deleted.
    """
    fields = stored_fields(store)
    rows = (
        pa.Table.from_batches([batch])
        for file in files
        for batch in read_file(store, bucket, file, fields, ReadOptions(deletions=deleted.get(file.file_name)))
    )
    check_no_newer(store, files)
    expected = sum(f.row_count - (deleted[f.file_name].cardinality if f.file_name in deleted else 0) for f in files)
    spec = DataFileSpec.of(store, 0, FileSource.COMPACT)
    return write_rows(store, bucket, spec, rows, expected, files[0].min_sequence_number)


def write_rows(
    store: FileStore,
    bucket: BucketRef,
    spec: DataFileSpec,
    rows: Iterable[pa.Table],
    expected: int | None,
    first_sequence: int = 0,
) -> tuple[DataFileMeta, ...]:
    """Write rows that replace the rows of other files. On an error the new files are deleted.

    Args:
        store: the table to write.
        bucket: the bucket of the files.
        spec: the spec of the new files.
        rows: the rows to write, in order.
        expected: the number of rows to expect. `None`: unknown.
        first_sequence: the sequence number of the first row.

    Raises CorruptedError if the number of rows is not ``expected``: a rewrite must not lose rows.
    """
    writer = DataFileWriter(store, bucket, spec, first_sequence)
    try:
        for part in gathered(rows, _WRITTEN_BYTES):
            writer.write(part)
        written = writer.close()
        row_count = sum(f.row_count for f in written)
        if expected is not None and row_count != expected:
            raise CorruptedError(
                f"rewriting files of {store.bucket_path(bucket)} produced {row_count} rows, but the files hold "
                f"{expected}; the table was not changed"
            )
    except BaseException:
        writer.abort()
        raise
    return tuple(written)


@dataclass(frozen=True, slots=True)
class Concatenated:
    """The result of a compaction: files removed and added, deletion vector files applied, and seconds."""

    before: Group = ()
    after: Group = ()
    vectors: tuple[IndexManifestEntry, ...] = ()
    seconds: float = 0.0

    def message(self, bucket: BucketLocation) -> CommitMessage:
        """Return the commit message of the compaction. ``bucket``: the compacted bucket."""
        return CommitMessage(
            *bucket,
            compact_before=self.before,
            compact_after=self.after,
            compact_deleted_indexes=self.vectors,
            compact_seconds=self.seconds,
        )


class InlineAppend:
    """The compaction of a bucket with ordered rows by its own writer, between two commits."""

    def __init__(self, store: FileStore, bucket: BucketLocation, files: Sequence[DataFileMeta]) -> None:
        self._store, self._bucket = store, bucket.ref
        self._policy = append_compaction_policy(store)
        self._files = list(files)
        self._created: list[DataFileMeta] = []

    def refresh(self, files: Sequence[DataFileMeta]) -> None:
        """Replace the bucket's files with ``files``."""
        self._files = list(files)

    def run(self, written: Sequence[DataFileMeta], *, full: bool) -> Concatenated:
        """Add the written files, then compact the files that are due and drop their deleted rows.

        ``full``: True for a full compaction. Files of a newer schema are skipped.
        """
        started = time.monotonic()
        self._files += written
        before: list[DataFileMeta] = []
        used: list[IndexManifestEntry] = []
        entries = [e for e in self._vectors() if e.bucket_ref == self._bucket]
        for group in self._policy.ordered(self._files, full=full, deleted=deleted_rows(entries, self._files)):
            if newer_file(self._store, group) is None:
                vectors = restrict_to_files(entries, {f.file_name for f in group})
                self._created += concatenate(self._store, self._bucket, group, read_entries(self._store, vectors))
                before += group
                used += vectors
        removed, after = {f.file_name for f in before}, tuple(self._created)
        self._files = [*(f for f in self._files if f.file_name not in removed), *after]
        return Concatenated(tuple(before), after, tuple(used), time.monotonic() - started)

    def _vectors(self) -> list[IndexManifestEntry]:
        """Return the newest snapshot's deletion vector files; read no snapshot if the table cannot have any."""
        store = self._store
        return vector_entries(store, store.snapshots.latest()) if store.traits.deletion_vectors else []

    def release(self) -> None:
        """Release the new files to the caller: `abort` no longer deletes them."""
        self._created = []

    def abort(self) -> None:
        """Delete the new files that were not released."""
        for file in self._created:
            self._store.delete_file(self._bucket, file)
        self._created = []
