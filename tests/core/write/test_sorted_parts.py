"""Sorted columns that grow in parts."""

import numpy as np
import pytest

from paimon_core.write.sorted_parts import SortedParts, sort_columns


def filled(*sizes):
    parts = SortedParts()
    for size in sizes:
        parts.append((np.arange(size),))
    return parts


@pytest.mark.parametrize(
    ("sizes", "joined"),
    [
        ([5], [5]),
        ([100, 10], [100, 10]),
        ([100, 25], [125]),
        ([100, 10, 2], [100, 10, 2]),
        ([100, 10, 3, 4], [100, 17]),
    ],
)
def test_part_joins_part_before_unless_that_is_four_times_larger(sizes, joined):
    parts = filled(*sizes)
    assert [len(part[0]) for part in parts] == joined
    assert len(parts) == sum(sizes)
    assert parts.nbytes == 8 * sum(sizes)


def test_joined_parts_are_sorted_with_all_columns():
    parts = SortedParts()
    parts.append((np.array([1, 5]), np.array([10, 50])))
    parts.append((np.array([3]), np.array([30])))
    ((keys, values),) = parts
    assert (keys.tolist(), values.tolist()) == ([1, 3, 5], [10, 30, 50])


def test_columns_are_sorted_by_first_one():
    keys, values = sort_columns((np.array([3, 1, 2]), np.array([30, 10, 20])))
    assert (keys.tolist(), values.tolist()) == ([1, 2, 3], [10, 20, 30])
