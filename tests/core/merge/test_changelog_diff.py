"""Changes between two versions against a loop over keys, and equality of values of any type."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.merge.changelog_diff import ChangelogDiff, RowVersions
from paimon_core.merge.equality import equal_values
from paimon_core.merge.row_kinds import VALUE_KIND

ROWS = st.dictionaries(
    st.integers(0, 9), st.tuples(st.none() | st.integers(0, 2), st.none() | st.text("ab", max_size=1))
)


def versions(rows: dict[int, tuple]) -> RowVersions:
    keys = sorted(rows)
    columns = {
        "a": pa.array([rows[k][0] for k in keys], pa.int32()),
        "b": pa.array([rows[k][1] for k in keys], pa.string()),
        VALUE_KIND: pa.array([0] * len(keys), pa.int8()),
    }
    return RowVersions(pa.table(columns), np.array(keys, np.int64))


@given(ROWS, ROWS, st.sampled_from([None, ("a", "b"), ("a",), ("b",)]))
def test_changes_equal_row_by_row_comparison(before, after, compared):
    expected = []
    for key in range(10):
        old, new = before.get(key), after.get(key)
        if old is None or new is None:
            expected += [(*row, kind) for row, kind in ((old, 3), (new, 0)) if row is not None]
        elif compared is None or any(old["ab".index(c)] != new["ab".index(c)] for c in compared):
            expected += [(*old, 1), (*new, 2)]
    result = ChangelogDiff(compared).changes(versions(before), versions(after))
    assert [tuple(row.values()) for row in result.to_pylist()] == expected


NESTED = st.none() | st.lists(
    st.none()
    | st.fixed_dictionaries({"x": st.none() | st.integers(0, 1), "y": st.lists(st.integers(0, 1), max_size=2)}),
    max_size=2,
)
NUMBERS = st.sampled_from([None, 0, 1, -129, -128, 127, 128])


def maps(keys, values):
    return st.none() | st.dictionaries(keys, values, max_size=2).flatmap(lambda m: st.permutations(list(m.items())))


def as_java_has_it(kind: pa.DataType, one: object, other: object) -> bool:
    """Return True if two values are equal, by a loop."""
    if one is None or other is None:
        return one is other
    if pa.types.is_struct(kind):
        return all(as_java_has_it(f.type, one[f.name], other[f.name]) for f in kind)
    if pa.types.is_list(kind):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(a is not None and as_java_has_it(kind.value_type, a, b) for a, b in pairs)
    if pa.types.is_map(kind):
        there = dict(other)
        return len(one) == len(there) and all(
            key in there
            and value is not None
            and as_java_has_it(kind.item_type, value, there[key])
            and (not pa.types.is_integer(kind.item_type) or -128 <= value < 128)
            for key, value in one
        )
    return one == other


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), st.none() | st.integers(0, 2)),
        (pa.string(), st.none() | st.text("ab", max_size=2)),
        (pa.decimal128(9, 2), st.none() | st.decimals(0, 1, places=2)),
        (pa.list_(pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int8()))])), NESTED),
        (pa.map_(pa.string(), pa.int32()), maps(st.sampled_from("ab"), NUMBERS)),
        (pa.map_(pa.int64(), pa.list_(pa.int32())), maps(st.integers(0, 2), st.none() | st.lists(NUMBERS, max_size=2))),
        (
            pa.list_(pa.map_(pa.bool_(), pa.string())),
            st.none() | st.lists(maps(st.booleans(), st.text("ab", max_size=1)), max_size=2),
        ),
        (pa.struct([("x", pa.bool_())]), st.none() | st.fixed_dictionaries({"x": st.none() | st.booleans()})),
        (pa.list_(pa.int32(), 2), st.none() | st.lists(st.none() | st.integers(0, 1), min_size=2, max_size=2)),
    ],
    ids=str,
)
@given(data=st.data())
def test_equal_values_agree_with_model(kind, values, data):
    pairs = data.draw(st.lists(st.tuples(values, values) | values.map(lambda v: (v, v)), max_size=6))
    at = data.draw(st.integers(0, len(pairs)))
    one, other = (pa.array([pair[i] for pair in pairs], kind).slice(at) for i in (0, 1))
    assert equal_values(one, other).tolist() == [as_java_has_it(kind, a, b) for a, b in pairs[at:]]


@pytest.mark.parametrize(
    ("kind", "one", "other", "equal"),
    [
        (pa.map_(pa.float64(), pa.int8()), [(float("nan"), 1)], [(float("nan"), 1)], True),
        (pa.map_(pa.float32(), pa.int8()), [(0.0, 1)], [(-0.0, 1)], False),
        (pa.map_(pa.float64(), pa.int8()), [(0.5, 1), (2.0, 2)], [(2.0, 2), (0.5, 1)], True),
        (pa.map_(pa.binary(), pa.int8()), [(b"a", 1)], [(b"a", 1)], False),
        (pa.map_(pa.binary(), pa.int8()), [], [], True),
        (pa.map_(pa.int8(), pa.float64()), [(1, 0.5)], [(1, 0.5)], False),
        (pa.map_(pa.int8(), pa.bool_()), [(1, True)], [(1, True)], True),
        (pa.map_(pa.int8(), pa.date32()), [(1, 127)], [(1, 127)], True),
        (pa.map_(pa.int8(), pa.date32()), [(1, 128)], [(1, 128)], False),
        (pa.map_(pa.int8(), pa.timestamp("ms")), [(1, 1000)], [(1, 1000)], True),
        (pa.map_(pa.struct([("x", pa.int8())]), pa.int8()), [({"x": 1}, 1)], [({"x": 1}, 1)], True),
        (pa.map_(pa.struct([("x", pa.int8())]), pa.int8()), [({"x": 1}, 1)], [({"x": 2}, 1)], False),
    ],
)  # fmt: skip
def test_map_values_compare_like_java_boxes(kind, one, other, equal):
    assert equal_values(pa.array([one, None], kind), pa.array([other, None], kind)).tolist() == [equal, True]


def test_floats_compare_like_java():
    one = pa.array([0.0, float("nan"), None, 1.5])
    other = pa.array([-0.0, float("nan"), None, 1.5])
    assert equal_values(one, other).tolist() == [True, False, True, True]
