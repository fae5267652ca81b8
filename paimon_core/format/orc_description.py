"""Columns, rows and statistics of ORC files that other tools wrote (format 7.5)."""

from datetime import date, datetime
from typing import Any

import pyorc

from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_description import ColumnInFile, FileDescription
from paimon_core.format.orc_tail import check_tail
from paimon_core.format.stats import ColumnBounds
from paimon_core.types import datatype
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, RowType, decimal

_KINDS = pyorc.TypeKind
_PLAIN: dict[Any, AtomicType] = {
    _KINDS.BOOLEAN: datatype.BOOLEAN,
    _KINDS.BYTE: datatype.TINYINT,
    _KINDS.SHORT: datatype.SMALLINT,
    _KINDS.INT: datatype.INT,
    _KINDS.LONG: datatype.BIGINT,
    _KINDS.FLOAT: datatype.FLOAT,
    _KINDS.DOUBLE: datatype.DOUBLE,
    _KINDS.STRING: datatype.STRING,
    _KINDS.BINARY: datatype.BYTES,
    _KINDS.DATE: datatype.DATE,
}
_INTEGERS = {_KINDS.BYTE, _KINDS.SHORT, _KINDS.INT, _KINDS.LONG}
_SPARK = "org.apache.spark.version"
_GREGORIAN = date(1582, 10, 15)


def describe_orc(source: Any, path: str) -> FileDescription:
    """Return the description of a file. Raises UnsupportedError for a column that some engines misread.

    Only integers have bounds. The statistics of other types may be truncated or use another calendar.
    """
    source.seek(0)
    with as_corrupted(path):
        try:
            check_tail(source)
            reader = pyorc.Reader(source)
        except pyorc.errors.ParseError as error:
            raise ValueError(str(error)) from error
        root, rows, notes = reader.schema, len(reader), dict(reader.user_metadata)
    if root.kind != _KINDS.STRUCT:
        raise ColumnInFile(path, "").refuse(str(root), "not as rows with columns")
    fields, bounds = [], {}
    for name, stored in root.fields.items():
        column = ColumnInFile(path, name)
        fields.append(DataField(datatype.NO_ID, name, _type(stored, column, spark=_SPARK in notes)))
        with as_corrupted(path):
            stats = reader[root.find_column_id(name)].statistics
        _check_calendar(stored, stats, column)
        nulls = rows - stats["number_of_values"]
        low, high = stats.get("minimum"), stats.get("maximum")
        bounded = stored.kind in _INTEGERS and low is not None and high is not None
        if isinstance(fields[-1].type, AtomicType):
            bounds[name] = ColumnBounds(low, high, nulls) if bounded else ColumnBounds(None, None, nulls)
    return FileDescription(path, "orc", tuple(fields), rows, bounds)


def _type(stored: Any, column: ColumnInFile, *, spark: bool) -> DataType:
    """Return the column type of an ORC type. ``spark``: True if the writer's timestamps end at microseconds."""
    kind = stored.kind
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == _KINDS.CHAR or kind == _KINDS.VARCHAR:
        return AtomicType("CHAR" if kind == _KINDS.CHAR else "VARCHAR", length=stored.max_length)
    if kind == _KINDS.DECIMAL:
        return decimal(stored.precision, stored.scale)
    if kind == _KINDS.TIMESTAMP:
        return AtomicType("TIMESTAMP", precision=6 if spark else 9)
    if kind == _KINDS.LIST:
        return ArrayType(_type(stored.type, column.part("element"), spark=spark))
    if kind == _KINDS.MAP:
        key = _type(stored.key, column.part("key"), spark=spark)
        return MapType(datatype.with_nullable(key, False), _type(stored.value, column.part("value"), spark=spark))
    if kind == _KINDS.STRUCT and stored.fields:
        inner = [(name, _type(child, column.part(name), spark=spark)) for name, child in stored.fields.items()]
        return RowType(tuple(DataField(datatype.NO_ID, name, t) for name, t in inner))
    if kind == _KINDS.TIMESTAMP_INSTANT:
        raise column.refuse(str(stored), "which the Java engine reads in its own time zone")
    raise column.refuse(str(stored), "for which Paimon has no type")


def _check_calendar(stored: Any, stats: dict[str, Any], column: ColumnInFile) -> None:
    """Raise UnsupportedError for days before the Gregorian calendar, because ORC files do not record their calendar."""
    low = stats.get("minimum")
    if stored.kind in (_KINDS.DATE, _KINDS.TIMESTAMP) and low is not None:
        day = low.date() if isinstance(low, datetime) else low
        if day < _GREGORIAN:
            raise column.refuse(f"days since {day}", "and engines disagree on days before 1582-10-15")
