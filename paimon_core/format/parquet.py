"""Parquet data files (format.md 7.4), decoded and encoded by pyarrow.

Reading costs what pyarrow's own decoding costs: the batches pass through untouched wherever the file already holds
canonical types. Memory is a batch plus the column chunks of one row group (local files with big row groups are streamed
through small buffers instead).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core.errors import UnsupportedError
from paimon_core.format.conform import conform_batch
from paimon_core.format.damage import decoded, reading
from paimon_core.format.file_format import FormatWriter
from paimon_core.format.parquet_prune import row_groups_to_read
from paimon_core.format.parquet_writer import ParquetFileWriter
from paimon_core.options.option import Options
from paimon_core.predicate.expr import Predicate
from paimon_core.types.datatype import DataField

_LOCAL = (pa.OSFile, pa.MemoryMappedFile, pa.BufferReader)  # a seek costs nothing: no need to coalesce reads
_BIG_ROW_GROUP = 32 << 20
_STREAM_BUFFER = 1 << 20


class ParquetFormat:
    """Parquet."""

    name = "parquet"

    def read(
        self,
        source: Any,
        fields: Sequence[DataField],
        batch_size: int,
        *,
        predicate: Predicate | None = None,
        threads: bool = True,
        path: str = "",
    ) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`."""
        with reading(path):
            metadata = pq.read_metadata(source)
            groups = row_groups_to_read(metadata, fields, predicate)
        columns = _columns(metadata, fields)
        if not columns:
            rows = sum(metadata.row_group(g).num_rows for g in groups)
            for start in range(0, rows, batch_size):
                yield conform_batch(_no_columns(min(batch_size, rows - start)), fields, path)
            return
        opener = _Opener(source, metadata, groups)
        special = _int96_columns(metadata, columns)
        batches = decoded(opener.batches(columns, groups, batch_size, threads, "ns"), path)
        if special:
            checks = decoded(opener.batches(special, groups, batch_size, threads, "us"), path)
            batches = (_exact_int96(b, check, fields, path) for b, check in zip(batches, checks, strict=True))
        for batch in batches:
            if batch.num_rows:
                yield conform_batch(batch, fields, path)

    def open_writer(self, sink: Any, fields: Sequence[DataField], options: Options, compression: str) -> FormatWriter:
        """See `FileFormat.open_writer`. Options: ``file.compression.zstd-level``, ``file.block-size`` (bytes of a row
        group), ``parquet.compression``, ``parquet.enable.dictionary``.
        """
        return ParquetFileWriter(sink, fields, options, compression)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`."""
        with reading(path):
            return int(pq.read_metadata(source).num_rows)


class _Opener:
    """One file opened as often as needed, its footer parsed once."""

    def __init__(self, source: Any, metadata: Any, groups: Sequence[int]) -> None:
        self._source, self._metadata = source, metadata
        self._local = isinstance(source, _LOCAL)
        biggest = max((metadata.row_group(g).total_byte_size for g in groups), default=0)
        self._buffer = _STREAM_BUFFER if self._local and biggest > _BIG_ROW_GROUP else 0

    def batches(
        self, columns: Sequence[str], groups: Sequence[int], batch_size: int, threads: bool, int96_unit: str
    ) -> Iterator[pa.RecordBatch]:
        """Batches of these columns; INT96 as timestamps of that unit."""
        file = pq.ParquetFile(
            self._source,
            metadata=self._metadata,
            pre_buffer=not self._local,
            buffer_size=self._buffer,
            coerce_int96_timestamp_unit=int96_unit,
            page_checksum_verification=True,
        )
        # A row group at a time: reading ahead then never holds more than one.
        for run in [[g] for g in groups] if not self._local else [list(groups)]:
            yield from file.iter_batches(batch_size, row_groups=run, columns=list(columns), use_threads=threads)


def _columns(metadata: Any, fields: Sequence[DataField]) -> list[str]:
    stored = set(metadata.schema.to_arrow_schema().names)
    return [f.name for f in fields if f.name in stored]


def _no_columns(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])


def _int96_columns(metadata: Any, columns: Sequence[str]) -> list[str]:
    schema = metadata.schema
    leaves = [schema.column(i) for i in range(metadata.num_columns)]
    paths = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    return [c for c in columns if any(p == c or p.startswith(f"{c}.") for p in paths)]


def _exact_int96(batch: pa.RecordBatch, check: pa.RecordBatch, fields: Sequence[DataField], path: str) -> pa.RecordBatch:
    """INT96 spans millions of years and nanoseconds wrap silently at 1677 and 2262, so each such column comes twice.

    Columns that keep microseconds or less use the second, exact reading; for the others both must agree.
    """
    wanted = {f.name: f for f in fields}
    columns = list(batch.columns)
    for name in check.schema.names:
        if name not in wanted:
            continue
        at = batch.schema.get_field_index(name)
        fine, exact = batch.column(at), check.column(name)
        if pa.types.is_timestamp(fine.type) and wanted[name].type.precision <= 6:  # type: ignore[union-attr]
            columns[at] = exact
        elif not _agree(fine, exact):
            raise UnsupportedError(
                f"column {name!r} of {path or 'the file'} holds a timestamp outside the years 1677 to 2262, which "
                "nanoseconds cannot hold; change the column's precision to 6, or leave it out"
            )
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _agree(fine: pa.Array, exact: pa.Array) -> bool:
    if pa.types.is_timestamp(fine.type):
        if fine.type == exact.type:  # annotated, hence no INT96
            return True
        valid = ~fine.is_null().to_numpy(zero_copy_only=False)
        nanos, micros = (a.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) for a in (fine, exact))
        return bool(np.array_equal(np.floor_divide(nanos[valid], 1000), micros[valid]))
    if pa.types.is_struct(fine.type):
        return all(_agree(fine.field(i), exact.field(i)) for i in range(fine.type.num_fields))
    if pa.types.is_map(fine.type):
        return _agree(fine.keys, exact.keys) and _agree(fine.items, exact.items)
    if pa.types.is_list(fine.type):
        return _agree(fine.values, exact.values)
    return True
