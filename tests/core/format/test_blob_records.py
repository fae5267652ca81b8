"""Files of blobs: recorded bytes of the Java engine, any lengths, damage that is noticed."""

import io
import struct
import zlib
from datetime import date, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format import format_of
from paimon_core.format.blob_records import values_to_reach
from paimon_core.format.file_format import ReadRequest
from paimon_core.options.option import Options
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.draws import draws

COLUMN, OTHER = DataField(1, "b", parse_type("BLOB")), DataField(0, "k", parse_type("INT"))
BY_JAVA = bytes.fromhex("cf114e5800ff1200000000000000efc88a40cf114e581000000000000000537fdf032425220300000001")


def zigzag(number):
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def encoded(values, extra_lengths=()):
    data, lengths = [], []
    for value in values:
        if value is None:
            lengths.append(-1)
            continue
        record = struct.pack("<i", 1481511375) + value + struct.pack("<q", len(value) + 16)
        data.append(record + struct.pack("<I", zlib.crc32(record)))
        lengths.append(len(value) + 16)
    lengths += extra_lengths
    index = b"".join(zigzag(b - a) for a, b in zip([0, *lengths], lengths, strict=False))
    return b"".join(data) + index + struct.pack("<iB", len(index), 1)


def written(*columns, field=COLUMN):
    """The file of these columns, one after another, each an Arrow array."""
    sink = io.BytesIO()
    writer = format_of("f.blob", [field]).open_writer(sink, [field], Options({}), "none")
    for column in columns:
        writer.write(pa.table({field.name: column}))
    assert writer.tell() == sink.tell()
    writer.close()
    return sink.getvalue()


def blobs(values, before=0, after=0):
    """The values as a slice of a longer array."""
    whole = pa.array([b"before"] * before + values + [b"after"] * after, pa.binary())
    return whole.slice(before, len(values))


def decode(data, fields=(COLUMN,), rows=100, size=None):
    found = format_of("f.blob", [COLUMN])
    return list(found.read(pa.BufferReader(data), ReadRequest(fields, rows, size, path="f.blob")))


def test_file_of_java():
    assert encoded([b"\x00\xff", None, b""]) == BY_JAVA
    assert pa.Table.from_batches(decode(BY_JAVA)).to_pylist() == [{"b": b"\x00\xff"}, {"b": None}, {"b": b""}]
    assert format_of("f.blob", [COLUMN]).row_count(pa.BufferReader(BY_JAVA)) == 3


def test_file_as_java_writes_it():
    assert written(blobs([b"\x00\xff", None, b""])) == BY_JAVA
    assert written() == written(blobs([])) == encoded([])


some = st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=12)


@draws(80)
@given(st.lists(st.tuples(some, st.integers(0, 2), st.integers(0, 2)), max_size=4), st.booleans())
def test_any_blobs_are_written_as_the_format_says(parts, chunked):
    values = [value for part, _, _ in parts for value in part]
    columns = [blobs(*part) for part in parts]
    assert written(*([pa.chunked_array(columns, pa.binary())] if chunked else columns)) == encoded(values)


@pytest.mark.parametrize("size", [(1 << 18) - 17, (1 << 18) - 16, 1 << 18, 1 << 21])
def test_large_blobs_among_small_ones(size):
    values = [b"small", b"x" * size, None, b"", b"y" * size, b"z" * size, b"small"] * 2 + [b"tiny"] * 30_000
    assert written(blobs(values, 1, 1)) == encoded(values)


def test_value_of_null_is_not_written():
    nulls = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x02"), *blobs([b"hidden", b"shown"]).buffers()[1:]])
    assert written(nulls) == encoded([None, b"shown"])


def test_null_in_not_null_column_is_refused():
    with pytest.raises(InvalidInputError, match="NOT NULL"):
        written(blobs([None]), field=DataField(1, "b", parse_type("BLOB NOT NULL")))


@given(some.filter(bool), st.integers(1, 500), st.integers(0, 2))
def test_values_to_reach_ends_with_the_first_blob_that_reaches_the_size(values, size, before):
    column = pa.chunked_array([blobs(values, before), blobs(values)])
    count, sizes = 0, [0 if value is None else len(value) + 16 for value in values * 2]
    while count < len(sizes) and sum(sizes[:count]) < size:
        count += 1
    assert values_to_reach(column, size) == count


@draws(60)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=12), st.integers(1, 5), st.integers(1, 400))
def test_any_blobs_in_batches_of_any_size(values, rows, size):
    batches = decode(encoded(values), rows=rows, size=size)
    assert [v for batch in batches for v in batch.column(0).to_pylist()] == values
    assert all(0 < b.num_rows <= rows for b in batches)
    assert all(b.num_rows == 1 or sum(len(v or b"") for v in b.column(0).to_pylist()) <= size for b in batches)


def test_other_columns_are_null_and_read_nothing():
    (batch,) = decode(BY_JAVA[:1] + b"x" + BY_JAVA[2:], [OTHER])
    assert batch.column(0).to_pylist() == [None] * 3
    both = pa.Table.from_batches(decode(BY_JAVA, [OTHER, COLUMN])).to_pylist()
    assert both[0] == {"k": None, "b": b"\x00\xff"}


@pytest.mark.parametrize("position", range(len(BY_JAVA)))
def test_every_flipped_byte_is_detected(position):
    broken = bytearray(BY_JAVA)
    broken[position] ^= 0x41
    with pytest.raises((CorruptedError, UnsupportedError), match=r"f\.blob"):
        decode(bytes(broken))


@pytest.mark.parametrize("length", range(len(BY_JAVA)))
def test_every_truncation_is_detected(length):
    with pytest.raises((CorruptedError, UnsupportedError), match=r"f\.blob"):
        decode(BY_JAVA[:length])


@pytest.mark.parametrize("columns", [[], [OTHER, COLUMN]])
def test_schemas_without_the_one_column_of_a_file_are_damage(columns):
    found = format_of("f.blob", columns)
    with pytest.raises(CorruptedError, match=r"blob file f\.blob has one column, but by its schema it has"):
        list(found.read(pa.BufferReader(BY_JAVA), ReadRequest((COLUMN,), 100, path="f.blob")))


def test_references_to_blobs_in_other_files_are_refused():
    with pytest.raises(UnsupportedError, match=r"f\.blob"):
        decode(encoded([b"x"], extra_lengths=(-2,)))


# ---- arrays and maps of blobs

KEYS = {  # values of each type of key, and their bytes
    "TINYINT": [(-1, b"\xff"), (5, b"\x05")],
    "SMALLINT": [(-2, b"\xfe\xff")],
    "INT": [(1, b"\x01\0\0\0"), (-1, b"\xff" * 4)],
    "BIGINT": [(1, b"\x01" + bytes(7))],
    "BOOLEAN": [(True, b"\x01"), (False, b"\0")],
    "DECIMAL(18, 2)": [(Decimal("-0.01"), b"\xff" * 8), (Decimal("2.56"), b"\0\x01" + bytes(6))],
    "DECIMAL(20, 1)": [
        *((Decimal(n) / 10, data) for n, data in [(0, b"\0"), (-1, b"\xff"), (128, b"\0\x80"), (-128, b"\x80")]),
        (Decimal("9999999999999999999.9"), (10**20 - 1).to_bytes(9, "big", signed=True)),
    ],
    "DATE": [(date(1970, 1, 2), b"\x01\0\0\0")],
    "TIME(3)": [(time(0, 0, 1), b"\xe8\x03\0\0")],
    "BYTES": [(b"\0k", b"\0k"), (b"", b"")],
    "STRING": [("é", "é".encode()), ("", b"")],
}


def index(lengths):
    return b"".join(zigzag(b - a) for a, b in zip([0, *lengths], lengths, strict=False))


def as_array(elements):
    """The payload of an array as the format defines it."""
    found = index([-1 if e is None else len(e) for e in elements])
    data = b"".join(e or b"" for e in elements)
    return struct.pack("<iBi", 1094861634, 1, len(elements)) + data + found + struct.pack("<i", len(found))


def as_map(entries):
    keys, values = index([len(k) for k, _ in entries]), index([-1 if v is None else len(v) for _, v in entries])
    data = b"".join(k for k, _ in entries) + b"".join(v or b"" for _, v in entries)
    sizes = struct.pack("<ii", len(keys), len(values))
    return struct.pack("<iBi", 0x4D424342, 1, len(entries)) + data + keys + values + sizes


def of_type(text):
    return DataField(1, "b", parse_type(text))


def read(data, field, rows=100, size=None):
    found = format_of("f.blob", [field]).read(pa.BufferReader(data), ReadRequest((field,), rows, size, path="f.blob"))
    return [value for batch in found for value in batch.column(0).to_pylist()]


elements = st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=4)


@draws(30)
@given(st.lists(st.one_of(st.none(), elements), min_size=1, max_size=6), st.integers(0, 2), st.integers(1, 500))
def test_arrays_of_blobs_have_the_bytes_of_the_format(values, before, size):
    field = of_type("ARRAY<BLOB>")
    whole = pa.array([[b"before"]] * before + values + [[b"after"]], pa.list_(pa.binary()))
    stored = written(whole.slice(before, len(values)), field=field)
    assert stored == encoded([None if v is None else as_array(v) for v in values])
    assert read(stored, field, rows=2, size=size) == values


@pytest.mark.parametrize("key", KEYS)
def test_maps_of_blobs_have_the_bytes_of_the_format(key):
    field, known = of_type(f"MAP<{key} NOT NULL, BLOB>"), KEYS[key]
    values = [[(k, b"v%d" % i) for i, (k, _) in enumerate(known)], None, [], [(known[0][0], None)]]
    data = [
        as_map([(k, b"v%d" % i) for i, (_, k) in enumerate(known)]),
        None,
        as_map([]),
        as_map([(known[0][1], None)]),
    ]
    kind = to_arrow(field.type)
    stored = written(pa.array([[], *values], kind).slice(1), pa.array([], kind), field=field)
    assert stored == encoded(data)
    assert read(stored, field) == values


def test_hidden_elements_are_not_written():
    """A list or an element that is NULL may have bytes in Arrow."""
    child = pa.Array.from_buffers(
        pa.binary(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(struct.pack("<4i", 0, 1, 2, 3)), pa.py_buffer(b"abc")]
    )
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), child, mask=pa.array([False, True]))
    field = of_type("ARRAY<BLOB>")
    assert read(written(hidden, field=field), field) == [[b"a", None], None]


@pytest.mark.parametrize(
    ("kind", "payload", "error", "said"),
    [
        ("ARRAY<BLOB>", b"", CorruptedError, "too short"),
        ("ARRAY<BLOB>", as_map([]), CorruptedError, "does not begin as an array"),
        ("ARRAY<BLOB>", as_array([b"x"])[:4] + b"\x02" + as_array([b"x"])[5:], UnsupportedError, "version 2"),
        ("ARRAY<BLOB>", as_array([b"x"])[:5] + b"\x02" + as_array([b"x"])[6:], CorruptedError, "another number"),
        ("ARRAY<BLOB>", as_array([b"x"])[:-4] + b"\x09\0\0\0", CorruptedError, "longer than the record"),
        ("ARRAY<BLOB>", as_array([b"x"])[:-5] + b"\0" + b"\x01\0\0\0", CorruptedError, "do not fill"),
        ("ARRAY<BLOB>", as_array([b"x"])[:-5] + b"\x04" + b"\x01\0\0\0", CorruptedError, "impossible length"),
        ("ARRAY<BLOB>", as_array([b"x"])[:-5] + b"\x03" + b"\x01\0\0\0", CorruptedError, "impossible length"),
        ("ARRAY<BLOB>", as_array([b"x"])[:-5] + b"\x82" + b"\x01\0\0\0", CorruptedError, "index of a record"),
        ("MAP<STRING NOT NULL, BLOB>", as_array([]) + bytes(4), CorruptedError, "does not begin as a map"),
        ("MAP<STRING NOT NULL, BLOB>", as_map([(b"a", b"x"), (b"a", b"y")]), CorruptedError, "repeats a key"),
        ("MAP<STRING NOT NULL, BLOB>", as_map([(b"\xff", b"x")]), CorruptedError, "not UTF-8"),
        ("MAP<INT NOT NULL, BLOB>", as_map([(b"abc", b"x")]), CorruptedError, "does not have 4 bytes"),
        ("MAP<BOOLEAN NOT NULL, BLOB>", as_map([(b"\x02", b"x")]), CorruptedError, "neither 0 nor 1"),
        ("MAP<DECIMAL(18, 0) NOT NULL, BLOB>", as_map([(b"ab", b"x")]), CorruptedError, "impossible length"),
        (
            "MAP<DECIMAL(3, 0) NOT NULL, BLOB>",
            as_map([(b"\xff" * 7 + b"\x0f", b"x")]),
            CorruptedError,
            "too many digits",
        ),
        ("MAP<DOUBLE NOT NULL, BLOB>", as_map([(bytes(8), b"x")]), UnsupportedError, "keys of type DOUBLE"),
    ],
)
def test_damaged_elements_are_detected(kind, payload, error, said):
    with pytest.raises(error, match=said):
        read(encoded([None, payload]), of_type(kind))


def test_null_keys_are_refused():
    keys, values = index([-1]), index([1])
    payload = struct.pack("<iBi", 0x4D424342, 1, 1) + b"x" + keys + values + struct.pack("<ii", len(keys), len(values))
    with pytest.raises(UnsupportedError, match="NULL as key"):
        read(encoded([payload]), of_type("MAP<INT NOT NULL, BLOB>"))


def test_equal_keys_are_not_written():
    kind = pa.map_(pa.string(), pa.binary())
    with pytest.raises(InvalidInputError, match="two equal keys"):
        written(pa.array([[("a", b"x"), ("a", b"y")]], kind), field=of_type("MAP<STRING NOT NULL, BLOB>"))
