import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import AlreadyExistsError, CorruptedError, InvalidInputError, NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.change import AddColumn, SetOption
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
WANTED = Schema(COLUMNS, primary_keys=["k"], options={"bucket": "1"})


@pytest.fixture
def catalog(tmp_path):
    found = FileSystemCatalog(str(tmp_path))
    found.create_database("db")
    return found


def test_databases_are_created_and_listed(tmp_path, catalog):
    assert catalog.list_databases() == ["db"]
    assert (tmp_path / "db.db").is_dir()
    assert not list((tmp_path / "db.db").iterdir())
    with pytest.raises(AlreadyExistsError, match="'db'"):
        catalog.create_database("db")
    catalog.create_database("db", ignore_if_exists=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "file.db").write_text("")
    catalog.create_database("a b")
    assert catalog.list_databases() == ["a b", "db"]
    catalog.drop_database("a b")
    assert catalog.list_databases() == ["db"]
    with pytest.raises(NotFoundError, match=r"'a b'.*there are: db"):
        catalog.drop_database("a b")
    catalog.drop_database("a b", ignore_if_not_exists=True)


@pytest.mark.parametrize("name", ["", "sys", "a/b", "..", "\\", " "])
def test_wrong_database_names_are_refused(catalog, name):
    with pytest.raises(InvalidInputError):
        catalog.create_database(name)


def test_missing_warehouse_is_empty(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path / "new" / "warehouse"))
    assert catalog.list_databases() == []
    catalog.create_database("db")
    assert catalog.list_databases() == ["db"]


def test_tables_are_created_and_listed(tmp_path, catalog):
    table = catalog.create_table("db.t", WANTED)
    assert table.path == str(tmp_path / "db.db" / "t") == catalog.location("db.t")
    assert catalog.list_tables("db") == ["t"]
    assert catalog.table("db.t").schema == table.schema
    assert catalog.table_exists("db.t")
    with pytest.raises(AlreadyExistsError):
        catalog.create_table("db.t", WANTED)
    assert catalog.create_table("db.t", WANTED, ignore_if_exists=True).schema == table.schema
    (tmp_path / "db.db" / "stray").mkdir()
    assert catalog.list_tables("db") == ["t"]


def test_missing_table_is_refused_with_existing_names(catalog):
    catalog.create_table("db.orders", WANTED)
    with pytest.raises(NotFoundError, match=r"'db.order'.*orders"):
        catalog.table("db.order")
    with pytest.raises(NotFoundError, match=r"'nodb'.*there are: db"):
        catalog.table("nodb.t")
    with pytest.raises(NotFoundError, match="'nodb'"):
        catalog.create_table("nodb.t", WANTED)
    with pytest.raises(NotFoundError, match="'nodb'"):
        catalog.list_tables("nodb")
    with pytest.raises(NotFoundError, match=r"db\.order"):
        catalog.drop_table("db.order")
    catalog.drop_table("db.order", ignore_if_not_exists=True)


def test_drop_of_tables_and_databases(tmp_path, catalog):
    catalog.create_table("db.t", WANTED)
    with pytest.raises(InvalidInputError, match="has t"):
        catalog.drop_database("db")
    catalog.drop_table("db.t")
    assert not (tmp_path / "db.db" / "t").exists()
    catalog.create_table("db.t", WANTED)
    catalog.drop_database("db", cascade=True)
    assert catalog.list_databases() == []


def test_table_that_was_created_again_is_new_one(catalog):
    catalog.create_table("db.t", WANTED)
    catalog.drop_table("db.t")
    catalog.create_table("db.t", Schema(pa.schema([("other", pa.int32())])))
    assert catalog.table("db.t").schema.names == ("other",)


def test_table_is_renamed_across_databases(catalog):
    catalog.create_database("db2")
    catalog.create_table("db.t", WANTED)
    catalog.create_table("db.u", WANTED)
    with pytest.raises(AlreadyExistsError, match=r"db\.u"):
        catalog.rename_table("db.t", "db.u")
    catalog.rename_table("db.t", "db2.v")
    assert catalog.list_tables("db") == ["u"]
    assert catalog.list_tables("db2") == ["v"]
    with pytest.raises(NotFoundError):
        catalog.rename_table("db.t", "db.w")
    with pytest.raises(NotFoundError, match="nodb"):
        catalog.rename_table("db.u", "nodb.u")


def test_alter_table_applies_all_changes(catalog):
    catalog.create_table("db.t", WANTED)
    table = catalog.alter_table("db.t", [AddColumn("n", "INT"), SetOption("file.format", "orc")])
    assert table.schema.names == ("k", "v", "n")
    assert catalog.table("db.t").schema.id == 1
    assert catalog.table("db.t").schema.options["file.format"] == "orc"


def test_branches_open_by_name(catalog):
    path = catalog.create_table("db.t", WANTED).path
    schema = catalog.table("db.t").schema
    Schemas(FileIO.of(path), f"{path}/branch/branch-b").commit(schema)
    assert catalog.table("db.t$branch_b").store.branch == "b"
    with pytest.raises(NotFoundError, match="'c'"):
        catalog.table("db.t$branch_c")
    for use in (catalog.drop_table, catalog.table_exists, lambda n: catalog.create_table(n, WANTED)):
        with pytest.raises(InvalidInputError, match="branch or system table"):
            use("db.t$branch_b")


def test_defaults_for_new_tables(tmp_path):
    catalog = FileSystemCatalog(
        str(tmp_path),
        options={"table-default.file.format": "orc", "table-default.bucket": "3", "cache-enabled": "false"},
    )
    catalog.create_database("db")
    table = catalog.create_table("db.t", WANTED)
    assert dict(table.schema.options) == {"file.format": "orc", "bucket": "1"}
    with pytest.raises(InvalidInputError, match=r"file\.formatt"):
        FileSystemCatalog(str(tmp_path), options={"table-default.file.formatt": "orc"})


def test_table_takes_dynamic_options(catalog):
    catalog.create_table("db.t", WANTED)
    assert catalog.table("db.t", {"file.format": "orc"}).schema.options["file.format"] == "orc"


def test_properties_of_database(tmp_path, catalog):
    assert catalog.database_properties("db") == {}
    catalog.alter_database("db", {"comment": "c", "a": "1"})
    catalog.alter_database("db", {"a": None, "b": "2"})
    assert catalog.database_properties("db") == {"comment": "c", "b": "2"}
    catalog.create_database("new", properties={"x": "y"})
    assert catalog.database_properties("new") == {"x": "y"}
    assert catalog.list_tables("new") == []
    (tmp_path / "new.db" / ".database").write_text("[]")
    with pytest.raises(CorruptedError, match=r"new\.db/\.database"):
        catalog.database_properties("new")
    with pytest.raises(NotFoundError, match="nope"):
        catalog.alter_database("nope", {})
