import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.types.sorted_values import dense_ranks, distinct, run_starts

numbers = st.lists(st.integers(-3, 3), max_size=20).map(lambda drawn: np.array(drawn, np.int64))


@given(numbers)
def test_runs_start_at_the_first_value_and_where_the_value_changes(values):
    expected = [i == 0 or values[i] != values[i - 1] for i in range(len(values))]
    assert run_starts(values).tolist() == expected


@given(numbers)
def test_distinct_values_are_in_order(values):
    assert distinct(np.sort(values)).tolist() == sorted(set(values.tolist()))


@given(numbers)
def test_ranks_have_no_gaps(values):
    order = sorted(set(values.tolist()))
    assert dense_ranks(values).tolist() == [order.index(value) for value in values.tolist()]
