import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.operations.compaction.curves import CURVES, hilbert, z_order
from tests.support.draws import draws

SHAPES = [(1, 4), (2, 1), (2, 5), (3, 3), (4, 2), (5, 2), (7, 1)]


def grid(dimensions, bits):
    points = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)), np.uint64)
    return [points[:, i] for i in range(dimensions)]


@pytest.mark.parametrize(("dimensions", "bits"), SHAPES)
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_every_cell_once(curve, dimensions, bits):
    position = curve(grid(dimensions, bits), bits)
    assert sorted(position.tolist()) == list(range(1 << (dimensions * bits)))


@pytest.mark.parametrize(("dimensions", "bits"), SHAPES)
def test_hilbert_neighbours_are_one_step_apart(dimensions, bits):
    cells = grid(dimensions, bits)
    path = np.stack(cells)[:, np.argsort(hilbert(cells, bits))].astype(np.int64)
    assert (np.abs(np.diff(path, axis=1)).sum(axis=0) == 1).all()


@given(st.integers(1, 16), st.integers(2, 4), st.data())
@draws(100)
def test_z_order_is_monotonous_in_every_coordinate(bits, dimensions, data):
    low = data.draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=dimensions, max_size=dimensions))
    high = [data.draw(st.integers(value, (1 << bits) - 1)) for value in low]
    one, other = (z_order([np.array([v], np.uint64) for v in point], bits)[0] for point in (low, high))
    assert one <= other


@given(st.integers(2, 32), st.data())
@draws(100)
def test_hilbert_along_any_stretch_of_a_fine_curve(bits, data):
    """Positions differ where points do, and points whose highest bits agree share the highest bits of the position."""
    points = data.draw(
        st.lists(st.tuples(*[st.integers(0, (1 << bits) - 1)] * 2), min_size=2, max_size=20, unique=True)
    )
    axes = [np.array(values, np.uint64) for values in zip(*points, strict=True)]
    position = hilbert(axes, bits)
    assert len(set(position.tolist())) == len(points)
    coarse = hilbert([a >> np.uint64(bits - 1) for a in axes], 1)
    finer = position >> np.uint64(2 * bits - 2)
    groups = {}
    for a, b in zip(coarse.tolist(), finer.tolist(), strict=True):
        assert groups.setdefault(a, b) == b
