"""Bucket functions: default, mod and hive (format 6.2, 6.3)."""

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes
from paimon_core.row.stored_values import HALF, WORD, byte_runs, decimal_words, is_bytes, numbers, plain, runs

_SLICE = 1 << 16  # rows that are encoded and hashed together, which bounds the memory


def buckets(keys: pa.RecordBatch, count: int, function: str = "default") -> np.ndarray:
    """Return the bucket (int32, 0 to ``count - 1``) of each row.

    Args:
        keys: the bucket key columns.
        count: number of buckets, at least 1.
        function: a value of option ``bucket-function.type``.

    Raises InvalidInputError if the function does not accept these columns, UnsupportedError for an unknown function or
    a type that cannot be hashed.
    """
    if count < 1:
        raise InvalidInputError(
            f"rows cannot be distributed to {count} buckets: a fixed number of buckets must be at least 1"
        )
    match function:
        case "default":
            return _default(keys, count)
        case "mod":
            return _mod(keys, count)
        case "hive":
            return _hive(keys, count)
    raise UnsupportedError(f"unknown bucket-function.type {function!r}: use 'default', 'mod' or 'hive'")


def _default(keys: pa.RecordBatch, count: int) -> np.ndarray:
    h = np.empty(keys.num_rows, HALF)
    for low in range(0, len(h), _SLICE):
        # abs(-2^31) overflows to -2^31, which is the correct 2^31 as an unsigned number
        h[low : low + _SLICE] = np.abs(hashes(encode(keys.slice(low, _SLICE)))).view(HALF)
    return _modulo(h, count)


def _modulo(h: np.ndarray, count: int) -> np.ndarray:
    bucket: np.ndarray = (h % HALF.type(count)).view(np.int32)
    return bucket


def _mod(keys: pa.RecordBatch, count: int) -> np.ndarray:
    if keys.schema.types not in ([pa.int32()], [pa.int64()]):
        columns = ", ".join(f"{f.name} {f.type}" for f in keys.schema)
        raise InvalidInputError(
            f"bucket-function.type 'mod' needs a bucket key of one INT or BIGINT column, not ({columns})"
        )
    bucket: np.ndarray = (numbers(keys.column(0)) % np.int64(count)).astype(np.int32)
    return bucket


def _hive(keys: pa.RecordBatch, count: int) -> np.ndarray:
    h = np.zeros(keys.num_rows, HALF)
    for name, column in zip(keys.schema.names, keys.columns, strict=True):
        if pt.is_timestamp(column.type):
            raise InvalidInputError(f"bucket-function.type 'hive' takes no timestamps, but {name} is {column.type}")
        h = h * HALF.type(31) + _hive_column(plain(column))
    return _modulo(h & HALF.type(0x7FFFFFFF), count)


def _hive_column(array: pa.Array) -> np.ndarray:
    """Return Hive's hash of each value; 0 for null."""
    t = array.type
    if is_bytes(t):
        return _hive_bytes(*byte_runs(array))
    if pt.is_decimal128(t):
        return _hive_decimal(*decimal_words(array), t.scale)
    values: np.ndarray = numbers(array)
    if values.dtype.kind == "f":  # one zero, one NaN
        canonical: Any = np.where(np.isnan(values), np.nan, values + 0).astype(values.dtype)
        values = canonical.view(f"<i{values.itemsize}")
    if values.itemsize == 8:
        values = (values.view(WORD) ^ values.view(WORD) >> np.uint64(32)).astype(HALF)
    return values.astype(np.int32).view(HALF)


def _hive_bytes(words: np.ndarray, first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the sum of ``byte * 31 ** (number of later bytes)`` for each value; bytes are signed.

    The sum is a difference of running sums modulo 2^32.
    """
    at, ends = runs(first, length), np.cumsum(length)
    powers = np.cumprod(np.append(1, np.full(length.max(initial=0), 31)).astype(HALF), dtype=HALF)
    signed = words.view("i1").take(at).astype(np.int32).view(HALF)
    terms = signed * powers.take(np.repeat(first + length, length) - 1 - at)
    sums = np.append(HALF.type(0), np.cumsum(terms, dtype=HALF))
    difference: np.ndarray = sums[ends] - sums[ends - length]
    return difference


def _hive_decimal(high: np.ndarray, low: np.ndarray, scale: int) -> np.ndarray:
    """Return ``31 * hash of the unscaled value + scale`` of decimals without trailing zeros in the fraction."""
    negative, ones = high >> np.uint64(63), np.uint64(0xFFFFFFFF)
    low = (low ^ -negative) + negative
    high = (high ^ -negative) + (negative & (low == 0))
    limbs = np.stack([high >> np.uint64(32), high & ones, low >> np.uint64(32), low & ones])
    scales = np.where(high | low, scale, 0)
    rows = np.flatnonzero(scales > 0)
    while rows.size:
        tenth, rest = _tenth(limbs[:, rows])
        rows = rows[rest == 0]
        limbs[:, rows] = tenth[:, rest == 0]
        scales[rows] -= 1
        rows = rows[scales[rows] > 0]
    h = np.zeros(len(low), HALF)
    for limb in limbs:
        h = h * HALF.type(31) + limb.astype(HALF)
    signed: np.ndarray = np.where(negative, -h, h) * HALF.type(31)
    return signed + scales.astype(HALF)


def _tenth(limbs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide 128-bit numbers by ten: return quotients, as four limbs of 32 bits, highest first, and remainders."""
    rest = np.zeros(limbs.shape[1], WORD)
    for limb in limbs:
        limb |= rest << np.uint64(32)
        rest = limb % np.uint64(10)
        limb //= np.uint64(10)
    return limbs, rest
