"""Binding, splitting and translating predicates keeps their meaning, or weakens it where documented."""

import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import FALSE, TRUE, And, Leaf, col
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import (
    bind,
    columns,
    conjuncts,
    most_keys,
    pinned_values,
    restrict,
    split_by,
    to_file,
)
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.draws import draws
from tests.support.predicates import BY_NAME, FIELDS, batch_of, held, model, predicates, single_tests, tables


def truth(p, batch):
    return [True] * batch.num_rows if p is None else evaluate(p, batch).to_pylist()


def implies(one, other):
    return all(b or not a for a, b in zip(one, other, strict=True))


def fields(**types):
    return [DataField(i, name, parse_type(t)) for i, (name, t) in enumerate(types.items())]


@draws(200)
@given(predicates(("int", "txt", "dec", "flt")), tables(), st.sets(st.sampled_from(["int", "txt", "dec", "flt"])))
def test_predicates_are_split_into_conjuncts(p, rows, names):
    p, batch = bind(p, FIELDS), batch_of(rows)
    expected = truth(p, batch)
    together = [all(each) for each in zip(*(truth(c, batch) for c in conjuncts(p)), strict=True)]
    assert expected == (together or [True] * len(rows)) or not rows
    inside, outside = split_by(p, names)
    assert inside is None or columns(inside) <= names
    assert expected == [a and b for a, b in zip(truth(inside, batch), truth(outside, batch), strict=True)]
    assert restrict(p, names) == inside
    assert implies(expected, truth(inside, batch))


@draws(200)
@given(predicates())
def test_bind_is_idempotent(p):
    bound = bind(p, FIELDS)
    assert bind(bound, FIELDS) == bound


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("a = 5.0", "a = 5"),
        ("a < 5.5", "a <= 5"),
        ("a > 5.5", "a > 5"),
        ("a >= -5.5", "a > -6"),
        ("a = 5.5", "a IS NULL AND UNKNOWN"),
        ("a != 1000000000000", "a IS NOT NULL OR UNKNOWN"),
        ("a <= 1e30", "a IS NOT NULL OR UNKNOWN"),
        ("a <=> 5.5", "FALSE"),
        ("a <=> NULL", "a IS NULL"),
        ("a = NULL", "UNKNOWN"),
        ("A IN (1, 2.0, 2.5, 1)", "a IN (1, 2)"),
        ("a IN (1, NULL)", "a IN (1) OR UNKNOWN"),
        ("a NOT IN ()", "TRUE"),
        ("d = DATE '1970-01-11'", "d = 10"),
        ("d < TIMESTAMP '1970-01-11 00:00:01'", "d <= 10"),
        ("t = '1970-01-01 00:00:01.0000015'", "t IS NULL AND UNKNOWN"),
        ("t = '1970-01-01 00:00:01.000001500'", "t IS NULL AND UNKNOWN"),
        ("t >= DATE '1970-01-02'", "t >= 86400000000"),
        ("z = TIMESTAMP '1970-01-01 01:00:00+01:00'", "z = 0"),
        ("d = '-0044-03-15'", "d = -735525"),
        ("d > '+12020-01-01'", "d > 3670687"),
        ("z < '+12020-01-01 01:00:00+01:00'", "z < 317147356800000"),
        ("t < '+300000-01-01'", "t IS NOT NULL OR UNKNOWN"),
        ("c = TIME '00:00:01.5'", "c = 1500"),
        ("m = 1.5", "m = 1.50"),
        ("m = 1.1e0", "m = 1.10"),
        ("m > 1.005", "m > 1.00"),
        ("m < 1000", "m IS NOT NULL OR UNKNOWN"),
    ],
)
def test_bind_literals_outside_type(text, bound):
    types = fields(
        a="INT", d="DATE", t="TIMESTAMP(6)", z="TIMESTAMP(3) WITH LOCAL TIME ZONE", c="TIME(3)", m="DECIMAL(5, 2)"
    )
    result = bind(parse_predicate(text), types)
    assert result == parse_predicate(bound)
    assert str(result) == bound


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b = 1", "'b' does not exist in the filtered table; it has a, s, d"),
        ("a = 'x'", "type INT cannot be compared with 'x'"),
        ("a = TRUE", "cannot be compared with True"),
        ("s = 5", "type STRING cannot be compared with 5"),
        ("d = 'someday'", "is not a value of type DATE: write it as"),
        ("d = '12020-01-01'", "is not a value of type DATE: write it as"),
        ("d = '2023-02-29'", "is not a value of type DATE: day"),
        ("d = 1.5", "cannot be compared with Decimal"),
        ("t = '2024-01-01 00:00:00Z'", "cannot be compared"),
        ("l = 1", "can only be tested for NULL"),
        ("a LIKE 'x%'", "needs a text column and a text literal"),
        ("DUP = 1", "differ in case only"),
    ],
)
def test_bind_refuses_unknown_columns_and_wrong_literals(text, message):
    types = fields(a="INT", s="STRING", d="DATE", t="TIMESTAMP(3)", l="ARRAY<INT>", dup="INT", Dup="INT")
    with pytest.raises(InvalidInputError, match=message):
        bind(parse_predicate(text), types)


def test_bind_accepts_numpy_numbers():
    assert bind(col("a") == np.int64(5), fields(a="INT")) == Leaf("=", "a", (5,))
    with pytest.raises(InvalidInputError, match="datetime64"):
        bind(col("a") == np.datetime64("2024-01-01"), fields(a="DATE"))


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("a = 1 AND b = 2", "a", "a = 1"),
        ("a = 1 OR b = 2", "a", None),
        ("(a = 1 AND b = 1) OR (a = 2 AND b = 5)", "a", "a = 1 OR a = 2"),
        ("NOT (a = 1 OR b = 2)", "b", "b != 2"),
        ("a = 1 AND FALSE", "b", "FALSE"),
        ("NOT (a = 1 OR UNKNOWN)", "a", "FALSE"),
    ],
)
def test_restrict_keeps_tests_on_columns(text, names, expected):
    result = restrict(parse_predicate(text), set(names))
    assert result == (None if expected is None else parse_predicate(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 AND b = 'x'", {"a": [1], "b": ["x"]}),
        ("a IN (1, 2, 3) AND (a = 2 OR a IN (3, 4)) AND b = 'x'", {"a": [2, 3], "b": ["x"]}),
        ("a IN (1, NULL) AND b = 'x'", {"a": [1], "b": ["x"]}),
        ("a = 1 AND a = 2 AND b = 'x'", {"a": [], "b": ["x"]}),
        ("a = NULL", {"a": [], "b": []}),
        ("a = 5.5", {"a": [], "b": []}),
        ("a = 1", None),
        ("a > 1 AND b = 'x'", None),
        ("(a = 1 OR b = 'x') AND b = 'x'", None),
        ("(a = 1 OR a IS NULL) AND b = 'x'", None),
        ("NOT (a != 1 OR b != 'x')", {"a": [1], "b": ["x"]}),
        ("NOT (a = 1) AND b = 'x'", None),
        ("c > 5 AND a <=> 1 AND b = 'x'", {"a": [1], "b": ["x"]}),
    ],
)
def test_equalities_pin_values_of_columns(text, expected):
    p = bind(parse_predicate(text), fields(a="INT", b="STRING", c="INT"))
    assert pinned_values(p, ["a", "b"]) == expected


def test_too_many_combinations_pin_nothing():
    types = fields(a="INT", b="INT")
    p = col("a").isin(range(40)) & col("b").isin(range(25))
    assert pinned_values(bind(p, types), ["a", "b"]) is not None
    assert pinned_values(bind(p, types), ["a"]) == {"a": list(range(40))}
    assert pinned_values(bind(col("a").isin(range(41)) & col("b").isin(range(25)), types), ["a", "b"]) is None


def test_pinned_zeros_and_nan():
    types = fields(a="DOUBLE")
    (result,) = pinned_values(bind(parse_predicate("a IN (0, 5)"), types), ["a"]).values()
    assert [struct.pack("<d", v) for v in result] == [struct.pack("<d", v) for v in (0.0, -0.0, 5.0)]
    assert pinned_values(bind(parse_predicate("a = DOUBLE 'NaN'"), types), ["a"]) is None


def test_long_in_list_is_pinned_fast():
    class Value(int):
        compared = 0
        __hash__ = int.__hash__

        def __eq__(self, other):
            Value.compared += 1
            return int(self) == int(other)

    one, other = (Leaf("in", "a", tuple(map(Value, some))) for some in (range(900), range(450, 1350)))
    assert pinned_values(one, ["a"]) == {"a": list(range(900))}
    assert Value.compared < 10 * 900
    assert pinned_values(And((one, other)), ["a"]) == {"a": list(range(450, 900))}
    assert Value.compared < 20 * 900


@draws(150)
@given(predicates(("int", "txt")), tables())
def test_matching_rows_have_pinned_values(p, rows):
    p = bind(p, FIELDS)
    pinned = pinned_values(p, ["int", "txt"])
    if pinned is not None:
        for row, passed in zip(rows, truth(p, batch_of(rows)), strict=True):
            assert not passed or (row["int"] in pinned["int"] and row["txt"] in pinned["txt"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a >= 3 AND a < 10 AND b = 'x'", 7),
        ("a > 3 AND a <= 10 AND b IN ('x', 'y')", 14),
        ("a BETWEEN 3 AND 10 AND a < 5 AND b = 'x'", 2),
        ("a > 5.5 AND a < 7.5 AND b = 'x'", 2),
        ("a > 9 AND a < 9 AND b = 'x'", 0),
        ("a > 3 AND b = 'x'", None),
        ("a > 3 AND a < 5", None),
        ("a > 3 AND a < 5 AND b > 'x' AND b < 'y'", None),
        ("(a > 3 OR b = 'x') AND a < 5 AND b = 'x'", None),
        ("a IN (1, 2) AND a > 0 AND a < 1000000 AND b = 'x'", 2),
    ],
)
def test_bounds_limit_number_of_keys(text, expected):
    types = fields(a="INT", b="STRING")
    assert most_keys(bind(parse_predicate(text), types), types) == expected


def test_most_keys_of_days_and_fractions():
    types = fields(day="DATE", f="DOUBLE")
    p = bind(parse_predicate("day >= DATE '2024-02-28' AND day < DATE '2024-03-02' AND f > 1 AND f < 2"), types)
    assert most_keys(p, types[:1]) == 3
    assert most_keys(p, types) is None


@draws(150)
@given(predicates(("int", "txt")), tables(), st.integers(-9, 9), st.integers(0, 9))
def test_most_keys_bounds_keys_of_matching_rows(p, rows, low, number):
    p = And((bind(p, FIELDS), *conjuncts(bind(col("int").between(low, low + number), FIELDS))))
    result = {row["int"] for row, passed in zip(rows, truth(p, batch_of(rows)), strict=True) if passed}
    most = most_keys(p, [field for field in FIELDS if field.name == "int"])
    assert most is not None
    assert len(result) <= most <= number + 1


# a type a column was stored with, and how a value looks there: None where it has no place
STORED = {
    "big": ("TINYINT", lambda v: v if -128 <= v < 128 else None),
    "dbl": ("FLOAT", lambda v: v if v != 1e300 and (v != v or float(np.float32(v)) == v) else None),
    "dec": ("DECIMAL(4, 1)", lambda v: v if abs(v) < 100 and v == round(v, 1) else None),
    "huge": ("INT", lambda v: int(v) if abs(v) < 2**31 and v == int(v) else None),
    "txt": ("VARCHAR(7)", lambda v: v),
    "ts6": ("TIMESTAMP(2)", lambda v: v // 1000 if v % 10_000 == 0 else None),
}


def stored_rows(name):
    """Return rows as they are read, and as they were stored with the earlier type."""
    pairs = [(v, None if v is None else STORED[name][1](v)) for v in held(name)]
    return [({name: v if s is not None else None}, {"old": s}) for v, s in pairs]


@pytest.mark.parametrize("name", STORED)
def test_file_predicate_holds_for_every_matching_row(name):
    old = DataField(BY_NAME[name].id, "old", parse_type(STORED[name][0]))
    read, stored = zip(*stored_rows(name), strict=True)
    batch = batch_of(stored, (old,))
    moved_tests = 0
    for p in single_tests(name):
        for q in (p, ~p):
            moved = to_file(bind(q, FIELDS), FIELDS, [old])
            moved_tests += moved is not None
            expected = [model(q, row) is True for row in read]
            assert truth(moved, batch) == expected or (moved is None and all(expected)), str(q)
    assert moved_tests > len(single_tests(name))


@draws(150)
@given(predicates(("int", "txt", "dec", "flt")), tables(), st.sets(st.sampled_from(["int", "txt", "dec", "flt"])))
def test_missing_file_columns_are_null(p, rows, absent):
    stored = tuple(DataField(f.id, f"old {f.name}", f.type) for f in FIELDS if f.name not in absent)
    file_rows = [{f"old {name}": value for name, value in row.items()} for row in rows]
    p = bind(p, FIELDS)
    expected = [model(p, row | dict.fromkeys(absent)) is True for row in rows]
    assert truth(to_file(p, FIELDS, stored), batch_of(file_rows, stored)) == expected


@pytest.mark.parametrize(
    ("stored", "read", "text", "expected"),
    [
        ("INT", "INT NOT NULL", "a = 5", "old = 5"),
        ("INT", "BIGINT", "a > 5", "old > 5"),
        ("INT", "BIGINT", "a = 1000000000000", "FALSE"),
        ("INT", "BIGINT", "a < 1000000000000", "old IS NOT NULL"),
        ("INT", "DOUBLE", "a <= 5.5", "old <= 5"),
        ("BIGINT", "DOUBLE", "a <= 5.5", None),
        ("BIGINT", "INT", "a = 5", None),
        ("BIGINT", "INT", "NOT (a <=> 5)", None),
        ("BIGINT", "INT", "a IS NULL", None),
        ("STRING", "INT", "a = 5", None),
        ("INT", "STRING", "a = '5'", None),
        ("DECIMAL(5, 2)", "DECIMAL(7, 3)", "a = 1.005", "FALSE"),
        ("DECIMAL(5, 2)", "DECIMAL(5, 3)", "a = 1.005", None),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", "a > '1970-01-01 00:00:00.0015'", "old > 1"),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", "a > '1970-01-01 00:00:00.001'", None),
        ("CHAR(3)", "CHAR(5)", "a = 'x'", None),
        ("VARCHAR(5)", "VARCHAR(3)", "a = 'x'", None),
        ("CHAR(3)", "STRING", "a = 'x'", "old = 'x'"),
    ],
)
def test_test_is_translated_to_stored_type(stored, read, text, expected):
    read_fields, file_fields = fields(a=read), fields(old=stored)
    moved = to_file(bind(parse_predicate(text), read_fields), read_fields, file_fields)
    assert (None if moved is None else str(moved)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a IS NULL", None),
        ("a IS NOT NULL", FALSE),
        ("a = 1", FALSE),
        ("a != 1 OR b = 2", parse_predicate("b = 2")),
        ("NOT (a = 1)", FALSE),
        ("NOT (a <=> 1)", None),
        ("a <=> NULL AND b = 2", parse_predicate("b = 2")),
        ("a NOT IN ()", None),
    ],
)
def test_test_on_missing_file_column(text, expected):
    read_fields = fields(a="INT", b="INT")
    moved = to_file(bind(parse_predicate(text), read_fields), read_fields, read_fields[1:])
    assert (moved is None and expected is None) or moved == expected


def test_constants_are_simplified():
    assert conjuncts(TRUE) == []
    assert conjuncts(FALSE) == [FALSE]
    assert to_file(TRUE, FIELDS, FIELDS) is None
    assert split_by(TRUE, {"int"}) == (None, None)
    assert bind(col("dec") == Decimal("1"), FIELDS).values == (Decimal("1.00"),)
    assert BY_NAME["dec"].type.scale == 2
