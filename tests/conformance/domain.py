"""Random values of every column type, in their written form, with the corners drawn often."""

import struct
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from paimon_core.types.datatype import ArrayType, DataType, MapType, MultisetType, RowType

ATOMIC = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE",
    "DECIMAL(4, 2)", "DECIMAL(9, 0)", "DECIMAL(18, 5)", "DECIMAL(38, 10)",
    "CHAR(5)", "VARCHAR(10)", "STRING", "BINARY(4)", "VARBINARY(8)", "BYTES",
    "DATE", "TIME(0)", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE",
)  # fmt: skip
NESTED = (
    "ARRAY<INT>", "ARRAY<STRING>", "ARRAY<ARRAY<BIGINT>>", "ARRAY<ROW<a INT, b STRING>>", "ARRAY<DECIMAL(38, 10)>",
    "ARRAY<TIMESTAMP(6)>", "MAP<STRING, INT>", "MAP<INT, STRING>", "MAP<DATE, DECIMAL(10, 2)>",
    "MAP<STRING, ARRAY<ROW<x DOUBLE, y MAP<STRING, BIGINT>>>>", "MULTISET<STRING>", "ROW<a INT, b STRING>",
    "ROW<a INT NOT NULL, r ROW<t TIMESTAMP(3), d DECIMAL(20, 2), l ARRAY<BYTES>>>",
)  # fmt: skip

_TEXTS = (
    "", "a", "b", "Zz", " ", "é", "中文", "\U0001f600", "a/b", "x=y", "50%", "it's", 'q"q', "\\", "a\nb", "\x00",
    "null",
    "\ud7ff\uffff", "abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnop", "abcdefghijklmnoq",
)  # fmt: skip
_FLOATS = ("NaN", "Infinity", "-Infinity", "-0.0", 0.0, 1.5, -2.25)


def types_of(file_format: str) -> tuple[str, ...]:
    """The column types the Java engine stores in files of a format and reads back right."""
    every = (*ATOMIC, *NESTED)
    return tuple(t for t in every if "(9) W" not in t and t != "TIMESTAMP(9)") if file_format == "avro" else every


def value(rng: Random, kind: DataType, file_format: str = "parquet", nulls: float = 0.15) -> Any:
    """A value of a type; NULL with the given chance where the type allows it."""
    if kind.nullable and rng.random() < nulls:
        return None
    match kind:
        case ArrayType(element):
            return [value(rng, element, file_format) for _ in range(rng.choice((0, 1, 3)))]
        case MapType(key, item):
            return [[k, value(rng, item, file_format)] for k in _keys(rng, key, file_format)]
        case MultisetType(element):
            return [[k, rng.randint(1, 9)] for k in _keys(rng, element, file_format)]
        case RowType(fields):
            return {f.name: value(rng, f.type, file_format) for f in fields}
    return _atomic(rng, kind, file_format)


def _keys(rng: Random, kind: DataType, file_format: str) -> list[Any]:
    drawn = [_atomic(rng, kind, file_format) for _ in range(rng.choice((0, 1, 3)))]
    return [k for i, k in enumerate(drawn) if k not in drawn[:i]]


def _atomic(rng: Random, kind: DataType, file_format: str) -> Any:
    match kind.root:
        case "BOOLEAN":
            return rng.random() < 0.5
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" as root:
            edge = 2 ** ({"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[root] - 1)
            return rng.choice((-edge, edge - 1, 0, rng.randint(-edge, edge - 1), rng.randint(-9, 9)))
        case "FLOAT":
            return rng.choice((*_FLOATS, 3.4028234663852886e38, 2.0**-149, _single(rng.uniform(-1e6, 1e6))))
        case "DOUBLE":
            return rng.choice((*_FLOATS, 1.7976931348623157e308, 5e-324, rng.uniform(-1e6, 1e6)))
        case "DECIMAL":
            top = 10**kind.precision - 1
            unscaled = rng.choice((-top, top, 0, 1, rng.randint(-top, top), rng.randint(-99, 99)))
            return f"{Decimal(unscaled).scaleb(-kind.scale):f}" if kind.precision <= 28 else _wide(unscaled, kind.scale)
        case "CHAR" | "VARCHAR":
            return rng.choice((*_TEXTS, f"t{rng.randint(0, 999)}"))[: min(kind.length, 64)]
        case "BINARY":
            return rng.randbytes(kind.length).hex() if rng.random() < 0.8 else "00" * kind.length
        case "VARBINARY":
            return rng.choice((b"", b"\x00", b"\xff" * 8, b"\xff" * 20, rng.randbytes(5)))[: kind.length].hex()
        case "DATE":
            return rng.choice(("0001-01-01", "9999-12-31", "1582-10-10", "1969-12-31", _day(rng)))
        case "TIME":
            return _clock(rng, min(kind.precision or 0, 3), 3)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _moment(rng, kind.precision or 0, file_format) + ("Z" if kind.root == "TIMESTAMP_LTZ" else "")
    raise AssertionError(f"no values of type {kind}")


def _wide(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return ("-" if unscaled < 0 else "") + digits[:-scale] + "." + digits[-scale:]


def _single(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]


def _day(rng: Random, first: date = date(1900, 1, 1), days: int = 110_000) -> str:
    return str(first + timedelta(days=rng.randint(0, days)))


def _moment(rng: Random, precision: int, file_format: str) -> str:
    """Nine digits of a second. ORC: from 1970 on, as Java does not read earlier ones back; nanoseconds: their range."""
    corners = ["1970-01-01", "2024-02-29"]
    if file_format != "orc":
        corners += ["1969-12-31", "1700-01-01"] + ([] if precision > 6 else ["0001-01-01", "9999-12-31"])
    day = rng.choice((*corners, _day(rng, date(1970, 1, 2), 100_000)))
    return f"{day}T{_clock(rng, precision, 9)}"


def _clock(rng: Random, precision: int, digits: int) -> str:
    hour, minute, second = rng.choice(((0, 0, 0), (23, 59, 59), (rng.randint(0, 23), rng.randint(0, 59), 7)))
    fraction = rng.choice((0, 10**precision - 1, rng.randint(0, 10**precision - 1)))
    return f"{hour:02d}:{minute:02d}:{second:02d}." + (f"{fraction:0{precision}d}" if precision else "").ljust(
        digits, "0"
    )
