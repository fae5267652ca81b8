"""Rows whose columns lie in several files: read side by side, each column from the newest file that has it."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_core.datafile.columns import stored_columns
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.errors import CorruptedError
from paimon_core.lsm.row_ranges import RowRangeFiles, blobs_in_order, is_blob
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField

__all__ = ["files_with_column", "read_row_range"]


def read_row_range(
    store: FileStore, partition: bytes, bucket: int, files: RowRangeFiles, fields: Sequence[DataField]
) -> Iterator[pa.RecordBatch]:
    """The rows the files share, with exactly ``fields``; a column no file has is null.

    Memory: a batch of each file that has a column asked for. Raises CorruptedError where they differ in length.
    """
    parts: dict[RowRangeFiles, list[DataField]] = {}
    for field in fields:
        parts.setdefault(files_with_column(store, files, field), []).append(field)
    how = ReadOptions(parallel_files=max(1, len(parts)))

    def stream(files_with_column: RowRangeFiles, asked: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
        for file in files_with_column:
            yield from read_file(store, partition, bucket, file, asked, how)

    streams = [stream(files_with_column, asked) for files_with_column, asked in (parts or {files[:1]: []}).items()]
    return streams[0] if len(streams) == 1 else _side_by_side(streams, arrow_schema(fields), files)


def files_with_column(store: FileStore, files: RowRangeFiles, field: DataField) -> RowRangeFiles:
    """The file a column is read from, or those with its blobs, one after another.

    Any will do for a column that all know, as partition columns, or that none has.
    """
    having = [f for f in files if any(column.id == field.id for column in stored_columns(store, f))] or files[:1]
    return blobs_in_order(files, having) if is_blob(having[0]) else (having[0],)


def _side_by_side(
    streams: Sequence[Iterator[pa.RecordBatch]], schema: pa.Schema, files: RowRangeFiles
) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch | None] = [next(stream, None) for stream in streams]
    while batches := [batch for batch in held if batch is not None]:
        if len(batches) < len(held):
            raise CorruptedError(f"files of the same rows differ in length: {', '.join(f.file_name for f in files)}")
        step = min(batch.num_rows for batch in batches)
        columns = {name: batch.column(name).slice(0, step) for batch in batches for name in batch.schema.names}
        if step:
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        held = [
            batch.slice(step) if batch.num_rows > step else next(stream, None)
            for batch, stream in zip(batches, streams, strict=True)
        ]
