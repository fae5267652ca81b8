import datetime as dt
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.operations.compaction.cluster_key import ClusterKey, bound_ranks, distinct, quantiles, sorted_positions
from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from tests.support.draws import draws

VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=12),
    pa.binary(): st.binary(max_size=40),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    pa.decimal128(38, 2): st.decimals(-(10**30), 10**30, places=2),
}
KINDS = st.sampled_from(sorted(VALUES, key=str))


def comparable(value):
    return (value is not None, value.encode() if isinstance(value, str) else value)


@given(KINDS, st.data())
@draws(200)
def test_placed_counts_bounds(kind, data):
    some = st.lists(st.none() | VALUES[kind], max_size=20)
    bounds = sorted(data.draw(some), key=comparable)
    keys = data.draw(some)
    actual = bound_ranks(pa.table({"a": pa.array(bounds, kind)}), pa.table({"a": pa.array(keys, kind)}))
    assert actual.smaller.tolist() == [sum(comparable(b) < comparable(k) for b in bounds) for k in keys]
    assert actual.through.tolist() == [sum(comparable(b) <= comparable(k) for b in bounds) for k in keys]


@given(KINDS, KINDS, st.data())
@draws(100)
def test_keys_sort_and_repeat(first, second, data):
    rows = data.draw(st.lists(st.tuples(st.none() | VALUES[first], st.none() | VALUES[second]), max_size=30))
    keys = pa.table({"a": pa.array([r[0] for r in rows], first), "b": pa.array([r[1] for r in rows], second)})
    expected = sorted(range(len(rows)), key=lambda i: (comparable(rows[i][0]), comparable(rows[i][1])))
    assert sorted_positions(keys).tolist() == expected
    ordered = keys.take(pa.array(expected, pa.int64()))
    once = distinct(ordered)
    assert once.num_rows == len({(comparable(a), comparable(b)) for a, b in rows})
    if rows:
        chosen = quantiles(keys, 3)
        assert sorted_positions(chosen).tolist() == [0, 1, 2]


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_columns_of_any_scale_have_equal_weight(strategy):
    """A flag, a number of wide range and a text with a long common beginning each part the rows."""
    random = np.random.default_rng(1)
    rows = pa.table(
        {
            "flag": random.integers(0, 2, 5000).astype(bool),
            "wide": random.integers(0, 1 << 60, 5000),
            "text": [f"a very long beginning {i:09d}" for i in random.integers(0, 10**9, 5000)],
        }
    )
    key = ClusterKey(strategy, ("flag", "wide", "text"))
    assert not key.is_ready
    key = pickle.loads(pickle.dumps(key.learned(rows)))
    ordered = rows.take(pa.array(sorted_positions(key.of(rows))))
    flags, wide, text = (ordered.column(i).to_numpy() for i in range(3))
    spread = [
        np.mean([len(np.unique(flags[at : at + 125])) for at in range(0, 5000, 125)]) / 2,
        np.mean([np.ptp(wide[at : at + 125].astype(float)) for at in range(0, 5000, 125)]) / (1 << 60),
        np.mean([np.ptp([int(t[-9:]) for t in text[at : at + 125]]) for at in range(0, 5000, 125)]) / 10**9,
    ]
    assert max(spread) < 0.65, spread


def test_nulls_and_nan_have_order():
    values = pa.table({"a": [float("nan"), 1.0, None, float("-inf"), 0.0, -0.0]})
    order = sorted_positions(ClusterKey("order", ("a",)).of(values)).tolist()
    assert order == [2, 3, 4, 5, 1, 0]
    key = ClusterKey("zorder", ("a",)).learned(values)
    assert sorted_positions(key.of(values)).tolist() == order


def test_types_without_order_are_refused():
    fields = pa.schema([("a", pa.int32()), ("l", pa.list_(pa.int32())), ("d", pa.decimal128(5, 2))])
    schema = create(Schema(fields), 0)
    assert ClusterKey.over(schema, ["d", "a"], "zorder").columns == ("d", "a")
    for columns, strategy, message in [
        (["a"], "spiral", "must be one of"),
        ([], "order", "must name"),
        (["a", "a"], "order", "must name"),
        (["x"], "order", "no column 'x'"),
        (["l"], "order", "cannot be ordered by 'l'"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            ClusterKey.over(schema, columns, strategy)
