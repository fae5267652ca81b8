"""Metadata that are damaged, or made to do damage: an error that names the file, in bounded time and memory."""

import bz2
import io
import json
import lzma
import zlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from cramjam import snappy

from paimon_core.commit.intents import Intents
from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format.avro_container import Container, ContainerWriter, encode_long
from paimon_core.format.codec import avro_codec
from paimon_core.format.corruption import as_corrupted
from paimon_core.manifest import decode
from paimon_core.manifest.decode import decode_entries
from paimon_core.manifest.serializers import ENTRY, MANIFEST_SCHEMA
from paimon_core.manifest.stats import SimpleStats
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.table import Table
from tests.support.avro import read_avro, write_avro
from tests.support.manifests import entry
from tests.support.tables import append_table, keyed_table, orders

DEEP = b"[" * 200_000 + b"]" * 200_000
CODECS = ["none", "deflate", "snappy", "zstd", "bzip2", "xz"]


def table_of_three(path: Path) -> Table:
    table = append_table(path / "t")
    for i in range(3):
        table.write(orders((i, "a", 1)))
    return table


def edit(path: Path | str, **values: object) -> None:
    path = Path(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


# ---- JSON


@pytest.mark.parametrize("file", ["schema/schema-0", "snapshot/snapshot-3", "tag/tag-v"])
def test_json_nested_without_end(tmp_path, file):
    table = table_of_three(tmp_path)
    path = tmp_path / "t" / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(DEEP)
    with pytest.raises(CorruptedError, match=path.name):
        Table.open(table.path).to_arrow(**({"tag": "v"} if "tag" in file else {}))


def test_intent_nested_without_end(tmp_path):
    intents = Intents(FileIO.of(str(tmp_path)), str(tmp_path), "me")
    path = tmp_path / "intent" / "user-me" / "batch-1"
    path.parent.mkdir(parents=True)
    path.write_bytes(DEEP)
    with pytest.raises(CorruptedError, match="batch-1"):
        intents.find(1)


@pytest.mark.parametrize("key", ["id", "schemaId", "timeMillis", "commitIdentifier", "nextRowId", "totalRecordCount"])
@pytest.mark.parametrize("value", [2**63, -(2**64), 10**400])
def test_number_of_snapshot_beyond_64_bits(tmp_path, key, value):
    table = table_of_three(tmp_path)
    edit(table.store.snapshots.path(3), **{key: value})
    with pytest.raises(CorruptedError, match=f"snapshot-3.*{key}"):
        table.to_arrow()


def test_time_out_of_range_is_refused(tmp_path):
    table = table_of_three(tmp_path)
    edit(table.store.snapshots.path(3), timeMillis=2**62)
    with pytest.raises(CorruptedError, match=r"snapshot-3.*timeMillis"):
        table.to_arrow()


@pytest.mark.parametrize("key", ["id", "highestFieldId", "timeMillis", "version"])
def test_number_of_schema_without_bounds(tmp_path, key):
    table = table_of_three(tmp_path)
    path = tmp_path / "t" / "schema" / "schema-0"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: float("inf")}))
    with pytest.raises(CorruptedError, match="schema-0"):
        Table.open(table.path)


# ---- names and contents


def test_snapshot_under_number_of_another(tmp_path):
    table = table_of_three(tmp_path)
    edit(table.store.snapshots.path(2), id=7)
    with pytest.raises(CorruptedError, match=r"snapshot-2.*'id' is 7"):
        table.to_arrow(snapshot_id=2)
    edit(table.store.snapshots.path(3), id=2)
    for use in (table.to_arrow, lambda: table.write(orders((9, "a", 1)))):
        with pytest.raises(CorruptedError, match=r"snapshot-3.*'id' is 2"):
            use()


def test_changelog_or_schema_under_number_of_another(tmp_path):
    table = table_of_three(tmp_path)
    changelogs = Changelogs(table.store.io, table.path)
    changelogs.keep([table.snapshot()])
    (tmp_path / "t" / "changelog" / "changelog-3").rename(tmp_path / "t" / "changelog" / "changelog-2")
    with pytest.raises(CorruptedError, match=r"changelog-2.*'id' is 3"):
        changelogs.find(2)
    edit(tmp_path / "t" / "schema" / "schema-0", id=1)
    with pytest.raises(CorruptedError, match="schema-0 contains the schema with id 1"):
        Table.open(table.path)


@pytest.mark.parametrize("name", ["09", "00", "4_0", "+5", "٥", "9" * 30, "5.tmp"])
def test_files_with_other_names_are_ignored(tmp_path, name):
    table = table_of_three(tmp_path)
    for directory in ("snapshot", "schema"):
        (tmp_path / "t" / directory / f"{directory}-{name}").write_text("stray")
    table = Table.open(table.path)
    (tmp_path / "t" / "snapshot" / "LATEST").unlink()
    assert table.store.snapshots.ids() == [1, 2, 3]
    assert table.store.schemas.ids() == [0]
    table.write(orders((9, "a", 1)))
    assert table.to_arrow().num_rows == 4


# ---- Avro


def manifest_of(schema: object, count: int, content: bytes, codec: str = "none") -> bytes:
    """A manifest with one block, whose content may be anything."""
    sink = io.BytesIO()
    writer = ContainerWriter(sink, schema, avro_codec(codec), 1)
    packed = writer._compress(content, 1)
    writer._emit(b"".join((encode_long(count), encode_long(len(packed)), packed, writer._sync)))
    return sink.getvalue()


def with_field(extra: object) -> dict:
    return {**MANIFEST_SCHEMA, "fields": [*MANIFEST_SCHEMA["fields"], {"name": "x", "type": extra}]}


@pytest.mark.parametrize(
    "extra",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "record", "name": "e", "fields": []}},
        {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}},
        {"type": "record", "name": "r", "fields": [{"name": "inner", "type": ["null", "r"]}]},
        {"type": "record", "name": "o.r", "fields": [{"name": "inner", "type": ["null", "o.r"]}]},
    ],
    ids=["nulls", "empty records", "fixed 0", "itself", "itself, named in full"],
)
def test_schema_whose_records_have_no_end(extra):
    """A few bytes would stand for any number of values, or lead as deep as the file is long."""
    data = manifest_of(with_field(extra), 1, b"\x00" * 200)
    with pytest.raises(CorruptedError, match="some/manifest-0 is damaged"):
        decode_entries(data, "some/manifest-0")


def test_schema_nested_without_end():
    header = io.BytesIO()
    text = b"[" * 100_000 + b"]" * 100_000
    for piece in (b"Obj\x01", encode_long(1), encode_long(11), b"avro.schema", encode_long(len(text)), text):
        header.write(piece)
    header.write(b"\0" + b"s" * 16)
    with pytest.raises(CorruptedError, match="manifest-0"):
        decode_entries(header.getvalue(), "manifest-0")


def test_more_records_than_bytes():
    data = manifest_of(MANIFEST_SCHEMA, 1 << 10, b"\x00" * 50)
    with pytest.raises(CorruptedError, match=r"manifest-0.*records in 50 bytes"):
        decode_entries(data, "manifest-0")


@pytest.mark.parametrize("codec", CODECS)
def test_manifest_does_not_decompress_without_bound(codec, monkeypatch):
    monkeypatch.setattr(decode, "_MIN_SIZE_BOUND", 1 << 16)
    monkeypatch.setattr(decode, "_MAX_COMPRESSION", 0 if codec == "none" else 1)
    data = manifest_of(MANIFEST_SCHEMA, 1, b"\0" * (1 << 22), codec)
    with pytest.raises(CorruptedError, match=r"manifest-0.*more than the allowed \d+ bytes"):
        decode_entries(data, "manifest-0")


def test_manifest_does_not_have_more_entries_than_bytes():
    """A small file would become objects of a thousand times its size."""
    record = ENTRY.to_record(entry("data-0.parquet"))
    sink = io.BytesIO()
    writer = ContainerWriter(sink, MANIFEST_SCHEMA, "zstandard", 1)
    for _ in range(60):
        writer.write([record] * 1000)
    data = sink.getvalue()
    assert len(data) < 60_000
    with pytest.raises(CorruptedError, match=rf"manifest-0.* records, more than the allowed {len(data)}"):
        decode_entries(data, "manifest-0")


def test_wide_statistics_without_values_are_read(monkeypatch):
    """The statistics of thousands of columns that are all NULL compress to a thousandth."""
    monkeypatch.setattr(decode, "_MIN_SIZE_BOUND", 1 << 20)
    nothing = (4000).to_bytes(4, "big") + b"\xff" * 512 + bytes(8 * 4000)
    stats = SimpleStats(nothing, nothing, (7,) * 4000)
    wide = [replace(e, file=replace(e.file, value_stats=stats)) for e in map(entry, map(str, range(100)))]
    sink = io.BytesIO()
    ContainerWriter(sink, MANIFEST_SCHEMA, "zstandard", 1).write([ENTRY.to_record(e) for e in wide])
    assert len(sink.getvalue()) < 100 * 100
    assert decode_entries(sink.getvalue(), "manifest-0") == wide


@pytest.mark.parametrize("codec", CODECS)
def test_blocks_up_to_bound_are_read(codec):
    """The bound is one of all blocks of a file together."""
    rows = [{"a": "x" * 100}] * 3000
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    data = write_avro(schema, rows, codec)
    assert read_avro(data)[1] == rows
    size = sum(len(content) for _, content in Container(io.BytesIO(data)).blocks())
    assert sum(count for count, _ in Container(io.BytesIO(data), max_bytes=size).blocks()) == 3000
    with pytest.raises(CorruptedError, match="more than the"):
        list(Container(io.BytesIO(data), max_bytes=size - 1).blocks())


def test_blocks_as_other_writers_make_them():
    """Several streams in a block, and behind a deflated one a rest of its checksum."""
    a, b = b"a" * 50, b"b" * 60
    made = {
        "bzip2": bz2.compress(a) + bz2.compress(b),
        "xz": lzma.compress(a) + lzma.compress(b),
        "deflate": zlib.compress(a + b)[2:-1],
        "snappy": bytes(snappy.compress_raw(a + b)) + zlib.crc32(a + b).to_bytes(4, "big"),
    }
    for codec, packed in made.items():
        sink = io.BytesIO()
        writer = ContainerWriter(sink, "bytes", codec, 1)
        writer._emit(b"".join((encode_long(1), encode_long(len(packed)), packed, writer._sync)))
        assert list(Container(io.BytesIO(sink.getvalue())).blocks()) == [(1, a + b)], codec


@pytest.mark.parametrize("codec", CODECS[1:])
def test_compressed_block_that_is_cut(codec):
    sink = io.BytesIO()
    writer = ContainerWriter(sink, "bytes", avro_codec(codec), 1)
    packed = writer._compress(bytes(range(256)) * 9, 1)[:-6]
    writer._emit(b"".join((encode_long(1), encode_long(len(packed)), packed, writer._sync)))
    with pytest.raises(CorruptedError, match="file-0"):
        list(Container(io.BytesIO(sink.getvalue()), "file-0").blocks())


# ---- decoders of others


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowMemoryError("malloc of size 9223372036854775807 failed"),
        OverflowError("int too large to convert"),
        RecursionError("maximum recursion depth exceeded"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_wrong_lengths_are_corruption_in_every_decoder(error):
    with pytest.raises(CorruptedError, match=r"data-1\.parquet"), as_corrupted("data-1.parquet"):
        raise error


def test_memory_error_is_not_corruption():
    with pytest.raises(pa.ArrowMemoryError), as_corrupted("data-1.parquet"):
        raise pa.ArrowMemoryError("malloc of size 1073741824 failed")


def test_rows_without_kind(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"file.format": "avro"})
    for _ in range(2):
        table.write(orders((1, "a", 1)))
    path = next((tmp_path / "t").rglob("data-*"))
    schema, rows = read_avro(path.read_bytes())
    for field in schema["fields"]:
        if field["name"] == "_VALUE_KIND":
            field["type"] = ["null", "int"]
    path.write_bytes(write_avro(schema, [{**row, "_VALUE_KIND": None} for row in rows]))
    with pytest.raises(CorruptedError, match=f"{path.name}.*without _VALUE_KIND"):
        table.to_arrow()
