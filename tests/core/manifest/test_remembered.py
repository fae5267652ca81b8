"""Files of metadata that a statement does not read again: within a limit, and never the state of another history."""

import pickle

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import NotFoundError, OutOfRangeError
from paimon_core.fileio.fileio import FileIO
from paimon_core.manifest.remembered import RememberedFiles

SCHEMA = pa.schema([("k", pa.int64())])


@pytest.fixture
def catalog(tmp_path):
    made = FileSystemCatalog(str(tmp_path))
    made.create_database("d")
    return made


def rows(*keys):
    return pa.table({"k": keys}, schema=SCHEMA)


def keys(table):
    return sorted(table.to_arrow()["k"].to_pylist())


def remembering(table):
    """The table as a statement uses it, after a first read."""
    opened = Table.open(table.path)
    opened = opened.with_store(opened.store.remembering())
    opened.to_arrow()
    return opened


def test_limit_of_bytes():
    files = RememberedFiles(most=10)
    files.put("a", b"12345")
    files.put("b", b"12345")
    assert files.get("a") == b"12345"
    files.put("c", b"1")
    assert files.get("b") is None
    assert (files.get("a"), files.get("c")) == (b"12345", b"1")
    files.put("c", b"123456")
    assert files.get("a") is None
    files.put("large", bytes(11))
    assert [files.get(name) for name in ("a", "c", "large")] == [None, b"123456", None]
    files.put("a", b"1234567890")
    files.forget("a")
    files.put("b", b"1234567890")
    assert (files.get("a"), files.get("b")) == (None, b"1234567890")


def test_limit_of_one_file():
    files = RememberedFiles(most=10, most_of_file=4)
    files.put("a", b"1234")
    files.put("b", b"12345")
    assert (files.get("a"), files.get("b")) == (b"1234", None)


def test_task_starts_without_files():
    files = RememberedFiles(most_of_file=1)
    files.put("a", b"1")
    copied = pickle.loads(pickle.dumps(files))
    assert copied.get("a") is None
    copied.put("b", b"12")
    assert copied.get("b") is None


def test_no_file_is_read_twice(catalog, monkeypatch):
    table = catalog.create_table("d.t", Schema(SCHEMA))
    table.write(rows(1))
    statement = remembering(table)
    paths, read = [], FileIO.read
    monkeypatch.setattr(FileIO, "read", lambda io, path: paths.append(str(path)) or read(io, path))
    statement.write(rows(2))
    assert keys(statement) == [1, 2]
    assert not [path for path in paths if "/manifest/" in path]
    assert keys(Table.open(table.path)) == [1, 2]
    assert [path for path in paths if "/manifest/" in path]


def test_other_commit_after_rollback_has_same_id(catalog):
    table = catalog.create_table("d.t", Schema(SCHEMA))
    for key in (1, 2):
        table.write(rows(key))
    statement = remembering(table)
    table.rollback_to(1)
    table.write(rows(3))
    assert table.snapshot().id == 2
    assert keys(statement) == [1, 3]


def test_other_table_in_same_directory(catalog):
    catalog.create_table("d.t", Schema(SCHEMA)).write(rows(1))
    opened = remembering(catalog.table("d.t"))
    assert keys(opened) == [1]
    catalog.drop_table("d.t")
    catalog.create_table("d.t", Schema(SCHEMA)).write(rows(2))
    assert keys(remembering(catalog.table("d.t"))) == [2]
    with pytest.raises(NotFoundError, match="was dropped or renamed after it was opened"):
        keys(opened)


def test_expired_snapshot_is_an_error(catalog):
    table = catalog.create_table("d.t", Schema(SCHEMA))
    table.write(rows(1))
    scan = remembering(table).scan()
    table.overwrite(rows(2))
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    reader = remembering(table).reader()
    splits = scan.plan().splits
    with pytest.raises(OutOfRangeError, match="expired"):
        [list(reader.to_batches(split)) for split in splits]
