"""What a file format can do: the seam between the engine and the encodings."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.options.option import Options
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import Mask
from paimon_core.types.datatype import DataField


class FormatWriter(Protocol):
    """A file being written. The sink below belongs to the caller: `close` completes the file, not the sink."""

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows; columns by name, in the canonical Arrow types of the fields."""

    def tell(self) -> int:
        """Bytes so far, those still held in memory estimated."""

    @property
    def held_bytes(self) -> int:
        """Arrow bytes of the rows that are still in memory."""

    def flush(self) -> None:
        """Write the rows that are held, as far as the format allows that before the end of the file."""

    def close(self) -> None:
        """Write what is held and the footer."""


class FileFormat(Protocol):
    """One encoding of rows in files. Implementations are stateless and may be used from several threads."""

    @property
    def name(self) -> str:
        """The word in options and file extensions."""

    def read(
        self,
        source: Any,
        fields: Sequence[DataField],
        batch_size: int,
        *,
        predicate: Predicate | None = None,
        wanted: Mask | None = None,
        batch_bytes: int | None = None,
        path: str = "",
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a file as batches of at most ``batch_size`` rows with exactly ``fields``, in canonical Arrow types.

        ``batch_bytes``: about how many bytes a batch takes at most, decoded, whatever it takes on storage.
        ``source`` is a seekable file as `FileIO.open` gives it; it stays open. Columns are found by name; one the file
        lacks is all null. ``predicate``, bound to ``fields`` of the file, may skip parts of the file in which no row
        matches, ``wanted``, a mask of its rows, parts with none of them, and nothing else. A format that does so
        gives ``ROW_POSITION``, where that is one of ``fields``, the numbers of the rows that are left. ``path`` is for
        messages. Raises CorruptedError when the file is damaged or a column cannot be read as its field,
        UnsupportedError for a value the Arrow type cannot hold.
        """

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """Begin a file; UnsupportedError names a type or codec this format cannot store.

        ``ordered``: the rows come sorted by columns that filters ask for, so parts of the file may be worth skipping.
        """

    def row_count(self, source: Any, path: str = "") -> int:
        """Rows in the file, from its footer where it has one."""


def check_columns(batch: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """The batch as a table with exactly the columns of ``schema``, in its order; InvalidInputError where it differs."""
    columns = []
    for field in schema:
        at = batch.schema.get_all_field_indices(field.name)
        if len(at) != 1:
            raise InvalidInputError(f"column {field.name!r} occurs {len(at)} times in the rows to write")
        column = batch.column(at[0])
        if column.type != field.type and not _same_layout(column.type, field.type):
            raise InvalidInputError(f"column {field.name!r} is {column.type}, the file stores {field.type}")
        if column.null_count and not field.nullable:
            raise InvalidInputError(f"column {field.name!r} is NOT NULL and {column.null_count} of its values are null")
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _same_layout(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Nested types that differ in nothing but nullability and names of list elements."""
    if not pa.types.is_nested(wanted):
        return bool(found == wanted)
    if found.id != wanted.id or found.num_fields != wanted.num_fields:
        return False
    if pa.types.is_map(wanted):
        return _same_layout(found.key_type, wanted.key_type) and _same_layout(found.item_type, wanted.item_type)
    if pa.types.is_struct(wanted):
        pairs = [(found.field(i), wanted.field(i)) for i in range(wanted.num_fields)]
        return all(f.name == w.name and _same_layout(f.type, w.type) for f, w in pairs)
    return _same_layout(found.value_type, wanted.value_type)
