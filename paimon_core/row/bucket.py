"""Bucket functions default, mod and hive (format 6.2, 6.3)."""

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from paimon_core.row.encode import HALF, WORD, _bytes, _decimal_words, _is_bytes, _numbers, _plain, _runs, encode
from paimon_core.row.murmur import hashes

SLICE = 1 << 16  # rows encoded for hashing together


def buckets(keys: pa.RecordBatch, count: int, function: str = "default") -> np.ndarray:
    """The bucket (int32) of each row of bucket key columns; ``function`` as option ``bucket-function.type`` has it."""
    if count < 1 or function not in ("default", "mod", "hive"):
        raise ValueError(f"no bucket function {function!r} for {count} buckets")
    if function == "mod":
        if keys.schema.types not in ([pa.int32()], [pa.int64()]):
            raise TypeError("function mod needs exactly one INT or BIGINT column")
        return (_numbers(keys.column(0)) % np.int64(count)).astype(np.int32)
    h = np.zeros(keys.num_rows, HALF)
    if function == "default":
        for low in range(0, len(h), SLICE):
            h[low:low + SLICE] = np.abs(hashes(encode(keys.slice(low, SLICE)))).view(HALF)  # |-2^31| is 2^31 when unsigned
    else:
        for column in keys.columns:
            h = h * HALF.type(31) + _hive(_plain(column))
        h &= HALF.type(0x7FFFFFFF)
    return (h % HALF.type(count)).view(np.int32)


def _hive(array: pa.Array) -> np.ndarray:
    """Hive's hash of each value, 0 where null."""
    t = array.type
    if _is_bytes(t):
        return _hive_bytes(*_bytes(array))
    if pt.is_decimal128(t):
        return _hive_decimal(*_decimal_words(array), t.scale)
    if pt.is_timestamp(t):
        raise TypeError("function hive takes no timestamps")
    values = _numbers(array)
    if values.dtype.kind == "f":  # one zero, one NaN
        values = np.where(np.isnan(values), np.nan, values + 0).astype(values.dtype).view(f"<i{values.itemsize}")
    if values.itemsize == 8:
        values = (values.view(WORD) ^ values.view(WORD) >> np.uint64(32)).astype(HALF)
    return values.astype(np.int32).view(HALF)


def _hive_bytes(words: np.ndarray, first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Sum of byte * 31^(bytes after it), bytes signed: a difference of running sums modulo 2^32."""
    at, ends = _runs(first, length), np.cumsum(length)
    powers = np.cumprod(np.append(1, np.full(length.max(initial=0), 31)).astype(HALF), dtype=HALF)
    terms = words.view("i1").take(at).astype(np.int32).view(HALF) * powers.take(np.repeat(first + length, length) - 1 - at)
    sums = np.append(HALF.type(0), np.cumsum(terms, dtype=HALF))
    return sums[ends] - sums[ends - length]


def _hive_decimal(high: np.ndarray, low: np.ndarray, scale: int) -> np.ndarray:
    """31 * hash of the signed magnitude + scale, once zeros at the end are dropped, though never left of the point."""
    negative, ones = high >> np.uint64(63), np.uint64(0xFFFFFFFF)
    low = (low ^ -negative) + negative
    high = (high ^ -negative) + (negative & (low == 0))
    limbs = np.stack([high >> np.uint64(32), high & ones, low >> np.uint64(32), low & ones])
    scales = np.where(high | low, scale, 0)
    rows = np.flatnonzero(scales > 0)
    while rows.size:
        tenth, rest = limbs[:, rows], np.uint64(0)
        for limb in tenth:
            limb |= rest << np.uint64(32)
            rest = limb % np.uint64(10)
            limb //= np.uint64(10)
        rows = rows[rest == 0]
        limbs[:, rows] = tenth[:, rest == 0]
        scales[rows] -= 1
        rows = rows[scales[rows] > 0]
    h = np.zeros(len(low), HALF)
    for limb in limbs:
        h = h * HALF.type(31) + limb.astype(HALF)
    return np.where(negative, -h, h) * HALF.type(31) + scales.astype(HALF)
