from functools import reduce
from operator import add

import numpy as np
import pytest

from paimon_core.merge.aggregate import input as module
from paimon_core.merge.aggregate.input import AggregateInput


def _inputs(sizes, unsorted=None):
    count = int(sum(sizes))
    none = np.zeros(count, bool)
    return AggregateInput(np.cumsum(sizes) - sizes, none, none, np.zeros(len(sizes), bool), unsorted=unsorted)


@pytest.mark.parametrize("many_rows", [0, 1 << 20])
@pytest.mark.parametrize("sizes", [[1], [3, 1, 2], [16, 17, 64, 65, 1, 200], [2] * 50])
@pytest.mark.parametrize("combine", [np.maximum, np.minimum, np.add])
def test_groups_are_combined_as_by_reduceat(monkeypatch, combine, sizes, many_rows):
    monkeypatch.setattr(module, "_MANY_ROWS", many_rows)
    inputs = _inputs(np.array(sizes))
    for seed in range(2):  # two columns share the positions
        values = np.random.default_rng(seed).integers(-(1 << 40), 1 << 40, sum(sizes))
        expected = combine.reduceat(values, inputs.starts).tolist()
        assert inputs.in_any_order(combine, values).tolist() == expected
        assert inputs.in_order(combine, values).tolist() == expected
        order = np.random.default_rng(seed).permutation(sum(sizes) + 3)[3:]  # not all rows of the column
        unsorted = np.full(sum(sizes) + 3, 1 << 60)
        unsorted[order] = values
        of_unsorted = _inputs(np.array(sizes), order).of_unsorted
        assert of_unsorted.in_any_order(combine, unsorted).tolist() == expected
        assert of_unsorted.in_order(combine, unsorted).tolist() == expected


@pytest.mark.parametrize("many_rows", [0, 1 << 20])
@pytest.mark.parametrize("sizes", [[1], [3, 1, 2], [16, 1, 2], [16, 17, 200, 1]])
def test_last_largest_row_of_each_group(monkeypatch, sizes, many_rows):
    monkeypatch.setattr(module, "_MANY_ROWS", many_rows)
    random = np.random.default_rng(1)
    for kind, largest in [(np.int32, 3), (np.int64, 2**63 - 1)]:
        order, values = random.permutation(sum(sizes)), random.integers(-2, 2, sum(sizes)).astype(kind)
        values[values == 1] = largest  # twice in some groups
        inputs = _inputs(np.array(sizes), order)
        expected, start = [], 0
        for size in sizes:
            expected.append(max(range(start, start + size), key=lambda row: (values[row], row)))
            start += size
        assert inputs.last_largest(values).tolist() == expected
        unsorted = np.empty_like(values)
        unsorted[order] = values
        assert inputs.of_unsorted.last_largest(unsorted).tolist() == expected


def test_floats_are_added_from_left_to_right():
    sizes = np.array([5, 100, 1])
    values = np.random.default_rng(1).random(106) * 10.0 ** np.random.default_rng(2).integers(-9, 9, 106)
    # not sum(), which newer Pythons compensate for rounding
    expected = [reduce(add, part.tolist()) for part in np.split(values, np.cumsum(sizes)[:-1])]
    assert _inputs(sizes).in_order(np.add, values).tolist() == expected
