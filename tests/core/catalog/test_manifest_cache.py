"""The manifests that a catalog keeps in memory for all reads of its tables."""

from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema
from paimon_core.errors import InvalidInputError, OutOfRangeError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.change import AddColumn
from paimon_core.types.datatype import BIGINT

SCHEMA = pa.schema([("k", pa.int64())])


@pytest.fixture
def reads(monkeypatch):
    """The paths of the manifests and manifest lists that were read."""
    paths, read = [], FileIO.read
    monkeypatch.setattr(FileIO, "read", lambda io, path: paths.append(path) or read(io, path))
    return lambda: [path for path in paths if "/manifest/" in path]


def row(key):
    return pa.table({"k": [key]}, SCHEMA)


def warehouse(tmp_path, *keys):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema(SCHEMA))
    for key in keys:
        table.write(row(key))
    return table


def rows(catalog):
    return sorted(catalog.table("d.t").to_arrow()["k"].to_pylist())


def test_files_are_read_once_by_all_reads_of_a_catalog(tmp_path, reads):
    warehouse(tmp_path, 1, 2)
    catalog = FileSystemCatalog(str(tmp_path))
    assert rows(catalog) == [1, 2]
    read = reads()
    assert read
    assert rows(catalog) == [1, 2]
    assert reads() == read
    FileSystemCatalog(str(tmp_path)).table("d.t").write(row(3))
    assert rows(catalog) == [1, 2, 3]


@pytest.mark.parametrize(
    "options",
    [
        {"cache-enabled": "false"},
        {"cache.manifest.small-file-memory": "0 b"},
        {"cache.manifest.small-file-threshold": "100 b"},
    ],
)
def test_options_limit_the_cache(tmp_path, reads, options):
    warehouse(tmp_path, 1)
    catalog = FileSystemCatalog(str(tmp_path), options=options)
    assert rows(catalog) == [1]
    read = len(reads())
    assert rows(catalog) == [1]
    assert len(reads()) == 2 * read


def test_wrong_values_are_refused(tmp_path):
    for key in ("cache-enabled", "cache.manifest.small-file-memory", "cache.manifest.small-file-threshold"):
        with pytest.raises(InvalidInputError, match=f"option '{key}' of the catalog is 'much': it "):
            FileSystemCatalog(str(tmp_path), options={key: "much"})


def test_cache_hides_no_change_of_history(tmp_path):
    table = warehouse(tmp_path, 1, 2, 3)
    catalog = FileSystemCatalog(str(tmp_path))
    assert rows(catalog) == [1, 2, 3]
    table.rollback_to(1)
    table.write(row(9))
    assert rows(catalog) == [1, 9]
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(OutOfRangeError):
        catalog.table("d.t").to_arrow(snapshot_id=1)
    other = FileSystemCatalog(str(tmp_path))
    other.drop_table("d.t")
    other.create_table("d.t", Schema(SCHEMA)).write(row(5))
    assert rows(catalog) == [5]


def test_verification_reads_the_storage(tmp_path):
    warehouse(tmp_path, 1)
    catalog = FileSystemCatalog(str(tmp_path))
    assert rows(catalog) == [1]
    for path in Path(tmp_path).glob("d.db/t/manifest/manifest-*-0"):
        path.unlink()
    assert rows(catalog) == [1]
    assert "missing-manifest" in [fault.kind for fault in catalog.table("d.t").verify().faults]


def test_versions_of_schema_are_read_once_by_an_object(tmp_path, monkeypatch):
    warehouse(tmp_path, 1).alter([AddColumn("v", BIGINT)])
    table = FileSystemCatalog(str(tmp_path)).table("d.t")
    paths, read = [], FileIO.read
    monkeypatch.setattr(FileIO, "read", lambda io, path: paths.append(path) or read(io, path))
    assert [table.to_arrow()["k"].to_pylist() for _ in range(3)] == 3 * [[1]]
    assert sum(path.endswith("/schema-0") for path in paths) == 1
