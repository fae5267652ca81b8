"""Sorting by words against Python's sort, for every type that can be a key."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.merge.normalized_keys import comparable, nullable_key_words, words
from paimon_core.merge.sorting import sort_groups
from tests.support.draws import draws

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
TEXT = st.one_of(
    st.text("ab\0é\U0001f600", max_size=4),
    st.builds(lambda n: f"user-{n:012d}", st.integers(0, 300)),
    st.builds(
        lambda a, n, b: a + "x" * n + b, st.text("ab", max_size=2), st.integers(0, 90), st.text("a\0", max_size=2)
    ),
)
KEYS = {
    "bool": (pa.bool_(), st.booleans()),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), INT32),
    "bigint": (pa.int64(), INT64),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "decimal-narrow": (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    "decimal-wide": (
        pa.decimal128(38, 2),
        st.builds(lambda n: Decimal(n).scaleb(-2), st.one_of(st.integers(-3, 3), st.integers(-(10**35), 10**35))),
    ),
    "string": (pa.string(), TEXT),
    "binary": (pa.binary(), st.one_of(st.binary(max_size=20), TEXT.map(str.encode))),
    "date": (pa.date32(), INT32),
    "time": (pa.time32("ms"), st.integers(0, 86_399_999)),
    "timestamp-s": (pa.timestamp("s"), INT64),
    "timestamp-ms": (pa.timestamp("ms"), INT64),
    "timestamp-us-ltz": (pa.timestamp("us", tz="UTC"), INT64),
    "timestamp-ns": (pa.timestamp("ns"), INT64),
}


def expected_order(columns):
    rows = list(zip(*[comparable(c, "k").to_pylist() for c in columns], strict=True))
    order = sorted(range(len(rows)), key=rows.__getitem__)
    starts = [i for i, row in enumerate(order) if i == 0 or rows[row] != rows[order[i - 1]]]
    return order, starts


def sorted_by_words(columns, then=(), *, runs):
    """Return order and group starts. ``runs``: use the algorithm for runs, with each row as a run."""
    key = [word for column in columns for word in words(column, "k")]
    order, starts = sort_groups(key, then, len(columns[0]), runs=np.arange(len(columns[0])) if runs else None)
    return (list(range(len(columns[0]))) if order is None else order.tolist()), starts.tolist()


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("name", KEYS)
@draws(40)
@given(data=st.data())
def test_single_column_sort_equals_python(name, runs, data):
    kind, values = KEYS[name]
    column = pa.array(data.draw(st.lists(values, min_size=1, max_size=40)), kind)
    assert sorted_by_words([column], runs=runs) == expected_order([column])


@pytest.mark.parametrize("runs", [True, False])
@given(data=st.data())
def test_composite_key_sort_equals_python(runs, data):
    names = data.draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=4))
    size = data.draw(st.integers(1, 40))
    pools = [data.draw(st.lists(KEYS[name][1], min_size=1, max_size=5)) for name in names]
    columns = [
        pa.array(data.draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size)), KEYS[name][0])
        for name, pool in zip(names, pools, strict=True)
    ]
    start = data.draw(st.integers(0, size - 1))
    columns = [column.slice(start) for column in columns]
    assert sorted_by_words(columns, runs=runs) == expected_order(columns)


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        lambda n: f"{n:016x}",
        lambda n: f"key-{n:012d}",
        lambda n: f"user{n}",
        lambda n: f"{n % 7}/{n}",
        lambda n: "x" * (n % 100) + str(n),
        lambda n: f"{n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}",
    ],
)
def test_many_strings_sort_equals_arrow(text, runs):
    random = np.random.default_rng(7)
    column = pa.array([text(int(n)) for n in random.integers(0, 30_000, 20_000)])
    order, starts = sorted_by_words([column], runs=runs)
    rows = pa.table({"k": column, "i": np.arange(len(column))})
    assert order == pc.sort_indices(rows, sort_keys=[("k", "ascending"), ("i", "ascending")]).to_pylist()
    assert len(starts) == pc.count_distinct(column).as_py()


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("spread", [1, 1000, 2**30, 2**62])
def test_many_integers_sort_equals_arrow(spread, runs):
    random = np.random.default_rng(11)
    columns = [pa.array(random.integers(-spread, spread, 20_000)), pa.array(random.integers(-spread, spread, 20_000))]
    columns[0] = columns[0].take(pa.array(random.integers(0, 5000, 20_000)))
    order, _ = sorted_by_words(columns, runs=runs)
    rows = pa.table({"a": columns[0], "b": columns[1], "i": np.arange(20_000)})
    keys = [(name, "ascending") for name in "abi"]
    assert order == pc.sort_indices(rows, sort_keys=keys).to_pylist()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", KEYS)
@draws(40)
@given(data=st.data())
def test_ties_are_ordered_by_further_words_with_nulls_first(name, descending, data):
    kind, values = KEYS[name]
    pool = data.draw(st.lists(values, min_size=1, max_size=6))
    size = data.draw(st.integers(1, 30))
    key = pa.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), pa.int64())
    column = pa.array(data.draw(st.lists(st.sampled_from([None, *pool]), min_size=size, max_size=size)), kind)
    then = nullable_key_words(column, "s", descending=descending)
    order, _ = sorted_by_words([key], then, runs=True)

    plain = comparable(column, "s").to_pylist()
    distinct = sorted({v for v in plain if v is not None}, reverse=descending)
    rank = {None: -1, **{v: i for i, v in enumerate(distinct)}}
    assert order == sorted(range(size), key=lambda i: (key[i].as_py(), rank[plain[i]]))


def test_nan_with_any_bits_sorts_last():
    negative_nan = np.array([0xFFF8_0000_0000_0001], np.uint64).view(np.float64)[0]
    column = pa.array(np.array([math.nan, math.inf, negative_nan, -math.inf, -0.0, 0.0]))
    order, starts = sort_groups(nullable_key_words(column, "s"), [], 6, runs=None)
    assert (order.tolist(), starts.tolist()) == ([3, 4, 5, 1, 0, 2], [0, 1, 3, 4])


def test_type_without_order_is_refused():
    with pytest.raises(UnsupportedError, match=r"'k'.*list<"):
        words(pa.array([[1]]), "k")


def test_sorted_rows_return_no_permutation():
    column = pa.array([datetime.date(2024, 1, 1), datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)])
    order, starts = sort_groups(words(column, "k"), [], 3, runs=None)
    assert order is None
    assert starts.tolist() == [0, 2]


def test_descending_run_is_refused():
    key = words(pa.array([1, 4, 2, 3], pa.int64()), "k")
    assert sort_groups(key, [], 4, runs=np.array([0, 2]))[0].tolist() == [0, 2, 3, 1]
    with pytest.raises(CorruptedError, match=r"of 2 runs .* row 1 of its buffered rows"):
        sort_groups(key, [], 4, runs=np.array([0, 1]))
