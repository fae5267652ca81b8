"""The writer of data files: rolling files of rows, each with its metadata."""

from contextlib import suppress
from datetime import datetime, timezone

import pyarrow as pa

from paimon_core.datafile.blob_references import SUFFIX as BLOB_REFERENCES
from paimon_core.datafile.blob_references import BlobReferences
from paimon_core.datafile.indexes import INDEX_SUFFIX
from paimon_core.datafile.row_summary import RowSummary
from paimon_core.datafile.spec import DataFileSpec
from paimon_core.fileindex.indexed_columns import FileIndexes
from paimon_core.fileio.fileio import join
from paimon_core.format import TEXT_FORMATS, format_named
from paimon_core.format.blob_records import BLOB, values_to_reach
from paimon_core.format.file_format import OpenWriter
from paimon_core.format.text_lines import compression_suffix
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.counters import check_sequence_numbers
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.file import (
    FILE_INDEX_IN_MANIFEST_THRESHOLD,
    FILE_SUFFIX_INCLUDE_COMPRESSION,
)
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema

_MIN_PART_ROWS, _MAX_PART_ROWS = 1_000, 1 << 17
_LARGEST_EXPANSION = 4  # one byte of an int8 column becomes four
_COMPRESSION_SUFFIX = {"zstd": "zst", "gzip": "gz", "snappy": "snappy", "lz4": "lz4"}


class DataFileWriter:
    """A writer of the rows of one (partition, bucket) to files of about the target size.

    Files store rows in the order of the writes. A table with a primary key needs them sorted by key, one row per key,
    with columns ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``. An append table needs the columns of `TRACKING_FIELDS` if
    ``spec.stores_tracking``. BLOB columns are written to blob files, which have a separate target size. A blob file
    also ends when its data file ends, so it belongs to one data file.

    Args:
        store: the table.
        bucket: partition and bucket of the files.
        spec: columns, format and size of the files.
        first_sequence: the sequence number of the first row of an append table.
    """

    def __init__(self, store: FileStore, bucket: BucketRef, spec: DataFileSpec, first_sequence: int = 0) -> None:
        self._store, self._bucket, self._spec = store, bucket, spec
        self._next_sequence = first_sequence  # the next row of an append table
        self._open: _OpenFile | None = None
        self._open_writer: OpenWriter | None = None  # once there is a file
        self._done: list[DataFileMeta] = []
        self._paths: list[str] = []
        self._blobs = [DataFileWriter(store, bucket, blob_spec) for blob_spec in spec.blobs]

    @property
    def format(self) -> str:
        """The format of the files, which is also their file extension."""
        return self._spec.format

    def write(self, rows: pa.Table) -> None:
        """Append rows; start a new file whenever the current one reaches the target size or number of rows."""
        data_rows = rows.drop_columns([f.name for b in self._spec.blobs for f in b.fields]) if self._blobs else rows
        at, step = 0, self._part_rows(data_rows)
        while at < rows.num_rows:
            if self._open is None:
                self._open = self._start()
            part = self._open.fitting(data_rows.slice(at, min(step, self._spec.target_rows - self._open.rows)))
            self._open.write(part)
            for writer in self._blobs:
                writer.write(rows.slice(at, part.num_rows))
            at += part.num_rows
            if self._open.rows >= self._spec.target_rows or self._open.reaches(self._spec.target_size):
                self._finish()

    @property
    def held_bytes(self) -> int:
        """Arrow bytes of the rows that the open files hold in memory."""
        return (self._open.held_bytes if self._open is not None else 0) + sum(w.held_bytes for w in self._blobs)

    @property
    def footer_bytes(self) -> int:
        """Bytes of memory that metadata for the footer of the open file takes."""
        return self._open.footer_bytes if self._open is not None else 0

    def release_memory(self) -> None:
        """Write all rows held in memory. If the format must hold rows while a file is open, end the file."""
        if self._open is not None:
            self._open.flush()
            if self._open.held_bytes:
                self._finish()

    def finish(self) -> None:
        """End the open files; the next rows start new files."""
        if self._open is not None:
            self._finish()

    def close(self) -> list[DataFileMeta]:
        """Finish the open files and return the metadata of every file written since the last call.

        The blob files of a data file follow it, column by column.
        """
        self.finish()
        done, self._done = self._done, []
        return done

    def number_behind(self, sequence_number: int) -> None:
        """Assign the next rows of an append table numbers above this sequence number and above all used numbers."""
        self._next_sequence = max(self._next_sequence, sequence_number + 1)

    def release(self) -> None:
        """Release the files finished so far to the caller: an abort no longer deletes them."""
        self._paths = []
        for writer in self._blobs:
            writer.release()

    def abort(self) -> None:
        """Delete every file created since the last `release`."""
        if self._open is not None:
            with suppress(Exception):  # the file is deleted, so an error on close does not matter
                self._open.discard()
            self._open = None
        self._open_writer = None  # a deleted file says nothing about the next one
        for path in self._paths:
            self._store.io.delete(path)
        self._paths, self._done = [], []
        for writer in self._blobs:
            writer.abort()

    def _part_rows(self, rows: pa.Table) -> int:
        row_bytes = max(1, rows.nbytes // max(1, rows.num_rows))
        return int(min(_MAX_PART_ROWS, max(_MIN_PART_ROWS, self._spec.target_size // 4 // row_bytes)))

    def _start(self) -> "_OpenFile":
        spec = self._spec
        name = f"{spec.prefix}{self._store.new_name()}-0{extension_of(self._store, spec)}"
        path = join(self._store.bucket_path(self._bucket), name)
        self._paths += [path, path + INDEX_SUFFIX] if spec.indexes else [path]
        self._paths += [path + BLOB_REFERENCES] if spec.managed_blobs else []
        if self._open_writer is None:
            self._open_writer = format_named(spec.format, spec.fields, self._store.options).begin_series(
                spec.fields, self._store.options, spec.compression, ordered=spec.ordered
            )
        return _OpenFile(self._store, path, name, spec, self._open_writer)

    def _finish(self) -> None:
        assert self._open is not None
        if not self._spec.key_fields and not self._spec.row_tracking:
            last = self._next_sequence + self._open.rows - 1
            check_sequence_numbers(self._next_sequence, last, self._store.bucket_path(self._bucket))
        meta = self._open.finish(self._next_sequence)
        self._open = None
        self._next_sequence += meta.row_count
        self._done.append(meta)
        for writer in self._blobs:
            self._done += writer.close()


def extension_of(store: FileStore, spec: DataFileSpec) -> str:
    """Return the extension of the names of new files, with its dot."""
    if spec.format in TEXT_FORMATS:
        suffix = compression_suffix(spec.compression)
        return f".{spec.format}" + (f".{suffix}" if suffix else "")
    if store.options.value(FILE_SUFFIX_INCLUDE_COMPRESSION) and spec.format != BLOB:
        return f".{_COMPRESSION_SUFFIX.get(spec.compression, spec.compression)}.{spec.format}"
    return f".{spec.format}"


class _OpenFile:
    """A file that is being written, and the values of its metadata so far."""

    def __init__(self, store: FileStore, path: str, name: str, spec: DataFileSpec, open_writer: OpenWriter) -> None:
        self._store, self._path, self._name, self._spec = store, path, name, spec
        self._sink = store.io.create(path)
        self._writer = open_writer(self._sink)
        self._arrow = arrow_schema(spec.fields)
        self._summary = RowSummary(spec)
        self._indexes = FileIndexes(spec.indexes) if spec.indexes else None
        self._blobs = BlobReferences(spec.managed_blobs) if spec.managed_blobs else None
        self._bytes = 0

    @property
    def rows(self) -> int:
        return self._summary.rows

    def write(self, rows: pa.Table) -> None:
        stored = pa.Table.from_arrays([rows.column(n) for n in self._spec.sources], schema=self._arrow)
        self._writer.write(stored)
        self._summary.add(rows)
        if self._indexes is not None:
            self._indexes.add(rows)
        if self._blobs is not None:
            self._blobs.add(rows)
        self._bytes += stored.nbytes

    def fitting(self, rows: pa.Table) -> pa.Table:
        """Return the leading rows to write before the next size check; in a blob file, up to the blob that fills it."""
        if self._spec.format != BLOB:
            return rows
        available = self._spec.target_size - self._writer.tell()
        return rows.slice(0, values_to_reach(rows.column(self._spec.fields[0].name), available))

    def reaches(self, size: int) -> bool:
        """Return True if the file has about this size, or its footer has its share of memory.

        The writer computes its size only if the Arrow bytes make this size possible: no encoding takes more than four
        times the Arrow bytes.
        """
        if self._spec.footer_bytes is not None and self._writer.footer_bytes >= self._spec.footer_bytes:
            return True
        return self._bytes * _LARGEST_EXPANSION >= size and int(self._writer.tell()) >= size

    @property
    def held_bytes(self) -> int:
        return self._writer.held_bytes

    @property
    def footer_bytes(self) -> int:
        return self._writer.footer_bytes

    def flush(self) -> None:
        self._writer.flush()

    def discard(self) -> None:
        try:
            self._writer.close()
        finally:
            self._sink.close()

    def finish(self, first_sequence: int) -> DataFileMeta:
        """Close the file and return its metadata. ``first_sequence``: number of an append table's first row."""
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        spec, summary = self._spec, self._summary
        value_stats, stats_columns = summary.value_stats
        embedded, index_files = self._finish_indexes()
        sequences = (summary.min_sequence, summary.max_sequence)
        if not spec.key_fields and not spec.row_tracking:  # tracked rows have their snapshot's, or store it
            sequences = (first_sequence, first_sequence + self.rows - 1)
        return DataFileMeta(
            file_name=self._name,
            file_size=size,
            row_count=self.rows,
            min_key=summary.min_key,
            max_key=summary.max_key,
            key_stats=summary.key_stats,
            value_stats=value_stats,
            min_sequence_number=sequences[0],
            max_sequence_number=sequences[1],
            schema_id=self._store.schema.id,
            level=spec.level,
            extra_files=(*index_files, *self._finish_blobs()),
            creation_time=local_millis(self._store.now()),
            delete_row_count=summary.retracts,
            embedded_index=embedded,
            file_source=spec.source,
            value_stats_cols=stats_columns,
            write_cols=tuple(f.name for f in spec.fields) if spec.stores_tracking or spec.writes_column_names else None,
        )

    def _finish_indexes(self) -> tuple[bytes | None, tuple[str, ...]]:
        """Return the indexes if they are small, else write them and return the name of the index file."""
        if self._indexes is None:
            return None, ()
        data = self._indexes.finish()
        if len(data) <= self._store.options.value(FILE_INDEX_IN_MANIFEST_THRESHOLD):
            return data, ()
        self._store.io.write(self._path + INDEX_SUFFIX, data)
        return None, (self._name + INDEX_SUFFIX,)

    def _finish_blobs(self) -> tuple[str, ...]:
        """Write the list of the managed blobs of the rows, and return the name of its file."""
        if self._blobs is None:
            return ()
        self._store.io.write(self._path + BLOB_REFERENCES, self._blobs.content())
        return (self._name + BLOB_REFERENCES,)


def local_millis(epoch_millis: int) -> int:
    """Return the local wall-clock time of an instant as if it were UTC (milliseconds): the form of creation times."""
    offset = datetime.fromtimestamp(epoch_millis / 1000, timezone.utc).astimezone().utcoffset()
    return epoch_millis + int(offset.total_seconds() * 1000) if offset else epoch_millis
