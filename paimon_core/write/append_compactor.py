"""Files of one append bucket rewritten as larger ones, in bounded memory."""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from paimon_core.datafile.reader import read_file
from paimon_core.datafile.writer import TARGET_SIZE_APPEND, DataFileWriter, FileShape
from paimon_core.errors import CorruptedError
from paimon_core.lsm.append_picks import AppendPicks, Group
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.store.file_store import FileStore

__all__ = ["append_picks", "concatenate", "write_compacted"]


def append_picks(store: FileStore) -> AppendPicks:
    """How the table's options have files picked."""
    return AppendPicks.of(store.options, TARGET_SIZE_APPEND)


def concatenate(store: FileStore, partition: bytes, bucket: int, files: Group) -> tuple[DataFileMeta, ...]:
    """The rows of the files, one after another, in new files of about the target size.

    Written in the table's schema and format of now; numbered on from the first file, whose place they take. On an
    error nothing is left behind.
    """
    rows = (
        pa.Table.from_batches([batch])
        for file in files
        for batch in read_file(store, partition, bucket, file, store.schema.fields)
    )
    expected = sum(f.row_count for f in files)
    return write_compacted(store, partition, bucket, rows, expected, first_sequence=files[0].min_sequence_number)


def write_compacted(
    store: FileStore,
    partition: bytes,
    bucket: int,
    rows: Iterable[pa.Table],
    expected: int | None,
    *,
    first_sequence: int = 0,
) -> tuple[DataFileMeta, ...]:
    """Write rows in the order they come as the result of a compaction. On an error nothing is left behind.

    Raises CorruptedError where there are not ``expected`` rows, if that is known: no compaction may lose one.
    """
    writer = DataFileWriter(store, partition, bucket, FileShape.of(store), first_sequence)
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
    return tuple(replace(file, file_source=FileSource.COMPACT) for file in written)
