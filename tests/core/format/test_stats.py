"""Bounds are bounds, and the truncation rules of the format."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.format.stats import ColumnBounds, StatsCollector, StatsMode, parse_mode, truncate_max, truncate_min
from paimon_core.types.arrow import arrow_field
from tests.support.samples import EVERYWHERE, fields_of, rows_of


def bounds(type_text, values, mode="full", split=2):
    (field,) = fields_of([type_text])
    collector = StatsCollector([field], [parse_mode(mode)])
    column = pa.array(values, arrow_field(field).type)
    for part in (column.slice(0, split), column.slice(split)):
        collector.update(pa.table({"c0": part}))
    (found,) = collector.result()
    return found


def test_modes_from_text():
    assert parse_mode("None") == StatsMode("none")
    assert parse_mode("counts") == StatsMode("counts")
    assert parse_mode(" FULL ") == StatsMode("full")
    assert parse_mode("truncate(16)") == StatsMode("truncate", 16)
    for wrong in ("truncate", "truncate(0)", "truncate(-1)", "truncate(x)", "most"):
        with pytest.raises(InvalidInputError, match="truncate"):
            parse_mode(wrong)


@pytest.mark.parametrize(
    ("type_text", "values", "low", "high"),
    [
        ("INT", [3, None, -7, 5], -7, 5),
        ("BOOLEAN", [True, False, True], False, True),
        ("STRING", ["b", "é", "Z", ""], "", "é"),
        ("BYTES", [b"\xff", b"\x00a"], None, None),
        ("DATE", [-1, 5, 0], -1, 5),
        ("TIME(3)", [86_399_999, 1], 1, 86_399_999),
        ("TIMESTAMP(6)", [-1, 1], -1, 1),
        ("TIMESTAMP(9)", [-1, 1], -1, 1),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", [-1, 1], -1, 1),
        ("DOUBLE", [1.5, -2.5], -2.5, 1.5),
        ("DOUBLE", [math.inf, 1.0], 1.0, math.inf),
        ("INT", [None, None, None], None, None),
        ("INT", [], None, None),
    ],
)
def test_internal_values_over_batches(type_text, values, low, high):
    assert bounds(type_text, values) == ColumnBounds(low, high, values.count(None))


def test_modes_select_stored_statistics():
    values = ["abc", None, "xyz"]
    assert bounds("STRING", values, "none") == ColumnBounds(None, None, None)
    assert bounds("STRING", values, "counts") == ColumnBounds(None, None, 1)
    assert bounds("STRING", values, "truncate(2)") == ColumnBounds("ab", "xz", 1)
    assert bounds("STRING", values, "full") == ColumnBounds("abc", "xyz", 1)


def test_nested_columns_count_nulls_only():
    assert bounds("ARRAY<INT>", [[1], None, [2]]) == ColumnBounds(None, None, 1)
    assert bounds("ROW<a INT>", [None, {"a": None}]) == ColumnBounds(None, None, 1)


@pytest.mark.parametrize("values", [[1.0, math.nan, 2.0], [1.0, 2.0, math.nan], [math.nan], [math.nan, 1.0, 2.0]])
def test_nan_leaves_no_bounds(values):
    assert bounds("DOUBLE", values) == ColumnBounds(None, None, 0)


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0], [0.0], [-0.0]])
def test_both_zeros_are_within_bounds(zeros):
    actual = bounds("FLOAT", zeros)
    assert (math.copysign(1, actual.min), math.copysign(1, actual.max)) == (-1, 1)


@pytest.mark.parametrize(
    ("value", "length", "high"),
    [
        ("abz9", 3, "ab{"),
        ("zz\u7fff\U0001f600zzzz", 3, "zz\u8000"),
        ("abc", 3, "abc"),
        ("a\U0010ffff\U0010ffffb", 3, "b"),
        ("\U0010ffff\U0010ffff", 1, None),
        ("\ud7ffx", 1, "\ue000"),
        (b"ab\xff\xff\x01", 4, b"ac"),
        (b"\xff\xff", 1, None),
        (b"\xff", 1, b"\xff"),
    ],
)
def test_truncated_upper_bounds(value, length, high):
    assert truncate_max(value, length) == high


def test_without_upper_bound_there_is_no_lower_bound():
    assert bounds("BYTES", [b"\xff\xff\x01", b"a"], "truncate(2)") == ColumnBounds(None, None, 0)


characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from("\U0010ffff\ud7ff\ue000\x7f\uffff")


@given(st.text(characters) | st.binary(), st.integers(1, 4))
def test_truncation_keeps_bounds(value, length):
    low, high = truncate_min(value, length), truncate_max(value, length)
    assert low <= value
    assert len(low) <= length
    if high is not None:
        assert high >= value
        assert len(high) <= length
        if isinstance(high, str):
            assert high.encode() >= value.encode()


@given(st.integers(0, 10**6))
def test_every_value_of_every_type_is_within_the_bounds(seed):
    fields = fields_of(EVERYWHERE)
    table = rows_of(fields, seed, 12)
    collector = StatsCollector(fields, [parse_mode("truncate(1)")] * len(fields))
    for batch in table.to_batches(5):
        collector.update(batch)
    for actual, column in zip(collector.result(), table.columns, strict=True):
        assert actual.null_count == column.null_count
        if actual.min is not None:
            pair = pa.array([actual.min, actual.max], column.type).to_pylist()
            assert all(pair[0] <= v <= pair[1] for v in column.drop_null().to_pylist())
