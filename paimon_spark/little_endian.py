"""Numbers as their bytes in little-endian order, and back, as Spark expressions."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

_EVEN: Final = 0x00FF00FF00FF00FF
_PAIRS: Final = 0x0000FFFF0000FFFF
_LOW: Final = 0xFFFFFFFF
_EIGHT: Final = "(..)" * 8
_OPPOSITE: Final = "".join(f"${number}" for number in range(8, 0, -1))


def bytes_of(number: Column) -> Column:
    """Return the eight bytes (BINARY) of a number, as BIGINT; NULL for NULL.

    The result contains ``number`` eight times. Shifts and masks are faster than texts.
    """
    return F.unhex(F.lpad(F.hex(_turned(number.cast("bigint"))), 16, "0"))


def number_of(data: Column) -> Column:
    """Return the number (BIGINT) that one to eight bytes (BINARY) are; fewer than eight are not negative.

    The result contains ``data`` once: the position of one number may depend on another number.
    """
    digits = F.regexp_replace(F.rpad(F.hex(data), 16, "0"), _EIGHT, _OPPOSITE)
    return F.conv(digits, 16, -10).cast("bigint")


def _turned(number: Column) -> Column:
    """Return a number whose eight bytes are in the opposite order."""
    turned = number
    for mask, bits in ((_EVEN, 8), (_PAIRS, 16), (_LOW, 32)):
        low = F.lit(mask).cast("bigint")
        turned = F.shiftrightunsigned(turned, bits).bitwiseAND(low).bitwiseOR(F.shiftleft(turned.bitwiseAND(low), bits))
    return turned
