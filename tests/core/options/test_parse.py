from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.options import parse


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("128 mb", 128 << 20),
        ("1G", 1 << 30),
        ("10", 10),
        ("0b", 0),
        (" 2 kibibytes ", 2048),
        ("3T", 3 << 40),
        ("500 bytes", 500),
        ("9223372036854775807 bytes", 2**63 - 1),
    ],
)
def test_memory_size_takes_units(text, size):
    assert parse.memory_size(text) == size


@pytest.mark.parametrize("text", ["", "mb", "-1", "1.5 mb", "1 pb", "1 mb 2", "9223372036854775808"])
def test_texts_that_are_not_sizes_are_refused(text):
    with pytest.raises(ValueError, match=r"must be a size|more bytes"):
        parse.memory_size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 s", timedelta(seconds=10)),
        ("1h", timedelta(hours=1)),
        ("3 days", timedelta(days=3)),
        ("5 min", timedelta(minutes=5)),
        ("5 m", timedelta(minutes=5)),
        ("250", timedelta(milliseconds=250)),
        ("7 millis", timedelta(milliseconds=7)),
        ("7 \u00b5s", timedelta(microseconds=7)),
        ("7 \u03bcs", timedelta(microseconds=7)),
        ("2500 ns", timedelta(microseconds=2)),
    ],
)
def test_duration_takes_units(text, expected):
    assert parse.duration(text) == expected


@pytest.mark.parametrize("text", ["", "PT1H", "1.5 h", "-1 s", "1 week", "h", "9999999999999 d"])
def test_texts_that_are_not_durations_are_refused(text):
    with pytest.raises(ValueError, match=r"must be a duration|longer than"):
        parse.duration(text)


def test_boolean_takes_true_and_false_in_any_case():
    assert parse.boolean("TRUE")
    assert not parse.boolean(" false ")
    with pytest.raises(ValueError, match="true or false"):
        parse.boolean("yes")


@given(st.integers(-(2**31), 2**31 - 1))
def test_integer_is_parsed(value):
    assert parse.integer(str(value)) == value


@pytest.mark.parametrize("text", ["", "1.0", "2147483648", "1_000", "0x10", "٣"])
def test_texts_that_are_not_integers_are_refused(text):
    with pytest.raises(ValueError, match="whole number from -2147483648 to 2147483647"):
        parse.integer(text)


def test_limits_are_included():
    positive = parse.number(1, 3)
    assert [positive("1"), positive("3")] == [1, 3]
    with pytest.raises(ValueError, match="from 1 to 3"):
        positive("4")


@pytest.mark.parametrize("text", ["nan", "inf", "x", ""])
def test_texts_that_are_not_fractions_are_refused(text):
    assert parse.fraction("0.25") == 0.25
    with pytest.raises(ValueError, match="must be a number"):
        parse.fraction(text)


def test_choices_in_any_spelling():
    choice = parse.enum("partial-update", "with_dashes")
    assert choice("PARTIAL_UPDATE") == "partial-update"
    assert choice("with-dashes") == "with_dashes"
    with pytest.raises(ValueError, match="one of partial-update, with_dashes"):
        choice("other")


def test_list_is_split_at_commas():
    assert parse.comma_list(" a, b ,,c") == ("a", "b", "c")
    assert parse.comma_list("") == ()


def test_map_has_keys_and_values():
    assert parse.text_map("a:1, b:x:y") == {"a": "1", "b": "x:y"}
    assert parse.level_map("0:avro,3:parquet") == {0: "avro", 3: "parquet"}
    for text in ("a", "a:", ":1"):
        with pytest.raises(ValueError, match="must be a map"):
            parse.text_map(text)
    with pytest.raises(ValueError, match="twice"):
        parse.text_map("a:1,a:2")
    for text in ("x:avro", "-1:avro", "0"):
        with pytest.raises(ValueError, match="from level to value"):
            parse.level_map(text)


def test_weights_are_positive_numbers():
    assert [float(weight) for weight in parse.weights("1, 2.5")] == [1, 2.5]
    for text in ("0", "x", "-1", "NaN"):
        with pytest.raises(ValueError, match="positive numbers"):
            parse.weights(text)
