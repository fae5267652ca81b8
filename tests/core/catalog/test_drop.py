"""Dropped tables, what is left of them, and tables that are created in their directories."""

import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import DROPPING, Schemas
from paimon_core.store.create import create_table
from paimon_core.store.drop import TRASH, drop_directory
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import Crash, FaultyIO, MemoryIO
from tests.support.s3_server import s3_server
from tests.support.tables import ORDERS, files_below, orders

ROOT = "memory://w/t"
KEYED = Schema(ORDERS, primary_keys=["id"], options={"bucket": "1"})
OTHER = Schema(pa.schema([("w", pa.string())]))


@pytest.fixture
def catalog(tmp_path):
    found = FileSystemCatalog(str(tmp_path))
    found.create_database("db")
    return found


@pytest.fixture
def flat(monkeypatch):
    """A catalog on a store without directories."""
    store = MemoryIO(atomic_renames=False)
    monkeypatch.setattr(FileIO, "of", staticmethod(lambda *_: store))
    found = FileSystemCatalog("memory://w")
    found.create_database("db")
    return found


@pytest.mark.parametrize(
    "left", ["snapshot/snapshot-3", "tag/tag-a", "branch/branch-b/schema/schema-0", "consumer/consumer-c",
             "changelog/changelog-1", "intent/user-a/batch-1", f"schema/{DROPPING}"]
)  # fmt: skip
def test_directory_with_part_of_table_is_refused(catalog, tmp_path, left):
    file = tmp_path / "db.db" / "t" / left
    file.parent.mkdir(parents=True)
    file.write_bytes(b"{}")
    name = left.partition("/")[0]
    for create in (
        lambda: catalog.create_table("db.t", OTHER),
        lambda: catalog.create_table("db.t", OTHER, ignore_if_exists=True),
        lambda: catalog.stage_table("db.t", OTHER, replace_existing=True),
        lambda: catalog.clone("db.source", catalog, "db.t"),
    ):
        catalog.create_table("db.source", OTHER, ignore_if_exists=True)
        with pytest.raises(InvalidInputError, match=rf"files of a dropped table \({name}\): drop the table again"):
            create()
    assert catalog.is_half_dropped("db.t")
    catalog.drop_table("db.t")
    assert not catalog.is_half_dropped("db.t")
    assert catalog.create_table("db.t", OTHER).to_arrow().num_rows == 0


def test_harmless_files_do_not_keep_table_from_being_created(catalog, tmp_path):
    for name in ("schema/.schema-0.tmp", "bucket-0/data-1.parquet", "notes.txt"):
        file = tmp_path / "db.db" / "t" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    assert not catalog.is_half_dropped("db.t")
    with pytest.raises(NotFoundError):
        catalog.drop_table("db.t")
    assert catalog.create_table("db.t", OTHER).verify(deep=True).sound


def test_leftovers_are_deleted_by_next_call_and_on_demand(catalog, tmp_path):
    database = tmp_path / "db.db"
    for number, clean in enumerate(
        (
            lambda: catalog.remove_dropped("db"),
            lambda: catalog.create_table("db.new", OTHER),
            lambda: catalog.drop_table("db.none", ignore_if_not_exists=True),
        )
    ):
        catalog.create_table("db.t", OTHER).write(pa.table({"w": ["a"]}))
        (database / TRASH).mkdir()
        (database / "t").rename(database / TRASH / f"t-{number:032x}")
        assert "t" not in catalog.list_tables("db")
        clean()
        assert not (database / TRASH).exists()
    assert catalog.remove_dropped("db") == []
    with pytest.raises(NotFoundError, match="no database 'nodb'"):
        catalog.remove_dropped("nodb")


def test_name_of_trash_is_reserved(catalog):
    with pytest.raises(InvalidInputError, match=r"'\.dropped' cannot name a table"):
        catalog.create_table(f"db.`{TRASH}`", OTHER)


def test_iceberg_metadata_is_deleted_with_its_table(catalog, tmp_path):
    options = {"metadata.iceberg.storage": "hadoop-catalog"}
    for name in ("t", "u"):
        catalog.create_table(f"db.{name}", Schema(OTHER.fields, options=options)).write(pa.table({"w": ["a"]}))
    metadata = tmp_path / "iceberg" / "db"
    assert sorted(path.name for path in metadata.iterdir()) == ["t", "u"]
    trash = tmp_path / "db.db" / TRASH
    trash.mkdir()
    (tmp_path / "db.db" / "t").rename(trash / f"t-{0:032x}")  # a call that died after its first step
    catalog.drop_table("db.t", ignore_if_not_exists=True)
    assert [path.name for path in metadata.iterdir()] == ["u"]
    catalog.drop_database("db", cascade=True)
    assert files_below(metadata) == set()


def test_symbolic_link_is_dropped_alone(catalog, tmp_path):
    real = tmp_path / "elsewhere"
    catalog.create_table("db.t", OTHER).write(pa.table({"w": ["a"]}))
    (tmp_path / "db.db" / "t").rename(real)
    (tmp_path / "db.db" / "t").symlink_to(real)
    catalog.drop_table("db.t")
    assert list((tmp_path / "db.db").iterdir()) == []
    assert files_below(real)


def test_database_with_new_table_stays(catalog, monkeypatch):
    listed = catalog.list_tables
    monkeypatch.setattr(catalog, "list_tables", lambda name: [])  # the table is created a moment later
    catalog.create_table("db.t", OTHER)
    with pytest.raises(InvalidInputError, match="was not dropped"):
        catalog.drop_database("db")
    assert listed("db") == ["t"]


# ---- stores without atomic renames


def test_engines_that_do_not_know_tombstone_see_newest_rows_or_none(flat):
    table = flat.create_table("db.t", KEYED)
    for number in range(4):
        table.write(orders((number, "v", number)))
    store, path = table.store.io, table.path
    dry = FaultyIO(store.copy())
    drop_directory(dry, path)
    for at in range(dry.calls + 1):
        own = FaultyIO(store.copy(), at, "crash")
        try:
            drop_directory(own, path)
        except Crash:
            pass
        else:
            assert not [name for name in own.inner.files if name.startswith(path)]
        files = own.inner.files
        schemas = [name for name in files if f"{path}/schema/schema-" in name]
        snapshots = sorted(name for name in files if f"{path}/snapshot/snapshot-" in name)
        assert not snapshots or snapshots[-1].endswith("-4")
        assert not snapshots or {name for name in store.files if "/manifest/" in name or "/bucket-" in name} <= set(
            files
        )
        assert schemas or not [name for name in files if "/snapshot/" in name or "/manifest/" in name]


def test_drop_after_concurrent_drop_and_create_succeeds(flat):
    """Another process drops the table, and creates it again, while one is about to drop it."""
    flat.create_table("db.t", KEYED).write(orders((1, "a", 1)))
    io = flat.table("db.t").store.io
    seen = FaultyIO(io)
    drop_directory(seen, flat.location("db.t"))
    assert not flat.table_exists("db.t")
    flat.create_table("db.t", OTHER).write(pa.table({"w": ["new"]}))
    drop_directory(io, flat.location("db.t"))
    assert not flat.is_half_dropped("db.t")
    assert flat.create_table("db.t", OTHER).to_arrow().num_rows == 0


def test_drop_rename_and_replace_on_s3():
    with s3_server() as (root, options):
        catalog = FileSystemCatalog(f"{root}/w", options)
        catalog.create_database("db")
        table = catalog.create_table("db.t", KEYED)
        table.write(orders((1, "a", 1)))
        table.tags.create("kept", 1)
        with pytest.raises(UnsupportedError, match="cannot rename a directory atomically"):
            catalog.rename_table("db.t", "db.u")
        staged = catalog.stage_table("db.t", OTHER, replace_existing=True)
        staged.table.write(pa.table({"w": ["new"]}))
        staged.publish()
        assert catalog.table("db.t").to_arrow().to_pylist() == [{"w": "new"}]
        table.store.io.write(f"{table.path}/schema/{DROPPING}", b"")  # a drop that died
        assert catalog.list_tables("db") == []
        assert Schemas(table.store.io, table.path).ids() == []
        with pytest.raises(NotFoundError):
            catalog.table("db.t")
        with pytest.raises(InvalidInputError, match="drop the table again"):
            catalog.create_table("db.t", OTHER)
        catalog.drop_table("db.t")
        assert catalog.create_table("db.t", OTHER).tags.list() == []
        catalog.drop_database("db", cascade=True)
        assert catalog.list_databases() == []
        assert table.store.io.list(f"{root}/w") == []


class SlowIO(MemoryIO):
    """An I/O that calls a function before the drop looks for its tombstone for the ``at``-th time."""

    def __init__(self, at, meanwhile):
        super().__init__(atomic_renames=False)
        self.left, self.meanwhile = at, meanwhile

    def exists(self, path):
        if path.endswith(DROPPING):
            self.left -= 1
            if self.left == -1:
                self.meanwhile()
        return super().exists(path)


@pytest.mark.parametrize("at", range(7))
def test_slow_drop_keeps_table_created_since(at):
    """On an object store another process finishes the drop, and creates a table of the same name."""

    def table():
        return Table(FileStore(io, ROOT, Schemas(io, ROOT).latest()))

    def drop_and_create():
        drop_directory(io, ROOT)
        create_table(io, ROOT, Schema(ORDERS), lambda: 2)
        table().write(orders((7, "new", 7)))

    io = SlowIO(at, drop_and_create)
    create_table(io, ROOT, Schema(ORDERS), lambda: 1)
    for number in (1, 2):
        table().write(orders((number, "old", 1)))
    drop_directory(io, ROOT)
    assert io.left < 0, "the drop looks less often"
    assert table().to_arrow().column("id").to_pylist() == [7]
    assert table().verify().sound
