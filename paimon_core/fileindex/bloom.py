"""The index kind bloom-filter, which proves that a file lacks a value (format 9.3)."""

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.fileindex.index import Found, Test, check_root
from paimon_core.fileindex.values import FLOAT_ROOTS, NUMBER_ROOTS, stored
from paimon_core.predicate.expr import Leaf
from paimon_core.row.stored_values import WORD, is_bytes, xxh64
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import BINARY_ROOTS, TEXT_ROOTS, AtomicType

_ROOTS = NUMBER_ROOTS | FLOAT_ROOTS | TEXT_ROOTS | BINARY_ROOTS
_ITEMS, _FALSE_POSITIVES = 1_000_000, 0.1
_MOST_BITS = (1 << 31) - 1


class BloomFilter:
    """``bloom-filter``. Options: ``items``, the expected number of values; ``fpp``, the false positive rate."""

    name = "bloom-filter"

    def check(self, kind: AtomicType, options: Mapping[str, str]) -> None:
        """See `FileIndex.check`."""
        check_root(kind, _ROOTS)
        _settings(options)

    def builder(self, kind: AtomicType, options: Mapping[str, str]) -> "BloomBuilder":
        """See `FileIndex.builder`."""
        return BloomBuilder(kind, *_settings(options))

    def search(self, data: bytes, kind: AtomicType, test: Test, rows: int) -> Found:
        """See `FileIndex.search`."""
        values = _equal_values(test)
        if values is None:
            return True
        count = int.from_bytes(data[:4], "big")
        if len(data) < 5 or not 0 < count < 1 << 16:
            raise ValueError(f"a bloom filter cannot have {len(data)} bytes and {count} hash functions")
        bits = np.frombuffer(data, np.uint8, offset=4)
        if any(isinstance(v, float) and v == 0 for v in values):
            values = [*values, 0.0, -0.0]
        positions = _bit_positions(hashes(stored(pa.array(values, to_arrow(kind)), kind)), count, 8 * len(bits))
        return bool((bits[positions >> 3] >> (positions & 7).astype(np.uint8) & 1).all(axis=0).any())


class BloomBuilder:
    """A builder of the filter of one column of one file; the options alone decide its size."""

    def __init__(self, kind: AtomicType, bits: int, count: int) -> None:
        self._kind, self._count, self._bits = kind, count, np.zeros(bits, bool)

    def add(self, values: pa.Array) -> None:
        """See `Builder.add`."""
        distinct = pc.unique(stored(values, self._kind).drop_null())
        self._bits[_bit_positions(hashes(distinct), self._count, len(self._bits))] = True

    def finish(self) -> bytes | None:
        """See `Builder.finish`."""
        return self._count.to_bytes(4, "big") + np.packbits(self._bits, bitorder="little").tobytes()


def hashes(values: pa.Array) -> np.ndarray:
    """Return the 64-bit hashes (uint64) of :func:`stored` values without nulls."""
    if is_bytes(values.type):
        return xxh64(values)
    x: np.ndarray = values.to_numpy().astype(np.int64)
    x = ~x + (x << 21)
    x ^= x >> 24
    x = x + (x << 3) + (x << 8)
    x ^= x >> 14
    x = x + (x << 2) + (x << 4)
    x ^= x >> 28
    mixed: np.ndarray = (x + (x << 31)).view(WORD)
    return mixed


def _bit_positions(hash_values: np.ndarray, count: int, bits: int) -> np.ndarray:
    """Return the bit positions of each value, as one row for each of ``count`` hash functions."""
    low, high = hash_values.astype(np.uint32), (hash_values >> WORD.type(32)).astype(np.uint32)
    combined = (low + np.arange(1, count + 1, dtype=np.uint32)[:, None] * high).view(np.int32)
    positions: np.ndarray = np.where(combined < 0, ~combined, combined) % np.int32(bits)
    return positions


def _settings(options: Mapping[str, str]) -> tuple[int, int]:
    """Return the numbers of bits and of hash functions for these options."""
    items = _number(options, "items", int, _ITEMS)
    share = _number(options, "fpp", float, _FALSE_POSITIVES)
    if items < 1 or not 0 < share < 1:
        raise ValueError(f"'items' must be at least 1 and 'fpp' between 0 and 1, but they are {items} and {share}")
    least = -items * math.log(share) / (math.log(2) * math.log(2))
    if least > _MOST_BITS - 8:
        raise ValueError(f"'items' = {items} with 'fpp' = {share} needs {least:.0f} bits, more than {_MOST_BITS}")
    bits = int(least) + 8 - int(least) % 8
    return bits, max(1, math.floor(bits / items * math.log(2) + 0.5))


def _number(options: Mapping[str, str], key: str, parse: type[int] | type[float], default: float) -> float | int:
    text = options.get(key)
    try:
        return parse(default if text is None else text.strip())
    except ValueError as error:
        raise ValueError(f"{key!r} is {text!r}, not a number") from error


def _equal_values(test: Test) -> list[object] | None:
    """Return the values of an equality test; ``None``: the test is not an equality test."""
    if isinstance(test, Leaf) and test.op in ("=", "<=>", "in") and None not in test.values:
        return list(test.values)
    return None
