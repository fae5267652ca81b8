"""Decimals: rounding, fitting, text."""

from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_core.types.decimals import decimal_text, fitted, low_halves, widened


def decimals(texts, precision, scale):
    return pa.array([None if t is None else Decimal(t) for t in texts], pa.decimal128(precision, scale))


@pytest.mark.parametrize(
    ("value", "result"),
    [("1.24", "1.2"), ("1.25", "1.3"), ("-1.25", "-1.3"), ("9.94", "9.9"), ("9.95", None), (None, None)],
)
def test_ties_round_away_from_zero_and_too_large_values_become_null(value, result):
    actual = fitted(widened(decimals([value], 3, 2)), 2, 1)
    assert actual.type == pa.decimal128(2, 1)
    assert actual.to_pylist() == [None if result is None else Decimal(result)]


def test_larger_scale_appends_zeros():
    assert str(fitted(widened(decimals(["1.5"], 2, 1)), 4, 3)[0].as_py()) == "1.500"


def test_low_halves_are_unscaled_values():
    assert low_halves(decimals(["1.23", "-0.01"], 5, 2)).tolist() == [123, -1]
    assert low_halves(decimals(["1.23", "-0.01"], 5, 2)[1:]).tolist() == [-1]
    assert low_halves(decimals([], 5, 2)).tolist() == []


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [("12", 0, "12"), ("0.05", 2, "0.05"), ("-0.05", 2, "-0.05"), ("12.5", 2, "12.50"), (None, 2, None)],
)
def test_text_has_as_many_digits_as_scale(value, scale, text):
    assert decimal_text(decimals([value], 9, scale)).to_pylist() == [text]
