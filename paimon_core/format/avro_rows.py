"""Avro data files (format 7.6). They store rows one after another, so they are slow to read and write.

fastavro decodes the records of a block without their logical types, as plain integers and bytes. They become columns,
and every later step is vectorised.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from paimon_core.errors import CorruptedError, PaimonError
from paimon_core.format.avro_container import BlockDecoder, Container, ContainerWriter, Schema
from paimon_core.format.avro_description import describe_avro
from paimon_core.format.avro_types import avro_schema, from_stored, plain_schema, stored_type, to_stored
from paimon_core.format.batch_size import PROBE_ROWS, rows_within
from paimon_core.format.codec import avro_codec
from paimon_core.format.conform import conform_batch
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_description import FileDescription
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.format.python_rows import python_rows
from paimon_core.options.file import FILE_COMPRESSION_ZSTD_LEVEL
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField

_BLOCK_BYTES = 1 << 16  # of Arrow memory
_MAX_BLOCK_ROWS = 1 << 14


class AvroFormat(FileFormat):
    """Avro data files."""

    name = "avro"
    title = "Avro"
    magic = b"Obj\x01"
    codec_option = "avro.codec"
    codec = staticmethod(avro_codec)

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`."""
        path = request.path
        source.seek(0)
        container = Container(source, path)
        record = _record(container, path)
        names = {f.name for f in request.fields}
        try:
            present = [f for f in record["fields"] if f["name"] in names]
            types = {f["name"]: stored_type(f["type"]) for f in present}
            decoder = BlockDecoder(plain_schema(container.header.schema))  # decoding all costs less than skipping some
        except PaimonError:
            raise
        except Exception as cause:
            raise container.corrupted(cause) from cause
        size = _BatchSize(request)
        for records in _sized(container.records(decoder), size):
            columns = []
            with as_corrupted(path):
                for field in present:
                    name = field["name"]
                    raw = pa.array([r[name] for r in records], types[name])
                    columns.append(from_stored(raw, field["type"]))
            batch = pa.RecordBatch.from_arrays(columns or [pa.nulls(len(records))], names=[*types] or [""])
            size.learn(batch)
            yield conform_batch(batch, request.fields, path)

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`. Options: ``avro.codec``, ``file.compression.zstd-level``."""
        return AvroFileWriter(sink, fields, options, compression)

    def describe(self, source: Any, path: str) -> FileDescription:
        """See `FileFormat.describe`."""
        return describe_avro(source, path)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`: the sum of the record counts of all blocks."""
        source.seek(0)
        return sum(count for count, _ in Container(source, path).blocks())


class AvroFileWriter(FormatWriter):
    """A writer of an Avro file; each block is written at once, so `tell` is exact."""

    def __init__(self, sink: Any, fields: Sequence[DataField], options: Options, compression: str) -> None:
        self._fields, self._schema = fields, arrow_schema(fields)
        codec = avro_codec(options.get("avro.codec", compression))
        level = options.value(FILE_COMPRESSION_ZSTD_LEVEL)
        schema = avro_schema(fields)
        self._container = ContainerWriter(sink, schema, codec, level)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`."""
        rows = check_columns(batch, self._schema)
        row_bytes = max(1, rows.nbytes // max(1, rows.num_rows))
        size = min(_MAX_BLOCK_ROWS, max(1, _BLOCK_BYTES // row_bytes))
        for part in rows.to_batches(max_chunksize=size):
            stored = [to_stored(column, f.type) for column, f in zip(part.columns, self._fields, strict=True)]
            block = pa.RecordBatch.from_arrays(stored, names=self._schema.names)
            self._container.write(python_rows(block))

    def tell(self) -> int:
        """See `FormatWriter.tell`."""
        return self._container.written

    def close(self) -> None:
        """See `FormatWriter.close`: no rows are in memory, and Avro has no footer."""


def _record(container: Container, path: str) -> dict[str, Any]:
    """Return the record type of the rows: the file's schema, or the record in its union with null.

    Raises CorruptedError for a schema of another kind.
    """
    schema: Schema = container.header.schema
    branches = schema if isinstance(schema, list) else [schema]
    records = [b for b in branches if isinstance(b, dict) and b.get("type") == "record"]
    if len(records) != 1:
        raise CorruptedError(f"{path or 'the file'} is not a file of rows: its Avro schema is {schema}")
    return records[0]


class _BatchSize:
    """The number of rows of the next batch: small at first, then derived from the longest rows so far."""

    def __init__(self, request: ReadRequest) -> None:
        self._request, self._row_bytes = request, 0.0
        self.rows = request.batch_rows if request.batch_bytes is None else min(request.batch_rows, PROBE_ROWS)

    def learn(self, batch: pa.RecordBatch) -> None:
        """Set the number of rows of the next batch from the bytes of this batch."""
        self._row_bytes = max(self._row_bytes, batch.nbytes / max(1, batch.num_rows))
        self.rows = rows_within(self._request.batch_rows, self._request.batch_bytes, self._row_bytes)


def _sized(blocks: Iterator[list[Any]], size: _BatchSize) -> Iterator[list[Any]]:
    """Yield the records of the blocks in lists of at most ``size.rows``, which may change after each list."""
    held: list[Any] = []
    for block in blocks:
        held += block
        while len(held) >= size.rows:
            rows = size.rows
            yield held[:rows]
            held = held[rows:]
    if held:
        yield held
