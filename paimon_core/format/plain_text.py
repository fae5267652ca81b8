"""Text files of format tables: one text column, one row per line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.format.batch_size import rows_within
from paimon_core.format.conform import conform_batch
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.format.text_lines import LineWriter, count_lines, joined_lines, line_blocks
from paimon_core.options.option import Options
from paimon_core.types.datatype import AtomicType, DataField

_LINE_END = "\n"
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class TextFormat(FileFormat):
    """Text files with this column. Lines end with a line feed, which a carriage return may precede."""

    name = "text"
    title = "text"
    column: DataField

    @staticmethod
    def of(columns: Sequence[DataField], options: Options) -> "TextFormat":
        """Return the format of files that hold ``columns``, of a table with these options.

        Raises UnsupportedError unless the only column is a STRING, and for another ``text.line-delimiter`` than a line
        feed.
        """
        if [f.type.root if isinstance(f.type, AtomicType) else "" for f in columns] != ["VARCHAR"]:
            shown = ", ".join(f"{f.name} {f.type}" for f in columns) or "none"
            raise UnsupportedError(
                f"text files hold one STRING column besides the partition columns, but the columns are {shown}"
            )
        if options.get("text.line-delimiter", _LINE_END) != _LINE_END:
            raise UnsupportedError(
                "option 'text.line-delimiter' must be a line feed: no other end of a line is supported"
            )
        return TextFormat(columns[0])

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`."""
        fields, path = request.fields, request.path
        for block in line_blocks(source, path):
            with as_corrupted(path):
                lines = _lines(block)
            rows = rows_within(request.batch_rows, request.batch_bytes, lines.nbytes / max(1, len(lines)))
            for start in range(0, len(lines), rows):
                batch = pa.RecordBatch.from_arrays([lines.slice(start, rows)], [self.column.name])
                yield conform_batch(batch, fields, path)

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`."""
        return TextFileWriter(sink, fields, compression)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`: the number of lines."""
        return count_lines(source, path)


class TextFileWriter(LineWriter):
    """A writer of a text file."""

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`. Raises InvalidInputError for NULL, and for a text that is not one line."""
        rows = check_columns(batch, self._schema)
        name = self._schema.names[0]
        for part in rows.column(0).chunks:
            if part.null_count:
                raise InvalidInputError(f"a value of column {name!r} is NULL: text files cannot hold it")
            if pc.any(pc.match_substring_regex(part, "[\r\n]")).as_py():
                raise InvalidInputError(f"a value of column {name!r} has a line break: text files cannot hold it")
            if pc.any(pc.starts_with(part, _BOM)).as_py():
                raise InvalidInputError(
                    f"a value of column {name!r} begins with U+FEFF, which readers of text files skip"
                )
            self._write_lines(joined_lines([part], ""))


def _lines(block: bytes) -> pa.Array:
    """Return the lines of a block of whole lines. Raises ValueError for bytes that are not UTF-8."""
    text = block.decode().replace("\r\n", _LINE_END).replace("\r", _LINE_END)
    return pa.array(text.removesuffix(_LINE_END).split(_LINE_END), pa.string())
