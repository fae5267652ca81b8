"""CSV data files (format 7.7): one row per line, the columns in the order in which they were written, values as texts.

A header is skipped, so the reader must know the columns. Escape characters and quotes follow the Java engine. Reads
interpret them as the Java engine does, and writes produce lines that it reads correctly. A value that it could not read
back is refused.

Lines with escape characters are parsed by hand, because no library knows the Java engine's dialect; `pyarrow.csv`
parses all other lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias, cast, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from paimon_core.errors import InvalidInputError
from paimon_core.format.batch_size import rows_within
from paimon_core.format.conform import conform_batch
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.format.text_lines import LineWriter, compression_suffix, joined_lines, line_blocks
from paimon_core.format.text_values import check_storable, from_text, known_from_text, to_text
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField

_WRITE_ROWS = 1 << 14
_BLANK = r"^([\s\pZ]*$|\x{FEFF})"
"""Blank texts, and texts that begin like a byte order mark, which a reader skips."""


Malformed: TypeAlias = Literal["permissive", "dropmalformed", "failfast"]


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """The delimiters and the null literal of a CSV file: the options ``csv.*``."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = "\\"
    null: str = ""
    header: bool = False

    @staticmethod
    def of(options: Options) -> "CsvLayout":
        """Return the layout in the options of a table.

        Raises InvalidInputError if a reader could confuse two of the characters, and for other line delimiters than a
        line feed.
        """
        if options.get("csv.line-delimiter", "\n") != "\n":
            raise InvalidInputError("option 'csv.line-delimiter' must be a line feed: no other line end is supported")
        layout = CsvLayout(
            options.get("csv.field-delimiter", ","),
            options.get("csv.quote-character", '"'),
            options.get("csv.escape-character", "\\"),
            options.get("csv.null-literal", ""),
            options.flag("csv.include-header"),
        )
        special = layout.special
        if any(len(c) != 1 or not c.isascii() or c in "\r\n\0" for c in special) or len(set(special)) < 3:
            raise InvalidInputError(
                f"options 'csv.field-delimiter', 'csv.quote-character' and 'csv.escape-character' must be three "
                f"different ASCII characters, not {special}"
            )
        if any(c in layout.null for c in (*special, "\r", "\n")):
            raise InvalidInputError(f"option 'csv.null-literal' is {layout.null!r}, but must contain none of {special}")
        return layout

    @property
    def special(self) -> tuple[str, str, str]:
        """The characters with a meaning: delimiter, quote and escape character."""
        return self.delimiter, self.quote, self.escape


@dataclass(frozen=True, slots=True)
class CsvFormat(FileFormat):
    """CSV data files with these columns."""

    name = "csv"
    title = "CSV"
    columns: tuple[DataField, ...]
    layout: CsvLayout
    malformed: Malformed | None = None
    """The treatment of other tools' lines; `None`: the files are of Paimon tables, and such a line means damage."""
    codec = staticmethod(compression_suffix)

    @staticmethod
    def of(columns: Sequence[DataField], options: Options) -> "CsvFormat":
        """Return the format of files that hold ``columns``, of a table with these options."""
        return CsvFormat(tuple(columns), CsvLayout.of(options))

    @staticmethod
    def check_options(options: Options) -> None:
        """See `FileFormat.check_options`."""
        CsvLayout.of(options)

    @staticmethod
    def check_column(column: DataField) -> None:
        """See `FileFormat.check_column`."""
        check_storable(column, "CSV", nested=False)

    @staticmethod
    def of_any_tool(columns: Sequence[DataField], options: Options) -> "CsvFormat":
        """Return the format of files of a format table, which any tool may have written.

        Missing values at the end of a line are NULL, and surplus values are left out. ``csv.mode`` decides about values
        that are not of their type: NULL in the mode "permissive", which is the default; "dropmalformed" leaves the row
        out; "failfast" refuses the file. Raises InvalidInputError for another mode, and as `CsvLayout.of`.
        """
        mode = options.get("csv.mode", "permissive").strip().lower()
        if mode not in get_args(Malformed):
            raise InvalidInputError(
                f"option 'csv.mode' is {mode!r}, but must be one of {', '.join(get_args(Malformed))}"
            )
        return CsvFormat(tuple(columns), CsvLayout.of(options), cast(Malformed, mode))

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`. All columns of a line are parsed, regardless of the request."""
        fields, path = request.fields, request.path
        requested = {f.name for f in fields}
        drops = self.malformed == "dropmalformed"  # also for a value that the query does not need
        stored = [f for f in self.columns if drops or f.name in requested]
        for field in stored:
            check_storable(field, "CSV", nested=False)
        for texts in self._texts(source, [f.name for f in stored], path):
            rows = rows_within(request.batch_rows, request.batch_bytes, texts.nbytes / max(1, texts.num_rows))
            for part in texts.to_batches(max_chunksize=rows):
                arrays = [self._values(part.column(i), f, path) for i, f in enumerate(stored)]
                names = [f.name for f in stored] or [""]
                batch = pa.RecordBatch.from_arrays(arrays or [pa.nulls(part.num_rows)], names)
                yield conform_batch(_well_formed(batch, part) if drops else batch, fields, path)

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`."""
        return CsvFileWriter(sink, fields, self.layout, compression)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`: the whole file is read."""
        return sum(texts.num_rows for texts in self._texts(source, [], path))

    def _values(self, texts: pa.Array, field: DataField, path: str) -> pa.Array:
        """Return the values of a column; a text that is not a value is NULL if the mode allows such texts."""
        if self.malformed in (None, "failfast"):
            return from_text(texts, field.type, field.name, path)
        return known_from_text(texts, field.type)

    def _texts(self, source: Any, names: list[str], path: str) -> Iterator[pa.Table]:
        """Yield the rows of the file with the columns ``names`` as texts; any columns if ``names`` is empty."""
        skip, layout = int(self.layout.header), self.layout
        escape = layout.escape.encode()
        for block in line_blocks(source, path, layout.quote.encode()):
            with as_corrupted(path):
                if escape in block:
                    texts = self._escaped(block, skip)
                else:
                    texts = self._plain_or_ragged(block, names, skip)
            skip = 0
            if texts.num_rows:
                yield texts.select(names) if names else texts

    def _plain_or_ragged(self, block: bytes, names: list[str], skip: int) -> pa.Table:
        """Return lines without an escape character; other tools may write too few or too many values."""
        try:
            return self._plain(block, names, skip)
        except pa.ArrowInvalid:
            if self.malformed is None:
                raise
            return self._escaped(block, skip)

    def _plain(self, block: bytes, names: list[str], skip: int) -> pa.Table:
        """Return lines without an escape character, parsed by Arrow; the first ``skip`` lines are left out."""
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

    def _escaped(self, block: bytes, skip: int) -> pa.Table:
        """Return lines with escape characters, parsed character by character; ``skip`` as in `_plain`."""
        lines = block.decode().removesuffix("\n").split("\n")[skip:]
        if self.malformed is not None:
            self._check_whole(lines)
        rows = [self._line(line.removesuffix("\r")) for line in lines]
        columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(self.columns))]
        columns = [pc.if_else(pc.equal(c, self.layout.null), pa.scalar(None, pa.string()), c) for c in columns]
        return pa.Table.from_arrays(columns, [f.name for f in self.columns])

    def _check_whole(self, lines: Sequence[str]) -> None:
        """Raise ValueError if a value has a line break, which the parser of single lines would take for an end."""
        quote, escape = self.layout.quote, self.layout.escape
        for line in lines:
            if quote in line and line.replace(escape * 2, "").replace(escape + quote, "").count(quote) % 2:
                raise ValueError(f"a line has a quote without its partner: {line[:80]!r}")

    def _line(self, line: str) -> list[str | None]:
        """Return the values of a line; missing values are null.

        Inside a value an escape character escapes a quote or an escape character; elsewhere it is dropped. A quote
        inside a value without quotes is part of the value.
        """
        delimiter, quote, escape = self.layout.delimiter, self.layout.quote, self.layout.escape
        values: list[str | None] = []
        value, quoted, inside, i = "", False, False, 0
        while i < len(line) and len(values) < len(self.columns):
            char, following = line[i], line[i + 1 : i + 2]
            escapes = char == escape and following in (quote, escape)
            if (quoted or inside) and following and (escapes or char == quote == following):
                value, i = value + following, i + 1
                inside = inside if escapes else not inside
            elif char == quote:
                if i > 2 and line[i - 1] != delimiter and following and following != delimiter:
                    value = "" if value and value.isspace() else value + char
                quoted, inside = not quoted, not inside
            elif char == delimiter and not quoted:
                values.append(value)
                value, inside = "", False
            elif char != escape:
                value, inside = value + char, True
            i += 1
        if len(values) < len(self.columns) and not quoted and line.strip():
            values.append(value)
        return values + [None] * (len(self.columns) - len(values))


class CsvFileWriter(LineWriter):
    """A writer of a CSV file."""

    def __init__(self, sink: Any, fields: Sequence[DataField], layout: CsvLayout, compression: str) -> None:
        for field in fields:
            check_storable(field, "CSV", nested=False)
        super().__init__(sink, fields, compression)
        self._layout = layout
        self._special = "[" + "".join(f"\\x{ord(c):02x}" for c in layout.special) + "]"
        if layout.header:
            names = [self._quoted(pa.array([f.name])) for f in fields]
            self._write_lines(joined_lines(names, layout.delimiter))

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`. Raises InvalidInputError for a text that readers would change."""
        for part in check_columns(batch, self._schema).to_batches(max_chunksize=_WRITE_ROWS):
            values = [self._value(column, f) for column, f in zip(part.columns, self._fields, strict=True)]
            self._write_lines(joined_lines(values, self._layout.delimiter))

    def _value(self, column: pa.Array, field: DataField) -> pa.Array:
        """Return the values as they appear in lines. Raises InvalidInputError for a text that readers would change."""
        texts, null = to_text(column, field.type), self._layout.null
        self._refuse(pc.equal(texts, null), field, f"is {null!r}, the 'csv.null-literal' that stands for NULL")
        self._refuse(pc.match_substring_regex(texts, "[\r\n]"), field, "has a line break, which no reader restores")
        return pc.fill_null(self._quoted(texts), null)

    def _refuse(self, bad: pa.Array, field: DataField, reason: str) -> None:
        """Raise InvalidInputError with this reason if an item of ``bad`` is True."""
        if pc.any(bad).as_py():
            raise InvalidInputError(f"a value of column {field.name!r} {reason}: CSV files cannot hold it")

    def _quoted(self, texts: pa.Array) -> pa.Array:
        """Return the texts, in quotes if they are blank or hold a special character."""
        quote, escape = self._layout.quote, self._layout.escape
        needed = pc.or_(pc.match_substring_regex(texts, self._special), pc.match_substring_regex(texts, _BLANK))
        if not pc.any(needed).as_py():
            return texts
        inner = pc.replace_substring(pc.replace_substring(texts, escape, escape * 2), quote, escape + quote)
        return pc.if_else(needed, pc.binary_join_element_wise(quote, inner, quote, ""), texts)


def _well_formed(batch: pa.RecordBatch, texts: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows whose texts all have a value. ``texts``: the texts of the columns of the batch."""
    good = [pc.or_(pc.is_valid(v), pc.is_null(t)) for v, t in zip(batch.columns, texts.columns, strict=True)]
    return batch.filter(reduce(pc.and_, good))
