"""Round trips of one row and of many rows, and refused values."""

import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.row.binary_row import EMPTY_ROW, decode_rows, deserialize, serialize
from paimon_core.row.bucket import buckets
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes
from tests.support.draws import draws


def whole(bits):
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def decimals(precision, scale):
    return st.integers(1 - 10**precision, 10**precision - 1).map(lambda n: Decimal(f"{n}E-{scale}"))


COLUMNS = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), whole(8)),
    (pa.int16(), whole(16)),
    (pa.int32(), whole(32)),
    (pa.int64(), whole(64)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.decimal128(1, 0), decimals(1, 0)),
    (pa.decimal128(18, 6), decimals(18, 6)),
    (pa.decimal128(19, 19), decimals(19, 19)),
    (pa.decimal128(38, 2), st.integers(1, 38).flatmap(lambda p: decimals(p, 2))),
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)),
    (pa.binary(), st.binary(max_size=40)),
    (pa.date32(), whole(32)),
    (pa.time32("ms"), st.integers(0, 86_399_999)),
    (pa.timestamp("ms"), whole(64)),
    (pa.timestamp("us"), whole(64)),
    (pa.timestamp("ns", "UTC"), whole(64)),
]
SELDOM = [
    (pa.large_string(), st.text("aä€😀", max_size=12)),
    (pa.string_view(), st.text("aä€😀", max_size=12)),
    (pa.large_binary(), st.binary(max_size=12)),
    (pa.binary(9), st.binary(min_size=9, max_size=9)),
    (pa.dictionary(pa.int32(), pa.string()), st.text("ab", max_size=12)),
    (pa.timestamp("s"), whole(40)),
    (pa.time32("s"), st.integers(0, 86_399)),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
    (pa.time64("ns"), st.integers(0, 86_399_999_999_999)),
    (pa.decimal128(20, 3), st.integers(-999, 999).map(Decimal)),
    (pa.decimal128(5, 2), st.integers(-999, 999)),
    (pa.float64(), st.integers(-(1 << 50), 1 << 50)),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats()),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.int16(), whole(16).map(np.int64)),
]


@st.composite
def tables(draw):
    columns = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=8))
    schema = pa.schema([(f"c{i}", t) for i, (t, _) in enumerate(columns)])
    row = st.tuples(*(st.none() | values for _, values in columns))
    return schema, draw(st.lists(row, max_size=12))


def batch_of(rows, schema):
    return pa.record_batch([pa.array([r[i] for r in rows], t) for i, t in enumerate(schema.types)], schema=schema)


@draws(150)
@given(tables())
def test_rows_round_trip(table):
    schema, rows = table
    data = encode(batch_of(rows, schema)).serialized().to_pylist()
    assert data == [serialize(row, schema) for row in rows]
    assert [deserialize(row, schema) for row in data] == rows
    decoded = decode_rows(data, schema)
    decoded.validate(full=True)
    assert decoded.equals(batch_of(rows, schema))
    assert encode(decoded).serialized().to_pylist() == data


@draws(200)
@given(st.data())
def test_single_row_equals_row_of_batch(data):
    columns = data.draw(st.lists(st.sampled_from(COLUMNS + SELDOM), min_size=1, max_size=70))
    schema = pa.schema([(f"c{i}", t) for i, (t, _) in enumerate(columns)])
    row = tuple(data.draw(st.none() | values) for _, values in columns)
    assert [serialize(row, schema)] == encode(batch_of([row], schema)).serialized().to_pylist()


def plain_hash(row):
    """Return the hash of one row by its definition."""
    mask = (1 << 32) - 1

    def rotated(x, by):
        return (x << by | x >> 32 - by) & mask

    h = 42
    for (k,) in struct.iter_unpack("<I", row):
        h = rotated(h ^ rotated(k * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask, 13) * 5 + 0xE6546B64 & mask
    h ^= len(row)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


@pytest.mark.parametrize("count", [1, 20, 40, 20_000])
@pytest.mark.parametrize("lengths", [(0, 7), (8, 8), (0, 30), (0, 600)])
def test_hashes_of_any_mixture_of_lengths(count, lengths):
    rng = np.random.default_rng(count + lengths[1])
    sizes = rng.integers(lengths[0], lengths[1] + 1, count)
    if lengths[1] == 600:
        sizes = np.where(rng.random(count) < 0.001, sizes, sizes % 12)  # a few far longer than the others
    values = [rng.bytes(size) for size in sizes]
    rows = encode(pa.record_batch([pa.array(values, pa.binary())], names=["a"]))
    result = hashes(rows)
    for i in {0, count // 2, count - 1, int(sizes.argmax())}:
        assert result[i] == plain_hash(rows[i])


def test_slices_hash_like_whole_batch():
    values = [None if i % 11 == 0 else f"value {i % 977}" for i in range(150_000)]
    batch = pa.record_batch([pa.array(values)], names=["a"])
    expected = hashes(encode(batch)).astype(np.int64)
    assert buckets(batch, 13).tolist() == (abs(expected) % 13).tolist()
    assert buckets(batch.slice(70_001, 99), 13).tolist() == (abs(expected[70_001:70_100]) % 13).tolist()


@pytest.mark.parametrize("function", ["default", "hive"])
def test_arrow_layout_does_not_change_rows(function):
    plain = pa.array(["a", None, "longer than seven", "a", ""])
    for t in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        other = pa.record_batch([plain.cast(t)], names=["a"])
        assert (
            buckets(other, 1000, function).tolist()
            == buckets(pa.record_batch([plain], names=["a"]), 1000, function).tolist()
        )


def test_only_requested_columns_are_decoded():
    schema = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.int64())])
    data = [serialize((i, f"some text {i}", -i), schema) for i in range(5)]
    assert decode_rows(data, schema, [2, 0]).to_pydict() == {"c": [0, -1, -2, -3, -4], "a": [0, 1, 2, 3, 4]}
    assert decode_rows(data, schema, []).num_rows == 5
    assert decode_rows([], schema).num_rows == 0


def test_empty_row_is_encoded_and_decoded():
    nothing = pa.schema([])
    assert serialize((), nothing) == EMPTY_ROW
    assert deserialize(EMPTY_ROW, nothing) == ()
    assert decode_rows([EMPTY_ROW] * 3, nothing).num_rows == 3
    assert encode(decode_rows([EMPTY_ROW] * 3, nothing)).serialized().to_pylist() == [EMPTY_ROW] * 3


def test_null_without_reserved_part_is_read():
    schema = pa.schema([("a", pa.timestamp("us")), ("b", pa.decimal128(20, 2))])
    row = bytes.fromhex("00000002000300000000000000000000000000000000000000000000")
    assert deserialize(row, schema) == (None, None)
    assert decode_rows([row], schema).to_pylist() == [{"a": None, "b": None}]


@pytest.mark.parametrize(
    ("t", "hex_row"),
    [
        (pa.int32(), ""),
        (pa.int32(), "00000001"),
        (pa.int32(), "000000010000000000000000"),
        (pa.int32(), "00000002" + "00" * 16),
        (pa.int32(), "00000001" + "00" * 17),
        (pa.string(), "00000001" + "00" * 8 + "0800000010000000"),
        (pa.string(), "00000001" + "00" * 8 + "ff00000000000082"),
        (pa.timestamp("us"), "00000001" + "00" * 8 + "00000000ff000000"),
        (pa.decimal128(20, 2), "00000001" + "00" * 8 + "1100000010000000" + "00" * 16),
    ],
)
def test_malformed_rows_are_refused(t, hex_row):
    row = bytes.fromhex(hex_row)
    with pytest.raises(CorruptedError):
        decode_rows([serialize((None,), pa.schema([("a", t)])), row], pa.schema([("a", t)]))


@pytest.mark.parametrize("millis", [-1, 86_400_000])
def test_times_beyond_a_day_are_refused(millis):
    schema = pa.schema([("a", pa.time32("ms"))])
    row = serialize((86_399_999,), schema)
    assert deserialize(row, schema) == (86_399_999,)
    wrong = row.replace((86_399_999).to_bytes(4, "little"), millis.to_bytes(4, "little", signed=True))
    with pytest.raises(CorruptedError):
        deserialize(wrong, schema)
    with pytest.raises(CorruptedError):
        decode_rows([row, wrong], schema)


@pytest.mark.parametrize("precision", [18, 38])
def test_decimals_of_too_many_digits_are_refused(precision):
    wide, narrow = (pa.schema([("a", pa.decimal128(p, 0))]) for p in (precision, precision - 1))
    most = Decimal(10**precision - 1)
    row = serialize((most,), wide)
    assert deserialize(row, wide) == (most,)
    with pytest.raises(CorruptedError, match="digits"):
        deserialize(row, narrow)
    with pytest.raises(CorruptedError, match="digits"):
        decode_rows([serialize((None,), narrow), row], narrow)


def test_timestamp_beyond_nanoseconds_is_refused():
    micros, nanos = pa.schema([("a", pa.timestamp("us"))]), pa.schema([("a", pa.timestamp("ns"))])
    with pytest.raises(UnsupportedError, match="2262"):
        decode_rows([serialize((10**16,), micros)], nanos)


def test_values_of_wrong_type_are_refused():
    with pytest.raises(InvalidInputError, match="300 is not a value of column a"):
        serialize((300,), pa.schema([("a", pa.int8())]))
    with pytest.raises(InvalidInputError, match="1 values for a row of 2 columns"):
        serialize((1,), pa.schema([("a", pa.int8()), ("b", pa.int8())]))


@pytest.mark.parametrize("t", [pa.list_(pa.int32()), pa.uint8(), pa.decimal256(50, 2), pa.struct([("x", pa.int8())])])
def test_unsupported_types_are_refused(t):
    with pytest.raises(UnsupportedError, match="cannot be in a key"):
        encode(pa.record_batch([pa.nulls(1, t)], names=["a"]))


@pytest.mark.parametrize(
    ("columns", "count", "function", "error", "message"),
    [
        ([pa.int32()], 0, "default", InvalidInputError, "0 buckets"),
        ([pa.int32()], 4, "mine", UnsupportedError, "'mine'"),
        ([pa.string()], 4, "mod", InvalidInputError, r"not \(c0 string\)"),
        ([pa.int32(), pa.int32()], 4, "mod", InvalidInputError, "one INT or BIGINT"),
        ([pa.timestamp("ms")], 4, "hive", InvalidInputError, "takes no timestamps"),
    ],
)
def test_bucket_functions_refuse_unsupported_keys(columns, count, function, error, message):
    batch = pa.record_batch([pa.nulls(1, t) for t in columns], names=[f"c{i}" for i in range(len(columns))])
    with pytest.raises(error, match=message):
        buckets(batch, count, function)
