"""Evaluation agrees with a plain model of three-valued logic."""

import math

import pyarrow as pa
import pytest
from hypothesis import given

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import FALSE, TRUE, col
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.types.datatype import AtomicType, DataField
from tests.support.draws import draws
from tests.support.predicates import (
    BY_NAME,
    COLUMNS,
    FIELDS,
    batch_of,
    held,
    model,
    predicates,
    single_tests,
    tables,
)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_operator_on_every_value(name):
    rows = [{name: value} for value in held(name)]
    batch = batch_of(rows, (BY_NAME[name],))
    for p in single_tests(name):
        for q in (p, ~p):
            assert evaluate(bind(q, FIELDS), batch).to_pylist() == [model(q, row) is True for row in rows], str(q)


@draws(200)
@given(predicates(), tables())
def test_bound_predicate_equals_model(p, rows):
    result = evaluate(bind(p, FIELDS), batch_of(rows))
    assert result.null_count == 0
    assert result.to_pylist() == [model(p, row) is True for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 5", [False, True, True, False]),
        ("a < DOUBLE 'NaN'", [True, False, True, False]),
        ("a = DOUBLE 'NaN'", [False, True, False, False]),
        ("a <= DOUBLE 'NaN'", [True, True, True, False]),
        ("a IN (DOUBLE 'NaN', 0)", [True, True, False, False]),
        ("a NOT IN (1, NULL)", [False, False, False, False]),
        ("NOT (a = 0)", [False, True, True, False]),
        ("a IN ()", [False, False, False, False]),
        ("NOT a IN ()", [True, True, True, True]),
        ("a <=> NULL", [False, False, False, True]),
        ("NOT (a <=> 0)", [False, True, True, True]),
        ("a = NULL OR TRUE", [True, True, True, True]),
        ("UNKNOWN", [False, False, False, False]),
    ],
)
def test_comparisons_with_nan_null_and_zeros(text, expected):
    batch = pa.record_batch([pa.array([-0.0, math.nan, math.inf, None])], names=["a"])
    assert evaluate(parse_predicate(text), batch).to_pylist() == expected


def test_chunked_tables_are_evaluated():
    table = pa.table({"a": pa.chunked_array([[1, 2], [], [None, 4]], pa.int64())})
    assert evaluate(col("a") >= 2, table).to_pylist() == [False, True, False, True]
    assert evaluate(TRUE & (col("a") >= 2), table).to_pylist() == [False, True, False, True]
    assert evaluate(FALSE, table).to_pylist() == [False] * 4
    assert evaluate(col("a").is_null(), table.slice(0, 0)).to_pylist() == []
    empty = pa.table({"a": pa.chunked_array([], pa.int64())})
    assert isinstance(evaluate(col("a").isin([1]), empty), pa.BooleanArray)


def test_missing_column_is_refused():
    with pytest.raises(InvalidInputError, match="filter b = 1 needs columns that the rows lack; they have a"):
        evaluate(col("b") == 1, pa.table({"a": [1]}))


def test_unknown_stays_unknown_in_chunked_columns():
    """Before version 23, Arrow lost NULL results on chunked columns and used the undefined value below."""
    fields = (DataField(0, "a", AtomicType("DOUBLE")), DataField(1, "b", AtomicType("DOUBLE")))
    both = bind(parse_predicate("a <> 5 AND b IS NOT NULL"), fields)
    either = bind(parse_predicate("a <> 5 OR b IS NULL"), fields)
    for size in range(2, 10):
        known = [1.0, 5.0, 2.0, None, 3.0, None, 4.0, 6.0][: size - 1]
        a, b = pa.array([*known, None]), pa.array([1.0] * size)
        for at in range(size + 1):
            rows = pa.table({"a": pa.chunked_array([a[:at], a[at:]]), "b": pa.chunked_array([b[:at], b[at:]])})
            expected = [value is not None and value != 5 for value in a.to_pylist()]
            assert evaluate(both, rows).to_pylist() == expected
            assert evaluate(either, rows).to_pylist() == expected
