"""Columns, rows and statistics of Parquet files that other tools wrote.

A physical layout is accepted only if this engine, Spark and every Java engine since 1.1 read it correctly (format 7.4).
"""

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paimon_core.errors import UnsupportedError
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_description import REWRITE, ColumnInFile, FileDescription
from paimon_core.format.parquet_columns import schema_of
from paimon_core.format.parquet_prune import row_group_bounds
from paimon_core.format.stats import ColumnBounds, has_bounds, internal_value
from paimon_core.types import datatype
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, RowType, decimal

_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "LZ4_RAW", "LZ4_HADOOP", "ZSTD"}
_ENCODINGS = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED", "DELTA_BINARY_PACKED"}
_ENCODINGS |= {"DELTA_BYTE_ARRAY"}
"""The Java engine refuses BYTE_STREAM_SPLIT, and reads wrong texts from DELTA_LENGTH_BYTE_ARRAY."""
_PLAIN: dict[str, AtomicType] = {
    "BOOLEAN": datatype.BOOLEAN,
    "INT32": datatype.INT,
    "INT64": datatype.BIGINT,
    "FLOAT": datatype.FLOAT,
    "DOUBLE": datatype.DOUBLE,
    "BYTE_ARRAY": datatype.BYTES,
}
_INTEGERS: dict[tuple[int, bool], AtomicType] = {
    (8, True): datatype.TINYINT,
    (16, True): datatype.SMALLINT,
    (32, True): datatype.INT,
    (64, True): datatype.BIGINT,
    (8, False): datatype.SMALLINT,
    (16, False): datatype.INT,
}
_WITHOUT_TYPE = {
    "INT": "unsigned, for which Paimon has no type",
    "TIME": "finer than milliseconds, which the Java engine cannot read",
}
_UNITS = {"milliseconds": 3, "microseconds": 6}
_SPARK = b"org.apache.spark.version"
_JULIAN_DATES, _JULIAN_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
_GREGORIAN = date(1582, 10, 15)
_UNBOUNDED = {"FLOAT", "DOUBLE", "BOOLEAN", "TIME"}
"""Types whose footer bounds are not used: bounds of floats omit NaN."""


def describe_parquet(source: Any, path: str) -> FileDescription:
    """Return the description of a file. Raises UnsupportedError for a column that some engines misread."""
    with as_corrupted(path):
        metadata = pq.read_metadata(source)
        schema = schema_of(metadata)
        arrow = schema.to_arrow_schema()
    notes = metadata.metadata or {}
    _check_encodings(metadata, path)
    types = _Types(path, iter([schema.column(i) for i in range(metadata.num_columns)]), notes)
    fields = tuple(
        DataField(datatype.NO_ID, f.name, types.of(f.type, f.name, ColumnInFile(path, f.name))) for f in arrow
    )
    bounds = _bounds(metadata, fields)
    if _JULIAN_DATES in notes:
        _check_calendar(path, fields, bounds)
    required = frozenset(f.name for f in arrow if not f.nullable)
    return FileDescription(path, "parquet", fields, int(metadata.num_rows), bounds, required)


class _Types:
    """The column types of one file, determined in the order of its stored columns."""

    def __init__(self, path: str, leaves: Iterator[Any], notes: dict[bytes, bytes]) -> None:
        self._path, self._leaves, self._notes = path, leaves, notes
        self._next = next(leaves, None)

    def of(self, arrow: pa.DataType, stored: str, column: ColumnInFile) -> DataType:
        """Return the type of a column.

        Args:
            arrow: the Arrow type of the column, which shows the nesting of the stored columns.
            stored: the path of the stored columns so far.
            column: the column, for messages.
        """
        kinds = pa.types
        if isinstance(arrow, pa.BaseExtensionType):
            arrow = arrow.storage_type
        if kinds.is_struct(arrow):
            fields = [(f.name, self.of(f.type, f"{stored}.{f.name}", column.part(f.name))) for f in arrow]
            if not fields:
                raise column.refuse("a group without fields", "for which no engine has a type")
            return RowType(tuple(DataField(datatype.NO_ID, name, t) for name, t in fields))
        if kinds.is_map(arrow):
            key = self.of(arrow.key_type, self._elements(stored, column, "key_value.key"), column.part("key"))
            value = self.of(arrow.item_type, self._elements(stored, column, "key_value.value"), column.part("value"))
            return MapType(datatype.with_nullable(key, False), value)
        if kinds.is_list(arrow) or kinds.is_large_list(arrow) or kinds.is_fixed_size_list(arrow):
            elements = self._elements(stored, column, "list.element", "list.item")
            return ArrayType(self.of(arrow.value_type, elements, column.part("element")))
        leaf, self._next = self._next, next(self._leaves, None)
        if leaf is None or leaf.path != stored:
            form = "no stored column" if leaf is None else f"the stored column {leaf.path}"
            raise column.refuse(form, "an unknown layout")
        return self._atomic(leaf, column)

    def _elements(self, stored: str, column: ColumnInFile, *layouts: str) -> str:
        """Return the path of the elements of a list or map. Raises UnsupportedError for layouts of old writers."""
        path = "" if self._next is None else self._next.path
        for layout in layouts:
            path_of_elements = f"{stored}.{layout}"
            if path == path_of_elements or path.startswith(f"{path_of_elements}."):
                return path_of_elements
        raise column.refuse(f"{path}", f"not as {stored}.{layouts[0]}, the only layout that all engines read")

    def _atomic(self, leaf: Any, column: ColumnInFile) -> AtomicType:
        physical, logical = leaf.physical_type, leaf.logical_type.type
        form = physical if logical in ("NONE", "UNKNOWN") else f"{physical} ({logical})"
        if logical in ("NONE", "UNKNOWN"):
            return self._plain(leaf, column, form)
        logical_type = json.loads(leaf.logical_type.to_json())
        match logical:
            case "STRING" | "JSON" | "ENUM" if physical == "BYTE_ARRAY":
                return datatype.STRING
            case "INT" if (logical_type["bitWidth"], logical_type["isSigned"]) in _INTEGERS:
                return _INTEGERS[logical_type["bitWidth"], logical_type["isSigned"]]
            case "DATE":
                return datatype.DATE
            case "DECIMAL":
                return _decimal(leaf, column, form)
            case "TIMESTAMP":
                return _timestamp(logical_type, column)
            case "TIME" if physical == "INT32":
                return AtomicType("TIME", precision=3)
            case "UUID":
                return AtomicType("BINARY", length=leaf.length)
        raise column.refuse(form, _WITHOUT_TYPE.get(logical, "for which Paimon has no type"))

    def _plain(self, leaf: Any, column: ColumnInFile, form: str) -> AtomicType:
        """Return the type of a column without a logical type."""
        physical = leaf.physical_type
        if leaf.converted_type not in ("NONE", "UNKNOWN", None):
            raise column.refuse(f"{physical} ({leaf.converted_type})", "for which Paimon has no type")
        if physical == "INT96":
            return self._int96(column)
        if physical == "FIXED_LEN_BYTE_ARRAY":
            return AtomicType("BINARY", length=leaf.length)
        if physical not in _PLAIN or leaf.logical_type.type == "UNKNOWN":
            raise column.refuse(form, "for which Paimon has no type")
        return _PLAIN[physical]

    def _int96(self, column: ColumnInFile) -> AtomicType:
        """Return the type of INT96 timestamps: microseconds if Spark wrote the file, else nanoseconds."""
        if _JULIAN_INT96 in self._notes:
            raise column.refuse("timestamps of the Julian calendar", "which engines interpret differently")
        return AtomicType("TIMESTAMP_LTZ", precision=6 if _SPARK in self._notes else 9)


def _decimal(leaf: Any, column: ColumnInFile, form: str) -> AtomicType:
    """Return the type of a decimal that is stored as the format requires, or as fixed bytes."""
    integer = "INT32" if leaf.precision <= 9 else "INT64" if leaf.precision <= 18 else None
    if leaf.physical_type not in (integer, "FIXED_LEN_BYTE_ARRAY"):
        raise column.refuse(f"{form} of {leaf.precision} digits", "which the Java engine may misread")
    if leaf.precision > datatype.MAX_DECIMAL_PRECISION or not 0 <= leaf.scale <= leaf.precision:
        raise column.refuse(f"DECIMAL({leaf.precision}, {leaf.scale})", "for which Paimon has no type")
    return decimal(leaf.precision, leaf.scale)


def _timestamp(logical_type: dict[str, Any], column: ColumnInFile) -> AtomicType:
    precision = _UNITS.get(logical_type["timeUnit"])
    if precision is None:
        raise column.refuse("timestamps in nanoseconds", "which Java engines before 2.0 misread")
    return AtomicType("TIMESTAMP_LTZ" if logical_type["isAdjustedToUTC"] else "TIMESTAMP", precision=precision)


def _check_encodings(metadata: Any, path: str) -> None:
    """Raise UnsupportedError for a compression or an encoding that the Java engine cannot decode."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for i in range(metadata.num_columns):
            chunk = row_group.column(i)
            wrong = [chunk.compression] if chunk.compression not in _CODECS else []
            wrong += sorted(set(chunk.encodings) - _ENCODINGS)
            if wrong:
                raise UnsupportedError(
                    f"column {chunk.path_in_schema!r} of {path} is encoded by {wrong[0]}, which the Java engine cannot "
                    f"decode: the file is not added; {REWRITE}"
                )


def _bounds(metadata: Any, fields: tuple[DataField, ...]) -> dict[str, ColumnBounds]:
    """Return the statistics of the non-nested columns over all row groups."""
    schema = schema_of(metadata)
    leaves = {schema.column(i).path: i for i in range(metadata.num_columns)}
    groups = list(range(metadata.num_row_groups))
    bounds_by_column = {}
    for field in fields:
        if not isinstance(field.type, AtomicType) or "." in field.name:
            continue
        leaf, arrow = leaves[field.name], to_arrow(field.type)
        ordered = has_bounds(field.type) and field.type.root not in _UNBOUNDED
        bounded = ordered and schema.column(leaf).physical_type != "INT96"
        stats = row_group_bounds(metadata, groups, leaf, arrow if bounded else pa.null())
        rows = np.array([metadata.row_group(g).num_rows for g in groups], np.int64)
        nulls = None if (stats.null_count < 0).any() else int(stats.null_count.sum())
        empty = pa.array(stats.null_count == rows, pa.bool_())
        complete = bounded and pc.all(pc.or_(empty, pc.and_(stats.min.is_valid(), stats.max.is_valid()))).as_py()
        low, high = (pc.min(stats.min), pc.max(stats.max)) if complete else (None, None)
        bounds = [None if bound is None or not bound.is_valid else internal_value(bound) for bound in (low, high)]
        if nulls is not None or bounds[0] is not None:
            bounds_by_column[field.name] = ColumnBounds(bounds[0], bounds[1], nulls)
    return bounds_by_column


def _check_calendar(path: str, fields: tuple[DataField, ...], bounds: dict[str, ColumnBounds]) -> None:
    """Raise UnsupportedError for days before the Gregorian calendar in a file with the hybrid calendar of Spark 2."""
    first = (_GREGORIAN - date(1970, 1, 1)).days
    for field in fields:
        if not any(word in str(field.type) for word in ("DATE", "TIMESTAMP")):
            continue
        bound = bounds.get(field.name)
        per_day = 1
        if isinstance(field.type, AtomicType) and field.type.root != "DATE":
            per_day = 86_400 * 10 ** (field.type.precision or 0)
        if bound is None or (bound.min is None and bound.null_count is None) or (bound.min or 0) < first * per_day:
            why = "which engines interpret differently"
            raise ColumnInFile(path, field.name).refuse("days of the Julian calendar", why)
