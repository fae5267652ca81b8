"""Bitmaps against pyroaring: the same bytes for the same rows, readable in both directions."""

import random

import numpy as np
import pytest
from pyroaring import BitMap

from paimon_core.fileindex.roaring import bitmap, bitmaps, decode, decode_mask


def drawn(rng):
    start = rng.randrange(100_000)
    return rng.choice(
        (
            lambda: [],
            lambda: [start],
            lambda: sorted(rng.sample(range(300_000), rng.randint(1, 200))),
            lambda: list(range(start, start + rng.randint(2, 200_000))),
            lambda: sorted(rng.sample(range(70_000), rng.choice((4095, 4096, 4097, 30_000)))),
            lambda: sorted({rng.randrange(1000) + (k << 16) for k in range(rng.randint(1, 9)) for _ in range(3)}),
            lambda: [row for k in range(0, start, 7) for row in range(k, k + rng.randint(1, 6))],
        )
    )()


@pytest.mark.parametrize("seed", range(40))
def test_bitmaps_equal_pyroaring(seed):
    rng = random.Random(seed)
    groups = [drawn(rng) for _ in range(rng.randint(0, 6))]
    owners = np.repeat(np.arange(len(groups)), [len(rows) for rows in groups])
    data, at = bitmaps(owners, np.array([r for rows in groups for r in rows], np.int64), len(groups))
    assert len(at) == len(groups) + 1
    assert at[-1] == len(data)
    for number, rows in enumerate(groups):
        expected = BitMap(rows)
        expected.run_optimize()
        assert data[at[number] : at[number + 1]].tobytes() == expected.serialize()
        result, end = decode(data.tobytes(), int(at[number]), 1 << 32)
        assert result.tolist() == rows
        assert end == at[number + 1]
        limit = max(rows, default=0) + 1
        mask, end = decode_mask(data.tobytes(), int(at[number]), limit)
        assert len(mask) == limit
        assert np.flatnonzero(mask).tolist() == rows
        assert end == at[number + 1]


@pytest.mark.parametrize("rows", [[3, 8], range(70_000), range(0, 300_000, 3)])
def test_bytes_that_are_not_bitmap_are_refused(rows):
    data = bitmap(np.array(rows))
    for broken in (data[:-1], data[:7], b"", bytes([data[0] ^ 1]) + data[1:]):
        with pytest.raises(ValueError, match="no roaring bitmap begins at byte 0"):
            decode(broken, 0, 1 << 32)


def test_corrupt_offset_is_refused():
    data = bytearray(bitmap(np.array([3, 8])))
    data[12] ^= 1  # the offset of the only container, which the library ignores
    with pytest.raises(ValueError, match="not in the portable form"):
        decode(bytes(data), 0, 9)


def test_rows_beyond_file_are_refused():
    data = bitmap(np.array([3, 8]))
    assert decode(data, 0, 9)[0].tolist() == [3, 8]
    with pytest.raises(ValueError, match="contains row 8,"):
        decode(data, 0, 8)
    with pytest.raises(ValueError, match="contains row 8,"):
        decode_mask(data, 0, 8)
    with pytest.raises(ValueError, match="contains row 65536,"):
        decode_mask(bitmap(np.array([1 << 16])), 0, 9)
