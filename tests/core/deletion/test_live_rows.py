"""Position masks keep the rows that a deletion vector keeps."""

import numpy as np
import pytest

from paimon_core.deletion.live_rows import live_mask, mask_bytes
from paimon_core.deletion.vector import DeletionVector


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_mask_has_bit_for_each_row_that_is_not_deleted(rows, share):
    deleted = np.random.default_rng(rows).random(rows) < share
    mask = live_mask(DeletionVector.of(np.flatnonzero(deleted)), rows)
    assert mask.nbytes == mask_bytes(rows)
    positions = np.arange(rows)
    assert ((mask[positions >> 6] >> (positions & 63)) & 1 == ~deleted).all()


def test_bits_beyond_last_row_are_set():
    mask = live_mask(DeletionVector.of([1, 5, 6, 63, 1 << 40]), 6)
    assert mask.tolist() == [~0b100010]
