"""The interface between the engine and the encodings of its data files."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.format.file_description import FileDescription
from paimon_core.options.option import Options
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import Mask
from paimon_core.types.datatype import DataField


class FormatWriter(ABC):
    """A writer of one file. The caller owns the sink: `close` completes the file and leaves the sink open."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows; columns by name, in the canonical Arrow types of the fields."""

    @abstractmethod
    def tell(self) -> int:
        """Return the bytes of the file so far, including an estimate for the rows in memory."""

    @property
    def held_bytes(self) -> int:
        """The Arrow bytes of the rows that are still in memory: 0 in formats that write rows at once."""
        return 0

    @property
    def footer_bytes(self) -> int:
        """The memory that metadata for the footer takes until the file ends: 0 in formats where it stays small."""
        return 0

    def flush(self) -> None:  # noqa: B027 - a format that writes rows at once has nothing to flush
        """Write the rows in memory, as far as the format allows that before the end of the file."""

    @abstractmethod
    def close(self) -> None:
        """Write the rows in memory and the footer."""


OpenWriter: TypeAlias = Callable[[Any], FormatWriter]
"""Begins a file in a sink, which stays open."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The columns and rows to read from a file, and the size of the batches."""

    fields: Sequence[DataField]
    """The columns of the batches, in order. A column is found by name; one that the file lacks is all null."""
    batch_rows: int
    """The maximum rows of a batch."""
    batch_bytes: int | None = None
    """The approximate maximum bytes of a decoded batch. `None`: no limit."""
    predicate: Predicate | None = None
    """Bound to ``fields``. Parts of the file without a match may be skipped; all other rows are returned."""
    row_mask: Mask | None = None
    """A boolean for each row of the file. Only parts of the file in which all are False may be skipped."""
    part: range | None = None
    """Only row groups whose middle row is in this range of row positions are read. REQUIRES: a Parquet file."""
    row_count: int | None = None
    """The number of rows that the file must have, or `None`. Only Parquet checks it, before the first batch."""
    path: str = ""
    """The file's name in messages."""
    count_bytes: Callable[[int], None] | None = None
    """A format that skips parts of a file calls it with the encoded bytes of the parts that it decodes."""
    threads: int | None = None
    """The most threads that decode batches of the file at the same time. `None`: a thread per core."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows of a file that match a filter, and the cost of reading them."""

    mask: Mask
    """A boolean for each row of the file: False for rows that the filter excludes."""
    encoded_bytes: int
    """The encoded bytes of the parts of the file that a read of the other rows decodes."""


class FileFormat(ABC):
    """An encoding of rows in files. Implementations are stateless; several threads may use one at once."""

    name: str
    """The name in options and file extensions."""
    title: str
    """The name in messages."""
    magic: bytes = b""
    """The first bytes of every file. Empty: files are not recognised by their bytes, and `describe` refuses them."""
    writable: bool = True
    """True if the option ``file.format`` may name the format. All formats are read."""
    codec_option: str = ""
    """The option that sets the codec of the data files of this format. Empty: the format has no such option."""
    reads_fields: bool = False
    """True if `read` decodes single fields of structs; otherwise the fields of a request have all fields of structs."""
    skips_rows: bool = False
    """True if `read` skips parts of a file. Such a format supplies the field ``ROW_POSITION``."""

    @staticmethod
    def codec(name: str, /) -> str:
        """Return the name that the library of the format gives a codec of the options of tables.

        Raises UnsupportedError for a codec that files of this format cannot have.
        """
        return name

    @staticmethod  # noqa: B027 - most formats have no options of their own
    def check_options(options: Options) -> None:
        """Raise InvalidInputError for an option of this format with a value that files cannot be written with."""

    @staticmethod  # noqa: B027 - most formats hold columns of all types
    def check_column(column: DataField) -> None:
        """Raise UnsupportedError for a column that files of this format cannot hold."""

    @abstractmethod
    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file as batches with exactly the fields of the request, in canonical Arrow types.

        Args:
            source: a seekable file as `FileIO.open` returns it; it stays open.
            request: columns, rows and batch size.

        Raises CorruptedError if the file is damaged or a column cannot be read as its field, UnsupportedError for a
        value that the Arrow type cannot hold.
        """

    def matching_rows(self, source: Any, request: ReadRequest, max_bytes: int) -> Matches | None:
        """Find the rows that match a filter for a few values, without decoding the other columns.

        Args:
            source: the open file; it stays open.
            request: the columns, the filter, and the number of rows that the file must have.
            max_bytes: the most encoded bytes of the filter's columns to decode.

        Return `None` if values are likely to occur in each part of the file, for more bytes, and for other formats.
        """
        return None

    def may_match(self, source: Any, request: ReadRequest) -> bool:
        """Return False if the statistics in the file exclude that a row matches the filter of the request.

        Args:
            source: the open file; it stays open.
            request: the columns, the filter, and perhaps a part of the file.
        """
        return True

    @abstractmethod
    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """Begin a file.

        Args:
            sink: where to write; it stays open.
            fields: the columns of the file.
            options: the options of the table.
            compression: the codec by the name that table options use.
            ordered: True if the rows arrive sorted by columns that filters use, so that readers can skip parts.

        Raises UnsupportedError naming a type or codec that this format cannot store.
        """

    def begin_series(
        self, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> OpenWriter:
        """Return a function that begins each of the files that one writer writes, one after another.

        It takes the same arguments and raises the same errors as `open_writer`, but the function takes the sink. A
        format may adapt a file to the one before.
        """
        return lambda sink: self.open_writer(sink, fields, options, compression, ordered=ordered)

    @abstractmethod
    def row_count(self, source: Any, path: str = "") -> int:
        """Return the number of rows in the file, from its footer if it has one."""

    def describe(self, source: Any, path: str) -> FileDescription:
        """Return the columns, rows and statistics of a file that another tool wrote.

        Args:
            source: the open file; it stays open.
            path: the file's name in messages.

        Raises UnsupportedError for a format whose files do not describe themselves, and for a column that not every
        engine reads right; CorruptedError for a damaged file.
        """
        raise UnsupportedError(f"{path} cannot be added: files of format {self.name} do not describe their columns")


def check_columns(batch: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the batch as a table with exactly the columns of ``schema``, in its order.

    Raises InvalidInputError for a missing column, a duplicate column, another type, or NULL in a NOT NULL column.
    """
    columns = []
    for field in schema:
        indices = batch.schema.get_all_field_indices(field.name)
        if len(indices) != 1:
            raise InvalidInputError(f"column {field.name!r} occurs {len(indices)} times in the rows to write")
        column = batch.column(indices[0])
        if column.type != field.type and not _same_layout(column.type, field.type):
            raise InvalidInputError(f"column {field.name!r} is {column.type}, the file stores {field.type}")
        if column.null_count and not field.nullable:
            raise InvalidInputError(f"column {field.name!r} is NOT NULL and {column.null_count} of its values are null")
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _same_layout(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return True if the types differ at most in nullability and in names of list elements."""
    if not pa.types.is_nested(expected):
        return bool(found == expected)
    if found.id != expected.id or found.num_fields != expected.num_fields:
        return False
    if pa.types.is_map(expected):
        return _same_layout(found.key_type, expected.key_type) and _same_layout(found.item_type, expected.item_type)
    if pa.types.is_struct(expected):
        pairs = [(found.field(i), expected.field(i)) for i in range(expected.num_fields)]
        return all(f.name == e.name and _same_layout(f.type, e.type) for f, e in pairs)
    return _same_layout(found.value_type, expected.value_type)
