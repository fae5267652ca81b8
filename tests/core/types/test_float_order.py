"""The order of floating keys."""

import numpy as np
import pyarrow as pa

from paimon_core.types.float_order import in_key_order, one_nan

ASCENDING = [-np.inf, -1.5, -0.0, 0.0, 1e-30, 1.5, np.inf, np.nan]


def test_integers_compare_as_keys_do():
    for kind in (np.float64, np.float32):
        actual = in_key_order(pa.array(np.array(ASCENDING, kind), from_pandas=False)).to_numpy()
        assert sorted(set(actual.tolist())) == actual.tolist()


def test_every_nan_is_one():
    other = np.array([0x7FF8000000000001, 0x7FF8000000000000], np.uint64).view(np.float64)
    assert len(set(one_nan(other).view(np.uint64).tolist())) == 1
    numbers = np.array([1.0, 2.0])
    assert one_nan(numbers) is numbers


def test_other_columns_and_nulls_stay():
    texts = pa.array(["a"])
    assert in_key_order(texts) is texts
    assert in_key_order(pa.array([1.0, None])).null_count == 1
