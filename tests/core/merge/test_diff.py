"""Changes between two versions against a loop over keys, and equality of values of any type."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.merge.diff import Difference, Versions
from paimon_core.merge.equality import equal_values
from paimon_core.merge.kinds import VALUE_KIND

ROWS = st.dictionaries(
    st.integers(0, 9), st.tuples(st.none() | st.integers(0, 2), st.none() | st.text("ab", max_size=1))
)


def versions(rows: dict[int, tuple]) -> Versions:
    keys = sorted(rows)
    columns = {
        "a": pa.array([rows[k][0] for k in keys], pa.int32()),
        "b": pa.array([rows[k][1] for k in keys], pa.string()),
        VALUE_KIND: pa.array([0] * len(keys), pa.int8()),
    }
    return Versions(pa.table(columns), np.array(keys, np.int64))


@given(ROWS, ROWS, st.sampled_from([None, ("a", "b"), ("a",), ("b",)]))
def test_changes_are_those_a_loop_finds(before, after, compared):
    expected = []
    for key in range(10):
        old, new = before.get(key), after.get(key)
        if old is None or new is None:
            expected += [(*row, kind) for row, kind in ((old, 3), (new, 0)) if row is not None]
        elif compared is None or any(old["ab".index(c)] != new["ab".index(c)] for c in compared):
            expected += [(*old, 1), (*new, 2)]
    found = Difference(compared).changes(versions(before), versions(after))
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


NESTED = st.none() | st.lists(
    st.none()
    | st.fixed_dictionaries({"x": st.none() | st.integers(0, 1), "y": st.lists(st.integers(0, 1), max_size=2)}),
    max_size=2,
)
MAPS = st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 1)), max_size=2)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), st.none() | st.integers(0, 2)),
        (pa.string(), st.none() | st.text("ab", max_size=2)),
        (pa.decimal128(9, 2), st.none() | st.decimals(0, 1, places=2)),
        (pa.list_(pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int8()))])), NESTED),
        (pa.map_(pa.string(), pa.int32()), MAPS),
        (pa.struct([("x", pa.bool_())]), st.none() | st.fixed_dictionaries({"x": st.none() | st.booleans()})),
        (pa.list_(pa.int32(), 2), st.none() | st.lists(st.none() | st.integers(0, 1), min_size=2, max_size=2)),
    ],
    ids=str,
)
@given(data=st.data())
def test_values_are_equal_as_python_has_it(kind, values, data):
    pairs = data.draw(st.lists(st.tuples(values, values), max_size=6))
    at = data.draw(st.integers(0, len(pairs)))
    one, other = (pa.array([pair[i] for pair in pairs], kind).slice(at) for i in (0, 1))
    assert equal_values(one, other).tolist() == [a == b for a, b in pairs[at:]]


def test_floats_are_equal_as_java_has_it():
    one = pa.array([0.0, float("nan"), None, 1.5])
    other = pa.array([-0.0, float("nan"), None, 1.5])
    assert equal_values(one, other).tolist() == [True, False, True, True]
