"""Parquet data files (format 7.4), decoded and encoded by pyarrow.

Reading costs as much as pyarrow's decoder: batches that already have canonical types pass through unchanged. Memory: a
batch and the column chunks of one row group; small buffers replace the column chunks if a local file has large row
groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core.errors import CorruptedError
from paimon_core.format.batch_size import encoded_bytes, parquet_row_bytes, rows_within
from paimon_core.format.codec import parquet_codec
from paimon_core.format.conform import conform_batch, counted
from paimon_core.format.corruption import as_corrupted, decoded
from paimon_core.format.file_description import FileDescription
from paimon_core.format.file_format import FileFormat, FormatWriter, Matches, OpenWriter, ReadRequest
from paimon_core.format.int96 import has_int96, with_bytes_for_int96
from paimon_core.format.parquet_columns import paths_to_decode, schema_of
from paimon_core.format.parquet_description import describe_parquet
from paimon_core.format.parquet_probe import find_matches, groups_with_matches, probe_of
from paimon_core.format.parquet_prune import row_groups_to_read
from paimon_core.format.parquet_writer import ENABLE_DICTIONARY, ParquetFileWriter
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_field
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_POSITION
from paimon_core.variant.columns import Shredding

_LOCAL = (pa.OSFile, pa.MemoryMappedFile, pa.BufferReader)  # seeks cost nothing, so reads need not be coalesced
_BIG_ROW_GROUP = 4 << 20
_STREAM_BUFFER, _LEAST_STREAM_BUFFER = 1 << 20, 1 << 16  # of each column
_WHOLE_FILE = 256 << 10  # bytes; one read costs less than separate reads of the footer and of each column
_REMOTE_RUN = 16 << 20  # encoded bytes of the row groups that are fetched from a distant store at once
_WORTH_PROBE = 1 << 20  # encoded bytes of the columns that a filter may leave out
_WORTH_THREADS = 1 << 20  # encoded bytes; for fewer, passing columns to threads costs more than decoding


class ParquetFormat(FileFormat):
    """Parquet."""

    name = "parquet"
    title = "Parquet"
    magic = b"PAR1"
    reads_fields = True
    skips_rows = True
    codec_option = "parquet.compression"
    codec = staticmethod(parquet_codec)

    @staticmethod
    def check_options(options: Options) -> None:
        """See `FileFormat.check_options`."""
        options.flag(ENABLE_DICTIONARY, True)

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`."""
        fields, path = request.fields, request.path
        with as_corrupted(path):
            source = _read_ahead(source)
            file = _open(source)
            rows = file.metadata.num_rows
            if request.row_count not in (None, rows):
                raise CorruptedError(f"{path} holds {rows} rows, but its manifest entry says {request.row_count}")
            groups = row_groups_to_read(file.metadata, request)
        stored = replace(request, fields=[f for f in fields if f.id != ROW_POSITION.id])
        groups = _with_matches(source, file.metadata, groups, stored)
        batches = _batches(source, file, groups, stored)
        yield from (
            batches if len(stored.fields) == len(fields) else _with_positions(batches, file.metadata, groups, fields)
        )

    def matching_rows(self, source: Any, request: ReadRequest, max_bytes: int) -> Matches | None:
        """See `FileFormat.matching_rows`."""
        path = request.path
        with as_corrupted(path):
            source = _read_ahead(source)
            metadata = _open(source).metadata
            if request.row_count not in (None, metadata.num_rows):
                raise CorruptedError(
                    f"{path} holds {metadata.num_rows} rows, but its manifest entry says {request.row_count}"
                )
            groups = row_groups_to_read(metadata, request)
        if not groups:
            return Matches(np.zeros(metadata.num_rows, bool), 0)
        probe = probe_of(metadata, groups, request)
        if probe is None or probe.filter_bytes > max_bytes:
            return None
        return find_matches(lambda: _open(source, metadata), groups, probe, request, metadata)

    def may_match(self, source: Any, request: ReadRequest) -> bool:
        """See `FileFormat.may_match`: a row group may match."""
        with as_corrupted(request.path):
            return bool(row_groups_to_read(_open(source).metadata, request))

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`.

        Options: ``file.compression.zstd-level``, ``file.block-size`` (bytes of a row group), ``parquet.compression``,
        ``parquet.enable.dictionary``.
        """
        return ParquetFileWriter(sink, fields, options, compression, ordered=ordered)

    def begin_series(
        self, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> OpenWriter:
        """See `FileFormat.begin_series`: how variants are shredded may depend on the file before."""
        shredding = Shredding(fields, options)
        return lambda sink: ParquetFileWriter(sink, fields, options, compression, ordered=ordered, shredding=shredding)

    def describe(self, source: Any, path: str) -> FileDescription:
        """See `FileFormat.describe`."""
        return describe_parquet(source, path)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`."""
        with as_corrupted(path):
            return int(pq.read_metadata(source).num_rows)


def _with_matches(source: Any, metadata: Any, groups: list[int], request: ReadRequest) -> list[int]:
    """Return the row groups that the values of the filter's columns do not exclude, if a probe pays off, else all.

    If bounds have excluded most row groups of a file, its rows are sorted, and the other row groups match.
    """
    if request.row_mask is not None or (request.part is None and 2 * len(groups) <= metadata.num_row_groups):
        return groups
    probe = probe_of(metadata, groups, request)
    least = _WORTH_PROBE if isinstance(source, _LOCAL) else _REMOTE_RUN
    if probe is None or not probe.pays_off or probe.other_bytes < least:
        return groups
    if request.count_bytes is not None:
        request.count_bytes(probe.filter_bytes)
    return groups_with_matches(lambda: _open(source, metadata), groups, probe, request)


def _batches(
    source: Any, file: pq.ParquetFile, groups: Sequence[int], request: ReadRequest
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these row groups. Raises CorruptedError if the footer has another number of rows."""
    metadata, fields, path = file.metadata, request.fields, request.path
    batch_rows, batch_bytes = request.batch_rows, request.batch_bytes
    with as_corrupted(path):
        stored = schema_of(metadata).to_arrow_schema()
        columns = paths_to_decode(stored, fields)
        rows = sum(metadata.row_group(g).num_rows for g in groups)
    if not columns:
        yield from (conform_batch(batch, fields, path) for batch in counted(rows, batch_rows))
        return
    with as_corrupted(path):
        sizes = [metadata.row_group(g).total_byte_size for g in groups]
        if request.count_bytes is not None:
            request.count_bytes(encoded_bytes(metadata, groups, columns))
        streamed = isinstance(source, _LOCAL) and max(sizes, default=0) > _BIG_ROW_GROUP
        buffer = _stream_buffer(len(columns), batch_bytes) if streamed else 0
        if has_int96(metadata):
            file = _open(source, with_bytes_for_int96(source), buffer_size=buffer)
        elif streamed:
            file = _open(source, metadata, buffer_size=buffer)
        if batch_bytes is not None and metadata.num_rows:
            row_bytes = parquet_row_bytes(file, groups, columns, batch_bytes)
            batch_rows = rows_within(batch_rows, batch_bytes, row_bytes)
    # pyarrow holds all row groups that it reads ahead from a remote store, so each call gets only a few megabytes
    runs = [groups] if isinstance(source, _LOCAL) else runs_of(groups, sizes, _REMOTE_RUN)
    threads = sum(sizes) > _WORTH_THREADS
    batches = (
        batch
        for run in runs
        for batch in file.iter_batches(batch_rows, row_groups=run, columns=columns, use_threads=threads)
    )
    rows_read = 0
    for batch in decoded(batches, path):
        rows_read += batch.num_rows
        if batch.num_rows:
            yield conform_batch(batch, fields, path)
    if rows_read != rows:
        raise CorruptedError(f"{path} holds {rows_read} rows, but its footer says {rows}")


def runs_of(groups: Sequence[int], sizes: Sequence[int], max_bytes: int) -> list[list[int]]:
    """Divide row groups, in order, into runs of at most ``max_bytes``; a larger row group becomes a separate run.

    Args:
        groups: numbers of row groups.
        sizes: ``sizes[i]`` is the number of bytes of row group ``groups[i]``.
        max_bytes: the largest size of one run in bytes.
    """
    runs: list[list[int]] = []
    free = 0
    for group, size in zip(groups, sizes, strict=True):
        if not runs or size > free:
            runs.append([])
            free = max_bytes
        runs[-1].append(group)
        free -= max(0, size)
    return runs


def _with_positions(
    batches: Iterator[pa.RecordBatch], metadata: Any, groups: Sequence[int], fields: Sequence[DataField]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of these row groups with the column ``ROW_POSITION``: the positions of the rows in the file."""
    index = next(i for i, f in enumerate(fields) if f.id == ROW_POSITION.id)
    counts = np.array([metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)], np.int64)
    ends = np.cumsum(counts)[list(groups)]
    read = np.cumsum(counts[list(groups)])  # rows read up to the end of each row group
    done = 0
    for batch in batches:
        rows = np.arange(done, done := done + batch.num_rows)
        group = np.searchsorted(read, rows, "right")
        yield batch.add_column(index, arrow_field(ROW_POSITION), pa.array(rows + (ends - read)[group]))


def _read_ahead(source: Any) -> Any:
    """Return a small local file as a buffer in memory; any other source unchanged."""
    if isinstance(source, pa.OSFile) and source.size() <= _WHOLE_FILE:
        return pa.BufferReader(source.read_buffer(source.size()))
    return source


def _stream_buffer(columns: int, batch_bytes: int | None) -> int:
    """Return the size of the buffer of each column, so that all columns together take no more than a batch."""
    share = _STREAM_BUFFER if batch_bytes is None else batch_bytes // columns
    return max(_LEAST_STREAM_BUFFER, min(_STREAM_BUFFER, share))


def _open(source: Any, metadata: Any = None, *, buffer_size: int = 0) -> pq.ParquetFile:
    """Open a file.

    Args:
        source: a seekable file.
        metadata: its footer. `None`: read the footer.
        buffer_size: the size of a buffer through which each column chunk passes; 0: chunks are read whole.
    """
    return pq.ParquetFile(
        source,
        metadata=metadata,
        pre_buffer=not isinstance(source, _LOCAL),
        buffer_size=buffer_size,
        page_checksum_verification=True,
    )
