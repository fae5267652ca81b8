"""Data files of append tables that another encoder writes to a local disk, such as Spark's.

An `EncoderPlan` contains the footer of an empty file of this engine, so the encoder's files have the same stored
columns. The encoder reports the NULLs and the bounds of each column. From them the plan computes the metadata that the
engine's own writer would have stored.
"""

import io
import math
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from paimon_core.datafile.row_summary import simple_stats
from paimon_core.datafile.spec import DataFileSpec
from paimon_core.datafile.writer import extension_of, local_millis
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.paths import local_path, scheme_of
from paimon_core.format import format_named
from paimon_core.format.codec import parquet_codec
from paimon_core.format.stats import ColumnBounds, StatsMode, has_bounds, in_mode
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.options.bucket import BUCKET
from paimon_core.options.file import DATA_EVOLUTION_ENABLED, FILE_BLOCK_SIZE
from paimon_core.options.merge import ROWKIND_FIELD
from paimon_core.row.binary_row import EMPTY_ROW, serialize
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    MAX_LENGTH,
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    with_nullable,
)

_TAIL = 8  # the length of the footer and the magic bytes
_FORMATS = {
    "TINYINT": "<i",
    "SMALLINT": "<i",
    "INT": "<i",
    "DATE": "<i",
    "BIGINT": "<q",
    "TIMESTAMP": "<q",
    "TIMESTAMP_LTZ": "<q",
    "FLOAT": "<f",
    "DOUBLE": "<d",
}
"""The format, for `struct`, of the stored values of a type."""
_NO_BUCKETS = -1
_MICROSECONDS = 6
_LONG_DIGITS = 18
"""The most digits of a decimal that is stored as an integer."""
_CHARACTER_BYTES = 4
"""The most bytes of a character."""


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """The statistics of a column of a file.

    Args:
        null_count: the number of NULLs.
        low: the smallest value in Parquet's plain encoding; `None`: unknown, or the column has NaN.
        high: the largest value, like `low`. A bound may be cut at a character after `ColumnPlan.bound_bytes`.
    """

    null_count: int
    low: bytes | None = None
    high: bytes | None = None


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A file that an encoder has written.

    Args:
        bucket: the bucket of the file.
        name: its name.
        size: its size in bytes.
        rows: its number of rows.
        columns: the statistics of its columns.
    """

    bucket: BucketRef
    name: str
    size: int
    rows: int
    columns: tuple[EncodedColumn, ...]


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The checks and the statistics of a column.

    Args:
        required: True if the column is NOT NULL.
        characters: the most characters of a text; 0: no limit.
        bytes: the most bytes of a binary value; 0: no limit.
        kind: ``nested``, ``float``, ``double``, or ``other``.
        bounded: True if the metadata of a file has the bounds of the column.
        bound_bytes: the most bytes that the metadata needs of a bound; 0: all.
        leaf: the index of the stored column; of the first one, if the column is nested.
        dictionary: False if a dictionary would make other engines skip rows.
    """

    required: bool
    characters: int
    bytes: int
    kind: str
    bounded: bool
    bound_bytes: int
    leaf: int
    dictionary: bool


_SCHEMES = ("file", "hdfs")
"""The stores on which an encoder writes files."""


@dataclass(frozen=True)
class EncoderPlan:
    """The plan of an encoder of files of one table. Created by `of`."""

    store: FileStore
    spec: DataFileSpec

    @staticmethod
    def of(store: FileStore) -> "EncoderPlan | None":
        """Return the plan for new files of a table; `None`: only this engine can write its files.

        An encoder writes append tables without buckets on a local disk, or on HDFS without storage options, which the
        encoder does not know. Only this engine writes formats other than Parquet, file indexes, blobs, several files
        for the same rows, row groups of a fixed size, rows with kinds, default values, and some types.
        """
        options, fields = store.options, store.schema.fields
        if store.schema.primary_keys or options.value(BUCKET) != _NO_BUCKETS:
            return None
        if type(store.io) is not FileIO or scheme_of(store.root) not in _SCHEMES or store.io.has_options:
            return None
        if options.value(DATA_EVOLUTION_ENABLED):
            return None
        if options.value(FILE_BLOCK_SIZE) is not None or "parquet.enable.dictionary" in options:
            return None
        if options.value(ROWKIND_FIELD) is not None or any(field.default is not None for field in fields):
            return None
        spec = DataFileSpec.of(store)
        if spec.format != "parquet" or spec.indexes or spec.blobs or not all(map(_is_encodable, fields)):
            return None
        return EncoderPlan(store, spec)

    def bucket(self, values: Sequence[bytes | None] = ()) -> BucketRef:
        """Return the bucket of the files of a partition.

        `values`: the values of the partition columns in Parquet's plain encoding. Raises UnicodeDecodeError for a text
        that is not UTF-8.
        """
        fields = self.store.schema.partition_fields
        internal = [
            None if value is None else _partition_value(field.type, value)
            for field, value in zip(fields, values, strict=True)
        ]
        return BucketRef(serialize(internal, self.store.schema.partition_arrow), 0)

    @property
    def root(self) -> str:
        """The directory of the table, as a path of the operating system or a URL."""
        return local_path(self.store.root)

    def directory(self, bucket: BucketRef) -> str:
        """Return the directory of the files of a bucket, as a path of the operating system or a URL."""
        return local_path(self.store.bucket_path(bucket))

    @property
    def codec(self) -> str:
        """The codec by pyarrow's name. Raises UnsupportedError for an unknown codec."""
        return parquet_codec(self.store.options.get("parquet.compression", self.spec.compression))

    @property
    def extension(self) -> str:
        """The extension of the names of the files, with its dot."""
        return extension_of(self.store, self.spec)

    @cached_property
    def footer(self) -> bytes:
        """The footer of a file without rows."""
        sink = io.BytesIO()
        file_format = format_named(self.spec.format, self.spec.fields, self.store.options)
        file_format.open_writer(sink, self.spec.fields, self.store.options, self.spec.compression).close()
        data = sink.getvalue()
        return data[-_TAIL - int.from_bytes(data[-_TAIL:-4], "little") : -_TAIL]

    @cached_property
    def columns(self) -> list[ColumnPlan]:
        """The plans of the columns, in the order of the table."""
        plans: list[ColumnPlan] = []
        leaf = 0
        for field, mode in zip(self.spec.fields, self.spec.modes, strict=True):
            plans.append(_column_plan(field, mode, leaf))
            leaf += _leaf_count(field.type)
        return plans

    def messages(self, files: Sequence[EncodedFile], seconds: float) -> tuple[CommitMessage, ...]:
        """Return the commit messages of one task, one for each of its buckets; the first one has the seconds.

        Args:
            files: the files of the task; the files of a bucket are in the order of its rows.
            seconds: the duration of the task.

        The sequence numbers begin at 0, as in all tasks that write to a table without buckets.
        """
        described: dict[BucketRef, list[DataFileMeta]] = {}
        rows: Counter[BucketRef] = Counter()
        for file in files:
            described.setdefault(file.bucket, []).append(self._metadata(file, rows[file.bucket]))
            rows[file.bucket] += file.rows
        return tuple(
            CommitMessage(
                *bucket,
                _NO_BUCKETS,
                new_files=tuple(new_files),
                rows_received=rows[bucket],
                write_seconds=0.0 if number else seconds,
            )
            for number, (bucket, new_files) in enumerate(described.items())
        )

    def _metadata(self, file: EncodedFile, first_sequence: int) -> DataFileMeta:
        spec = self.spec
        columns = [
            in_mode(_bounds(field.type, column), mode)
            for field, column, mode in zip(spec.fields, file.columns, spec.modes, strict=True)
        ]
        stats, names = simple_stats(columns, spec.value_fields, spec.modes, dense=spec.dense)
        first, last = (0, 0) if spec.row_tracking else (first_sequence, first_sequence + file.rows - 1)
        return DataFileMeta(
            file_name=file.name,
            file_size=file.size,
            row_count=file.rows,
            min_key=EMPTY_ROW,
            max_key=EMPTY_ROW,
            key_stats=EMPTY_STATS,
            value_stats=stats,
            min_sequence_number=first,
            max_sequence_number=last,
            schema_id=self.store.schema.id,
            level=spec.level,
            creation_time=local_millis(self.store.now()),
            delete_row_count=0,
            file_source=spec.source,
            value_stats_cols=names,
        )


def _is_encodable(field: DataField) -> bool:
    """Return True if other encoders store a column like this engine, and can check its values."""
    return _is_type_encodable(field.type) and not ("." in field.name and _is_long_decimal(field.type))


def _is_type_encodable(t: DataType, *, nested: bool = False) -> bool:
    match t:
        case AtomicType(root="TIMESTAMP" | "TIMESTAMP_LTZ"):
            encodable = t.precision == _MICROSECONDS
        case AtomicType(root="DECIMAL"):
            encodable = not nested or not _is_long_decimal(t)
        case AtomicType(root="CHAR" | "VARCHAR" | "BINARY" | "VARBINARY"):
            encodable = not nested or t.length == MAX_LENGTH
        case AtomicType():
            encodable = t.root == "BOOLEAN" or t.root in _FORMATS
        case RowType(fields):
            encodable = bool(fields) and all(_is_type_encodable(field.type, nested=True) for field in fields)
        case ArrayType(element):
            encodable = _is_type_encodable(element, nested=True)
        case MapType(key, value):
            encodable = all(_is_type_encodable(part, nested=True) for part in (with_nullable(key, True), value))
        case _:
            encodable = False
    return encodable and (t.nullable or not nested)


def _is_long_decimal(t: DataType) -> bool:
    return isinstance(t, AtomicType) and t.root == "DECIMAL" and (t.precision or 0) > _LONG_DIGITS


def _leaf_count(t: DataType) -> int:
    """Return the number of stored columns of a column."""
    match t:
        case RowType(fields):
            return sum(_leaf_count(field.type) for field in fields)
        case ArrayType(element):
            return _leaf_count(element)
        case MapType(key, value):
            return _leaf_count(key) + _leaf_count(value)
    return 1


def _column_plan(field: DataField, mode: StatsMode, leaf: int) -> ColumnPlan:
    t = field.type
    root = t.root if isinstance(t, AtomicType) else "NESTED"
    length = (t.length or 0) if isinstance(t, AtomicType) and t.length != MAX_LENGTH else 0
    is_text = root in TEXT_ROOTS
    return ColumnPlan(
        required=not t.nullable,
        characters=length if is_text else 0,
        bytes=length if root in BINARY_ROOTS else 0,
        kind=root.lower() if root in ("NESTED", "FLOAT", "DOUBLE") else "other",
        bounded=mode.kind in ("truncate", "full") and has_bounds(t),
        bound_bytes=_CHARACTER_BYTES * (mode.length + 1) if is_text and mode.kind == "truncate" else 0,
        leaf=leaf,
        dictionary=not _is_long_decimal(t),
    )


def _bounds(t: DataType, column: EncodedColumn) -> ColumnBounds:
    """Return the statistics of a column as internal values."""
    if column.low is None or column.high is None or not isinstance(t, AtomicType):
        return ColumnBounds(None, None, column.null_count)
    return ColumnBounds(_value(t, column.low), _value(t, column.high), column.null_count)


def _partition_value(t: DataType, stored: bytes) -> Any:
    """Return the internal value of a stored value of a partition column. Every NaN has one form."""
    assert isinstance(t, AtomicType), f"a partition column is {t}"
    if t.root in BINARY_ROOTS:
        return stored
    value = _value(t, stored)
    return math.nan if value != value else value


def _value(t: AtomicType, stored: bytes) -> Any:
    """Return the internal value of a stored value."""
    if t.root in TEXT_ROOTS:
        return stored.decode()
    if t.root == "BOOLEAN":
        return stored != b"\x00"
    if t.root == "DECIMAL":
        unscaled = int.from_bytes(stored, "big" if _is_long_decimal(t) else "little", signed=True)
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -(t.scale or 0)))
    return struct.unpack(_FORMATS[t.root], stored)[0]
