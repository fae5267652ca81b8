"""The writer of ORC files that every engine can read (format 7.5)."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as paorc

from paimon_core.errors import UnsupportedError
from paimon_core.format.codec import orc_codec
from paimon_core.format.file_format import FormatWriter, check_columns
from paimon_core.format.size import EncodedSize
from paimon_core.memory import MemoryShares
from paimon_core.options.file import FILE_BLOCK_SIZE
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType


class OrcFileWriter(FormatWriter):
    """A writer of an ORC file. Memory: up to a stripe, in the encoder.

    `flush` does nothing: the encoder cannot end a stripe before it is full.
    """

    def __init__(self, sink: Any, fields: Sequence[DataField], options: Options, compression: str) -> None:
        self._sink, self._schema = sink, arrow_schema(fields)
        self._stored = pa.schema([pa.field(f.name, _stored_type(f.name, f.type), f.type.nullable) for f in fields])
        self._how: dict[str, Any] = {
            "compression": orc_codec(options.get("orc.compress", compression)),
            "stripe_size": options.value(FILE_BLOCK_SIZE) or MemoryShares.of(options).stripe,
            "dictionary_key_size_threshold": 0.8,
            "batch_size": 1 << 14,
        }
        self._writer = paorc.ORCWriter(sink, **self._how)
        self._size = EncodedSize(len(b"ORC"))
        self._empty = True

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`."""
        checked = check_columns(batch, self._schema)
        if not checked.num_rows:
            return
        for name, column in zip(checked.column_names, checked.columns, strict=True):
            for chunk in column.chunks:
                _check_fractions(name, chunk)
        rows = self._as_stored(checked)
        self._empty = False
        self._writer.write(rows)
        self._size.add(rows)
        self._size.stored(int(self._sink.tell()))

    def tell(self) -> int:
        """See `FormatWriter.tell`."""
        return self._size.total(self._encode)

    @property
    def held_bytes(self) -> int:
        """See `FormatWriter.held_bytes`."""
        return self._size.held_bytes

    def close(self) -> None:
        """See `FormatWriter.close`."""
        if self._empty:
            self._writer.write(self._stored.empty_table())
        writer, self._writer = self._writer, None  # frees the buffers before this object is garbage-collected
        writer.close()

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        """Return rows of canonical types, cast to the types that the encoder needs."""
        columns = [_compact(c.cast(f.type)) for c, f in zip(rows.columns, self._stored, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._stored)

    def _encode(self, sample: pa.Table) -> int:
        """Return the size in bytes of a file with these rows."""
        trial = pa.BufferOutputStream()
        with paorc.ORCWriter(trial, **self._how) as writer:
            writer.write(sample)
        return int(trial.tell())


def _check_fractions(column: str, array: pa.Array) -> None:
    """Raise UnsupportedError for a timestamp before 1970 with a part finer than a millisecond, at any depth.

    The encoder stores that part as a negative number, and other engines then fail to read the file.
    """
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.unit != "ms":
        numbers = array.view(pa.int64())
        lowest = pc.min(numbers).as_py()
        if lowest is None or lowest >= 0:
            return
        early = numbers.filter(pc.less(numbers, 0)).to_numpy(zero_copy_only=False)
        if (early % (1_000 if kind.unit == "us" else 1_000_000)).any():
            raise UnsupportedError(
                f"column {column!r} holds a timestamp before 1970 with a part finer than a millisecond, which cannot "
                "be stored in ORC; use Parquet"
            )
    elif pa.types.is_struct(kind):
        for child in array.flatten():
            _check_fractions(column, child)
    elif pa.types.is_map(kind):
        _check_fractions(column, array.keys)
        _check_fractions(column, array.items)
    elif pa.types.is_list(kind):
        _check_fractions(column, array.values)


def _compact(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without slice offsets, because the encoder ignores the null offset of a sliced struct."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([pa.concat_arrays([chunk, chunk.slice(0, 0)]) for chunk in column.chunks], column.type)


def _stored_type(column: str, t: DataType) -> pa.DataType:
    """Return the type for the encoder; TIME is stored as an integer.

    Raises UnsupportedError, naming the column, for a type that ORC does not have.
    """
    if isinstance(t, AtomicType):
        if t.root in ("VARIANT", "GEOMETRY", "GEOGRAPHY"):
            raise UnsupportedError(f"column {column!r}: {t.root} cannot be stored in ORC; use Parquet")
        return pa.int32() if t.root == "TIME" else to_arrow(t)
    match t:
        case RowType(fields):
            # all fields nullable: ORC stores no NOT NULL, and a NULL row has NULL fields
            return pa.struct([pa.field(f.name, _stored_type(column, f.type)) for f in fields])
        case ArrayType(element):
            return pa.list_(pa.field("element", _stored_type(column, element), element.nullable))
        case MapType(key, value):
            return pa.map_(_stored_type(column, key), pa.field("value", _stored_type(column, value), value.nullable))
        case MultisetType(element):
            return pa.map_(_stored_type(column, element), pa.field("value", pa.int32(), False))
        case _:
            raise UnsupportedError(f"column {column!r}: {t} cannot be stored in ORC; use Parquet")
