"""Values as the Java engine's conversation writes them: what rows are compared in.

``rows`` turns Arrow into written values, ``arrow`` turns written values into Arrow, and ``normal`` makes written values
comparable between engines: maps sorted by key, floats that JSON lacks as text.
"""

import json
import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql.types import VariantVal

from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import ArrayType, DataField, DataType, MapType, MultisetType, RowType, with_nullable

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def rows(table: pa.Table, fields: Sequence[DataField]) -> list[list[Any]]:
    """Rows of a table with these columns, each value in its written form, ordered so that two lists compare."""
    columns = [[written(v, f.type) for v in _plain(table.column(f.name))] for f in fields]
    return ordered([list(row) for row in zip(*columns, strict=True)] if columns else [])


def ordered(found: Iterable[list[Any]]) -> list[list[Any]]:
    """The same rows in an order that depends on nothing but their values."""
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return Python values with times as integers, of any range."""
    return column.cast(_integral(column.type)).to_pylist()


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
        return _sorted([written(k, kind.key), written(v, kind.value)] for k, v in value)
    if isinstance(kind, MultisetType):
        return _sorted([written(k, kind.element), n] for k, n in value)
    if isinstance(kind, RowType):
        return {f.name: written(value[f.name], f.type) for f in kind.fields}
    match kind.root:
        case "DATE":
            return str(date(1970, 1, 1) + timedelta(days=value))
        case "TIME":
            seconds, millis = divmod(value, 1000)
            return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _moment(value, _unit(kind)) + ("Z" if kind.root == "TIMESTAMP_LTZ" else "")
        case "DECIMAL":
            return f"{value:f}"
        case "BINARY" | "VARBINARY" | "BLOB":
            return value.hex()
        case "FLOAT" | "DOUBLE":
            return _floating(value)
        case "VARIANT":
            return normal(VariantVal(value["value"], value["metadata"]).toJson(), kind)
    return value


def normal(value: Any, kind: DataType) -> Any:
    """A written value in its one form."""
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [normal(v, kind.element) for v in value]
    if isinstance(kind, MapType):
        return _sorted([normal(k, kind.key), normal(v, kind.value)] for k, v in value)
    if isinstance(kind, MultisetType):
        return _sorted([normal(k, kind.element), n] for k, n in value)
    if isinstance(kind, RowType):
        return {f.name: normal(value[f.name], f.type) for f in kind.fields}
    if kind.root == "VARIANT":
        return json.dumps(json.loads(value), sort_keys=True)
    return _floating(float(value)) if kind.root in ("FLOAT", "DOUBLE") else value


def arrow(found: Sequence[dict[str, Any]], fields: Sequence[DataField]) -> pa.Table:
    """Written rows ({column: value}; a missing column is NULL) as an Arrow table of these fields."""
    columns = [pa.array([plain(row.get(f.name), f.type) for row in found], to_arrow(f.type)) for f in fields]
    return pa.Table.from_arrays(columns, schema=arrow_schema([_nullable(f) for f in fields]))


def _nullable(field: DataField) -> DataField:
    return DataField(field.id, field.name, with_nullable(field.type, True))


def plain(value: Any, kind: DataType) -> Any:
    """A written value as Python has it: times as integers in the unit of their Arrow type, maps as pairs."""
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [plain(v, kind.element) for v in value]
    if isinstance(kind, MapType):
        return [(plain(k, kind.key), plain(v, kind.value)) for k, v in value]
    if isinstance(kind, MultisetType):
        return [(plain(k, kind.element), n) for k, n in value]
    if isinstance(kind, RowType):
        return {f.name: plain(value[f.name], f.type) for f in kind.fields}
    match kind.root:
        case "DATE":
            return (date.fromisoformat(value) - date(1970, 1, 1)).days
        case "TIME":
            hours, minutes, seconds = value.split(":")
            return (int(hours) * 60 + int(minutes)) * 60_000 + int(seconds.replace(".", ""))
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _since_epoch(value.rstrip("Z"), _unit(kind))
        case "DECIMAL":
            return Decimal(value)
        case "BINARY" | "VARBINARY" | "BLOB":
            return bytes.fromhex(value)
        case "FLOAT" | "DOUBLE":
            return float(value)
        case "VARIANT":
            parsed = VariantVal.parseJson(value)
            return {"value": bytes(parsed.value), "metadata": bytes(parsed.metadata)}
    return value


def _sorted(pairs: Iterable[list[Any]]) -> list[list[Any]]:
    return sorted(pairs, key=lambda pair: json.dumps(pair[0]))


def _floating(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def _unit(kind: DataType) -> str:
    precision = kind.precision or 0
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def _moment(value: int, unit: str) -> str:
    seconds, fraction = divmod(value, _PER_SECOND[unit])
    days, second = divmod(seconds, 86_400)
    nanos = fraction * (1_000_000_000 // _PER_SECOND[unit])
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{nanos:09d}"
    return f"{date(1970, 1, 1) + timedelta(days=days)}T{clock}"


def _since_epoch(text: str, unit: str) -> int:
    day, clock = text.split("T")
    hours, minutes, seconds = clock.split(":")
    second, _, fraction = seconds.partition(".")
    whole = (date.fromisoformat(day) - date(1970, 1, 1)).days * 86_400
    whole += int(hours) * 3600 + int(minutes) * 60 + int(second)
    return whole * _PER_SECOND[unit] + int((fraction + "0" * 9)[: _DIGITS[unit]] or 0)
