"""Columns that say where a row is stored: its data file, its position there, its partition and its bucket."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from paimon_core.errors import UnsupportedError
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.read.sections import ReadFile
from paimon_core.row.binary_row import deserialize
from paimon_core.scan.split import DataSplit
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import BUCKET, FILE_PATH, ROW_INDEX, is_partition_field

_OF_FILES = (FILE_PATH, ROW_INDEX)


def stored_fields(fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the fields that are not metadata columns."""
    return tuple(f for f in fields if f not in _OF_FILES and f != BUCKET and not is_partition_field(f))


def check_files_known(store: FileStore, fields: Sequence[DataField], split: DataSplit) -> None:
    """Raise UnsupportedError if the file path or row position is requested for rows merged from several files."""
    requested = [f.name for f in fields if f in _OF_FILES]
    if requested and not split.raw_convertible:
        partition = store.partition_path(split.partition)
        raise UnsupportedError(
            f"cannot read {' and '.join(requested)} of {store.root}: rows of bucket {split.bucket}"
            f"{f' of {partition}' if partition else ''} are merged from several files, so a row has no single file; "
            "compact the table fully, read its view '$ro', or leave the column out"
        )


def with_file_path(store: FileStore, split: DataSplit, read: ReadFile) -> ReadFile:
    """Return ``read`` with an additional column ``__paimon_file_path``."""

    def extended(file: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
        path = pa.scalar(store.file_path(split.bucket_ref, file), pa.string())
        for batch in read(file, parallel_files):
            yield batch.append_column(FILE_PATH.name, pa.repeat(path, batch.num_rows))

    return extended


class BucketColumns:
    """The metadata columns that have one value for all rows of a bucket."""

    def __init__(self, store: FileStore, fields: Sequence[DataField], split: DataSplit) -> None:
        self._bucket = split.bucket
        self._types = {f.name: to_arrow(f.type) for f in fields if f == BUCKET or is_partition_field(f)}
        self._partition: Mapping[str, pa.Scalar] = {}
        if any(is_partition_field(f) for f in fields):
            stored = store.schema.partition_arrow
            values = deserialize(split.partition, stored)
            self._partition = {f.name: pa.array([value], f.type)[0] for f, value in zip(stored, values, strict=True)}

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the requested columns at the end."""
        for name, type_ in self._types.items():
            batch = batch.append_column(name, self._column(type_, batch.num_rows))
        return batch

    def _column(self, type_: pa.DataType, rows: int) -> pa.Array:
        if not pa.types.is_struct(type_):
            return pa.repeat(pa.scalar(self._bucket, type_), rows)
        if not self._partition:
            return pa.Array.from_buffers(type_, rows, [None])
        values = [pa.repeat(value, rows) for value in self._partition.values()]
        return pa.StructArray.from_arrays(values, fields=list(type_))
