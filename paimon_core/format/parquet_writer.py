"""Writing Parquet as every engine of the format reads it (format.md 7.4)."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core.format.codec import parquet_codec
from paimon_core.format.file_format import check_columns
from paimon_core.options.file import FILE_BLOCK_SIZE, FILE_COMPRESSION_ZSTD_LEVEL
from paimon_core.options.option import Options
from paimon_core.options.parse import boolean
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

_ROW_GROUP_BYTES = 32 << 20  # of Arrow memory: big enough to encode well, small enough to hold one per open file
_ROW_GROUP_ROWS = 1 << 20
_SAMPLE_ROWS = 1 << 15
_SAMPLE_BYTES = 1 << 18
_NESTED_ID, _ID_STRIDE = 536870911, 1024  # ids of elements, keys and values, which have none of their own


class ParquetFileWriter:
    """A Parquet file being written, a row group whenever enough rows have gathered."""

    def __init__(self, sink: Any, fields: Sequence[DataField], options: Options, compression: str) -> None:
        self._sink, self._schema = sink, arrow_schema(fields)
        codec = parquet_codec(options.get("parquet.compression", compression))
        self._int96 = any(_has_nanos(f.type) for f in fields)
        self._stored = pa.schema([_stored_field(f, f.id, 0, self._int96) for f in fields])
        self._how: dict[str, Any] = {
            "compression": codec,
            "compression_level": options.value(FILE_COMPRESSION_ZSTD_LEVEL) if codec == "zstd" else None,
            "use_dictionary": boolean(options.get("parquet.enable.dictionary", "true")),
            "use_deprecated_int96_timestamps": self._int96,
            "store_decimal_as_integer": True,
            "store_schema": False,
            "write_page_checksum": True,
        }
        self._writer = pq.ParquetWriter(sink, self._stored, **self._how)
        self._block = options.value(FILE_BLOCK_SIZE)
        self._held: list[pa.Table] = []
        self._held_bytes = self._held_rows = 0
        self._raw = 0  # Arrow bytes already encoded
        self._ratio: float | None = None  # encoded bytes per Arrow byte

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`."""
        rows = check_columns(batch, self._schema)
        if not rows.num_rows:
            return
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        self._held_rows += rows.num_rows
        if self._is_full():
            self._flush()

    def tell(self) -> int:
        """See `FormatWriter.tell`; held rows are reckoned by how well the rows so far, or a sample, compressed."""
        return int(self._sink.tell()) + int(self._held_bytes * self._measured_ratio())

    def close(self) -> None:
        """See `FormatWriter.close`."""
        self._flush()
        self._writer.close()

    def _is_full(self) -> bool:
        if self._held_bytes >= _ROW_GROUP_BYTES or self._held_rows >= _ROW_GROUP_ROWS:
            return True
        return self._block is not None and self._held_bytes * self._measured_ratio() >= self._block

    def _flush(self) -> None:
        if not self._held:
            return
        before = self._sink.tell()
        self._writer.write_table(self._as_stored(pa.concat_tables(self._held)), row_group_size=_ROW_GROUP_ROWS)
        self._raw += self._held_bytes
        self._ratio = (self._sink.tell() - before) / max(1, self._held_bytes)
        self._held, self._held_bytes, self._held_rows = [], 0, 0

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        if not self._int96:
            return pa.Table.from_arrays(rows.columns, schema=self._stored)
        columns = [c.cast(f.type) for c, f in zip(rows.columns, self._stored, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._stored)

    def _measured_ratio(self) -> float:
        if self._ratio is None:
            if self._held_bytes < _SAMPLE_BYTES:
                return 1.0
            sample, trial = self._held[0].slice(0, _SAMPLE_ROWS), pa.BufferOutputStream()
            with pq.ParquetWriter(trial, self._stored, **self._how) as writer:
                writer.write_table(self._as_stored(sample))
            self._ratio = trial.tell() / max(1, sample.nbytes)
        return self._ratio


def _has_nanos(t: DataType) -> bool:
    match t:
        case AtomicType(root=root):
            return root in ("TIMESTAMP", "TIMESTAMP_LTZ") and (t.precision or 0) > 6
        case MapType(key, value):
            return _has_nanos(key) or _has_nanos(value)
        case RowType(fields):
            return any(_has_nanos(f.type) for f in fields)
        case ArrayType(element) | MultisetType(element) | VectorType(element):
            return _has_nanos(element)


def _stored_field(field: DataField, column: int, depth: int, int96: bool) -> pa.Field:
    """A column as it is handed to pyarrow, with ids; ``column`` owns the collections ``depth`` levels up."""
    return _with_id(field.name, field.type, field.id, _stored_type(field.type, column, depth, int96))


def _with_id(name: str, t: DataType, field_id: int, stored: pa.DataType) -> pa.Field:
    return pa.field(name, stored, t.nullable, {"PARQUET:field_id": str(field_id)})


def _stored_type(t: DataType, column: int, depth: int, int96: bool) -> pa.DataType:
    """The Arrow type that makes pyarrow write the right Parquet type.

    One flag turns every timestamp of a file into INT96, which nanoseconds need and some readers refuse for the rest:
    in such a file the others go out as the bare integers they are.
    """
    deeper = depth + 1
    above, below = _NESTED_ID + column * _ID_STRIDE + deeper, _NESTED_ID - column * _ID_STRIDE - deeper

    def inner(name: str, part: DataType, field_id: int, nullable: bool) -> pa.Field:
        stored = _stored_type(part, column, deeper, int96)
        return pa.field(name, stored, nullable, {"PARQUET:field_id": str(field_id)})

    match t:
        case ArrayType(element):
            return pa.list_(inner("element", element, above, element.nullable))
        case VectorType(element):
            return pa.list_(inner("element", element, above, element.nullable))
        case MapType(key, value):
            return pa.map_(inner("key", key, below, False), inner("value", value, above, value.nullable))
        case MultisetType(element):
            count = pa.field("value", pa.int32(), False, {"PARQUET:field_id": str(above)})
            return pa.map_(inner("key", element, below, False), count)
        case RowType(fields):
            return pa.struct([_stored_field(f, f.id, 0, int96) for f in fields])
        case _:
            arrow = to_arrow(t)
            return pa.int64() if int96 and pa.types.is_timestamp(arrow) and arrow.unit != "ns" else arrow
