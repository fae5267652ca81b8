"""Hashes of texts, against known values and a plain implementation of the algorithms."""

import random

import numpy as np
import pyarrow as pa

from paimon_core.row.murmur import byte_hashes
from paimon_core.row.stored_values import xxh64

LENGTHS = (0, 1, 3, 4, 5, 7, 8, 13, 31, 32, 33, 39, 40, 64, 100, 257)


def test_xxh64_equals_known_values():
    assert xxh64(pa.array([b"aaaaaa"])).view(np.int64).tolist() == [3798551202285001592]
    assert xxh64(pa.array([b"", b"a" * 32], pa.large_binary())).tolist()[0] == 0xEF46DB3751D8E999


def test_hash_does_not_depend_on_other_rows():
    rng = random.Random(7)
    values = [rng.randbytes(rng.choice(LENGTHS)) for _ in range(300)]
    array = pa.array([b"first", *values], pa.binary()).slice(1)
    for hashed in (xxh64, byte_hashes):
        alone = [hashed(pa.array([v], pa.binary()))[0] for v in values]
        assert hashed(array).tolist() == alone


def test_murmur_mixes_tail_bytes_as_signed():
    def plain(data):
        h, size = 42, len(data) - len(data) % 4
        blocks = [int.from_bytes(data[i : i + 4], "little") for i in range(0, size, 4)]
        for block in blocks + [(b - 256 if b > 127 else b) & 0xFFFFFFFF for b in data[size:]]:
            k = block * 0xCC9E2D51 & 0xFFFFFFFF
            k = (k << 15 | k >> 17) & 0xFFFFFFFF
            h ^= k * 0x1B873593 & 0xFFFFFFFF
            h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
        h ^= len(data)
        h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        return h ^ h >> 16

    rng = random.Random(3)
    values = [rng.randbytes(n) for n in LENGTHS]
    assert byte_hashes(pa.array(values, pa.binary())).view(np.uint32).tolist() == [plain(v) for v in values]
    assert len(byte_hashes(pa.array([], pa.binary()))) == 0
