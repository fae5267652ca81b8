"""Files of blobs: recorded bytes of the Java engine, any lengths, damage that is noticed."""

import struct
import zlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format import format_of
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

COLUMN, OTHER = DataField(1, "b", parse_type("BLOB")), DataField(0, "k", parse_type("INT"))
BY_JAVA = bytes.fromhex("cf114e5800ff1200000000000000efc88a40cf114e581000000000000000537fdf032425220300000001")


def zigzag(number):
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def encoded(values, places=()):
    data, lengths = b"", []
    for value in values:
        if value is None:
            lengths.append(-1)
            continue
        record = struct.pack("<i", 1481511375) + value + struct.pack("<q", len(value) + 16)
        data += record + struct.pack("<I", zlib.crc32(record))
        lengths.append(len(value) + 16)
    lengths += places
    index = b"".join(zigzag(b - a) for a, b in zip([0, *lengths], lengths, strict=False))
    return data + index + struct.pack("<iB", len(index), 1)


def decode(data, fields=(COLUMN,), rows=100, size=None):
    found = format_of("f.blob", [COLUMN])
    return list(found.read(pa.BufferReader(data), fields, rows, path="f.blob", batch_bytes=size))


def test_a_file_of_java():
    assert encoded([b"\x00\xff", None, b""]) == BY_JAVA
    assert pa.Table.from_batches(decode(BY_JAVA)).to_pylist() == [{"b": b"\x00\xff"}, {"b": None}, {"b": b""}]
    assert format_of("f.blob", [COLUMN]).row_count(pa.BufferReader(BY_JAVA)) == 3


@settings(max_examples=60, deadline=None)
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
def test_no_flipped_byte_goes_unnoticed(position):
    broken = bytearray(BY_JAVA)
    broken[position] ^= 0x41
    with pytest.raises((CorruptedError, UnsupportedError), match=r"f\.blob"):
        decode(bytes(broken))


@pytest.mark.parametrize("length", range(len(BY_JAVA)))
def test_no_file_that_was_cut_goes_unnoticed(length):
    with pytest.raises((CorruptedError, UnsupportedError), match=r"f\.blob"):
        decode(BY_JAVA[:length])


def test_places_of_blobs_elsewhere_are_refused():
    with pytest.raises(UnsupportedError, match=r"f\.blob"):
        decode(encoded([b"x"], places=(-2,)))
