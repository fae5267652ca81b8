"""The contract of `FileFormat`, tested for every format."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format import FORMATS, format_of
from paimon_core.format.file_format import ReadRequest
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import NO_ID, STRING, DataField
from paimon_core.types.parse import parse_type
from tests.support.samples import TYPES, fields_of, rows_of, spelled

RECORDED = Path(__file__).parent / "recorded"
CODECS = {
    "parquet": ["zstd", "none", "null", "snappy", "gzip", "lz4"],
    "orc": ["zstd", "none", "snappy", "lz4", "zlib"],
    "avro": ["zstd", "none", "snappy", "deflate", "bzip2", "xz"],
}

formats = pytest.mark.parametrize("name", sorted(FORMATS))


def encode(name, fields, parts, compression="zstd", **options):
    sink = pa.BufferOutputStream()
    writer = FORMATS[name].open_writer(sink, fields, Options(options), compression)
    for part in parts:
        writer.write(part)
    writer.close()
    return sink.getvalue()


def decode(name, data, fields, batch_rows=1000, **how):
    return list(FORMATS[name].read(pa.BufferReader(data), ReadRequest(fields, batch_rows, path="the-file", **how)))


def sample(name, seed=1, count=40):
    fields = fields_of(TYPES[name])
    return fields, rows_of(fields, seed, count, earliest=0 if name == "orc" else -(10**15))


def assert_same(batches, table):
    back = pa.Table.from_batches(batches)
    assert back.schema == table.schema
    for column in table.column_names:
        assert back[column].combine_chunks().equals(table[column].combine_chunks()), column


@pytest.mark.parametrize(("name", "codec"), [(n, c) for n in CODECS for c in CODECS[n]])
def test_rows_come_back_from_every_codec(name, codec):
    fields, table = sample(name)
    parts = [table.slice(0, 11), table.slice(11, 20).combine_chunks().to_batches()[0], table.slice(31)]
    data = encode(name, fields, parts, codec)
    assert_same(decode(name, data, fields), table)
    assert FORMATS[name].row_count(pa.BufferReader(data)) == table.num_rows


@formats
@pytest.mark.parametrize("batch_size", [1, 7, 40, 10_000])
@pytest.mark.parametrize("batch_bytes", [None, 1, 4000, 1 << 30])
def test_batches_are_no_larger_than_requested(name, batch_size, batch_bytes):
    fields, table = sample(name)
    batches = decode(name, encode(name, fields, [table]), fields, batch_size, batch_bytes=batch_bytes)
    assert max(b.num_rows for b in batches) <= batch_size
    assert_same(batches, table)


@pytest.mark.cases(10)
@formats
@pytest.mark.parametrize("batch_bytes", [1 << 18, 1 << 22])
@pytest.mark.parametrize("kind", ["STRING", "ARRAY<STRING>", "ROW<x INT, y STRING>", "MAP<INT, BYTES>", "BIGINT"])
def test_batches_take_about_the_requested_bytes_however_small_the_file(name, batch_bytes, kind):
    """A thousand bytes in every row, hardly any on storage."""
    rows, text = 20_000, "a long text that says the same everywhere; " * 25
    value = {"S": text, "A": [text[:500], None, text[:300]], "R": {"x": 1, "y": text}, "M": [(1, text.encode())]}
    fields = fields_of(["INT", kind])
    columns = [list(range(rows)), [value.get(kind[0], 7)] * rows]
    schema = arrow_schema(fields)
    table = pa.table([pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)], schema=schema)
    batches = decode(name, encode(name, fields, [table]), fields, 1 << 17, batch_bytes=batch_bytes)
    assert_same(batches, table)
    first = 512 * 1200 if name == "avro" else 0
    assert max(b.nbytes for b in batches) <= max(first, 1.2 * batch_bytes)
    assert len(batches) <= 3 + (6 if name == "orc" else 2) * table.nbytes / batch_bytes


def test_short_row_group_at_end_does_not_make_batches_small():
    fields = fields_of(["INT", "STRING"])
    schema = arrow_schema(fields)
    table = pa.table([pa.array(range(90_300)), pa.array(f"text {i}" for i in range(90_300))], names=schema.names)
    table, sink = table.cast(schema), pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=30_000)
    batches = decode("parquet", sink.getvalue(), fields, 1 << 17, batch_bytes=4 << 20)
    assert_same(batches, table)
    assert len(batches) == 1


@formats
def test_any_seekable_python_file_is_read(name):
    fields, table = sample(name)
    file = io.BytesIO(encode(name, fields, [table]).to_pybytes())
    assert_same(list(FORMATS[name].read(pa.PythonFile(file, mode="r"), ReadRequest(fields, 16))), table)
    assert FORMATS[name].row_count(pa.PythonFile(file, mode="r")) == table.num_rows
    assert not file.closed


@formats
def test_columns_are_found_by_name_and_missing_ones_are_null(name):
    fields, table = sample(name)
    requested = [fields[12], DataField(99, "added", parse_type("ARRAY<DECIMAL(9,1)>")), fields[3]]
    (batch,) = decode(name, encode(name, fields, [table]), requested)
    assert batch.schema.names == ["c12", "added", "c3"]
    assert batch.column(1).null_count == table.num_rows
    assert batch.column(0).equals(table["c12"].combine_chunks())


@formats
@pytest.mark.parametrize("requested", [(), (DataField(NO_ID, "added", STRING),)])
def test_rows_are_counted_if_no_stored_column_is_requested(name, requested):
    fields, table = sample(name)
    batches = decode(name, encode(name, fields, [table]), requested, 16)
    assert sum(b.num_rows for b in batches) == table.num_rows


@formats
def test_file_without_rows_is_written_and_read(name):
    fields, table = sample(name)
    data = encode(name, fields, [table.slice(0, 0)])
    assert decode(name, data, fields) == []
    assert FORMATS[name].row_count(pa.BufferReader(data)) == 0


@formats
def test_size_is_known_while_writing(name):
    fields = fields_of(["BIGINT", "STRING"])
    table = pa.table({"c0": range(200_000), "c1": [f"value {i * 7919 % 200_003}" for i in range(200_000)]})
    sink = pa.BufferOutputStream()
    writer = FORMATS[name].open_writer(sink, fields, Options({}), "zstd")
    sizes = []
    for batch in table.to_batches(20_000):
        writer.write(batch)
        sizes.append(writer.tell())
    writer.close()
    assert sizes == sorted(sizes)
    assert 0.5 < sizes[-1] / sink.tell() < 2


@formats
def test_wrong_columns_are_refused_while_writing(name):
    fields = fields_of(["INT", "INT NOT NULL"])
    with pytest.raises(InvalidInputError, match="'c1' occurs 0 times"):
        encode(name, fields, [pa.table({"c0": pa.array([1], pa.int32())})])
    with pytest.raises(InvalidInputError, match="'c0' is int64, the file stores int32"):
        encode(name, fields, [pa.table({"c0": [1], "c1": pa.array([1], pa.int32())})])
    with pytest.raises(InvalidInputError, match="'c1' is NOT NULL and 1 of its values"):
        encode(name, fields, [pa.table({"c0": pa.array([1], pa.int32()), "c1": pa.array([None], pa.int32())})])


@formats
@pytest.mark.parametrize("codec", ["lzo", "brotli", "rar"])
def test_unknown_codecs_are_refused_by_name(name, codec):
    with pytest.raises(UnsupportedError, match=codec):
        encode(name, fields_of(["INT"]), [], codec)


@formats
def test_formats_own_codec_option_wins(name):
    fields, table = sample(name)
    key = {"parquet": "parquet.compression", "orc": "orc.compress", "avro": "avro.codec"}[name]
    with pytest.raises(UnsupportedError, match="lzo"):
        encode(name, fields, [table], "zstd", **{key: "lzo"})


@formats
def test_damaged_files_are_refused_by_name(name):
    fields, table = sample(name, count=200)
    data = encode(name, fields, [table]).to_pybytes()
    cut = [data[:n] for n in range(0, len(data) - 1, max(1, len(data) // 40))]
    for broken in [*cut, b"garbage" * 500]:
        with pytest.raises(CorruptedError, match="the-file"):
            decode(name, broken, fields)
        with pytest.raises(CorruptedError, match="the-file"):
            FORMATS[name].row_count(pa.BufferReader(broken), path="the-file")


@pytest.mark.parametrize("name", ["avro", "parquet"])
def test_flipped_bits_in_compressed_pages_are_detected(name):
    fields = fields_of(["BIGINT", "STRING"])
    table = pa.table({"c0": range(5000), "c1": [str(i * 7919 % 5000) for i in range(5000)]})
    data = encode(name, fields, [table]).to_pybytes()
    for at in range(len(data) // 4, len(data) // 2, len(data) // 40):
        broken = bytearray(data)
        broken[at] ^= 4
        with pytest.raises(CorruptedError):
            decode(name, bytes(broken), fields)


@formats
def test_stored_column_of_another_type_is_refused(name):
    data = encode(name, fields_of(["STRING"]), [pa.table({"c0": ["x"]})])
    for other in ("INT", "DATE", "TIMESTAMP(3)", "BOOLEAN", "ARRAY<STRING>", "ROW<a INT>", "DECIMAL(5,2)"):
        with pytest.raises(CorruptedError, match=r"'c0' of the-file is stored as string"):
            decode(name, data, fields_of([other]))


@formats
def test_storage_errors_are_raised_unchanged(name):
    fields, table = sample(name)
    data = encode(name, fields, [table]).to_pybytes()

    class Failing(io.BytesIO):
        def read(self, size=-1, /):
            raise PermissionError(13, "not yours")

    with pytest.raises(OSError, match="not yours"):
        list(FORMATS[name].read(pa.PythonFile(Failing(data), mode="r"), ReadRequest(fields, 10)))


@formats
def test_files_of_the_java_engine(name):
    recorded = json.loads((RECORDED / f"types.{name}.json").read_text())
    fields = fields_of(recorded["types"])
    batches = decode(name, (RECORDED / f"types.{name}").read_bytes(), fields)
    table = pa.Table.from_batches(batches)
    rows = zip(*(spelled(c.combine_chunks()) for c in table.columns), strict=True)
    assert [list(row) for row in rows] == recorded["rows"]


@pytest.mark.parametrize(
    ("file", "format_name"),
    [("data-1-0.parquet", "parquet"), ("bucket-0/data-1.x-0.zstd.orc", "orc"), ("a.zst.avro", "avro")],
)
def test_last_extension_decides(file, format_name):
    assert format_of(file).name == format_name


@pytest.mark.parametrize(
    ("file", "said"),
    [("data.text.gz", "'text'"), ("data.lance", "'lance'"), ("data", "no extension")],
)
def test_other_formats_are_refused_by_name(file, said):
    with pytest.raises(UnsupportedError, match=said):
        format_of(file)
