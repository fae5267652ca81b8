"""Rows of files of other tools, read as Arrow batches to be written into a table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.orc as orc
import pyarrow.parquet as pq

from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format import FORMATS
from paimon_core.format.corruption import as_corrupted, decoded
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.orc_tail import open_orc
from paimon_core.migration.describe_file import describe
from paimon_core.migration.source import SourceFile, source_files
from paimon_core.types.arrow import arrow_field, arrow_schema
from paimon_core.types.columns import repeated_names
from paimon_core.types.datatype import AtomicType, DataField

IMPORTED_FORMATS: Final = ("csv", "json", "parquet", "orc", "avro")
"""The formats of files whose rows are imported."""
_ENDINGS: Final = {"ndjson": "json", "jsonl": "json", "tsv": "csv"}
_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class TextForm:
    """The form of CSV files.

    Attributes:
        delimiter: the character between two fields.
        null: the text that stands for NULL, besides an empty field without quotes.
    """

    delimiter: str = ","
    null: str = ""


@dataclass(frozen=True, slots=True)
class RowsOfFiles:
    """The columns and the rows of files; the rows are read while they are consumed.

    Attributes:
        files: the files, in the order of their rows.
        schema: the columns of the files and of the directories ``column=value``.
    """

    io: FileIO
    files: Sequence[SourceFile]
    format: str
    form: TextForm
    schema: pa.Schema

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows. Reading raises InvalidInputError, which names the file, for a value of another type."""
        nullable = pa.schema([field.with_nullable(True) for field in self.schema])  # the table refuses NULL by row
        return pa.RecordBatchReader.from_batches(nullable, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            with _naming(file.path):
                for batch in _read(self.io, file, self.format, self.form, self.schema):
                    yield _conformed(batch, file, self.schema)


def rows_of_files(
    io: FileIO,
    paths: Sequence[str],
    format: str | None = None,
    columns: Sequence[DataField] | None = None,
    form: TextForm | None = None,
) -> RowsOfFiles:
    """Return the rows of files, or of all files below directories.

    A directory ``column=value`` adds a column. Names that begin with ``_`` or ``.`` are left out.

    Args:
        io: the file IO of the files.
        paths: files or directories.
        format: one of `IMPORTED_FORMATS`; `None`: what the name of each file ends with.
        columns: the columns of the table, whose types the columns of the files get; `None`: the columns and types of
            the files; for CSV and JSON, the types that the first rows suggest.
        form: the form of CSV files; `None`: commas, and empty fields are NULL.

    Raises InvalidInputError for files without rows, of several formats, or of other formats, and for a column that
    ``columns`` lacks. Raises UnsupportedError for a column whose type is not imported from the format, CorruptedError
    for a damaged file, NotFoundError for a missing path.
    """
    files = [file for path in paths for file in source_files(io, path)]
    if not files:
        raise InvalidInputError(f"there are no files with rows in {', '.join(paths)}")
    formats = {format or _format_of(file.path) for file in files}
    if len(formats) > 1:
        raise InvalidInputError(f"the files are of the formats {', '.join(sorted(formats))}: import one at a time")
    (name,) = formats
    form = form or TextForm()
    refused = {field.name: reason for field in columns or () if (reason := _not_imported(field, name)) is not None}
    typed = None if columns is None else arrow_schema([field for field in columns if field.name not in refused])
    schemas = []
    for file in files:
        with _naming(file.path):
            schemas.append(_schema(io, file, name, form, typed))
        for column in schemas[-1].names:
            if column in refused:
                raise UnsupportedError(
                    f"column {column!r} of {file.path} {refused[column]}: INSERT the rows with Spark"
                )
    return RowsOfFiles(io, files, name, form, _unified(schemas, files, typed))


def _not_imported(field: DataField, format: str) -> str | None:
    """Return the reason why values of a column are not imported from a format; `None`: they are."""
    if isinstance(field.type, AtomicType) and field.type.root in ("VARIANT", "BLOB"):
        return f"has the type {field.type} in the table, which is not imported"
    if format in ("csv", "json") and _has_binary(arrow_field(field).type):
        return f"has the type {field.type} in the table, and {format.upper()} has no one form for bytes"
    return None


def _has_binary(kind: pa.DataType) -> bool:
    """Return True if a type has bytes at any depth."""
    if pa.types.is_map(kind):
        return _has_binary(kind.key_type) or _has_binary(kind.item_type)
    return _kind(kind) == "binary" or any(_has_binary(kind.field(i).type) for i in range(kind.num_fields))


def _format_of(path: str) -> str:
    ending = path.rpartition("/")[2].removesuffix(".gz").rpartition(".")[2].lower()
    format = _ENDINGS.get(ending, ending)
    if format not in IMPORTED_FORMATS:
        raise InvalidInputError(
            f"the name of {path} ends with none of {', '.join(IMPORTED_FORMATS)}: name the format of the files"
        )
    return format


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in errors of Arrow."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidInputError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} was deleted while it was being read") from error


def _open(source: Any, path: str, name: str, form: TextForm, columns: pa.Schema | None) -> Any:
    """Return an object with the ``schema`` of a file and its rows as ``to_batches()`` or as an iterable of batches.

    ``columns``: the types of columns of CSV and JSON files; `None`: the types that their first rows suggest.
    """
    if path.endswith(".gz"):
        source = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "gzip")
    if name == "csv":
        convert = pacsv.ConvertOptions(
            column_types=columns,
            null_values=[form.null, ""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse = pacsv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
        return pacsv.open_csv(source, parse_options=parse, convert_options=convert)
    if name == "json":
        open_json = getattr(pajson, "open_json", pajson.read_json)  # older versions read the whole file
        return open_json(source, parse_options=pajson.ParseOptions(explicit_schema=columns))
    with as_corrupted(path):
        return pq.ParquetFile(source) if name == "parquet" else open_orc(source)


def _batches(opened: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open file."""
    if isinstance(opened, pq.ParquetFile):
        yield from opened.iter_batches(_BATCH_ROWS)
    elif isinstance(opened, orc.ORCFile):
        for stripe in range(opened.nstripes):
            yield opened.read_stripe(stripe)
    else:
        yield from opened.to_batches() if isinstance(opened, pa.Table) else opened


def _schema(io: FileIO, file: SourceFile, name: str, form: TextForm, columns: pa.Schema | None) -> pa.Schema:
    """Return the columns of a file, with the columns that its directories name."""
    if name == "avro":
        stored = arrow_schema(describe(io, file.path, file.size, name).fields)
    else:
        with io.open(file.path, file.size) as source:
            opened = _open(source, file.path, name, form, columns)
            stored = (opened.schema_arrow if name == "parquet" else opened.schema).remove_metadata()
    in_file = set(stored.names)
    for column in file.partition:
        if column not in in_file:
            stored = stored.append(pa.field(column, pa.string()))
    return stored


def _unified(schemas: Sequence[pa.Schema], files: Sequence[SourceFile], columns: pa.Schema | None) -> pa.Schema:
    """Return the columns of all files, with the types of ``columns``; columns without values become texts."""
    known = set() if columns is None else set(columns.names)
    for schema, file in zip(schemas, files, strict=True):
        repeated = repeated_names(schema.names)
        unknown = [] if columns is None else [name for name in schema.names if name not in known]
        if repeated or unknown:
            what = f"has {repeated} more than once" if repeated else f"has columns {unknown} that the table lacks"
            raise InvalidInputError(f"{file.path} {what}")
    if columns is not None:
        names = dict.fromkeys(name for schema in schemas for name in schema.names)
        return pa.schema([columns.field(name) for name in names])
    try:
        unified = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInputError(f"the files have different types of a column: {error}") from error
    return pa.schema([pa.field(f.name, pa.string()) if pa.types.is_null(f.type) else f for f in unified])


def _read(io: FileIO, file: SourceFile, name: str, form: TextForm, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, with the columns that it has."""
    with io.open(file.path, file.size) as source:
        if name == "avro":
            fields = describe(io, file.path, file.size, name).fields
            yield from FORMATS[name].read(source, ReadRequest(fields, _BATCH_ROWS, path=file.path))
        else:
            types = columns if name in ("csv", "json") else None
            batches = _batches(_open(source, file.path, name, form, types))
            yield from batches if types is not None else decoded(batches, file.path)


def _conformed(batch: pa.RecordBatch, file: SourceFile, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with exactly the columns and types of a schema; a column that the file lacks is NULL."""
    columns, positions = [], {name: i for i, name in enumerate(batch.schema.names)}
    for field in schema:
        if field.name in positions:
            column = batch.column(positions[field.name])
        elif field.name in file.partition:
            column = pa.repeat(pa.scalar(file.partition[field.name], pa.string()), batch.num_rows)
        else:
            column = pa.nulls(batch.num_rows, field.type)
        columns.append(column if column.type == field.type else _cast(column, field, file))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))


def _cast(column: pa.Array, field: pa.Field, file: SourceFile) -> pa.Array:
    """Return a column with the type of a field. Raises InvalidInputError for other kinds of types, and for values."""
    reason = "these are different kinds of types"
    is_of_directory = field.name in file.partition
    if is_of_directory or _kind(column.type) == _kind(field.type) or pa.types.is_null(column.type):
        try:
            if pa.types.is_integer(column.type) and pa.types.is_decimal(field.type):  # a cast checks types, not values
                column = column.cast(pa.decimal128(38, field.type.scale))
            return column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error)
    raise InvalidInputError(
        f"column {field.name!r} of {file.path} is {column.type}, which cannot become {field.type}: {reason}"
    )


def _kind(kind: pa.DataType) -> str:
    """Return the kind of a type: types of one kind are cast into each other without another meaning of the values."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "instant"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list of {_kind(kind.value_type)}"
    if pa.types.is_map(kind):
        return f"map of {_kind(kind.key_type)} to {_kind(kind.item_type)}"
    if pa.types.is_struct(kind):
        return f"struct of {', '.join(f'{part.name} {_kind(part.type)}' for part in kind)}"
    return str(kind)
