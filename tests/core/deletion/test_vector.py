import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CorruptedError, InvalidInputError
from tests.support.draws import draws

NARROW = bytes.fromhex("000000185e43f2d03a300000010000000000010010000000030007001448545c")
WIDE = bytes.fromhex("00000024d1d339640100000000000000000000003a30000001000000000001001000000003000700a6519a26")

near = st.lists(st.integers(0, 1 << 17), max_size=40)
dense = st.tuples(st.integers(0, 1 << 20), st.integers(0, 70_000)).map(lambda r: list(range(r[0], r[0] + r[1])))
sparse = st.lists(st.integers(0, (1 << 31) - 1), max_size=20)
positions = st.one_of(near, dense, sparse)
far = st.lists(st.integers(0, 1 << 40), max_size=20)


@pytest.mark.parametrize(("bitmap64", "stored"), [(False, NARROW), (True, WIDE)])
def test_vector_bytes_equal_java(bitmap64, stored):
    vector = DeletionVector.of([7, 3])
    assert vector.to_bytes(bitmap64) == stored
    assert DeletionVector.from_bytes(stored, "x") == vector
    assert vector.positions().tolist() == [3, 7]


@given(positions, st.booleans())
@draws(60)
def test_vector_round_trips(at, bitmap64):
    vector = DeletionVector.of(at)
    read = DeletionVector.from_bytes(vector.to_bytes(bitmap64) + b"what follows", "x")
    assert read.positions().tolist() == sorted(set(at))
    assert read == vector
    assert hash(read) == hash(vector)


@given(far)
@draws(30)
def test_positions_beyond_32_bits_need_bitmap64(at):
    vector = DeletionVector.of(at)
    assert DeletionVector.from_bytes(vector.to_bytes(True), "x").positions().tolist() == sorted(set(at))
    if any(p >= 1 << 31 for p in at):
        with pytest.raises(InvalidInputError, match="bitmap64"):
            vector.to_bytes(False)


@given(near, near, st.integers(0, 1 << 17), st.integers(0, 1000))
@draws(60)
def test_union_and_mask_equal_sets(one, other, first, count):
    both = DeletionVector.of(one).union(DeletionVector.of(other))
    deleted = set(one) | set(other)
    assert both.cardinality == len(deleted)
    assert both.mask(first, count).tolist() == [p in deleted for p in range(first, first + count)]
    scattered = np.unique(np.array([*other, *range(first, first + count, 3)], np.int64))
    assert both.among(scattered).tolist() == [p in deleted for p in scattered.tolist()]


def test_negative_position_is_refused():
    with pytest.raises(InvalidInputError, match="-1"):
        DeletionVector.of(np.array([4, -1]))


def test_vector_is_immutable():
    given_positions = np.array([1, 2, 3])
    vector = DeletionVector.of(given_positions)
    given_positions[0] = 9
    assert vector.positions().tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        vector.positions()[0] = 9


@pytest.mark.parametrize("stored", [NARROW, WIDE])
def test_every_corrupt_byte_is_detected(stored):
    for at in range(len(stored)):
        damaged = bytearray(stored)
        damaged[at] ^= 0x41
        with pytest.raises(CorruptedError, match="the place"):
            DeletionVector.from_bytes(bytes(damaged), "the place")
    for end in range(len(stored)):
        with pytest.raises(CorruptedError, match="the place"):
            DeletionVector.from_bytes(stored[:end], "the place")


@pytest.mark.parametrize(
    "body",
    [
        b"\0\0\0\0",
        NARROW[4:8],
        NARROW[4:8] + b"not a bitmap",
        WIDE[4:16],
        WIDE[4:8] + (2).to_bytes(8, "little") + 2 * WIDE[16:-4],
        WIDE[4:-4] + b"more",
    ],
)
def test_invalid_bitmap_with_valid_checksum_is_refused(body):
    stored = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    with pytest.raises(CorruptedError, match="the place"):
        DeletionVector.from_bytes(stored, "the place")
