import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.coerce import coerce_array
from paimon_core.types.parse import parse_type

MAP = pa.array([[(1, "a")], None, [(2, "b"), (3, "ccc")]], pa.map_(pa.int64(), pa.string()))


def store(values, text, arrow_type=None):
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, arrow_type)
    target = parse_type(text)
    result = coerce_array(array, target, "c")
    result.validate(full=True)
    assert result.type.equals(to_arrow(target), check_metadata=True)
    return result


@pytest.mark.parametrize(
    ("values", "arrow_type", "target"),
    [
        ([1, None, -128], pa.int64(), "TINYINT"),
        ([1.0, None], pa.float64(), "INT"),
        ([Decimal("3.00")], pa.decimal128(5, 2), "SMALLINT"),
        ([2**53, -(2**53)], pa.int64(), "DOUBLE"),
        ([2**24], pa.int32(), "FLOAT"),
        ([float("inf"), 0.5, None], pa.float64(), "FLOAT"),
        ([12, None], pa.int64(), "DECIMAL(4, 2)"),
        ([Decimal("1.2")], pa.decimal128(2, 1), "DECIMAL(4, 2)"),
        ([Decimal("1.20")], pa.decimal256(40, 2), "DECIMAL(2, 1)"),
        ([2**63 - 1], pa.int64(), "DECIMAL(19, 0)"),
        ([2**64 - 1], pa.uint64(), "DECIMAL(20, 0)"),
        (["äö", None, ""], pa.string(), "CHAR(2)"),
        (["a"], pa.large_string(), "STRING"),
        (["a"], pa.string_view(), "VARCHAR(3)"),
        ([b"ab"], pa.binary(2), "BYTES"),
        ([b"a", b""], pa.large_binary(), "BINARY(2)"),
        ([b"a"], pa.binary_view(), "BLOB"),
        ([dt.date(2020, 1, 1)], pa.date64(), "DATE"),
        ([dt.time(1, 2, 3)], pa.time64("ns"), "TIME"),
        ([dt.time(1, 2, 3, 4000)], pa.time64("us"), "TIME(3)"),
        ([True, None], pa.bool_(), "BOOLEAN"),
        ([None, None], pa.null(), "DECIMAL(5, 2)"),
    ],
)
def test_values_that_fit_are_stored_unchanged(values, arrow_type, target):
    assert store(values, target, arrow_type).to_pylist() == values


@pytest.mark.parametrize(
    ("values", "arrow_type", "target", "message"),
    [
        ([1, 300], pa.int64(), "TINYINT", "row 1: 300 cannot be stored as TINYINT"),
        ([1.0, None, 1.5], pa.float64(), "INT", "row 2: 1.5"),
        ([float("nan")], pa.float64(), "INT", "row 0: nan"),
        ([2**53 + 1], pa.int64(), "DOUBLE", "row 0: 9007199254740993"),
        ([2**24 + 1], pa.int64(), "FLOAT", "row 0: 16777217"),
        ([0.5, 0.1], pa.float64(), "FLOAT", "row 1: 0.1.*not exactly"),
        ([1e300], pa.float64(), "FLOAT", "row 0: 1e[+]300"),
        ([1234], pa.int32(), "DECIMAL(4, 2)", "row 0: 1234"),
        ([Decimal("1.20"), Decimal("1.23")], pa.decimal128(3, 2), "DECIMAL(2, 1)", "row 1: Decimal"),
        ([Decimal("300")], pa.decimal128(3, 0), "TINYINT", "row 0"),
        (["ab", None, "abc"], pa.string(), "VARCHAR(2)", "row 2: 'abc'.*3 characters"),
        (["abc"], pa.string(), "CHAR(2)", "3 characters"),
        ([b"abc"], pa.binary(), "BINARY(2)", "3 bytes"),
        ([b"abc"], pa.binary(), "VARBINARY(2)", "3 bytes"),
        ([dt.time(1, 2, 3, 4)], pa.time64("us"), "TIME(3)", "row 0"),
        ([dt.time(1, 2, 3, 4000)], pa.time32("ms"), "TIME(2)", "more than 2 digits"),
        (["1"], pa.string(), "INT", "string cannot be stored as INT: cast"),
        ([1], pa.int64(), "STRING", "int64 cannot be stored as STRING"),
        (["a"], pa.string(), "BYTES", "string cannot be stored as BYTES"),
        ([b"a"], pa.binary(), "STRING", "binary cannot be stored as STRING"),
        ([True], pa.bool_(), "INT", "bool cannot be stored as INT"),
        ([1], pa.int8(), "BOOLEAN", "int8 cannot be stored as BOOLEAN"),
        ([1.0], pa.float64(), "DECIMAL(5, 2)", "double cannot be stored as DECIMAL"),
        ([Decimal(1)], pa.decimal128(5, 2), "BINARY(16)", "cannot be stored as BINARY"),
        ([dt.date(2020, 1, 1)], pa.date32(), "TIMESTAMP", "date32.*cannot be stored as TIMESTAMP"),
        ([0], pa.timestamp("us"), "DATE", "cannot be stored as DATE"),
        ([0], pa.timestamp("us", "UTC"), "TIMESTAMP", "has a time zone.*declare TIMESTAMP_LTZ"),
        ([0], pa.timestamp("us"), "TIMESTAMP_LTZ", "has no time zone.*declare TIMESTAMP"),
        ([1000, 1], pa.timestamp("ns"), "TIMESTAMP(6)", "row 1"),
        ([1000, 1500], pa.timestamp("ms"), "TIMESTAMP(0)", "row 1.*more than 0 digits"),
        ([0, 2**40], pa.timestamp("s"), "TIMESTAMP(9)", "row 1: 1099511627776.*out of bounds"),
        ([2**31], pa.uint32(), "INT", "row 0: 2147483648"),
    ],
)
def test_other_values_are_refused_by_column_row_and_value(values, arrow_type, target, message):
    with pytest.raises(InvalidInputError, match=f"column 'c'.*{message}"):
        store(values, target, arrow_type)


@pytest.mark.parametrize("text", ["INT", "STRING", "TIMESTAMP(3)", "ARRAY<INT>", "ROW<a MAP<STRING, DOUBLE>>", "BYTES"])
def test_right_type_is_not_copied(text):
    array = pa.nulls(5, to_arrow(parse_type(text)))
    assert coerce_array(array, parse_type(text), "c") is array


def test_rows_are_counted_from_first():
    with pytest.raises(InvalidInputError, match="row 101: 300"):
        coerce_array(pa.array([1, 300]), parse_type("TINYINT"), "c", first_row=100)


def test_zones_become_utc():
    array = pa.array([1], pa.timestamp("ms", "Europe/Berlin"))
    assert store(array, "TIMESTAMP_LTZ(6)").cast(pa.int64()).to_pylist() == [1000]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "a"]).dictionary_encode(),
        pa.chunked_array([["a", None], ["a"]]),
        pa.chunked_array([pa.array(["a", None]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["a", None, "a"]),
    ],
)
def test_arrow_encodings_are_decoded(array):
    assert store(array, "STRING").to_pylist() == ["a", None, "a"]


def test_array_without_chunks_is_empty():
    assert len(store(pa.chunked_array([], pa.int64()), "INT")) == 0


# ------------------------------------------------------------------------------------------------ nested


@pytest.mark.parametrize(
    ("array", "target", "expected"),
    [
        (pa.array([[1, 2], None, []]), "ARRAY<TINYINT>", [[1, 2], None, []]),
        (pa.array([[1], None, [3]], pa.large_list(pa.int64())).slice(1), "ARRAY<INT>", [None, [3]]),
        (pa.array([[1], None, [3]], pa.list_view(pa.int64())).slice(1), "ARRAY<INT>", [None, [3]]),
        (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)).slice(1), "ARRAY<INT>", [None, [3, 4]]),
        (pa.array([[1, 2], None]), "VECTOR<INT, 2>", [[1, 2], None]),
        (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)).slice(1), "VECTOR<INT, 2>", [None, [3, 4]]),
        (MAP, "MAP<INT, STRING>", [[(1, "a")], None, [(2, "b"), (3, "ccc")]]),
        (MAP.slice(2), "MAP<TINYINT, VARCHAR(3)>", [[(2, "b"), (3, "ccc")]]),
        (pa.array([[("a", 2)]], pa.map_(pa.string(), pa.int64())), "MULTISET<STRING>", [[("a", 2)]]),
        (
            pa.array([{"b": "x", "a": 1}, None]),
            "ROW<a INT, b STRING, d DATE>",
            [{"a": 1, "b": "x", "d": None}, None],
        ),
        (pa.array([{"a": [{"x": 1}, None]}]).slice(0), "ROW<a ARRAY<ROW<x INT>>>", [{"a": [{"x": 1}, None]}]),
        (pa.array([{"B": "x", "A": 1}]), "ROW<a INT, b STRING>", [{"a": 1, "b": "x"}]),
        (pa.array([{"A": 1, "a": 2}]), "ROW<a INT, A INT>", [{"a": 2, "A": 1}]),
        (pa.array([{"A": 1}]), "ROW<a INT, A INT>", [{"a": None, "A": 1}]),
        (pa.array([[{"X": {"Y": 1}}]]), "ARRAY<ROW<x ROW<y INT>>>", [[{"x": {"y": 1}}]]),
        (
            pa.array([[("k", {"X": 1})]], pa.map_(pa.string(), pa.struct({"X": pa.int64()}))),
            "MAP<STRING, ROW<x INT>>",
            [[("k", {"x": 1})]],
        ),
        (pa.array([{}, None], pa.struct([])), "ROW<>", [{}, None]),
        (
            pa.array([{"metadata": b"m", "value": b"v"}, None]),
            "VARIANT",
            [{"value": b"v", "metadata": b"m"}, None],
        ),
        (pa.array([[None], [["a"]]], pa.list_(pa.list_(pa.string()))), "ARRAY<ARRAY<STRING>>", [[None], [["a"]]]),
    ],
)
def test_nested_values_are_converted(array, target, expected):
    assert store(array, target).to_pylist() == expected


@pytest.mark.parametrize(
    ("array", "target", "message"),
    [
        (pa.array([[1], None, [], [2, 300]]), "ARRAY<TINYINT>", "'c.element', row 3: 300"),
        (pa.array([[1], [None]]), "ARRAY<INT NOT NULL>", "'c.element', row 1: None.*must not be null"),
        (MAP.slice(1), "MAP<INT, VARCHAR(2)>", "'c.value', row 1: 'ccc'"),
        (pa.array([{"a": 1, "z": 2}]), "ROW<a INT>", "has no field 'z'"),
        (pa.array([{"b": 1}]), "ROW<a INT NOT NULL, b INT>", "'c.a', row 0: None"),
        (pa.array([{"a": 1}, None, {"a": None}]), "ROW<a INT NOT NULL>", "'c.a', row 2: None"),
        (pa.array([[1, 2], [3]]), "VECTOR<INT, 2>", "row 1: .*must have 2 elements"),
        (pa.array([1]), "ARRAY<INT>", "int64 cannot be stored as ARRAY"),
        (MAP, "ARRAY<INT>", "cannot be stored as ARRAY"),
        (pa.array([[1]]), "MAP<INT, INT>", "cannot be stored as MAP"),
        (pa.array([1]), "ROW<a INT>", "cannot be stored as ROW"),
        (pa.array([{"a": [{"x": 1}, {"x": 300}]}]), "ROW<a ARRAY<ROW<x TINYINT>>>", "'c.a.element.x', row 0: 300"),
        (
            pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]),
            "ROW<a INT>",
            "takes every field once",
        ),
        (pa.array([{"ab": 1, "AB": 2}]), "ROW<aB INT>", "takes every field once"),
        (pa.array([{"ab": 1}]), "ROW<aB INT, Ab INT>", "takes every field once"),
    ],
)
def test_nested_values_are_refused_by_path(array, target, message):
    with pytest.raises(InvalidInputError, match=message):
        store(array, target)


def without_offsets(kind, children):
    """An empty array of lists or maps, as Spark 4.1 sends it: its offsets have no bytes, and other bytes follow."""
    offsets = pa.py_buffer(bytes([255] * 64)).slice(8, 0)
    return pa.Array.from_buffers(kind, 0, [None, offsets], children=children)


def empty_lists():
    return without_offsets(pa.list_(pa.int32()), [pa.array([], pa.int32())])


def null_maps():
    """One map, which is NULL, and so its empty lists have no offset."""
    entries = pa.StructArray.from_arrays(
        [pa.array([], pa.string()), empty_lists()],
        fields=[pa.field("key", pa.string(), False), pa.field("value", pa.list_(pa.int32()))],
    )
    kind = pa.map_(pa.string(), pa.list_(pa.int32()))
    return pa.Array.from_buffers(kind, 1, [pa.py_buffer(b"\0"), pa.py_buffer(bytes(8))], children=[entries])


@pytest.mark.parametrize(
    ("array", "target", "leaf"),
    [
        (empty_lists(), "ARRAY<INT>", lambda a: a),
        (empty_lists(), "ARRAY<BIGINT>", lambda a: a),
        (null_maps(), "MAP<STRING, ARRAY<INT>>", lambda a: a.items),
        (null_maps(), "MAP<STRING, ARRAY<BIGINT>>", lambda a: a.items),
        (null_maps(), "MAP<VARCHAR(3), ARRAY<INT>>", lambda a: a.items),
        (
            pa.StructArray.from_arrays([null_maps()], names=["m"]),
            "ROW<m MAP<STRING, ARRAY<INT>>, more INT>",
            lambda a: a.field(0).items,
        ),
    ],
)
def test_empty_lists_without_offset_get_one(array, target, leaf):
    assert leaf(array).flatten().offset != 0  # pyarrow reads the bytes that follow
    stored = store(array, target)
    stored.validate(full=True)
    assert len(stored) == len(array)
    assert leaf(stored).buffers()[1].to_pybytes()[:4] == bytes(4)
    assert leaf(stored).flatten().offset == 0
    pa.concat_arrays([stored, stored]).validate(full=True)


def test_values_under_null_are_ignored():
    hidden = pa.StructArray.from_arrays([pa.array([1, 300])], ["a"], mask=pa.array([False, True]))
    assert store(hidden, "ROW<a TINYINT NOT NULL>").to_pylist() == [{"a": 1}, None]
    values = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array([1, 300]), mask=pa.array([False, True]))
    assert store(values, "ARRAY<TINYINT>").to_pylist() == [[1], None]
    entries = pa.array([[("a", 1)], [("b", 300)]], pa.map_(pa.string(), pa.int64()))
    validity = pa.py_buffer(bytes([0b01]))
    hidden_map = pa.Array.from_buffers(
        entries.type, 2, [validity, entries.buffers()[1]], children=[pa.StructArray.from_arrays(
            [entries.keys, entries.items], fields=[entries.type.key_field, entries.type.item_field]
        )]
    )  # fmt: skip
    assert store(hidden_map, "MAP<STRING, TINYINT>").to_pylist() == [[("a", 1)], None]


# ------------------------------------------------------------------------------------------------ laws

NUMBERS = ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 0)", "DECIMAL(30, 5)"]


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-300, 300)), max_size=5),
    st.sampled_from(NUMBERS),
)
def test_integers_are_kept_or_refused(values, target):
    try:
        stored = store(pa.array(values, pa.int64()), target).to_pylist()
    except InvalidInputError:
        return
    assert stored == values


@given(st.lists(st.floats(), max_size=5), st.sampled_from(NUMBERS[:6]))
def test_floats_are_kept_or_refused(values, target):
    try:
        stored = store(pa.array(values, pa.float64()), target).to_pylist()
    except InvalidInputError:
        return
    np.testing.assert_array_equal(stored, values)


@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.integers(0, 9),
)
def test_timestamps_are_kept_or_refused(values, unit, precision):
    array = pa.array(values, pa.timestamp(unit))
    try:
        stored = store(array, f"TIMESTAMP({precision})")
    except InvalidInputError:
        return
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    ticks = stored.view(pa.int64()).to_pylist()
    factor = per_second[stored.type.unit]
    assert [t * per_second[unit] for t in ticks] == [v * factor for v in values]
    assert all(t * 10**precision % factor == 0 for t in ticks)
