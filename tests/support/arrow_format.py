"""A file format for tests of the registry: Arrow IPC files. A copy of the engine gets this module and one line."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from paimon_core.format.conform import conform_batch
from paimon_core.format.file_description import FileDescription
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema, fields_from_arrow
from paimon_core.types.datatype import DataField


class ArrowFormat(FileFormat):
    """Arrow IPC files."""

    name = "arrow"
    title = "Arrow"
    magic = b"ARROW1"

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`."""
        table = pa.ipc.open_file(source).read_all().combine_chunks()
        for batch in table.to_batches(max_chunksize=request.batch_rows):
            yield conform_batch(batch, request.fields, request.path)

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`."""
        return ArrowWriter(sink, fields)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`."""
        return pa.ipc.open_file(source).read_all().num_rows

    def describe(self, source: Any, path: str) -> FileDescription:
        """See `FileFormat.describe`."""
        table = pa.ipc.open_file(source).read_all()
        return FileDescription(path, self.name, fields_from_arrow(table.schema), table.num_rows)


class ArrowWriter(FormatWriter):
    """A writer of an Arrow IPC file."""

    def __init__(self, sink: Any, fields: Sequence[DataField]) -> None:
        self._schema, self._sink, self._bytes = arrow_schema(fields), sink, 0
        self._writer = pa.ipc.new_file(pa.PythonFile(sink, "w"), self._schema)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`."""
        self._writer.write_table(check_columns(batch, self._schema))
        self._bytes += batch.nbytes

    def tell(self) -> int:
        """See `FormatWriter.tell`."""
        return self._bytes

    def close(self) -> None:
        """See `FormatWriter.close`."""
        self._writer.close()
