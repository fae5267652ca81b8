"""Maps put together from buffers: a NULL among the keys is an error, not the end of the process."""

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.format.conform import conform
from paimon_core.types.map_entries import map_entries

KIND = pa.map_(pa.string(), pa.int32())


def test_null_key_is_refused():
    with pytest.raises(pa.ArrowInvalid, match="NULL among its keys"):
        map_entries(pa.array(["a", None]), pa.array([1, 2], pa.int32()), KIND)


def test_pairs_of_file_with_null_key_are_refused():
    pairs = pa.array([[{"key": "a", "value": 1}, {"key": None, "value": 2}]])
    with pytest.raises(pa.ArrowInvalid, match="NULL among its keys"):
        conform(pairs, KIND)


def test_keys_with_unknown_null_count_become_map():
    validity = pa.py_buffer(np.packbits([1, 1, 0], bitorder="little").tobytes())
    uncounted = pa.Array.from_buffers(pa.string(), 3, [validity, *pa.array(["a", "b", ""]).buffers()[1:]])[:2]
    entries = map_entries(uncounted, pa.array([1, 2], pa.int32()), KIND)
    offsets = pa.array([0, 2], pa.int32()).buffers()[1]
    assert pa.Array.from_buffers(KIND, 1, [None, offsets], children=[entries]).to_pylist() == [[("a", 1), ("b", 2)]]
