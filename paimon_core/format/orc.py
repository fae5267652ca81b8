"""ORC data files (format 7.5), decoded and encoded by pyarrow.

Timestamps with local time zone (LTZ) are stored as instants. An engine with ``orc.timestamp-ltz.legacy.type`` shifts
them by its own time zone, so it reads and writes these files correctly only in UTC.

ORC timestamps have no nanosecond limit, but Arrow's reader has one: the years 1677 to 2262. Columns with other years
are read a second time, row by row, from the first row of the batch that failed. Before pyarrow 25, Arrow's reader wraps
these values silently, so there the statistics of the file decide which reader is used.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError
from paimon_core.format.batch_size import PROBE_ROWS, probed, rows_within
from paimon_core.format.codec import orc_codec
from paimon_core.format.conform import conform_batch, counted, with_children
from paimon_core.format.corruption import as_corrupted, decoded
from paimon_core.format.file_description import FileDescription
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest
from paimon_core.format.orc_description import describe_orc
from paimon_core.format.orc_instants import beyond_nanoseconds, read_micros, resume, wide_timestamps
from paimon_core.format.orc_tail import open_orc
from paimon_core.format.orc_writer import OrcFileWriter
from paimon_core.options.option import Options
from paimon_core.types.datatype import AtomicType, DataField, DataType, MapType, MultisetType, RowType
from paimon_core.types.map_entries import map_entries

_WRAPS_TIMESTAMPS = int(pa.__version__.split(".")[0]) < 25
_PROBE_STEP, _LONG_ROW = 16, 1 << 20  # rows of the first probe, and their growth; bytes that each of them may have
_BATCHES_HELD = 4  # batches in memory at once: the returned batch, and the batches of scanner and decoder


class OrcFormat(FileFormat):
    """ORC data files."""

    name = "orc"
    title = "ORC"
    magic = b"ORC"
    codec_option = "orc.compress"
    codec = staticmethod(orc_codec)

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`."""
        fields, path, batch_rows = request.fields, request.path, request.batch_rows
        with as_corrupted(path):
            file = open_orc(source)
            rows, stored = int(file.nrows), file.schema.names
        present = [f for f in fields if f.name in stored]
        rows_read = 0
        try:
            if request.batch_bytes is not None and present and rows:
                row_bytes = _row_bytes(source, present, rows, batch_rows, request)
                batch_rows = rows_within(batch_rows, request.batch_bytes // _BATCHES_HELD, row_bytes)
            with as_corrupted(path):
                overflows = _WRAPS_TIMESTAMPS and beyond_nanoseconds(source, present)
            if not overflows:
                for batch in _batches(source, present, rows, batch_rows, path):
                    yield _finish(batch, fields, path)
                    rows_read += batch.num_rows
                return
        except CorruptedError as error:
            if "out of range for nanosecond" not in str(error):
                raise
        wide = wide_timestamps(present, path)
        with as_corrupted(path):
            micros = read_micros(source, wide, rows_read)
        others = _batches(source, [f for f in present if f not in wide], rows, batch_rows, path)
        for batch in resume(others, wide, micros, rows_read):
            yield _finish(batch, fields, path)

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`. Options: ``file.block-size`` (stripe), ``orc.compress``."""
        return OrcFileWriter(sink, fields, options, compression)

    def describe(self, source: Any, path: str) -> FileDescription:
        """See `FileFormat.describe`."""
        return describe_orc(source, path)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`."""
        with as_corrupted(path):
            return int(open_orc(source).nrows)


def _row_bytes(source: Any, fields: Sequence[DataField], rows: int, batch_rows: int, request: ReadRequest) -> float:
    """Return the decoded bytes of a row, as the mean of the first rows.

    Few rows are decoded first, and more if they fit a batch: a long text that repeats takes little space in the file.
    """
    batch_bytes, most = request.batch_bytes or 0, min(PROBE_ROWS, batch_rows)
    count = max(1, min(_PROBE_STEP, most, batch_bytes // _LONG_ROW))
    while True:
        row_bytes = probed(_batches(source, fields, rows, count, request.path))
        if count == most or row_bytes * count * _PROBE_STEP > batch_bytes:
            return row_bytes
        count = min(most, count * _PROBE_STEP)


def _batches(
    source: Any, fields: Sequence[DataField], rows: int, batch_rows: int, path: str
) -> Iterator[pa.RecordBatch]:
    """Return the rows of the file with their stored types.

    Args:
        source: the file.
        fields: the columns to read, all of them stored in the file.
        rows: the number of rows in the file.
        batch_rows: the largest number of rows in a batch.
        path: the file's name in messages.
    """
    if not fields:
        return counted(rows, batch_rows)
    source.seek(0)
    with as_corrupted(path):
        file = open_orc(source)
        if _has_ambiguous_name(fields, file.schema.names):
            return decoded(_whole_stripes(file, fields, batch_rows), path)
        source.seek(0)
        import pyarrow.dataset as pads  # noqa: PLC0415 - imports pandas: half a second, which only ORC readers pay

        fragment = pads.OrcFileFormat().make_fragment(source)
        # with threads the scanner decodes the whole file ahead of a slow consumer, such as a merge of many files
        batches = fragment.to_batches(
            columns=[f.name for f in fields], batch_size=batch_rows, use_threads=False, batch_readahead=2
        )
    return (batch for batch in decoded(batches, path) if batch.num_rows)


def _has_ambiguous_name(fields: Sequence[DataField], stored: Sequence[str]) -> bool:
    """Return True if Arrow may take the name of a column for the path of a nested field.

    Arrow joins the names of nested fields with dots, so `a.b` may be a column, or the field `b` of the column `a`.
    Arrow then decodes the field, and returns NULL for the column.
    """
    return any(f.name.startswith(f"{other}.") for f in fields if "." in f.name for other in stored)


def _whole_stripes(file: Any, fields: Sequence[DataField], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows with their stored types, decoding all columns of each stripe. Memory: a decoded stripe."""
    names = [f.name for f in fields]
    for number in range(file.nstripes):
        stripe = file.read_stripe(number).select(names)
        for start in range(0, stripe.num_rows, batch_rows):
            yield stripe.slice(start, batch_rows)


def _finish(batch: pa.RecordBatch, fields: Sequence[DataField], path: str) -> pa.RecordBatch:
    """Return the batch in canonical types, without the padding of CHAR."""
    result = conform_batch(batch, fields, path)
    if not any(_has_char(f.type) for f in fields):
        return result
    columns = [_unpad(column, f.type) for column, f in zip(result.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=result.schema)


def _has_char(t: DataType) -> bool:
    """Return True if the type is or contains CHAR."""
    match t:
        case AtomicType(root=root):
            return root == "CHAR"
        case RowType(fields):
            return any(_has_char(f.type) for f in fields)
        case MapType(key, value):
            return _has_char(key) or _has_char(value)
        case _:
            return _has_char(t.element)


def _unpad(array: pa.Array, t: DataType) -> pa.Array:
    """Return the array without the trailing blanks that ORC adds to CHAR values."""
    if not _has_char(t):
        return array
    if isinstance(t, AtomicType):
        return pc.ascii_rtrim(array, characters=" ")
    if isinstance(t, RowType):
        children = [_unpad(array.field(i), f.type) for i, f in enumerate(t.fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
    if isinstance(t, MapType | MultisetType):
        key, value = (t.key, t.value) if isinstance(t, MapType) else (t.element, None)
        values = array.items if value is None else _unpad(array.items, value)
        inner = map_entries(_unpad(array.keys, key), values, array.type)
    else:
        inner = _unpad(array.values, t.element)
    return with_children(array, array.type, inner)
