"""Avro containers in memory: metadata."""

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, UnsupportedError
from tests.support.avro import read_avro, write_avro

PART = {
    "type": "record",
    "name": "part",
    "fields": [
        {"name": "bytes", "type": "bytes"},
        {"name": "counts", "type": ["null", {"type": "array", "items": ["null", "long"]}], "default": None},
    ],
}
SCHEMA = {
    "type": "record",
    "name": "record",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"], "default": None},
        {"name": "file", "type": {"type": "record", "name": "f", "fields": [{"name": "part", "type": PART}]}},
    ],
}
longs = st.integers(-(2**63), 2**63 - 1)
parts = st.fixed_dictionaries(
    {"bytes": st.binary(max_size=9), "counts": st.none() | st.lists(st.none() | longs, max_size=3)}
)
records = st.fixed_dictionaries({"id": longs, "text": st.none() | st.text(), "file": st.builds(dict, part=parts)})
CODECS = ["zstd", "zstandard", "none", "null", "deflate", "snappy", "bzip2", "xz"]


@given(st.lists(records, max_size=5), st.sampled_from(CODECS))
def test_written_files_are_read_here_and_by_others(rows, codec):
    data = write_avro(SCHEMA, rows, codec, 1)
    schema, back = read_avro(data)
    assert schema == SCHEMA
    assert back == rows
    assert list(fastavro.reader(io.BytesIO(data))) == rows


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_containers_of_fastavro_with_many_blocks(codec):
    rows = [{"id": i, "text": "x" * (i % 50), "file": {"part": {"bytes": b"", "counts": [i]}}} for i in range(3000)]
    sink = io.BytesIO()
    fastavro.writer(sink, SCHEMA, rows, codec=codec, sync_interval=4000)
    assert read_avro(sink.getvalue())[1] == rows


def test_types_are_found_by_name():
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": PART}, {"name": "b", "type": "part"}]}
    part = {"bytes": b"b", "counts": None}
    assert read_avro(write_avro(schema, [{"a": part, "b": part}]))[1] == [{"a": part, "b": part}]


def test_every_truncation_is_detected_except_between_blocks():
    rows = [{"id": i, "text": None, "file": {"part": {"bytes": b"", "counts": None}}} for i in range(20)]
    data = write_avro(SCHEMA, rows, "null")
    head = len(write_avro(SCHEMA, [], "null"))
    for size in set(range(len(data))) - {head}:
        with pytest.raises(CorruptedError, match="manifest-7"):
            read_avro(data[:size], path="manifest-7")


@given(st.data())
def test_every_flipped_bit_of_a_block_is_detected(data):
    rows = [{"id": i, "text": "y", "file": {"part": {"bytes": b"", "counts": None}}} for i in range(20)]
    whole = bytearray(write_avro(SCHEMA, rows, "zstd"))
    head = len(write_avro(SCHEMA, [], "zstd"))
    at = data.draw(st.integers(head, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        back = read_avro(bytes(whole))[1]
    except CorruptedError:
        return
    assert back == rows  # a bit of the compressed frame that means nothing


def test_extra_bytes_in_block_are_corruption():
    sync = b"s" * 16
    meta = io.BytesIO()
    pairs = {"avro.schema": b'"long"', "avro.codec": b"null"}
    fastavro.schemaless_writer(meta, {"type": "map", "values": "bytes"}, pairs)
    file = b"Obj\x01" + meta.getvalue() + sync + b"\x02" + b"\x04" + b"\x02\x02" + sync
    with pytest.raises(CorruptedError, match="damaged"):
        read_avro(file)


def test_unknown_codecs_are_named():
    with pytest.raises(UnsupportedError, match="lz4"):
        write_avro(SCHEMA, [], "lz4")
    data = write_avro("long", [], "null").replace(b"\x08null", b"\x08rar7")
    with pytest.raises(UnsupportedError, match=r"some-file.*rar7"):
        read_avro(data, path="some-file")
