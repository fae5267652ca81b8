"""Pruning never loses a group with a matching row, and prunes groups without one."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.predicate.expr import FALSE, TRUE, col
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import bind
from paimon_core.types.arrow import to_arrow
from tests.support.draws import draws
from tests.support.predicates import BY_NAME, COLUMNS, FIELDS, held, model, predicates, single_tests, tables


def bounds(name, values, shape):
    """Return (min, max, null count) as a writer could store them: exact, truncated, or partly unknown."""
    known = [v for v in values if v is not None and v == v]
    nulls = sum(v is None for v in values)
    if shape == "unknown":
        return None, None, -1
    if shape == "counts only" or not known:
        return None, None, nulls
    low, high = min(known), max(known)
    if any(v != v for v in values if v is not None):
        if shape == "largest NaN":
            high = math.nan
        if shape == "both NaN":
            low = high = math.nan
    if shape == "truncated" and name in ("txt", "chr"):
        return low[:1], high[:1] + "\U0010ffff" if high[1:] else high, nulls
    if shape == "truncated" and name == "raw":
        return low[:1], high[:1] + b"\xff\xff\xff" if high[1:] else high, nulls
    return low, high, -1 if shape == "no counts" else nulls


SHAPES = ["exact", "truncated", "unknown", "counts only", "no counts", "largest NaN", "both NaN"]


def column_stats(name, groups, shapes):
    """Return the statistics of one column in groups, which are lists of values."""
    t = to_arrow(BY_NAME[name].type)
    low, high, nulls = zip(*(bounds(name, g, s) for g, s in zip(groups, shapes, strict=True)), strict=True)
    return ColumnStats(pa.array(low, t), pa.array(high, t), np.array(nulls, np.int64))


@pytest.mark.parametrize("name", COLUMNS)
def test_pruning_keeps_matching_pairs_for_every_operator(name):
    pairs = [list(pair) for pair in itertools.combinations_with_replacement(held(name), 2)]
    groups = [pair for pair in pairs for _ in SHAPES]
    stats = {name: column_stats(name, groups, SHAPES * len(pairs))}
    rows = np.full(len(groups), 2, np.int64)
    left_out = 0
    for p in single_tests(name):
        for q in (p, ~p):
            kept = may_match(bind(q, FIELDS), stats, rows, len(groups)).tolist()
            matching = {value: model(q, {name: value}) is True for value in held(name)}
            for group, shape, keep in zip(groups, SHAPES * len(pairs), kept, strict=True):
                assert keep or not any(matching[v] for v in group), (str(q), group, shape)
            left_out += kept.count(False)
    assert left_out > len(groups)


@draws(150)
@given(predicates(("int", "txt", "dbl", "dec")), st.lists(tables(max_size=3), min_size=1, max_size=4), st.data())
def test_pruning_keeps_groups_with_matching_rows(p, groups, data):
    names = data.draw(st.sets(st.sampled_from(["int", "txt", "dbl", "dec"])))
    shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=len(groups), max_size=len(groups)))
    stats = {name: column_stats(name, [[row[name] for row in g] for g in groups], shapes) for name in names}
    kept = may_match(bind(p, FIELDS), stats, np.array([len(g) for g in groups], np.int64), len(groups))
    assert kept.dtype == bool
    for group, keep in zip(groups, kept.tolist(), strict=True):
        assert keep or not any(model(p, row) for row in group)


def stats_of(low, high, nulls, t):
    return {"a": ColumnStats(pa.array(low, t), pa.array(high, t), np.array(nulls, np.int64))}


INTS = stats_of([0, 10, 20, None], [9, 10, 29, None], [0, 2, 0, 10], pa.int32())


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a = 10", [False, True, False, False]),
        ("a != 10", [True, False, True, False]),
        ("a < 10", [True, False, False, False]),
        ("a <= 10", [True, True, False, False]),
        ("a > 9", [False, True, True, False]),
        ("a >= 29", [False, False, True, False]),
        ("a IN (5, 15, 25)", [True, False, True, False]),
        ("a NOT IN (5, 10)", [True, False, True, False]),
        ("a IN (NULL)", [False, False, False, False]),
        ("a IS NULL", [False, True, False, True]),
        ("a IS NOT NULL", [True, True, True, False]),
        ("NOT (a < 10 OR a > 20)", [False, True, True, False]),
        ("NOT (a <=> 10)", [True, True, True, True]),
        ("a <=> 10", [False, True, False, False]),
        ("a = 5 AND a = 25", [False, False, False, False]),
        ("a = 5 OR a = 25", [True, False, True, False]),
        ("unknown_column = 1", [True, True, True, True]),
    ],
)
def test_integer_groups_are_pruned(text, kept):
    assert may_match(parse_predicate(text), INTS, np.full(4, 10), 4).tolist() == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a LIKE 'b%'", [False, True, True]),
        ("a LIKE 'ba%'", [False, True, False]),
        ("a NOT LIKE 'ba%'", [True, False, True]),
        ("a LIKE 'd%'", [False, False, True]),
        ("a LIKE '%z'", [True, True, True]),
        ("a = 'bar'", [False, True, False]),
    ],
)
def test_text_groups_are_pruned(text, kept):
    stats = stats_of(["aa", "ba", "bb"], ["az", "bazz", "dd"], [0, 0, 0], pa.string())
    assert may_match(parse_predicate(text), stats, np.full(3, 10), 3).tolist() == kept


def test_float_bounds_ignore_nan():
    stats = stats_of([0.0, -0.0, math.nan], [1.0, 0.0, math.nan], [0, 0, 0], pa.float64())

    def kept(text):
        return may_match(parse_predicate(text), stats, np.full(3, 10), 3).tolist()

    assert kept("a > 5e0") == [True, True, True]
    assert kept("a = 5e0") == [False, False, True]
    assert kept("a < 0e0") == [False, False, True]
    assert kept("a = -0e0") == [True, True, True]
    assert kept("a IN (0e0, 7e0)") == [True, True, True]
    assert kept("a != 0e0") == [True, True, True]


def test_constants_and_empty_groups():
    assert may_match(TRUE, {}, np.zeros(2), 2).tolist() == [True, True]
    assert may_match(FALSE, {}, np.zeros(2), 2).tolist() == [False, False]
    assert may_match(col("a") > 0, {}, np.zeros(0), 0).tolist() == []


@pytest.mark.parametrize("t", [pa.decimal128(30, 2), pa.binary(), pa.timestamp("us", "UTC"), pa.bool_(), pa.date32()])
def test_in_lists_of_every_type_prune(t):
    values = {
        "decimal128(30, 2)": [Decimal("1.00"), Decimal("-5.25"), Decimal("99.99")],
        "binary": [b"a", b"\xff", b""],
        "bool": [True, False, True],
    }.get(str(t), [3, -1, 70_000])
    stats = stats_of(values, values, [0, 0, 0], t)
    for value in values:
        expected = [v == value for v in values]
        assert may_match(col("a").isin([value]), stats, np.ones(3), 3).tolist() == expected
        assert may_match(col("a") == value, stats, np.ones(3), 3).tolist() == expected
