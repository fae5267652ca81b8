"""CSV data files (format 7.7): one row a line, the columns in the order they were written, values as texts.

The file says nothing of its columns: who reads must know them. An escape character and a quote are read as the format's
reference engine reads them, and written so that it reads them right; what it could not read back is refused.

Written by hand where `pyarrow.csv` does not know the Java engine's dialect; `pyarrow.csv` reads the rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from paimon_core.errors import InvalidInputError
from paimon_core.format.batch_size import rows_within
from paimon_core.format.conform import conform_batch
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.format.text_lines import LineWriter, line_blocks
from paimon_core.format.text_values import check_storable, from_text, to_text
from paimon_core.options.option import Options
from paimon_core.options.parse import boolean
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField

_PIECE_ROWS = 1 << 14
_BLANK = r"^[\s\pZ]*$"


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How lines are put together: the options ``csv.*``."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = "\\"
    null: str = ""
    header: bool = False

    @staticmethod
    def of(options: Options) -> "CsvLayout":
        """As the table has it. Raises InvalidInputError for characters that could not be told apart."""
        if options.get("csv.line-delimiter", "\n") != "\n":
            raise InvalidInputError("option 'csv.line-delimiter' must be a line feed: other ends of lines are not read")
        layout = CsvLayout(
            options.get("csv.field-delimiter", ","),
            options.get("csv.quote-character", '"'),
            options.get("csv.escape-character", "\\"),
            options.get("csv.null-literal", ""),
            boolean(options.get("csv.include-header", "false")),
        )
        marks = (layout.delimiter, layout.quote, layout.escape)
        if any(len(mark) != 1 or not mark.isascii() or mark in "\r\n\0" for mark in marks) or len(set(marks)) < 3:
            raise InvalidInputError(
                f"options 'csv.field-delimiter', 'csv.quote-character' and 'csv.escape-character' must be three "
                f"different ASCII characters, not {marks}"
            )
        if any(mark in layout.null for mark in (*marks, "\r", "\n")):
            raise InvalidInputError(f"option 'csv.null-literal' must not hold any of {marks}, as {layout.null!r} does")
        return layout


@dataclass(frozen=True, slots=True)
class CsvFormat(FileFormat):
    """CSV data files with these columns."""

    name = "csv"
    columns: tuple[DataField, ...]
    layout: CsvLayout

    @staticmethod
    def of(columns: Sequence[DataField], options: Options) -> "CsvFormat":
        """Return the format of files that hold ``columns``, of a table with these options."""
        return CsvFormat(tuple(columns), CsvLayout.of(options))

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`. The columns of a line are all parsed, whatever the request."""
        fields, path = request.fields, request.path
        names = {f.name for f in fields}
        stored = [f for f in self.columns if f.name in names]
        for field in stored:
            check_storable(field, "CSV", nested=False)
        for texts in self._texts(source, [f.name for f in stored], path):
            rows = rows_within(request.batch_rows, request.batch_bytes, texts.nbytes / max(1, texts.num_rows))
            for part in texts.to_batches(max_chunksize=rows):
                arrays = [from_text(part.column(i), f.type, f.name, path) for i, f in enumerate(stored)]
                batch = pa.RecordBatch.from_arrays(
                    arrays or [pa.nulls(part.num_rows)], [f.name for f in stored] or [""]
                )
                yield conform_batch(batch, fields, path)

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`."""
        return CsvFileWriter(sink, fields, self.layout, compression)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`: all is read."""
        return sum(texts.num_rows for texts in self._texts(source, [], path))

    def _texts(self, source: Any, names: list[str], path: str) -> Iterator[pa.Table]:
        skip, layout = int(self.layout.header), self.layout
        escape = layout.escape.encode()
        for block in line_blocks(source, path, layout.quote.encode()):
            with as_corrupted(path):
                texts = self._spelled(block, skip) if escape in block else self._plain(block, names, skip)
            skip = 0
            if texts.num_rows:
                yield texts.select(names) if names else texts

    def _plain(self, block: bytes, names: list[str], skip: int) -> pa.Table:
        """Lines without an escape character, as Arrow takes them apart."""
        layout = self.layout
        every = [f.name for f in self.columns]
        return csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(column_names=every, skip_rows=skip, block_size=len(block) + 1),
            csv.ParseOptions(
                delimiter=layout.delimiter,
                quote_char=layout.quote,
                double_quote=True,
                newlines_in_values=True,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                column_types={name: pa.string() for name in every},
                null_values=[layout.null],
                strings_can_be_null=True,
                include_columns=names or every[:1],
            ),
        )

    def _spelled(self, block: bytes, skip: int) -> pa.Table:
        """Lines with escape characters, letter by letter."""
        lines = block.decode().removesuffix("\n").split("\n")[skip:]
        rows = [self._line(line.removesuffix("\r")) for line in lines]
        columns = [pa.array(list(values), pa.string()) for values in zip(*rows, strict=True)]
        columns = [pc.if_else(pc.equal(c, self.layout.null), pa.scalar(None, pa.string()), c) for c in columns]
        return pa.Table.from_arrays(columns, [f.name for f in self.columns])

    def _line(self, line: str) -> list[str | None]:
        """The values of a line, missing ones null. An escape character counts before a quote or another one, inside
        of a value, and is dropped elsewhere; a quote inside a value without quotes is part of it."""
        delimiter, quote, escape = self.layout.delimiter, self.layout.quote, self.layout.escape
        values: list[str | None] = []
        value, quoted, inside, at = "", False, False, 0
        while at < len(line) and len(values) < len(self.columns):
            letter, after = line[at], line[at + 1 : at + 2]
            escapes = letter == escape and after in (quote, escape)
            if (quoted or inside) and after and (escapes or letter == quote == after):
                value, at = value + after, at + 1
                inside = inside if escapes else not inside
            elif letter == quote:
                if at > 2 and line[at - 1] != delimiter and after and after != delimiter:
                    value = "" if value and value.isspace() else value + letter
                quoted, inside = not quoted, not inside
            elif letter == delimiter and not quoted:
                values.append(value)
                value, inside = "", False
            elif letter != escape:
                value, inside = value + letter, True
            at += 1
        if len(values) < len(self.columns) and not quoted and line.strip():
            values.append(value)
        return values + [None] * (len(self.columns) - len(values))


class CsvFileWriter(FormatWriter):
    """A writer of a CSV file."""

    def __init__(self, sink: Any, fields: Sequence[DataField], layout: CsvLayout, compression: str) -> None:
        for field in fields:
            check_storable(field, "CSV", nested=False)
        self._fields, self._schema, self._layout = tuple(fields), arrow_schema(fields), layout
        self._lines = LineWriter(sink, compression)
        self._marks = "[" + "".join(f"\\x{ord(m):02x}" for m in (layout.delimiter, layout.quote, layout.escape)) + "]"
        if layout.header:
            names = [self._quoted(pa.array([f.name])) for f in fields]
            self._lines.write(_joined(names, layout.delimiter))

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`. Raises InvalidInputError for text that would not be read back as it is."""
        for piece in check_columns(batch, self._schema).to_batches(max_chunksize=_PIECE_ROWS):
            values = [self._value(column, f) for column, f in zip(piece.columns, self._fields, strict=True)]
            self._lines.write(_joined(values, self._layout.delimiter))

    def tell(self) -> int:
        """See `FormatWriter.tell`; a compressor may hold some bytes more."""
        return self._lines.written

    def close(self) -> None:
        """See `FormatWriter.close`."""
        self._lines.close()

    def _value(self, column: pa.Array, field: DataField) -> pa.Array:
        texts, null = to_text(column, field.type), self._layout.null
        self._refuse(pc.equal(texts, null), field, f"is {null!r}, the 'csv.null-literal' that stands for NULL")
        self._refuse(pc.match_substring_regex(texts, "[\r\n]"), field, "holds a line break, which no reader takes back")
        return pc.fill_null(self._quoted(texts), null)

    def _refuse(self, bad: pa.Array, field: DataField, why: str) -> None:
        if pc.any(bad).as_py():
            raise InvalidInputError(f"a value of column {field.name!r} {why}: CSV files cannot hold it")

    def _quoted(self, texts: pa.Array) -> pa.Array:
        quote, escape = self._layout.quote, self._layout.escape
        marked = pc.or_(pc.match_substring_regex(texts, self._marks), pc.match_substring_regex(texts, _BLANK))
        if not pc.any(marked).as_py():
            return texts
        inner = pc.replace_substring(pc.replace_substring(texts, escape, escape * 2), quote, escape + quote)
        return pc.if_else(marked, pc.binary_join_element_wise(quote, inner, quote, ""), texts)


def _joined(values: Sequence[pa.Array], delimiter: str) -> bytes:
    """Lines of the values, one after another: the data of an array of texts is just that."""
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*values, delimiter), "", "\n")
    _, offsets, data = lines.buffers()
    ends = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = ends[0].as_py(), ends[-1].as_py()
    return bytes(data[first:last]) if last else b""
