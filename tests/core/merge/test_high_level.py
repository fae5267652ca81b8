"""The lookup-levels rule against a loop over keys."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.merge.high_level import LEVEL, pick_high_level, read_high_level
from paimon_core.merge.window import Window

GROUPS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=5), min_size=1, max_size=8)


def window_of(groups: list[list[int]], mixed: np.random.Generator) -> Window:
    """Return a window of groups with these levels in sorted order, with its rows in random order."""
    levels = [level for group in groups for level in group]
    order = mixed.permutation(len(levels))
    rows = pa.table({LEVEL: pa.array(np.array(levels, np.int8)[np.argsort(order)]), "at": np.argsort(order)})
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    return Window(rows, order, starts)


def counting(group: list[int]) -> list[int]:
    """Return the positions of the picked rows in the group; two rows of the smallest level are both picked."""
    least = min((level for level in group if level), default=0)
    return [i for i, level in enumerate(group) if level in (0, least)]


@given(GROUPS, st.integers(0, 99))
def test_pick_high_level_keeps_level_0_and_smallest_level(groups, seed):
    window = window_of(groups, np.random.default_rng(seed))
    left = pick_high_level(window)
    expected = [counting(group) for group in groups]
    first = np.cumsum([0, *map(len, groups)])[:-1]
    assert left.num_groups == len(groups)
    assert left.column("at").to_pylist() == [int(f) + i for f, kept in zip(first, expected, strict=True) for i in kept]
    assert (left.ends - left.starts).tolist() == [len(kept) for kept in expected]
    passes = [len(group) == 1 for group in groups]
    assert left.single.tolist() == passes, "a row that is left of several is merged"


def test_read_high_level_folds_only_picked_rows():
    window = window_of([[0, 3, 1], [2]], np.random.default_rng(0))
    assert read_high_level(lambda w: w.take(w.ends - 1))(window).column(LEVEL).to_pylist() == [1, 2]
