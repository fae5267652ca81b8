"""The writer of Parquet files that every engine can read (format 7.4)."""

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core.format.codec import parquet_codec
from paimon_core.format.file_format import FormatWriter, check_columns
from paimon_core.format.parquet_bounds import BoundsSink, holds_floats, leaf_arrays
from paimon_core.format.size import EncodedSize
from paimon_core.memory import MemoryShares
from paimon_core.options.file import FILE_BLOCK_SIZE, FILE_COMPRESSION_ZSTD_LEVEL
from paimon_core.options.option import Options
from paimon_core.options.parse import MAX_LONG
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import (
    INT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from paimon_core.types.sorted_values import run_starts
from paimon_core.types.system_fields import SEQUENCE_NUMBER
from paimon_core.variant.columns import Shredding, shredded_rows
from paimon_core.variant.layout import Layouts, stored_fields, without_times

_FIRST_GROUP_BYTES, _FIRST_COLUMN_BYTES = 4 << 20, 64 << 10  # of the first row group; sizes double up to the limit
ENABLE_DICTIONARY = "parquet.enable.dictionary"
_ROW_GROUP_ROWS = 1 << 20
_SORTED_GROUP_ROWS = 1 << 14  # in sorted files, so that a read of a key range skips most rows
_SORTED_GROUP_BYTES = 1 << 19  # least Arrow memory, so that the fixed cost of a row group is small
_ROWS_BETWEEN_CHECKS, _LONG_PAGE_BYTES = 1 << 10, 1 << 20  # the former is the default of the encoder
_PAGE_BYTES = 64 << 10  # several pages in a row group, so that readers with page indexes skip parts of it
_MAX_REPEATED = 0.01  # largest share of a row group's bytes that other row groups repeat, such as dictionaries
_COLUMN_BYTES = 170  # fixed cost of a column in a row group: page headers, entry in the footer, page index
_CHUNK_MEMORY, _INDEX_MEMORY = 900, 600  # of a column in a row group until the file ends: its metadata, its page index
_LONG_STATISTIC, _STATISTIC_COPIES = 4 << 10, 4  # longer bounds are dropped; the encoder keeps both bounds twice
_PLAIN_BITS = 12  # least bits of a value without dictionary: most values differ
_DICTIONARY_BYTES = 1 << 19  # limit of a dictionary; a column with more distinct values gains nothing from one
_SAMPLES, _SAMPLE_ROWS = 8, 512  # samples of the rows that show if the values of a column repeat
_MOSTLY_DISTINCT = 0.9  # share of distinct values at which a column gets no dictionary
_BITS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_LONG_DECIMAL = 18  # digits of a decimal that is stored as an integer
_VARIANT = ("value", "metadata")
_NESTED_ID, _ID_STRIDE = 536870911, 1024  # for ids of elements, keys and values, which the schema does not number


@dataclass(frozen=True, slots=True)
class _Layout:
    """The stored columns of a file.

    Args:
        stored: the columns with the types that the encoder needs.
        int96: True if the encoder writes timestamps as INT96.
        leaves: the number of stored columns.
        may_have_dictionary: the paths of the stored columns that may have a dictionary.
    """

    stored: pa.Schema
    int96: bool
    leaves: int
    may_have_dictionary: tuple[str, ...]


@lru_cache(maxsize=64)
def _layout(fields: tuple[DataField, ...]) -> _Layout:
    """Return the layout of a file with these columns; it costs as much as to encode a small file."""
    int96 = any(_has_nanos(f.type) for f in fields)
    stored = pa.schema([_stored_field(f, int96) for f in fields])
    leaves = [leaf for f in fields for leaf in _leaves(f.name, f.type)]
    allowed = tuple(path for path, t in leaves if _may_have_dictionary(t))
    return _Layout(stored, int96, len(leaves), allowed)


class ParquetFileWriter(FormatWriter):
    """A writer of a Parquet file. It writes a row group when enough rows are in memory."""

    def __init__(
        self,
        sink: Any,
        fields: Sequence[DataField],
        options: Options,
        compression: str,
        *,
        ordered: bool = False,
        shredding: Shredding | None = None,
    ) -> None:
        """Begin a file. ``shredding``: the layouts of variants in the files of the same writer."""
        self._schema = arrow_schema(fields)
        self._fields, self._shredding = tuple(fields), shredding or Shredding(fields, options)
        self._layouts: Layouts = {}
        plain = _layout(self._fields)
        codec = parquet_codec(options.get("parquet.compression", compression))
        self._encoder_options: dict[str, Any] = {
            "compression": codec,
            "compression_level": options.value(FILE_COMPRESSION_ZSTD_LEVEL) if codec == "zstd" else None,
            "dictionary_pagesize_limit": _DICTIONARY_BYTES,
            "use_deprecated_int96_timestamps": plain.int96,
            "store_decimal_as_integer": True,
            "store_schema": False,
            "write_page_checksum": True,
            "data_page_size": _PAGE_BYTES,
        }
        self._sorted = ordered or any(f.id == SEQUENCE_NUMBER.id for f in fields)
        self._choose_dictionaries = ENABLE_DICTIONARY not in options
        self._enabled = options.flag(ENABLE_DICTIONARY, True)
        self._dictionaries: set[str] = set()  # paths
        self._writer: Any = None  # opened with the first rows, which decide the encodings
        self._sink = sink
        self._stored: Any = None  # a schema, once `_choose_layout` was called
        self._leaves = 0
        self._bounds: BoundsSink | None = None
        self._block = options.value(FILE_BLOCK_SIZE)
        self._held: list[pa.Table] = []
        self._most_group_bytes = MemoryShares.of(options).row_group
        # in a row group of more columns, each column is one page, and the index would repeat the footer
        self._encoder_options["write_page_index"] = plain.leaves * _PAGE_BYTES <= 2 * self._most_group_bytes
        self._footer_bytes = 0.0
        self._group_bytes = min(self._most_group_bytes, max(_FIRST_GROUP_BYTES, _FIRST_COLUMN_BYTES * plain.leaves))
        self._size = EncodedSize(len(b"PAR1"))
        if not self._shredding.depends_on_rows:
            self._choose_layout()

    def _choose_layout(self) -> None:
        """Choose the stored columns, once. The first rows of the file, if they matter, are in memory."""
        if self._stored is not None:
            return
        first = pa.concat_tables(self._held) if self._held else self._schema.empty_table()
        self._layouts = self._shredding.layouts(first)
        if self._encoder_options["use_deprecated_int96_timestamps"]:
            self._layouts = {name: without_times(layout) for name, layout in self._layouts.items()}
        layout = _layout(stored_fields(self._fields, self._layouts))
        self._stored, self._leaves = layout.stored, layout.leaves
        self._allowed = list(layout.may_have_dictionary) if self._enabled else []
        if any(holds_floats(f.type) for f in self._stored):
            self._bounds = BoundsSink(self._sink, self._stored)
        self._encoded: Any = self._sink if self._bounds is None else self._bounds.buffered

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`."""
        rows = check_columns(batch, self._schema)
        if not rows.num_rows:
            return
        self._held.append(rows)
        self._size.add(rows)
        if self._is_full():
            self.flush()

    def tell(self) -> int:
        """See `FormatWriter.tell`."""
        return self._size.total(self._encode)

    @property
    def held_bytes(self) -> int:
        """See `FormatWriter.held_bytes`."""
        return self._size.held_bytes

    @property
    def footer_bytes(self) -> int:
        """See `FormatWriter.footer_bytes`."""
        return int(self._footer_bytes)

    def flush(self) -> None:
        """See `FormatWriter.flush`: the rows in memory become a row group, or several in a sorted file."""
        if self._held:
            self._choose_layout()
            rows, self._held = self._as_stored(pa.concat_tables(self._held)), []
            self._group_bytes = min(self._most_group_bytes, 2 * self._group_bytes)
            writer = self._opened(rows)
            small = self._sorted and self._block is None
            group_rows = sorted_group_rows(rows, self._dictionaries) if small else _ROW_GROUP_ROWS
            if self._bounds is not None:
                self._bounds.note(rows, group_rows)
            writer.write_table(rows, row_group_size=group_rows)
            self._footer_bytes += math.ceil(rows.num_rows / group_rows) * self._group_metadata(rows)
            self._size.stored(int(self._encoded.tell()))

    def close(self) -> None:
        """See `FormatWriter.close`."""
        self.flush()
        writer = self._opened()
        if self._bounds is None:
            writer.close()
        else:
            self._bounds.finish(writer)
        self._shredding.complete()
        # frees the memory of the encoder and of its buffer before this object is garbage-collected
        self._writer = self._bounds = self._encoded = self._sink = None

    def _is_full(self) -> bool:
        """Return True if the rows in memory are enough for a row group."""
        if self._size.held_bytes >= self._group_bytes or self._size.held_rows >= _ROW_GROUP_ROWS:
            return True
        return self._block is not None and self._size.held(self._encode) >= self._block

    def _group_metadata(self, rows: pa.Table) -> float:
        """Return the bytes of memory that the encoder keeps for one row group of these rows until the file ends."""
        index = _INDEX_MEMORY if self._encoder_options["write_page_index"] else 0
        bound: float = min(_LONG_STATISTIC, rows.nbytes / rows.num_rows / self._leaves)
        return self._leaves * (_CHUNK_MEMORY + index + _STATISTIC_COPIES * bound)

    def _opened(self, first: pa.Table | None = None) -> Any:
        """Return the encoder; if it is not open yet, open it with encodings for the rows ``first``."""
        if self._writer is None:
            self._choose_layout()
            dictionaries = self._chosen_dictionaries(first)
            self._dictionaries = set(dictionaries)
            self._writer = self._open(self._encoded, dictionaries, first)
        return self._writer

    def _open(self, sink: Any, dictionaries: list[str], first: pa.Table | None = None) -> Any:
        rows = _rows_between_checks(first)
        return pq.ParquetWriter(
            sink, self._stored, use_dictionary=dictionaries, write_batch_size=rows, **self._encoder_options
        )

    def _chosen_dictionaries(self, first: pa.Table | None) -> list[str]:
        """Return the paths of the stored columns that get dictionaries, judged by the first rows."""
        if first is None or not self._choose_dictionaries:
            return self._allowed
        distinct = _mostly_distinct(first)
        return [path for path in self._allowed if path not in distinct]

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        """Return rows of canonical types, cast to the types that the encoder needs."""
        rows = shredded_rows(rows, self._fields, self._layouts)
        columns = [_without_absent_elements(c).cast(f.type) for c, f in zip(rows.columns, self._stored, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._stored)

    def _encode(self, sample: pa.Table) -> int:
        """Return the size in bytes of a file with these rows."""
        self._choose_layout()
        trial = pa.BufferOutputStream()
        rows = self._as_stored(sample)
        with self._open(trial, self._chosen_dictionaries(rows)) as writer:
            writer.write_table(rows)
        return int(trial.tell())


def _rows_between_checks(first: pa.Table | None) -> int:
    """Return the number of rows after which the encoder checks the size of a page; fewer if values are long.

    With the default, a page of values of 1 MB would have the size of its row group, and so would every decoder of it.
    """
    if first is None or not first.num_rows:
        return _ROWS_BETWEEN_CHECKS
    widest: int = max((column.nbytes for column in first.columns), default=0) // first.num_rows
    return max(1, min(_ROWS_BETWEEN_CHECKS, _LONG_PAGE_BYTES // max(1, widest)))


def rows_within_footer(fields: tuple[DataField, ...], options: Options) -> int:
    """Return the number of rows at which the footer of a file takes its share of ``memory-limit``.

    Row groups are taken as full, and a value as 8 bytes: with longer values, row groups have fewer rows, and the file
    must end earlier. Without a limit: `MAX_LONG`.
    """
    shares = MemoryShares.of(options)
    if shares.footer is None:
        return MAX_LONG
    leaves = _layout(fields).leaves
    groups = shares.footer // (leaves * (_CHUNK_MEMORY + _INDEX_MEMORY))
    return max(1, groups) * max(1, shares.row_group // (8 * leaves))


def sorted_group_rows(rows: pa.Table, dictionaries: Set[str]) -> int:
    """Return the number of rows per row group in a sorted file: few, but enough to keep the file small.

    The function measures a row group from the middle of the rows. Row groups grow until only a small share of their
    bytes repeats in other row groups. Cost: one sort of each column with a dictionary, or two if row groups must grow.

    Args:
        rows: the rows of several row groups.
        dictionaries: paths of the stored columns with a dictionary, which every row group stores again.
    """
    row_bytes = max(1.0, rows.nbytes / max(1, rows.num_rows))
    size = max(_SORTED_GROUP_ROWS, int(_SORTED_GROUP_BYTES / row_bytes))
    if rows.num_rows < 2 * size:
        return _ROW_GROUP_ROWS
    while size < min(rows.num_rows, _ROW_GROUP_ROWS):
        growth = _necessary_growth(rows.slice((rows.num_rows - size) // 2, size), dictionaries)
        if growth <= 1:
            return size
        size <<= math.ceil(math.log2(growth))
    return _ROW_GROUP_ROWS


def _necessary_growth(rows: pa.Table, dictionaries: Set[str]) -> float:
    """Return the growth factor that makes a row group of these rows large enough; 1 or less: it is large enough.

    A dictionary does not shrink when a row group doubles, so its share of the bytes is at best halved.
    """
    columns = bits = values = 0.0
    for path, leaf in _stored_leaves(rows):
        columns += 1
        if path not in dictionaries:
            bits += _PLAIN_BITS * (len(leaf) - leaf.null_count)
        elif len(leaf):
            distinct = _distinct(leaf)
            bits += math.log2(distinct) * len(leaf)
            values += distinct / len(leaf) * leaf.nbytes
    growth: float = values / (_MAX_REPEATED * max(1, rows.nbytes))
    return growth if columns * _COLUMN_BYTES <= _MAX_REPEATED * bits / 8 else max(2.0, growth)


def _stored_leaves(rows: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """Yield the path of each stored column, as in `_leaves`, and its values, without values of null parents."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        yield from leaf_arrays(name, column.combine_chunks())


def _mostly_distinct(rows: pa.Table) -> set[str]:
    """Return the paths of stored columns whose values hardly repeat, judged by samples from all over the rows.

    A dictionary of such values costs more time than the rest of the encoding and makes the file larger.
    """
    if rows.num_rows < _SAMPLE_ROWS:
        return set()
    sample = rows
    if rows.num_rows > _SAMPLES * _SAMPLE_ROWS:
        step = rows.num_rows // _SAMPLES
        sample = pa.concat_tables([rows.slice(i * step, _SAMPLE_ROWS) for i in range(_SAMPLES)])
    leaves = [(path, leaf) for path, leaf in _stored_leaves(sample) if len(leaf) >= _SAMPLE_ROWS]
    return {path for path, leaf in leaves if _distinct(leaf) >= _MOSTLY_DISTINCT * len(leaf)}


def _distinct(column: pa.Array) -> int:
    """Return the number of distinct values. For numbers, sorting takes a tenth of the time of a hash table."""
    kind = column.type
    if column.null_count or not pa.types.is_primitive(kind) or pa.types.is_boolean(kind):
        return len(column.unique())
    values = np.sort(column.view(_BITS[kind.bit_width]).to_numpy())
    return int(np.count_nonzero(run_starts(values)))


def _without_absent_elements(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column with variable lists instead of vectors; a null vector becomes a null list without elements.

    In Arrow a null vector still has elements. pyarrow before 25 does not write null lists with elements.
    """
    kind = _with_lists(column.type)
    if kind == column.type:
        return column
    return column.cast(kind).take(pa.array(np.arange(len(column))))


def _with_lists(kind: pa.DataType) -> pa.DataType:
    """Return the type with variable lists instead of vectors."""
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_lists(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_with_lists(f.type)) for f in kind])
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(kind.key_field, item.with_type(_with_lists(item.type)), kind.keys_sorted)
    return kind


def _may_have_dictionary(t: AtomicType) -> bool:
    """Return True if values of a stored column may be in a dictionary.

    Decimals of more than 18 digits may not: the Java engine searches the dictionary for a value with fewer bytes than
    stored, does not find it, and skips the rows.
    """
    return t.root != "DECIMAL" or (t.precision or 0) <= _LONG_DECIMAL


def _leaves(path: str, t: DataType) -> Iterator[tuple[str, AtomicType]]:
    """Yield path and type of the stored columns of a column."""
    match t:
        case RowType(fields):
            for f in fields:
                yield from _leaves(f"{path}.{f.name}", f.type)
        case MapType(key, value):
            yield from _leaves(f"{path}.key_value.key", key)
            yield from _leaves(f"{path}.key_value.value", value)
        case MultisetType(element):
            yield from _leaves(f"{path}.key_value.key", element)
            yield f"{path}.key_value.value", INT
        case ArrayType(element) | VectorType(element):
            yield from _leaves(f"{path}.list.element", element)
        case AtomicType(root="VARIANT"):
            yield from ((f"{path}.{name}", t) for name in _VARIANT)
        case AtomicType():
            yield path, t


def _has_nanos(t: DataType) -> bool:
    """Return True if the type is or contains a timestamp of nanoseconds."""
    return any(leaf.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and (leaf.precision or 0) > 6 for _, leaf in _leaves("", t))


def _stored_field(field: DataField, int96: bool) -> pa.Field:
    """Return a column, or a field of a row, as a pyarrow field with its id."""
    return _with_id(field.name, _stored_type(field.type, field.id, 0, int96), field.type.nullable, field.id)


def _with_id(name: str, stored: pa.DataType, nullable: bool, field_id: int) -> pa.Field:
    return pa.field(name, stored, nullable, {"PARQUET:field_id": str(field_id)})


def _stored_type(t: DataType, column: int, depth: int, int96: bool) -> pa.DataType:
    """Return the Arrow type that makes pyarrow write the right Parquet type.

    Args:
        t: the type to store.
        column: the id of its column or field of a row.
        depth: the number of arrays, maps and multisets around it, within the column.
        int96: True if pyarrow writes all timestamps of the file as INT96, which nanoseconds need. Other timestamps are
            then written as integers, because some readers refuse INT96 for them.
    """
    deeper = depth + 1
    element_id, key_id = _NESTED_ID + column * _ID_STRIDE + deeper, _NESTED_ID - column * _ID_STRIDE - deeper

    def inner(part: DataType) -> pa.DataType:
        return _stored_type(part, column, deeper, int96)

    match t:
        case ArrayType(element) | VectorType(element):
            return pa.list_(_with_id("element", inner(element), element.nullable, element_id))
        case MapType(key, value):
            entry = _with_id("value", inner(value), value.nullable, element_id)
            return pa.map_(_with_id("key", inner(key), False, key_id), entry)
        case MultisetType(element):
            count = _with_id("value", pa.int32(), False, element_id)
            return pa.map_(_with_id("key", inner(element), False, key_id), count)
        case RowType(fields):
            # nullable even if declared NOT NULL: pyarrow treats the fields of a null row as missing values
            return pa.struct([_stored_field(f, int96).with_nullable(True) for f in fields])
        case AtomicType(root="VARIANT"):
            return pa.struct([_with_id(name, pa.binary(), True, i) for i, name in enumerate(_VARIANT)])
        case _:
            arrow = to_arrow(t)
            return pa.int64() if int96 and pa.types.is_timestamp(arrow) and arrow.unit != "ns" else arrow
