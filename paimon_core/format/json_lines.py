"""JSON data files (format 7.7): one object per line, with a member for each column.

All values except booleans, lists and objects are texts. Rows are decoded one by one into texts, and every later step is
vectorised.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.format.batch_size import PROBE_ROWS, rows_within
from paimon_core.format.conform import conform_batch
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.format.python_rows import python_rows
from paimon_core.format.text_lines import LineWriter, compression_suffix, count_lines, line_blocks
from paimon_core.format.text_values import check_storable, from_text, known_from_text, text_type, to_text
from paimon_core.options.option import Options
from paimon_core.types.datatype import ArrayType, DataField, DataType, MapType, RowType

T = TypeVar("T")

_WRITE_ROWS = 1 << 12
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_TEXTS = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class JsonFormat(FileFormat):
    """JSON data files."""

    name = "json"
    title = "JSON"
    skips_malformed: bool = False
    """True: a line that is not an object is left out, and a value that is not of its type is NULL."""
    codec = staticmethod(compression_suffix)

    @staticmethod
    def of(columns: Sequence[DataField], options: Options) -> "JsonFormat":
        """Return the format of a table with ``options``. ``columns`` is not used: the files name their columns."""
        if options.get("json.line-delimiter", "\n") != "\n":
            raise InvalidInputError("option 'json.line-delimiter' must be a line feed: no other line end is supported")
        return JsonFormat()

    @staticmethod
    def check_options(options: Options) -> None:
        """See `FileFormat.check_options`."""
        JsonFormat.of((), options)

    @staticmethod
    def check_column(column: DataField) -> None:
        """See `FileFormat.check_column`."""
        check_storable(column, "JSON", nested=True)

    @staticmethod
    def of_any_tool(columns: Sequence[DataField], options: Options) -> "JsonFormat":
        """Return the format of files of a format table; ``json.ignore-parse-errors`` decides about malformed lines."""
        return replace(JsonFormat.of(columns, options), skips_malformed=options.flag("json.ignore-parse-errors"))

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`."""
        fields, path = request.fields, request.path
        for field in fields:
            check_storable(field, "JSON", nested=True)
        step = request.batch_rows if request.batch_bytes is None else min(request.batch_rows, PROBE_ROWS)
        for block in line_blocks(source, path):
            lines = block.removesuffix(b"\n").split(b"\n")
            start = 0
            while start < len(lines):
                decode = _decoded_if_valid if self.skips_malformed else _decoded
                with as_corrupted(path):
                    batch = decode(lines[start : start + step], fields, path)
                start += step
                step = rows_within(request.batch_rows, request.batch_bytes, batch.nbytes / max(1, batch.num_rows))
                yield conform_batch(batch, fields, path)

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`."""
        return JsonFileWriter(sink, fields, compression)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`: the number of lines."""
        return count_lines(source, path)


class JsonFileWriter(LineWriter):
    """A writer of a JSON file."""

    def __init__(self, sink: Any, fields: Sequence[DataField], compression: str) -> None:
        for field in fields:
            check_storable(field, "JSON", nested=True)
        super().__init__(sink, fields, compression)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`."""
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        for part in check_columns(batch, self._schema).to_batches(max_chunksize=_WRITE_ROWS):
            texts = [to_text(column, f.type) for column, f in zip(part.columns, self._fields, strict=True)]
            rows = python_rows(pa.RecordBatch.from_arrays(texts, names=self._schema.names))
            self._write_lines("".join([encode(row) + "\n" for row in rows]).encode())


def _decoded(lines: Sequence[bytes], fields: Sequence[DataField], path: str) -> pa.RecordBatch:
    """Return the rows of some lines. Raises ValueError or CorruptedError for a line that is not a valid row."""
    rows = [_DECODER.decode(line.decode()) for line in lines]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is not a JSON object")
    columns = []
    for field in fields:
        values = [_texts(row.get(field.name), field.type) for row in rows]
        columns.append(from_text(pa.array(values, text_type(field.type)), field.type, field.name, path))
    return pa.RecordBatch.from_arrays(columns or [pa.nulls(len(rows))], names=[f.name for f in fields] or [""])


def _decoded_if_valid(lines: Sequence[bytes], fields: Sequence[DataField], path: str) -> pa.RecordBatch:
    """Return the rows of the lines that are objects, with NULL for each value that is not of its type."""
    rows = [row for line in lines if isinstance(row := _object(line), dict)]
    columns = []
    for field in fields:
        values = [_texts_if_valid(row.get(field.name), field.type) for row in rows]
        columns.append(known_from_text(pa.array(values, text_type(field.type)), field.type))
    return pa.RecordBatch.from_arrays(columns or [pa.nulls(len(rows))], names=[f.name for f in fields] or [""])


def _object(line: bytes) -> Any:
    """Return the decoded line; `None`: it is not JSON."""
    try:
        return _DECODER.decode(line.decode())
    except ValueError:
        return None


def _texts_if_valid(value: Any, t: DataType) -> Any:
    """Return a decoded member as `_texts` does; `None` for a value, and for each part, of another shape."""
    match t:
        case ArrayType(element):
            return [_texts_if_valid(v, element) for v in value] if isinstance(value, list) else None
        case MapType(_, item):
            return [(k, _texts_if_valid(v, item)) for k, v in value.items()] if isinstance(value, dict) else None
        case RowType(fields):
            return (
                {f.name: _texts_if_valid(value.get(f.name), f.type) for f in fields}
                if isinstance(value, dict)
                else None
            )
    if isinstance(value, (dict, list)):
        return None
    return _TEXTS[value] if isinstance(value, bool) else value


def _texts(value: Any, t: DataType) -> Any:
    """Return a decoded member in the form of `text_type`: booleans as texts, objects of maps as lists of pairs."""
    if value is None:
        return None
    match t:
        case ArrayType(element):
            return [_texts(v, element) for v in _of_kind(list, value, t)]
        case MapType(_, item):
            return [(k, _texts(v, item)) for k, v in _of_kind(dict, value, t).items()]
        case RowType(fields):
            return {f.name: _texts(_of_kind(dict, value, t).get(f.name), f.type) for f in fields}
    return _TEXTS[value] if isinstance(value, bool) else value


def _of_kind(kind: type[T], value: object, t: DataType) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"the value {value!r} is not of type {t}")
    return value
