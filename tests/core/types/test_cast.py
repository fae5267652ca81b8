import decimal
import math
import struct
from decimal import ROUND_HALF_UP, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.cast import can_cast, cast_array
from paimon_core.types.datatype import ROOTS, AtomicType
from paimon_core.types.float_text import float_text
from paimon_core.types.parse import parse_type
from tests.support.column_types import scalars

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
WIDE = decimal.Context(prec=400)


def cast(values, source, target):
    source, target = parse_type(source), parse_type(target)
    result = cast_array(pa.array(values, to_arrow(source)), source, target)
    result.validate(full=True)
    assert result.type == to_arrow(target)
    return result


def values_of(array):
    """Python values; timestamps as their ticks."""
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
        array = array.view(pa.int32())
    return array.to_pylist()


# ------------------------------------------------------------------------------------------------ what is allowed


@pytest.mark.parametrize(
    ("source", "target", "implicit", "explicit"),
    [
        ("INT", "BIGINT", True, True),
        ("BIGINT", "INT", False, True),
        ("INT", "FLOAT", True, True),
        ("DOUBLE", "FLOAT", False, True),
        ("DOUBLE", "DECIMAL(5, 2)", True, True),
        ("DECIMAL(5, 2)", "DECIMAL(7, 2)", True, True),
        ("DECIMAL(5, 2)", "DECIMAL(5, 3)", False, True),
        ("VARCHAR(5)", "VARCHAR(10)", True, True),
        ("VARCHAR(10)", "VARCHAR(5)", False, True),
        ("CHAR(3)", "STRING", True, True),
        ("STRING", "CHAR(3)", False, True),
        ("INT", "STRING", False, True),
        ("STRING", "INT", False, True),
        ("BYTES", "STRING", False, True),
        ("INT", "BYTES", False, False),
        ("BOOLEAN", "DOUBLE", False, True),
        ("DOUBLE", "BOOLEAN", False, False),
        ("TIMESTAMP(6)", "DATE", True, True),
        ("DATE", "TIMESTAMP(6)", False, True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False, True),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", False, False),
        ("DOUBLE", "TIMESTAMP", False, False),
        ("INT", "TIMESTAMP", False, True),
        ("DATE", "INT", False, False),
        ("DATE", "STRING", False, True),
        ("DATE", "CHAR(10)", False, False),
        ("TIMESTAMP(3)", "VARCHAR(100)", False, False),
        ("TIME(0)", "VARCHAR(8)", False, False),
        ("TIME(0)", "TIME(3)", False, False),
        ("TIMESTAMP_LTZ(3)", "BIGINT", False, True),
        ("TIMESTAMP_LTZ(3)", "SMALLINT", False, False),
        ("ARRAY<INT>", "ARRAY<INT> NOT NULL", True, True),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False, False),
        ("ARRAY<INT>", "STRING", False, False),
        ("VARIANT", "VARIANT", True, True),
    ],
)
def test_casts_are_implicit_or_explicit(source, target, implicit, explicit):
    source, target = parse_type(source), parse_type(target)
    assert can_cast(source, target, explicit=False) is implicit
    assert can_cast(source, target, explicit=True) is explicit


@given(scalars)
def test_cast_to_same_type_keeps_values(t):
    assert can_cast(t, t, explicit=False)
    empty = pa.nulls(2, to_arrow(t))
    assert cast_array(empty, t, t) is empty


@pytest.mark.parametrize("source", sorted(ROOTS))
@pytest.mark.parametrize("target", sorted(ROOTS))
def test_every_allowed_cast_is_implemented_and_keeps_nulls(source, target):
    source, target = AtomicType(source), AtomicType(target)
    if can_cast(source, target, explicit=True):
        for length in (0, 3):
            result = cast_array(pa.nulls(length, to_arrow(source)), source, target)
            assert (result.type, len(result), result.null_count) == (to_arrow(target), length, length)
    if can_cast(source, target, explicit=False):
        assert can_cast(source, target, explicit=True)


@pytest.mark.parametrize(
    ("source", "target"), [("DOUBLE", "TIMESTAMP(3)"), ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"), ("ARRAY<INT>", "STRING")]
)
def test_other_casts_are_refused_by_name(source, target):
    source, target = parse_type(source), parse_type(target)
    with pytest.raises(UnsupportedError, match=r"data stored as .* cannot be read as"):
        cast_array(pa.nulls(1, to_arrow(source)), source, target)


# ------------------------------------------------------------------------------------------------ numbers


def wrapped(value, bits):
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=5),
    st.sampled_from(sorted(BITS)),
)
def test_integers_wrap_around(values, target):
    expected = [None if v is None else wrapped(v, BITS[target]) for v in values]
    assert values_of(cast(values, "BIGINT", target)) == expected


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=5), st.sampled_from(sorted(BITS)))
def test_floats_truncate_and_saturate_then_wrap(values, target):
    wide = 64 if target == "BIGINT" else 32

    def expected(value):
        if value is None or math.isnan(value):
            return None if value is None else 0
        limit = 2 ** (wide - 1)
        whole = limit if value >= limit else -limit if value <= -limit else int(value)
        return wrapped(min(whole, limit - 1), BITS[target])

    assert values_of(cast(values, "DOUBLE", target)) == [expected(v) for v in values]


@st.composite
def decimal_types(draw):
    precision = draw(st.integers(1, 38))
    return precision, draw(st.integers(0, precision))


def rounded(value, precision, scale):
    """Half up to the scale, None when the digits do not suffice."""
    result = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, WIDE)
    return result if abs(result) < Decimal(10) ** (precision - scale) else None


def numbers(precision, scale):
    digits = st.integers(-(10**precision) + 1, 10**precision - 1)
    return digits.map(lambda unscaled: Decimal(unscaled).scaleb(-scale, WIDE))


@given(st.data(), decimal_types(), decimal_types())
def test_decimals_round_half_up_or_become_null(data, source, target):
    values = data.draw(st.lists(st.one_of(st.none(), numbers(*source)), max_size=4))
    result = cast(values, "DECIMAL({}, {})".format(*source), "DECIMAL({}, {})".format(*target))
    assert values_of(result) == [None if v is None else rounded(v, *target) for v in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), decimal_types())
def test_integers_become_decimals_or_null(values, target):
    result = cast(values, "BIGINT", "DECIMAL({}, {})".format(*target))
    assert values_of(result) == [rounded(Decimal(v), *target) for v in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4), decimal_types())
def test_floats_become_decimals_by_their_text(values, target):
    result = cast(values, "DOUBLE", "DECIMAL({}, {})".format(*target))
    assert values_of(result) == [rounded(Decimal(repr(v)), *target) for v in values]


@given(st.data(), decimal_types())
def test_decimals_become_integers_by_their_low_bits(data, source):
    values = data.draw(st.lists(numbers(*source), max_size=4))
    result = cast(values, "DECIMAL({}, {})".format(*source), "INT")
    assert values_of(result) == [wrapped(int(v), 32) for v in values]


@given(st.data(), decimal_types())
def test_decimals_become_floats(data, source):
    values = data.draw(st.lists(numbers(*source), max_size=4))
    result = values_of(cast(values, "DECIMAL({}, {})".format(*source), "DOUBLE"))
    if source[0] <= 18:
        assert result == [float(int(v.scaleb(source[1]))) / 10.0 ** source[1] for v in values]
    else:
        assert result == [float(v) for v in values]


def test_nan_is_not_decimal():
    with pytest.raises(InvalidInputError, match="nan has no value as DECIMAL"):
        cast([1.0, math.nan], "DOUBLE", "DECIMAL(5, 2)")


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([True, False, None], "BOOLEAN", "SMALLINT", [1, 0, None]),
        ([True, False, None], "BOOLEAN", "DOUBLE", [1.0, 0.0, None]),
        ([True, False], "BOOLEAN", "DECIMAL(2, 2)", [None, Decimal("0.00")]),
        ([0, -5, None], "INT", "BOOLEAN", [False, True, None]),
        ([2**53 + 1], "BIGINT", "DOUBLE", [float(2**53)]),
        ([0.1], "DOUBLE", "FLOAT", [struct.unpack("f", struct.pack("f", 0.1))[0]]),
    ],
)
def test_booleans_and_floats(values, source, target, expected):
    assert values_of(cast(values, source, target)) == expected


# ------------------------------------------------------------------------------------------------ times


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1999, -1999, -1], "TIMESTAMP(3)", "TIMESTAMP(0)", [1000, -2000, -1000]),
        ([1999, -1999, -1], "TIMESTAMP(6)", "TIMESTAMP(3)", [1, -2, -1]),
        ([1999, -1999], "TIMESTAMP(6)", "TIMESTAMP(5)", [1990, -2000]),
        ([1999, None], "TIMESTAMP_LTZ(9)", "TIMESTAMP_LTZ(6)", [1, None]),
        ([1999], "TIMESTAMP(9)", "TIMESTAMP(7)", [1900]),
        ([1], "TIMESTAMP(3)", "TIMESTAMP(9)", [10**6]),
        ([-1, -86_400_001, 86_400_000, None], "TIMESTAMP(3)", "DATE", [-1, -2, 1, None]),
        ([-1, -86_400_000_001], "TIMESTAMP(6)", "DATE", [-1, -2]),
        ([-1, 90_000_000_001], "TIMESTAMP(6)", "TIME(3)", [86_399_999, 3_600_000]),
        ([-1, 1999, -1001], "TIMESTAMP(3)", "BIGINT", [-1, 1, -2]),
        ([-1, 1_999_999, -1_000_001, None], "TIMESTAMP_LTZ(6)", "BIGINT", [-1, 1, -2, None]),
        ([2**31 * 1000], "TIMESTAMP_LTZ(3)", "INT", [-(2**31)]),
        ([5, None], "INT", "TIMESTAMP(3)", [5000, None]),
        ([1, None], "DATE", "TIMESTAMP(6)", [86_400_000_000, None]),
        ([1500], "TIME(3)", "TIMESTAMP(0)", [1500]),
        ([1500], "TIME(3)", "TIMESTAMP(6)", [1_500_000]),
        ([1500], "TIME(3)", "TIME(0)", [1500]),
    ],
)
def test_casts_of_times_round_down(values, source, target, expected):
    assert values_of(cast(values, source, target)) == expected


DAY = 86_400 * 10**9
EARLY = [0, -1, 1, -(10**9), -(10**9) - 1, -999, -1_000_001, -DAY, -DAY - 1, DAY - 1, -123_456_789_012_345_678]
NANOS = {"ms": 10**6, "us": 10**3, "ns": 1}


def in_nanoseconds(array):
    return [None if n is None else n * NANOS[array.type.unit] for n in values_of(array)]


@pytest.mark.parametrize("root", ["TIMESTAMP", "TIMESTAMP_LTZ"])
@pytest.mark.parametrize("digits", range(10))
def test_timestamps_round_down_to_every_coarser_type(root, digits):
    source = f"{root}({digits})"
    stored = [n // 10 ** (9 - digits) * 10 ** (9 - digits) for n in EARLY]
    ticks = [*(n // NANOS[to_arrow(parse_type(source)).unit] for n in stored), None]
    for coarse in range(digits):
        expected = [*(n // 10 ** (9 - coarse) * 10 ** (9 - coarse) for n in stored), None]
        assert in_nanoseconds(cast(ticks, source, f"{root}({coarse})")) == expected
    assert values_of(cast(ticks, source, "BIGINT")) == [*(n // 10**9 for n in stored), None]
    if root == "TIMESTAMP":
        assert values_of(cast(ticks, source, "DATE")) == [*(n // DAY for n in stored), None]
        assert values_of(cast(ticks, source, "TIME(3)")) == [*(n % DAY // 10**6 for n in stored), None]


def test_time_that_cannot_be_rounded_down_is_refused():
    assert values_of(cast([100 - 2**63], "TIMESTAMP(9)", "TIMESTAMP(7)")) == [(100 - 2**63) // 100 * 100]
    with pytest.raises(UnsupportedError, match="too early"):
        cast([-(2**63)], "TIMESTAMP(9)", "TIMESTAMP(7)")


def test_years_nanoseconds_do_not_reach_are_refused_not_wrapped():
    with pytest.raises(UnsupportedError, match="out of bounds"):
        cast([2**60], "TIMESTAMP(3)", "TIMESTAMP(9)")


# ------------------------------------------------------------------------------------------------ text


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([5, -5, None], "INT", "STRING", ["5", "-5", None]),
        ([12345], "INT", "VARCHAR(3)", ["123"]),
        ([True, False], "BOOLEAN", "CHAR(5)", ["true ", "false"]),
        ([Decimal("-0.01"), Decimal("123.40"), None], "DECIMAL(5, 2)", "STRING", ["-0.01", "123.40", None]),
        ([Decimal("1E-10")], "DECIMAL(38, 10)", "STRING", ["0.0000000001"]),
        ([Decimal("-7")], "DECIMAL(5, 0)", "STRING", ["-7"]),
        ([0, -1, None], "DATE", "STRING", ["1970-01-01", "1969-12-31", None]),
        ([1500], "TIMESTAMP(3)", "STRING", ["1970-01-01 00:00:01.500"]),
        ([1500], "TIMESTAMP(5)", "STRING", ["1970-01-01 00:00:00.00150"]),
        ([1000], "TIMESTAMP(0)", "STRING", ["1970-01-01 00:00:01"]),
        ([3_661_000], "TIME(0)", "STRING", ["01:01:01"]),
        (
            [0, 1500, 1120, 1001, None],
            "TIME(3)",
            "STRING",
            ["00:00:00.0", "00:00:01.5", "00:00:01.12", "00:00:01.001", None],
        ),
        ([1125], "TIME(2)", "STRING", ["00:00:01.12"]),
        (["abc", "a", "äöü", None], "STRING", "CHAR(2)", ["ab", "a ", "äö", None]),
        (["abc", "a"], "VARCHAR(9)", "VARCHAR(2)", ["ab", "a"]),
        (["äb"], "STRING", "BINARY(4)", ["äb".encode() + b"\0"]),
        (["äb"], "STRING", "VARBINARY(2)", ["ä".encode()]),
        ([b"abc", b"a", None], "BYTES", "BINARY(2)", [b"ab", b"a\0", None]),
        (["äb".encode()], "BYTES", "CHAR(9)", ["äb"]),
        (["12", "-3", "1.9", "+4", "007", None], "STRING", "INT", [12, -3, 1, 4, 7, None]),
        ([".5", "-.5", "5.", None], "STRING", "BIGINT", [0, 0, 5, None]),
        (["1f", "2D", "\t3\n"], "STRING", "FLOAT", [1.0, 2.0, 3.0]),
        (
            [".5", "1e1", "5E-3", "-5E-3", "1e3", None],
            "STRING",
            "DECIMAL(4, 2)",
            ["0.50", "10.00", "0.01", "-0.01", None, None],
        ),
        (["1.5", "NaN", "-Infinity", "1e3", " .5 ", None], "STRING", "DOUBLE", [1.5, "nan", -math.inf, 1e3, 0.5, None]),
        (["1.005", "-99.995", "5", None], "STRING", "DECIMAL(4, 2)", ["1.01", None, "5.00", None]),
        (["T", "no", "1", None], "STRING", "BOOLEAN", [True, False, True, None]),
        (["1970-1-2", "1969-12-31 23:00:00", None], "STRING", "DATE", [1, -1, None]),
        (["0", "-129", "2024", " 1970-01-02"], "STRING", "DATE", [0, -129, 2024, 1]),
        (["00:00:01.5", "23:59:59", None], "STRING", "TIME(3)", [1500, 86_399_000, None]),
        (["0:1:2", "00:01", "00:00:01.1239"], "STRING", "TIME(3)", [62_000, 60_000, 1123]),
        (["1970-01-01 0:0:1.1234567", "1970-01-02", None], "STRING", "TIMESTAMP(6)", [1_123_456, 86_400_000_000, None]),
        (["1970-01-01 00:00:01.999"], "STRING", "TIMESTAMP(0)", [1000]),
    ],
)
def test_casts_to_strings_print_as_java(values, source, target, expected):
    result = values_of(cast(values, source, target))
    plain = [str(v) if isinstance(v, Decimal) or (isinstance(v, float) and math.isnan(v)) else v for v in result]
    assert plain == expected


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (" 12", "INT"),
        ("", "INT"),
        (".", "INT"),
        ("-", "INT"),
        ("+", "INT"),
        ("+-3", "INT"),
        ("1e3", "INT"),
        ("300", "TINYINT"),
        ("9223372036854775808", "BIGINT"),
        ("abc", "DOUBLE"),
        ("0x10", "FLOAT"),
        ("", "DECIMAL(5, 2)"),
        ("1 ", "DECIMAL(5, 2)"),
        ("maybe", "BOOLEAN"),
        ("2024-02-30", "DATE"),
        ("2024-13-01 00:00:00", "TIMESTAMP(3)"),
        ("2024-01-05T00:00:00", "TIMESTAMP(3)"),
        ("25:00:00", "TIME"),
    ],
)
def test_text_that_is_not_value_is_quoted(text, target):
    good = {"BOOLEAN": "t", "DATE": "2024-01-01", "TIME": "00:00:00", "TIMESTAMP(3)": "2024-01-01"}.get(target, "1")
    with pytest.raises(InvalidInputError) as refusal:
        cast([None, good, text], "STRING", target)
    assert f"text {text!r} is not a value of" in str(refusal.value)


def test_bytes_that_are_not_utf_8():
    with pytest.raises(UnsupportedError, match="not UTF-8"):
        cast([b"\xff"], "BYTES", "STRING")


def test_years_beyond_four_digits_have_no_text():
    with pytest.raises(UnsupportedError, match="years 1 to 9999"):
        cast([2932897], "DATE", "STRING")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e21, "1.0E21"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (-1e-323, "-9.9E-324"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (None, None),
    ],
)
def test_floats_are_spelled_like_this(number, text):
    assert float_text(pa.array([number], pa.float64())).to_pylist() == [text]


def test_float32_has_its_own_shortest_digits():
    array = pa.array([0.1, 3.4028235e38, 1.4e-45, 16777216.0], pa.float32())
    assert float_text(array).to_pylist() == ["0.1", "3.4028235E38", "1.4E-45", "1.6777216E7"]


@given(st.lists(st.floats(allow_nan=False), max_size=6))
def test_text_of_float_is_parsed_to_same_float(values):
    texts = float_text(pa.array(values, pa.float64())).to_pylist()
    assert [float(t) for t in texts] == values
    for value, text in zip(values, texts, strict=True):
        if math.isfinite(value):
            assert ("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
            assert "." in text


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_integers_survive_text(values):
    texts = cast(values, "BIGINT", "STRING")
    assert values_of(cast(texts.to_pylist(), "STRING", "BIGINT")) == values


@given(st.data(), decimal_types())
def test_decimals_survive_text(data, source):
    values = data.draw(st.lists(numbers(*source), max_size=4))
    name = "DECIMAL({}, {})".format(*source)
    texts = cast(values, name, "STRING").to_pylist()
    assert not any("E" in text for text in texts)
    assert values_of(cast(texts, "STRING", name)) == values
