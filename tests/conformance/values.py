"""Values as the Java engine's conversation writes them: what rows are compared in."""

import json
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from paimon_core.types.datatype import ArrayType, DataField, DataType, MapType, MultisetType, RowType

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def rows(table: pa.Table, fields: tuple[DataField, ...]) -> list[list[Any]]:
    """Rows of a table with these columns, each value in its written form, ordered so that two lists compare."""
    columns = [[written(v, f.type) for v in _plain(table.column(f.name))] for f in fields]
    return ordered([list(row) for row in zip(*columns, strict=True)] if columns else [])


def ordered(found: list[list[Any]]) -> list[list[Any]]:
    """The same rows in an order that depends on nothing but their values."""
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Python values with times as integers, whatever their range."""
    return column.cast(_integral(column.type)).to_pylist(maps_as_pydicts=None)


def _integral(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_map(kind):
        return pa.map_(_integral(kind.key_type), _integral(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_integral(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _integral(f.type)) for f in kind])
    return kind


def written(value: Any, kind: DataType) -> Any:
    """One value as the conversation writes it; times come as integers in the unit of their Arrow type."""
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [written(v, kind.element) for v in value]
    if isinstance(kind, MapType):
        return _pairs(value, kind.key, kind.value)
    if isinstance(kind, MultisetType):
        return sorted(([written(k, kind.element), n] for k, n in value), key=lambda p: json.dumps(p[0]))
    if isinstance(kind, RowType):
        return {f.name: written(value[f.name], f.type) for f in kind.fields}
    match kind.root:
        case "DATE":
            return str(date(1970, 1, 1) + timedelta(days=value))
        case "TIME":
            seconds, millis = divmod(value, 1000)
            return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _moment(value, kind.precision or 0) + ("Z" if kind.root == "TIMESTAMP_LTZ" else "")
        case "DECIMAL":
            return str(Decimal(value)) if kind.scale == 0 else f"{value:f}"
        case "BINARY" | "VARBINARY" | "BLOB":
            return value.hex()
        case "FLOAT" | "DOUBLE":
            return _floating(value)
    return value


def _pairs(value: Any, key: DataType, item: DataType) -> list[list[Any]]:
    return sorted(([written(k, key), written(v, item)] for k, v in value), key=lambda p: json.dumps(p[0]))


def _floating(value: float) -> float | str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _moment(value: int, precision: int) -> str:
    unit = _PER_SECOND["ms" if precision <= 3 else "us" if precision <= 6 else "ns"]
    seconds, fraction = divmod(value, unit)
    days, second = divmod(seconds, 86_400)
    nanos = fraction * (1_000_000_000 // unit)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{nanos:09d}"
    return f"{date(1970, 1, 1) + timedelta(days=days)}T{clock}"
