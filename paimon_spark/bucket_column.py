"""The bucket of a row as an expression of Spark, equal to that of the engine (format 6.2).

The expression builds the bytes of the BinaryRow of the key. Spark's ``hash`` of bytes whose number is a multiple of
four is the hash that Paimon takes.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from paimon_core.errors import InvalidInputError, UnsupportedError

_MOST_COLUMNS = 56  # their null bits fit into the first word
_INLINE = 7  # so many bytes of a text fit into its slot
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_COMPACT_DECIMAL = 18
_NUMBERS = {"BOOLEAN": 1, "TINYINT": 0xFF, "SMALLINT": 0xFFFF, "INT": 0xFFFFFFFF, "DATE": 0xFFFFFFFF, "BIGINT": -1}
"""The types that have their bits in the low end of a slot, each with a mask of these bits."""
_BYTES = ("STRING", "BINARY")
_EVEN = 0x00FF00FF00FF00FF
_PAIRS = 0x0000FFFF0000FFFF


def bucket_column(count: int, columns: Sequence[Column], types: Sequence[str]) -> Column:
    """Return the bucket (INT, 0 to ``count - 1``) of rows whose bucket key are these columns.

    Args:
        count: of buckets.
        columns: the bucket key.
        types: of the columns, as Spark's DDL.

    Raises InvalidInputError for a wrong number of buckets or columns; UnsupportedError for a type whose bytes no
    expression of Spark builds, or that does not say how many digits the table's column has.
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
    for column, one in zip(columns, encoded, strict=True):
        slots.append(F.when(column.isNull(), _word(F.lit(0))).otherwise(one.slot(offset)))
        offset = offset + one.size
    row = F.concat(_word(header), *slots, *(one.tail for one in encoded if one.tail is not None))
    return (F.abs(F.hash(row).cast("bigint")) % F.lit(count)).cast("int")


@dataclass(frozen=True)
class _Encoded:
    """A column in a row: its slot for an offset, its bytes behind the slots (`None`: none), and their number."""

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
    known = (*_NUMBERS, f"DECIMAL of up to {_COMPACT_DECIMAL} digits", *_BYTES)
    raise UnsupportedError(
        f"the bucket of a column of type {kind} cannot be computed in SQL: its type must be one of {', '.join(known)}; "
        "the column __paimon_bucket has the bucket of stored rows"
    )


def _number(column: Column) -> _Encoded:
    return _Encoded(lambda _: _word(column), None, F.lit(0))


def _bytes(column: Column) -> _Encoded:
    data = F.coalesce(column.cast("binary"), F.unhex(F.lit("")))
    zero, length = F.unhex(F.lit("00")), F.octet_length(data).cast("bigint")
    is_long = length > F.lit(_INLINE)
    size = F.when(is_long, (length + F.lit(7)).bitwiseAND(F.lit(-8))).otherwise(F.lit(0))
    inline = F.concat(F.rpad(data, _INLINE, zero), F.unhex(F.hex(length + F.lit(128))))
    tail = F.when(is_long, F.rpad(data, size.cast("int"), zero)).otherwise(F.unhex(F.lit("")))
    return _Encoded(
        lambda offset: F.when(is_long, _word(F.shiftleft(offset, 32) + length)).otherwise(inline), tail, size
    )


def _word(number: Column) -> Column:
    """Return the eight bytes of a number, the lowest first."""
    turned = number.cast("bigint")
    for mask, bits in ((_EVEN, 8), (_PAIRS, 16), (0xFFFFFFFF, 32)):
        low = F.lit(mask).cast("bigint")
        turned = F.shiftrightunsigned(turned, bits).bitwiseAND(low).bitwiseOR(F.shiftleft(turned.bitwiseAND(low), bits))
    return F.unhex(F.lpad(F.hex(turned), 16, "0"))
