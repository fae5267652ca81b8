"""Filters as text and back."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.expr import FALSE, TEXT_TESTS, TRUE, UNKNOWN, And, Leaf, Not, Or, col
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from tests.support.draws import draws
from tests.support.predicates import FIELDS, predicates

ZONES = st.sampled_from([dt.timezone.utc, dt.timezone(dt.timedelta(hours=-3, minutes=-30))])
LITERALS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.dates(), st.times(),
    st.datetimes(),
    st.datetimes(timezones=ZONES), st.decimals(allow_nan=False, allow_infinity=False, places=4),
)  # fmt: skip


def _looks_for_null_text(p):
    """Return True for LIKE NULL, which has no text: binding turns it into UNKNOWN."""
    match p:
        case And(children) | Or(children):
            return any(map(_looks_for_null_text, children))
        case Not(child):
            return _looks_for_null_text(child)
        case Leaf(op, _, values):
            return op in TEXT_TESTS and values == (None,)
    return False


@draws(300)
@given(predicates())
def test_filter_text_round_trips(p):
    if not _looks_for_null_text(p):
        assert parse_predicate(str(p)) == p
    bound = bind(p, FIELDS)
    assert parse_predicate(str(bound)) == bound


@draws(300)
@given(st.text(min_size=1).filter(lambda s: "\x00" not in s), LITERALS, st.sampled_from(["=", "<", "in"]))
def test_any_name_and_literal_round_trips(name, value, op):
    p = Leaf(op, name, (value,))
    read = parse_predicate(str(p))
    assert read == p
    assert type(read.values[0]) is type(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", col("a") == 1),
        ("a==1 and b<>'x'", (col("a") == 1) & (col("b") != "x")),
        ("5 < a", col("a") > 5),
        ("NULL <=> a", col("a").eq_null_safe(None)),
        ("a = 1 OR b = 2 AND c = 3", Or((col("a") == 1, And((col("b") == 2, col("c") == 3))))),
        ("(a = 1 OR b = 2) AND c = 3", And((Or((col("a") == 1, col("b") == 2)), col("c") == 3))),
        ("NOT a = 1 AND b = 2", And((Not(col("a") == 1), col("b") == 2))),
        ("a between 1 and 2 and b", And((col("a").between(1, 2), col("b") == True))),  # noqa: E712
        ("a NOT BETWEEN 1 AND 2", Not(col("a").between(1, 2))),
        ("not a", Not(col("a") == True)),  # noqa: E712
        ("a LIKE 'x%' AND a LIKE '%x'", col("a").startswith("x") & col("a").endswith("x")),
        ("a LIKE '%x%'", col("a").contains("x")),
        (r"a LIKE '50\%' AND a LIKE '\_%'", (col("a") == "50%") & col("a").startswith("_")),
        ("a LIKE '%'", col("a").startswith("")),
        ("a NOT LIKE 'x%'", Not(col("a").startswith("x"))),
        ("a IS NULL OR a IS NOT NULL", col("a").is_null() | col("a").is_not_null()),
        ("a NOT IN (1, -2, NULL)", Leaf("not in", "a", (1, -2, None))),
        ("a IN ()", col("a").isin([])),
        ("TRUE OR (FALSE AND unknown)", Or((TRUE, And((FALSE, UNKNOWN))))),
        ("`a b` = 'it''s' AND `x``y` = 1", (col("a b") == "it's") & (col("x`y") == 1)),
        ("`and` = 2", col("and") == 2),
        ("date = DATE '2024-02-29'", col("date") == dt.date(2024, 2, 29)),
        ("DATE '2024-02-29' <= date", col("date") >= dt.date(2024, 2, 29)),
        ("a = TIMESTAMP '2024-01-01 10:20'", col("a") == dt.datetime(2024, 1, 1, 10, 20)),
        ("a = TIMESTAMP '1970-01-01T00:00:30.5Z'", col("a") == dt.datetime.fromtimestamp(30.5, dt.timezone.utc)),
        ("a = TIMESTAMP '2024-01-01 10:20:30.123456789'", col("a") == "2024-01-01 10:20:30.123456789"),
        ("a = TIME '10:20:30.5'", col("a") == dt.time(10, 20, 30, 500000)),
        ("a = 1.50 AND b = 1.5e0", (col("a") == Decimal("1.5")) & (col("b") == 1.5)),
        ("a = X'00fF'", col("a") == b"\x00\xff"),
        ("a = DOUBLE 'NaN' OR a = DOUBLE '-Infinity'", (col("a") == math.nan) | (col("a") == -math.inf)),
        ("größe > 1 AND `s.t` = 2", (col("größe") > 1) & (col("s.t") == 2)),
    ],
)  # fmt: skip
def test_predicates_as_text(text, expected):
    assert parse_predicate(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of a column, at its end"),
        ("a >", "expected a literal.*at its end"),
        ("a = 1 b = 2", "expected AND, OR or the end, at 'b', character 7"),
        ("a = 'x", 'expected a literal.*at "\'"'),
        ("(a = 1", r"expected \), at its end"),
        ("a LIKE 'a%b'", "LIKE takes % only at the start and the end"),
        ("a LIKE 'a_'", "LIKE takes % only"),
        ("a LIKE 'a\\'", "does not end with a backslash"),
        ("a LIKE 5", "expected a pattern"),
        ("in = 3", "expected the name of a column, at 'in'"),
        ('"a" = 1', "expected the name of a column, at '1'"),
        ("a = 1 AND s. t = 2", "expected a comparison, at '.', character 12"),
        ("a NOT 5", "expected IN, BETWEEN or LIKE"),
        ("upper(a) = 'X'", r"functions cannot be evaluated here, at '\('"),
        ("\"a\" = 'b'", "expected the name of a column"),
        ("a + 1 = 2", r"expected a comparison, at '\+'"),
        ("a = DATE '2024-13-01'", "not a DATE"),
        ("a = TIMESTAMP 'now'", "not a TIMESTAMP"),
        ("a = X'0'", "expected a literal"),
        ("a IS 5", "expected NULL"),
        ("(" * 5000 + "a", "more than 100 nested parentheses"),
        ("NOT " * 5000 + "a", "more than 100 nested parentheses"),
    ],
)
def test_invalid_filter_text_is_refused(text, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_predicate(text)


def test_predicates_built_with_col():
    assert str((col("a") > 1) & (col("b") == "x") & ~col("c").is_null()) == "a > 1 AND b = 'x' AND NOT (c IS NULL)"
    assert str((col("a") > 1) | (col("b") < 2) & (col("c") >= 3)) == "a > 1 OR b < 2 AND c >= 3"
    with pytest.raises(TypeError, match="a predicate has no truth value"):
        bool(col("a") > 1)
    with pytest.raises(TypeError, match="a predicate has no truth value"):
        1 < col("a") < 5  # noqa: B015
    with pytest.raises(TypeError, match="not a predicate"):
        (col("a") > 1) & True
    with pytest.raises(InvalidInputError, match="unknown operator 'like'"):
        Leaf("like", "a", ("x",))
    with pytest.raises(InvalidInputError, match="takes 1 literals, not 2"):
        Leaf("=", "a", (1, 2))
    with pytest.raises(InvalidInputError, match="TRUE or FALSE"):
        And(())


@pytest.mark.parametrize(
    ("text", "value"), [('a = "x"', "x"), ('a = "it\'s"', "it's"), ('a = "say ""x"""', 'say "x"'), ('"" = a', "")]
)
def test_double_quotes_enclose_texts(text, value):
    assert parse_predicate(text) == Leaf("=", "a", (value,))
