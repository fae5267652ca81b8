"""Groups of consecutive rows, identified by the positions of their first rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.merge.segments import any_of, first, last, numbered, rounds, sizes_of, tally

STARTS = np.array([0, 2, 3])  # three groups: rows 0 and 1, row 2, rows 3 to 5
ROWS = 6


def mask(text):
    return np.array([letter == "x" for letter in text])


def test_groups_have_sizes_and_numbers():
    assert sizes_of(STARTS, ROWS).tolist() == [2, 1, 3]
    assert numbered(STARTS, ROWS).tolist() == [0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("rows", "first_rows", "last_rows", "some", "counts"),
    [
        ("xxxxxx", [0, 2, 3], [1, 2, 5], [True, True, True], [2, 1, 3]),
        (".x..x.", [1, -1, 4], [1, -1, 4], [True, False, True], [1, 0, 1]),
        ("x..x.x", [0, -1, 3], [0, -1, 5], [True, False, True], [1, 0, 2]),
        ("......", [-1, -1, -1], [-1, -1, -1], [False, False, False], [0, 0, 0]),
    ],
)
def test_masks_are_reduced_per_group(rows, first_rows, last_rows, some, counts):
    assert first(mask(rows), STARTS).tolist() == first_rows
    assert last(mask(rows), STARTS).tolist() == last_rows
    assert any_of(mask(rows), STARTS).tolist() == some
    assert tally(mask(rows), STARTS).tolist() == counts


def test_rounds_visit_rows_of_all_groups_in_order():
    visited = [(groups.tolist(), rows.tolist()) for groups, rows in rounds(STARTS, ROWS)]
    assert visited == [([0, 2], [1, 4]), ([2], [5])]
    chosen = [(groups.tolist(), rows.tolist()) for groups, rows in rounds(STARTS, ROWS, np.array([0, 1]))]
    assert chosen == [([0], [1])]


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=12))
def test_reductions_of_masks_equal_loops(members):
    values = np.array([value for group in members for value in group], bool)
    starts = np.cumsum([0, *(len(group) for group in members[:-1])])
    rows = [[start + i for i, value in enumerate(group) if value] for start, group in zip(starts, members, strict=True)]
    assert last(values, starts).tolist() == [row[-1] if row else -1 for row in rows]
    assert first(values, starts).tolist() == [row[0] if row else -1 for row in rows]
    assert any_of(values, starts).tolist() == [bool(row) for row in rows]
    assert tally(values, starts).tolist() == list(map(len, rows))
