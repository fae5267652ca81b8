"""The bucket of a row as a Spark expression that gives the same number as the engine (format 6.2).

The expression builds the BinaryRow bytes of the key. For byte arrays whose length is a multiple of four, Spark's
``hash`` is the hash function of Paimon.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_spark.little_endian import bytes_of

_MOST_COLUMNS = 56  # the null bits of more columns do not fit into the first word
_INLINE = 7  # a slot stores values of up to this many bytes inline
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_COMPACT_DECIMAL = 18
_NUMBERS = {"BOOLEAN": 1, "TINYINT": 0xFF, "SMALLINT": 0xFFFF, "INT": 0xFFFFFFFF, "DATE": 0xFFFFFFFF, "BIGINT": -1}
"""The types stored in the low bits of a slot, each with the mask of those bits."""
_BYTES = ("STRING", "BINARY")


def bucket_column(count: int, columns: Sequence[Column], types: Sequence[str]) -> Column:
    """Return the bucket of each row (INT, 0 to ``count - 1``) as an expression over the bucket key.

    Args:
        count: the number of buckets.
        columns: the bucket key columns.
        types: the types of `columns`, as Spark DDL.

    Raises InvalidInputError for a wrong number of buckets or columns; UnsupportedError for a type whose bytes no
    Spark expression can build, or that leaves the precision of the table's column open.
    """
    if count < 1:
        raise InvalidInputError(f"the number of buckets is {count}: it must be at least 1")
    if not 0 < len(columns) <= _MOST_COLUMNS:
        raise InvalidInputError(f"a bucket key has 1 to {_MOST_COLUMNS} columns, not {len(columns)}")
    encoded = [_encoder(kind)(column) for column, kind in zip(columns, types, strict=True)]
    nulls = [F.when(column.isNull(), F.lit(1 << i + 8)).otherwise(F.lit(0)) for i, column in enumerate(columns)]
    header = nulls[0].cast("bigint")
    for bit in nulls[1:]:
        header = header + bit
    offset, slots = F.lit(8 * (1 + len(columns))).cast("bigint"), []
    for column, encoding in zip(columns, encoded, strict=True):
        slots.append(F.when(column.isNull(), bytes_of(F.lit(0))).otherwise(encoding.slot(offset)))
        offset = offset + encoding.size
    row = F.concat(bytes_of(header), *slots, *(encoding.tail for encoding in encoded if encoding.tail is not None))
    return (F.abs(F.hash(row).cast("bigint")) % F.lit(count)).cast("int")


@dataclass(frozen=True)
class _Encoded:
    """An encoded column: `slot` maps an offset to the slot; `tail` is the bytes after the slots (`None`: no tail)."""

    slot: Callable[[Column], Column]
    tail: Column | None
    size: Column


def _encoder(kind: str) -> Callable[[Column], _Encoded]:
    if kind in _BYTES:
        return _bytes
    if kind in _NUMBERS:
        mask = F.lit(_NUMBERS[kind]).cast("bigint")
        if kind == "DATE":
            return lambda column: _number(F.unix_date(column).cast("bigint").bitwiseAND(mask))
        return lambda column: _number(column.cast("bigint").bitwiseAND(mask))
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None and int(decimal[1]) <= _COMPACT_DECIMAL:
        factor = F.lit(10 ** int(decimal[2])).cast(f"decimal({int(decimal[2]) + 1}, 0)")
        return lambda column: _number((column * factor).cast("bigint"))
    supported = (*_NUMBERS, f"DECIMAL of up to {_COMPACT_DECIMAL} digits", *_BYTES)
    raise UnsupportedError(
        f"the bucket of a column of type {kind} cannot be computed in SQL: use one of {', '.join(supported)}; "
        "for stored rows, read the column __paimon_bucket"
    )


def _number(column: Column) -> _Encoded:
    return _Encoded(lambda _: bytes_of(column), None, F.lit(0))


def _bytes(column: Column) -> _Encoded:
    data = F.coalesce(column.cast("binary"), F.unhex(F.lit("")))
    zero, length = F.unhex(F.lit("00")), F.octet_length(data).cast("bigint")
    is_long = length > F.lit(_INLINE)
    size = F.when(is_long, (length + F.lit(7)).bitwiseAND(F.lit(-8))).otherwise(F.lit(0))
    inline = F.concat(F.rpad(data, _INLINE, zero), F.unhex(F.hex(length + F.lit(128))))
    tail = F.when(is_long, F.rpad(data, size.cast("int"), zero)).otherwise(F.unhex(F.lit("")))
    return _Encoded(
        lambda offset: F.when(is_long, bytes_of(F.shiftleft(offset, 32) + length)).otherwise(inline), tail, size
    )
