"""Columns that store descriptors of blobs: what is written, which files are read, and how."""

import struct
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core import blob_views, open_catalog
from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format.blob_descriptor import described
from paimon_core.memory import MemoryShares
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import append_table

EVOLVING = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
COLUMNS = pa.schema([("k", pa.int64()), ("d", pa.binary())])
OPTIONS = {**EVOLVING, "blob-descriptor-field": "d"}
ALLOWED = "blob.external-paths.allowed"
MAGIC = 0x424C4F4244455343


def descriptor(path, start, length, version=2):
    name = str(path).encode()
    head = struct.pack("<bq", version, MAGIC) if version > 1 else struct.pack("<b", version)
    return head + struct.pack("<i", len(name)) + name + struct.pack("<qq", start, length)


def rows(*values, start=0):
    return pa.table({"k": range(start, start + len(values)), "d": pa.array(values, pa.binary())})


def made(path, **options):
    return append_table(path, COLUMNS, **OPTIONS, **options)


def trusting(table, *places):
    return table.with_options({ALLOWED: ",".join(map(str, places))})


def values(table, **options):
    return table.with_options(options).to_arrow().column("d").to_pylist()


@pytest.fixture
def files(tmp_path):
    """A directory with two files that no table owns."""
    directory = tmp_path / "given"
    directory.mkdir()
    (directory / "one").write_bytes(b"0123456789")
    (directory / "two é").write_bytes(b"abcdef")
    return directory


def test_descriptors_are_stored_and_blobs_are_read(tmp_path, files):
    table = trusting(made(tmp_path / "t"), files)
    assert [str(f.type) for f in table.schema.fields] == ["BIGINT", "BLOB"]
    one, two = files / "one", files / "two é"
    given = [
        descriptor(one, 3, 4), None, descriptor(two, 0, 6), descriptor(one, 3, 4), descriptor(one, 0, 0),
        descriptor(one, 8, -1), descriptor(f"file://{two}", 5, 1), descriptor(one, 2, 3),
    ]  # fmt: skip
    table.write(rows(*given))
    assert values(table) == [b"3456", None, b"abcdef", b"3456", b"", b"89", b"f", b"234"]
    assert values(table, **{"blob-as-descriptor": "true"}) == given
    assert not list((tmp_path / "t").rglob("*.blob"))
    assert table.to_arrow(["k"], filter="d IS NULL").to_pylist() == [{"k": 1}]
    assert table.to_arrow(["d"], filter="k = 6").to_pylist() == [{"d": b"f"}]


def test_descriptors_survive_updates_deletes_and_compaction(tmp_path, files):
    table = trusting(made(tmp_path / "t", **{"deletion-vectors.enabled": "true"}), files)
    one = files / "one"
    for turn in range(3):
        table.write(rows(*(descriptor(one, turn, n) for n in range(3)), start=3 * turn))
    table.update_columns(pa.table({"_ROW_ID": [4], "d": [descriptor(one, 9, 1)]}))
    table.delete("k = 0")
    table.compact(full=True)
    assert values(table) == [b"0", b"01", b"", b"9", b"12", b"", b"2", b"23"]
    with pytest.raises(InvalidInputError, match="column 'd' bytes that are no blob descriptor"):
        table.update_columns(pa.table({"_ROW_ID": [4], "d": [b"bytes"]}))


def test_descriptors_of_another_table_of_a_warehouse(tmp_path):
    """Two tables share blobs in the warehouse that the caller named; a path alone names no warehouse."""
    catalog = open_catalog(str(tmp_path))
    catalog.create_database("db")
    source_schema = pa.schema([("k", pa.int64()), ("b", pa.binary())])
    catalog.create_table("db.source", Schema(source_schema, options={**EVOLVING, "blob-field": "b"}))
    catalog.create_table("db.t", Schema(COLUMNS, options=OPTIONS))
    source, table = catalog.table("db.source"), catalog.table("db.t")
    source.write(pa.table({"k": [0, 1, 2], "b": [b"x" * 30, None, b"yz"]}))
    described_rows = source.with_options({"blob-as-descriptor": "true"}).to_arrow()
    table.write(described_rows.rename_columns(["k", "d"]))
    assert values(table) == [b"x" * 30, None, b"yz"]
    by_path = Table.open(table.path)
    with pytest.raises(InvalidInputError, match=f"neither below the table nor below the warehouse.*'{ALLOWED}'"):
        by_path.to_arrow()
    assert values(trusting(by_path, source.path)) == [b"x" * 30, None, b"yz"]
    with_option = open_catalog(str(tmp_path / "other"), options={ALLOWED: str(tmp_path)})
    assert with_option.options[ALLOWED] == str(tmp_path)


@pytest.mark.parametrize(
    "path", ["/etc/hostname", "{}/t/../given/one", "file:/etc/hostname", "http://127.0.0.1:1/x", "s3://b/x", "one"]
)
def test_only_allowed_files_are_opened(tmp_path, files, monkeypatch, path):
    table = made(tmp_path / "t")
    table.write(rows(descriptor(path.format(tmp_path), 0, 1)))
    table = trusting(table, files / "nothing").with_options({"data-file.external-paths": str(files)})
    opened = []
    original = FileIO.open
    monkeypatch.setattr(FileIO, "open", lambda io, path, *size: opened.append(path) or original(io, path, *size))
    with pytest.raises(InvalidInputError, match=r"describes a blob in .*, which is neither below the table nor"):
        table.to_arrow()
    assert all(str(tmp_path / "t") in path for path in opened)
    with pytest.raises(InvalidInputError, match=f"option '{ALLOWED}' cannot be changed: a table cannot allow"):
        append_table(tmp_path / "u", COLUMNS, **OPTIONS, **{ALLOWED: "/"})


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        ("{d}/missing|0|1", CorruptedError, "which is missing"),
        ("{d}/one|8|5", CorruptedError, "bytes 8 to 13 of .*/one, which ends earlier"),
        ("{d}/one|11|1", CorruptedError, "which ends earlier"),
        (f"{{d}}/one|{2**63 - 1}|2147483647", CorruptedError, "which ends earlier"),
        (f"{{d}}/one|1|{2**31}", UnsupportedError, "a blob of 2147483648 bytes, more than 2 GiB"),
        (f"{{d}}/one|{2**63 - 1}|{2**63 - 1}", UnsupportedError, "more than 2 GiB"),
    ],
)
def test_blobs_that_do_not_exist(tmp_path, files, value, error, said):
    path, start, length = value.format(d=files).split("|")
    table = trusting(made(tmp_path / "t"), files)
    table.write(rows(descriptor(path, int(start), int(length))))
    with pytest.raises(error, match=f"column 'd' of .*{said}"):
        table.to_arrow()


@pytest.mark.parametrize(
    "value", [b"", b"x" * 60, descriptor("/a", 0, 1)[:-1], descriptor("/a", 0, 1, version=1), b"\x02" + b"\0" * 40]
)
def test_only_descriptors_are_written(tmp_path, value):
    table = made(tmp_path / "t")
    wrong = value if value != descriptor("/a", 0, 1)[:-1] else value[:-20]
    with pytest.raises(InvalidInputError, match=r"column 'd' bytes that are no blob descriptor \(row 2 of the data\)"):
        table.write(rows(descriptor("/a", 0, 1), None, wrong))


def test_blobs_are_read_in_parts_of_limited_size(tmp_path, files, monkeypatch):
    """A part has at most the bytes allowed or one row, and each file is opened once for it."""
    big = files / "big"
    big.write_bytes(bytes(range(256)) * 40)
    table = trusting(made(tmp_path / "t"), files)
    table.write(rows(*(descriptor(big, 100 * n, 100 if n else 5000) for n in range(100))))
    monkeypatch.setattr(MemoryShares, "of", lambda options: MemoryShares(batches=1000))
    opened = []
    original = FileIO.open
    monkeypatch.setattr(FileIO, "open", lambda io, path, *size: opened.append(path) or original(io, path, *size))
    batches = list(table.to_batches(["d"]))
    assert [batch.num_rows for batch in batches] == [1, *[10] * 9, 9]
    assert opened.count(str(big)) == len(batches)
    data = big.read_bytes()
    assert [v for batch in batches for v in batch.column(0).to_pylist()] == [
        data[:5000], *(data[100 * n : 100 * n + 100] for n in range(1, 100))
    ]  # fmt: skip


def test_external_storage_of_older_java_is_read_only(tmp_path, files):
    table = made(tmp_path / "t")
    table.write(rows(descriptor(files / "one", 1, 2)))
    schema = Path(table.path, "schema", "schema-0")
    old_names = '"blob-external-storage-field": "d", "blob.stored-descriptor-fields"'
    schema.write_text(schema.read_text().replace('"blob-descriptor-field"', old_names))
    older = trusting(Table.open(table.path), files)
    assert values(older) == [b"12"]
    with pytest.raises(UnsupportedError, match="'blob-external-storage-field' = 'd' is not supported yet"):
        older.write(rows(descriptor(files / "one", 1, 2)))


TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
PLACES = st.tuples(TEXTS, st.integers(0, 2**63 - 1), st.integers(-1, 2**63 - 1), st.sampled_from([1, 2]))


@given(st.lists(st.none() | PLACES, max_size=8), st.integers(0, 3), st.binary(max_size=3))
def test_descriptors_are_parsed_as_defined(places, cut, rest):
    """Any descriptors of both versions, in any slice of an array; bytes after a descriptor do not matter."""
    stored = [None if p is None else descriptor(p[0], p[1], p[2], p[3]) + rest for p in places]
    found = described(pa.array(stored, pa.binary())[cut:], "a column")
    expected = [p[:3] for p in places[cut:] if p is not None]
    files = [found.files[number] for number in found.file_of.tolist()]
    assert list(zip(files, found.starts.tolist(), found.lengths.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", CorruptedError),
        (b"\x00" * 40, CorruptedError),
        (b"\x02" * 60, CorruptedError),
        (b"\x03" + descriptor("/a", 0, 1)[1:], UnsupportedError),
        (b"\xff" + descriptor("/a", 0, 1)[1:], UnsupportedError),
        (descriptor("/a", 0, 1)[:-1], CorruptedError),
        (descriptor("/a", -1, 1), CorruptedError),
        (descriptor("/a", 0, -2), CorruptedError),
        (descriptor("/a", 0, 1)[:9] + struct.pack("<i", 2**31 - 1) + b"x" * 30, CorruptedError),
        (descriptor("/a", 0, 1)[:9] + struct.pack("<i", -1) + b"x" * 30, CorruptedError),
        (descriptor("/a", 0, 1).replace(b"/a", b"/\xff"), CorruptedError),
    ],
)
def test_damaged_descriptors_are_refused(value, error):
    with pytest.raises(error, match="a column has"):
        described(pa.array([descriptor("/a", 0, 1), value], pa.binary()), "a column")


def test_rows_get_copies_of_described_blobs(tmp_path, files, monkeypatch):
    """Descriptors among blobs, also in arrays, are copied in parts of limited size, from allowed files only."""
    schema = pa.schema([("k", pa.int64()), ("d", pa.binary()), ("a", pa.list_(pa.binary()))])
    table = append_table(tmp_path / "t", schema, **EVOLVING, **{"blob-field": "d,a"})
    one = descriptor(files / "one", 2, 5)
    given = pa.table({"k": [0, 1, 2, 3], "d": [b"bytes", one, None, one], "a": [[one, None], None, [], [b"x", one]]})
    given = given.cast(schema)
    with pytest.raises(InvalidInputError, match="neither below the table nor below the warehouse"):
        table.write(given)
    assert table.snapshot() is None
    monkeypatch.setattr(MemoryShares, "of", lambda options: MemoryShares(batches=6))
    trusting(table, files).write(given.slice(0, 1))
    trusting(table, files).write(given.slice(1))
    assert table.to_arrow().to_pylist() == [
        {"k": 0, "d": b"bytes", "a": [b"23456", None]},
        {"k": 1, "d": b"23456", "a": None},
        {"k": 2, "d": None, "a": []},
        {"k": 3, "d": b"23456", "a": [b"x", b"23456"]},
    ]


def test_all_kinds_of_blobs_in_one_table(tmp_path, files):
    """Blobs in files, descriptors and views are written, replaced and compacted side by side."""
    catalog = open_catalog(str(tmp_path), options={ALLOWED: str(files)})
    catalog.create_database("db")
    schema = pa.schema([("k", pa.int64()), ("b", pa.binary()), ("d", pa.binary()), ("v", pa.binary())])
    options = {**OPTIONS, "blob-field": "b", "blob-view-field": "v"}
    table = catalog.create_table("db.t", Schema(schema, options=options))
    at = table.schema.field("b").id
    for turn in range(3):
        data = {"k": [turn], "b": [b"b%d" % turn], "d": [descriptor(files / "one", turn, 1)]}
        table.write(pa.table({**data, "v": blob_views("db.t", at, pa.array([0]))}))
    table.update_columns(pa.table({"_ROW_ID": [1], "b": [b"new"], "d": [descriptor(files / "one", 9, 1)]}))
    table.compact(full=True)
    assert table.to_arrow().to_pylist() == [
        {"k": 0, "b": b"b0", "d": b"0", "v": b"b0"},
        {"k": 1, "b": b"new", "d": b"9", "v": b"b0"},
        {"k": 2, "b": b"b2", "d": b"2", "v": b"b0"},
    ]
