"""The order of rows in a merge."""

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.merge.order import MergeOrder, ascending_order, key_columns, sequence_words


@pytest.mark.parametrize(
    ("spans", "order"),
    [
        ([], []),
        ([(5, 9), (0, 4)], [1, 0]),
        ([(0, 4), (4, 9)], None),
        ([(0, 9), (2, 3)], None),
        ([(3, 3), (1, 1), (2, 2)], [1, 2, 0]),
    ],
)
def test_ascending_order_needs_disjoint_spans(spans, order):
    assert ascending_order(spans) == order


def test_null_key_is_refused():
    rows = pa.table({"k": pa.array([1, None], pa.int64())})
    with pytest.raises(InvalidInputError, match="Key column 'k' holds 1 nulls"):
        key_columns(rows, MergeOrder(("k",)))


@pytest.mark.parametrize(
    ("descending", "ranks"),
    [(False, [1, 2, 0]), (True, [2, 1, 0])],
    ids=["ascending", "descending"],
)
def test_sequence_field_nulls_sort_first(descending, ranks):
    rows = pa.table({"s": pa.array([3, 8, None], pa.int32())})
    words = [word(None) for word in sequence_words(rows, MergeOrder(("k",), ("s",), descending))]
    keys = list(zip(*(word.tolist() for word in words), strict=True))
    assert [sorted(keys).index(key) for key in keys] == ranks


def test_sequence_field_nan_is_refused():
    rows = pa.table({"s": [1.0, float("nan")]})
    with pytest.raises(InvalidInputError, match="holds NaN"):
        sequence_words(rows, MergeOrder(("k",), ("s",)))
