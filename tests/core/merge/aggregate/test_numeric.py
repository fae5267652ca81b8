"""Sums and products at the limits of their types and in large groups, and refused values."""

import math
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate import aggregate
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import AggregateInput
from paimon_core.merge.partial_update import newest, newest_rows
from paimon_core.merge.segments import last
from paimon_core.merge.window import Window
from paimon_core.options.option import Options
from paimon_core.types.arrow import to_arrow
from paimon_core.types.parse import parse_type


def applied(function, kind, values, retract=(), late=()):
    """Return the function's result for one group."""
    t = parse_type(kind)
    minus, older = np.zeros((2, len(values)), bool)
    minus[list(retract)] = older[list(late)] = True
    feed = AggregateInput(np.zeros(1, np.int64), minus, older, np.zeros(1, bool))
    made = aggregate(function, FieldOptions("c", t, Options({})))(pa.array(values, to_arrow(t)), feed)
    assert made.type == to_arrow(t)
    return made[0].as_py()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6), st.data())
def test_bigint_sum_is_exact_or_refused(values, data):
    minus = data.draw(st.sets(st.integers(0, len(values) - 1)))
    exact = sum(-v if i in minus else v for i, v in enumerate(values))
    if -(2**63) <= exact < 2**63:
        assert applied("sum", "BIGINT", values, minus) == exact
    else:
        with pytest.raises(InvalidInputError, match=r"'c'.*'fields.c.aggregate-function'.*BIGINT.*wider"):
            applied("sum", "BIGINT", values, minus)


@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=6), st.data())
def test_decimal_sum_is_exact_or_refused(units, data):
    minus = data.draw(st.sets(st.integers(0, len(units) - 1)))
    exact = sum(-v if i in minus else v for i, v in enumerate(units))
    values = [Decimal(f"{v}e-2") for v in units]
    if abs(exact) < 10**38:
        assert applied("sum", "DECIMAL(38, 2)", values, minus) == Decimal(f"{exact}e-2")
    else:
        with pytest.raises(InvalidInputError, match="'c'"):
            applied("sum", "DECIMAL(38, 2)", values, minus)


@given(st.lists(st.integers(-(2**31), 2**31), min_size=1, max_size=4))
def test_bigint_product_is_exact_or_refused(values):
    exact = math.prod(values)
    if -(2**63) <= exact < 2**63:
        assert applied("product", "BIGINT", values) == exact
    else:
        with pytest.raises(InvalidInputError, match="'c'"):
            applied("product", "BIGINT", values)


@given(st.lists(st.integers(1, 999), min_size=1, max_size=6), st.data())
def test_decimal_product_applies_late_rows_in_order_of_arrival(units, data):
    """Each step rounds, and a retract before any value has no effect, so the order matters."""
    minus, late = (data.draw(st.sets(st.integers(0, len(units) - 1))) for _ in range(2))
    expected = None
    for i, value in enumerate(Decimal(unit).scaleb(-2) for unit in units):
        if expected is None:
            expected = None if i in minus else value
        else:
            exact = expected / value if i in minus else expected * value
            expected = exact.quantize(Decimal("0.01"), ROUND_HALF_UP)
    values = [Decimal(unit).scaleb(-2) for unit in units]
    assert applied("product", "DECIMAL(20, 2)", values, minus, late) == expected


def test_products_match_specification():
    assert applied("product", "INT", [3, None, 4]) == 12
    assert applied("product", "INT", [3, 4, 4], retract=[2]) == 3
    assert applied("product", "INT", [-7, 2], retract=[1]) == -3
    assert applied("product", "DECIMAL(6, 2)", [Decimal("1.50"), Decimal("0.33")]) == Decimal("0.50")
    assert applied("product", "DOUBLE", [3.0, 0.0], retract=[1]) == math.inf


@pytest.mark.parametrize("kind", ["INT", "DECIMAL(6, 2)"])
def test_product_retract_of_zero_is_refused(kind):
    value = 3 if kind == "INT" else Decimal(3)
    with pytest.raises(InvalidInputError, match=r"'c'.*factor 0.*fields.c.ignore-retract"):
        applied("product", kind, [value, value * 0], retract=[1])


def test_narrow_sum_overflow_is_refused():
    assert applied("sum", "TINYINT", [100, 27]) == 127
    with pytest.raises(InvalidInputError, match="TINYINT"):
        applied("sum", "TINYINT", [100, 28])
    with pytest.raises(InvalidInputError, match="DECIMAL"):
        applied("sum", "DECIMAL(3, 1)", [Decimal("99.9"), Decimal("0.1")])


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_float_sum_of_large_group_adds_from_left_to_right(kind):
    width = np.float64 if kind == "DOUBLE" else np.float32
    values = (np.random.default_rng(1).normal(size=1000) * 10.0 ** (np.arange(1000) % 7)).astype(width)
    total = values[0]
    for value in values[1:]:
        total = width(total + value)
    assert applied("sum", kind, values.tolist()) == float(total)


def test_sum_of_nulls_is_null():
    assert applied("sum", "INT", [None, None]) is None
    assert applied("sum", "INT", [None, 3], retract=[1]) == -3


@given(st.data())
def test_newest_marks_rows_not_below_an_earlier_row(data):
    value = st.sampled_from([None, -(2**63), 1 - 2**63, -1, 0, 7, 2**63 - 1])
    groups = data.draw(st.lists(st.lists(st.tuples(value, value), min_size=1, max_size=4), min_size=1, max_size=5))
    rows = [row for group in groups for row in group]
    table = pa.table({name: pa.array([r[i] for r in rows], pa.int64()) for i, name in enumerate("st")})
    sizes = [len(group) for group in groups]
    some, newer = newest(Window(table.combine_chunks(), None, np.cumsum(sizes) - sizes), ["s", "t"])
    ranked = [[tuple((v is not None, v or 0) for v in row) for row in group] for group in groups]
    assert some.tolist() == [row != (None, None) for row in rows]
    assert newer.tolist() == [row >= max(group[: i + 1]) for group in ranked for i, row in enumerate(group)]


@given(st.data())
def test_newest_row_is_the_last_one_not_below_an_earlier_row(data):
    value = st.sampled_from([None, -(2**63), -1, 0, 7, 2**63 - 1] if data.draw(st.booleans()) else [-5, 0, 7])
    groups = data.draw(st.lists(st.lists(st.tuples(value, value), min_size=1, max_size=20), min_size=1, max_size=4))
    sizes = np.array([len(group) for group in groups])
    starts, rows = np.cumsum(sizes) - sizes, [row for group in groups for row in group]
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    table = pa.table({name: pa.array([r[i] for r in rows], pa.int64()) for i, name in enumerate("st")})
    window = Window(table.take(pa.array(np.argsort(order))).combine_chunks(), order, starts)
    opened = np.array(data.draw(st.lists(st.booleans(), min_size=len(groups), max_size=len(groups))))
    none = np.zeros(len(rows), bool)
    for ordering in (["s"], ["s", "t"]):
        some, newer = newest(window, ordering)
        mask = some & newer
        mask[starts] |= opened
        inputs = AggregateInput(starts, none, none, opened, unsorted=order)
        assert newest_rows(window, ordering, inputs).tolist() == last(mask, starts).tolist()


@pytest.mark.parametrize("function", ["sum", "max", "min"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("TINYINT", [-3, 1, 2]),
        ("BIGINT", [-(2**60), 7, 2**60]),
        ("DOUBLE", [-0.0, 0.0, 1e300, -1e-300, math.nan]),
        ("DECIMAL(10, 2)", [Decimal("-1.5"), Decimal("2.25")]),
        ("STRING", ["", "a", "ab"]),
        ("DATE", [date(1900, 1, 1), date(2000, 1, 1)]),
    ],
)
def test_unsorted_column_has_the_same_result(function, kind, values):
    function = "max" if function == "sum" and kind in ("STRING", "DATE") else function
    random, t = np.random.default_rng(3), parse_type(kind)
    sizes = np.array([1, 3, 2, 5, 20])
    order, starts = random.permutation(sum(sizes)), np.cumsum(sizes) - sizes
    column = pa.array([values[i] for i in random.integers(0, len(values), len(order))], to_arrow(t))
    made = aggregate(function, FieldOptions("c", t, Options({})))
    none = np.zeros(len(order), bool)
    inputs = AggregateInput(starts, none, none, np.zeros(len(sizes), bool), unsorted=order)
    sorted_result = made(column.take(pa.array(order)), inputs)
    assert str(made(column, inputs.of_unsorted)) == str(sorted_result)  # NaN equals NaN


def test_ordering_column_with_nan_is_refused():
    rows = pa.table({"s": pa.array([1.0, math.nan])}).combine_chunks()
    with pytest.raises(InvalidInputError, match=r"'s'.*'fields.s.sequence-group'.*NaN"):
        newest(Window(rows, None, np.zeros(1, np.int64)), ["s"])
