"""Rows whose columns are stored in several files: each column is read from the newest file that has it.

The deletion vector of the rows belongs to the oldest of their data files, and its positions count from their first row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from paimon_core.datafile.file_columns import stored_columns
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CorruptedError
from paimon_core.fileio.parallel import timed
from paimon_core.lsm.row_ranges import RowRangeFiles, blobs_in_order, is_blob
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.read.metrics import ReadRecorder
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField


def read_row_range(
    store: FileStore,
    bucket: BucketRef,
    files: RowRangeFiles,
    fields: Sequence[DataField],
    recorder: ReadRecorder | None = None,
    deletions: DeletionVector | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that the files share, with exactly ``fields``; a column that no file has is null.

    Memory: one batch for each file that has one of the columns. Raises CorruptedError if the files differ in length.

    Args:
        store: the table.
        bucket: the bucket of the files.
        files: the files of one row range.
        fields: columns to read.
        recorder: measures the read; `None`: the read is not measured.
        deletions: the rows to leave out, see `vector_of_range`; `None`: all rows are returned.
    """
    parts: dict[RowRangeFiles, list[DataField]] = {}
    for field, holders in zip(fields, files_with_columns(store, files, fields), strict=True):
        parts.setdefault(holders, []).append(field)
    options = ReadOptions(parallel_files=max(1, len(parts)), counts=None if recorder is None else recorder.counts)

    def stream(holders: RowRangeFiles, columns: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
        for file in holders:
            deleted = None if deletions is None else _in_file(deletions, files, file)
            batches = read_file(store, bucket, file, columns, replace(options, deletions=deleted))
            yield from batches if recorder is None else timed(batches, recorder.spender("decode"))

    streams = [stream(holders, columns) for holders, columns in (parts or {files[:1]: []}).items()]
    if len(streams) == 1:
        return streams[0]
    if recorder is not None:
        streams = [timed(batches_of_stream, recorder.spender("wait")) for batches_of_stream in streams]
    joined = _side_by_side(streams, arrow_schema(fields), files)
    return joined if recorder is None else timed(joined, recorder.spender("merge"))


def _in_file(deletions: DeletionVector, files: RowRangeFiles, file: DataFileMeta) -> DeletionVector | None:
    """Return the deleted rows of one file of a row range, by their positions in the file; a blob file may be a part."""
    before = (file.first_row_id or 0) - (files[0].first_row_id or 0)
    within = (
        deletions if (before, file.row_count) == (0, files[0].row_count) else deletions.within(before, file.row_count)
    )
    return within if within.cardinality else None


def files_with_columns(store: FileStore, files: RowRangeFiles, fields: Sequence[DataField]) -> list[RowRangeFiles]:
    """Return, for each column, the file to read it from, or the files with its blobs, one after another.

    For a column that all files have (a partition column) or that no file has, this is an arbitrary file.
    """
    ids = [{column.id for column in stored_columns(store, file)} for file in files]
    result: list[RowRangeFiles] = []
    for field in fields:
        having = [file for file, stored in zip(files, ids, strict=True) if field.id in stored] or files[:1]
        result.append(blobs_in_order(files, having) if is_blob(having[0]) else (having[0],))
    return result


def _side_by_side(
    streams: Sequence[Iterator[pa.RecordBatch]], schema: pa.Schema, files: RowRangeFiles
) -> Iterator[pa.RecordBatch]:
    """Join streams of the same rows by position; batches may differ in size. CorruptedError if the streams differ."""
    heads: list[pa.RecordBatch | None] = [next(stream, None) for stream in streams]
    while batches := [batch for batch in heads if batch is not None]:
        if len(batches) < len(heads):
            raise CorruptedError(f"files of the same rows differ in length: {', '.join(f.file_name for f in files)}")
        step = min(batch.num_rows for batch in batches)
        columns = {name: batch.column(name).slice(0, step) for batch in batches for name in batch.schema.names}
        if step:
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        heads = [
            batch.slice(step) if batch.num_rows > step else next(stream, None)
            for batch, stream in zip(batches, streams, strict=True)
        ]
