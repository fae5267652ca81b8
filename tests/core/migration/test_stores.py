"""Moving in from and to an object store: listing, copies inside the store, clones across stores."""

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.remote import RemoteStorage
from paimon_core.fileio.s3 import s3_arguments
from paimon_core.schema.schema import Schema
from tests.support.s3_server import s3_server
from tests.support.tables import ORDERS, orders, rows_of

pytestmark = pytest.mark.more


@pytest.fixture(scope="module")
def bucket():
    with s3_server() as server:
        yield server


def test_files_of_store_are_copied_inside_store(bucket, tmp_path, monkeypatch):
    url, options = bucket
    store = fsspec.filesystem("s3", **s3_arguments(options))
    for p in ("a%20b", "__HIVE_DEFAULT_PARTITION__"):
        local = tmp_path / "x.parquet"
        pq.write_table(pa.table({"id": [len(p)]}), local)
        store.put_file(str(local), f"{url}/in/p={p}/x.parquet")
    store.pipe_file(f"{url}/in/_SUCCESS", b"")
    catalog = FileSystemCatalog(f"{url}/warehouse", options)
    catalog.create_database("db")

    def through_here(*_):
        raise AssertionError("the bytes of a file pass through this process")

    monkeypatch.setattr(RemoteStorage, "write_parts", through_here)
    table = catalog.migrate(f"{url}/in", "db.t", move=True)
    assert rows_of(table.to_arrow()) == [{"id": 5, "p": "a b"}, {"id": 26, "p": None}]
    assert table.verify(deep=True).sound
    assert not [path for path in store.find(f"{url}/in") if path.endswith(".parquet")]


def test_clone_crosses_stores_in_both_directions(bucket, tmp_path):
    url, options = bucket
    here, there = FileSystemCatalog(str(tmp_path / "w")), FileSystemCatalog(f"{url}/clones", options)
    for catalog in (here, there):
        catalog.create_database("db")
    table = here.create_table("db.t", Schema(ORDERS, primary_keys=["id"], options={"bucket": "1"}))
    for i in range(2):
        table.write(orders((1, f"v{i}", i), (i + 5, "x", i)))
    remote = here.clone("db.t", there, "db.t")
    assert rows_of(remote.to_arrow()) == rows_of(table.to_arrow())
    assert remote.verify(deep=True).sound
    table.write(orders((9, "later", 9)))
    assert rows_of(here.clone("db.t", there, "db.t").to_arrow()) == rows_of(table.to_arrow())
    back = there.clone("db.t", here, "db.back")
    assert rows_of(back.to_arrow()) == rows_of(table.to_arrow())


def test_upload_that_fails_leaves_no_file(bucket):
    url, options = bucket
    io = FileIO.of(url, options)

    def parts():
        yield b"x" * 100
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        io.write_parts(f"{url}/half", parts())
    assert not io.exists(f"{url}/half")
