"""Format tables in the catalogs that hold them, a REST server and a Hive metastore in this process."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, FormatTable, Schema, open_catalog
from paimon_core.catalog.rest.client import RestServerError
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.schema.change import SetOption
from tests.support.metastore_double import metastore_double
from tests.support.rest_server import catalog_server

COLUMNS = pa.schema([("id", pa.int32()), ("s", pa.string()), ("p", pa.string())])
ROWS = pa.table({"id": [1, 2], "s": ["a", None], "p": ["x", None]})
CSV = Schema(COLUMNS, partition_keys=["p"], options={"file.format": "csv", "note.mine": "kept"}, comment="about t")


@pytest.fixture
def rest(tmp_path):
    with catalog_server(tmp_path / "warehouse", table__default_bucket="4") as server:
        catalog = open_catalog(options=server.options)
        catalog.create_database("db")
        yield catalog, server


@pytest.fixture
def hive(tmp_path):
    with metastore_double() as (uri, double):
        catalog = open_catalog(str(tmp_path / "warehouse"), options={"metastore": "hive", "uri": uri})
        catalog.create_database("db")
        (tmp_path / "warehouse" / "db.db").mkdir(parents=True)  # as a metastore does
        yield catalog, double


@pytest.fixture(params=["rest", "hive"])
def catalog(request):
    return request.getfixturevalue(request.param)[0]


def test_table_by_name(catalog):
    assert catalog.has_format_tables
    table = catalog.create_format_table("db.t", CSV)
    assert (repr(table)[:21], table.format) == ("FormatTable('db.t', c", "csv")
    assert table.write(ROWS) == 2
    same = pickle.loads(pickle.dumps(catalog.format_table("db.t")))
    assert same.to_arrow().sort_by("id").to_pydict() == ROWS.to_pydict()
    assert (same.schema.partition_keys, same.schema.comment) == (("p",), "about t")
    assert same.schema.options.get("note.mine") == "kept"
    assert (catalog.list_tables("db"), catalog.table_exists("db.t")) == (["t"], True)
    assert (
        catalog.create_format_table("db.t", CSV, ignore_if_exists=True).path == table.path == catalog.location("db.t")
    )
    for create in (catalog.create_format_table, catalog.create_table):
        with pytest.raises(AlreadyExistsError, match=r"db\.t.* exists already"):
            create("db.t", Schema(COLUMNS, options={} if create == catalog.create_table else {"file.format": "csv"}))
    catalog.drop_table("db.t")
    assert not Path(table.path).exists()
    with pytest.raises(NotFoundError, match=r"no table 'db\.t'"):
        catalog.format_table("db.t")


def test_files_of_a_table_with_a_path_outlive_it(catalog, tmp_path):
    options = {"file.format": "parquet", "path": str(tmp_path / "elsewhere")}
    table = catalog.create_format_table("db.t", Schema(COLUMNS, options=options))
    assert (table.path, table.write(ROWS)) == (options["path"], 2)
    catalog.drop_table("db.t")
    assert catalog.create_format_table("db.u", Schema(COLUMNS, options=options)).to_arrow().num_rows == 2


def test_other_work_on_a_format_table_is_refused(catalog):
    catalog.create_format_table("db.t", CSV)
    catalog.create_table("db.u", Schema(COLUMNS))
    message = "db.t is a format table, without snapshots: open it with Catalog.format_table"
    for work in (catalog.table, catalog.any_table, catalog.system_table):
        with pytest.raises(UnsupportedError, match=message):
            work("db.t")
    with pytest.raises(UnsupportedError, match=message):
        catalog.alter_table("db.t", [SetOption("a", "b")])
    for name in ("db.t$files", "db.t$branch_b"):
        with pytest.raises(UnsupportedError, match=r"'db\.t' is a format table: it has no branches, no system tables"):
            catalog.any_table(name)
    with pytest.raises(InvalidInputError, match=r"'db\.u' is not a format table: open it with Catalog\.table"):
        catalog.format_table("db.u")
    with pytest.raises(UnsupportedError, match=r"'db\.v' would be a format table: call create_format_table"):
        catalog.create_table("db.v", Schema(COLUMNS, options={"type": "format-table"}))


def test_format_tables_among_other_tables(catalog):
    catalog.create_format_table("db.t", CSV)
    catalog.create_table("db.u", Schema(COLUMNS, partition_keys=["p"])).write(ROWS)
    assert (catalog.is_format_table("db.t"), catalog.is_format_table("db.u")) == (True, False)
    tables = catalog.system_table("sys.tables").to_arrow(["table_name", "table_type", "partitioned"]).to_pylist()
    assert [tuple(row.values()) for row in tables] == [("t", "format-table", True), ("u", "table", True)]
    assert set(catalog.system_table("sys.partitions").to_arrow()["table_name"].to_pylist()) == {"u"}
    assert set(catalog.system_table("sys.all_table_options").to_arrow()["table_name"].to_pylist()) == {"t", "u"}
    assert "db.t is a format table" in catalog.state("db").tables[0].error


def test_catalog_without_format_tables(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("db")
    with pytest.raises(UnsupportedError, match=r"'db\.t' cannot be created in .*: only REST and Hive catalogs hold"):
        catalog.create_format_table("db.t", CSV)


def test_rest_stores_the_schema(rest):
    catalog, server = rest
    catalog.create_format_table("db.t", CSV)
    stored = server.format_tables["db.t"]
    assert stored["options"] == {"file.format": "csv", "note.mine": "kept", "type": "format-table"}
    assert ([f["name"] for f in stored["fields"]], stored["partitionKeys"]) == (["id", "s", "p"], ["p"])
    stored["fields"] = [{"name": "id"}]
    with pytest.raises(RestServerError, match=r"the catalog's server describes the columns of 'db\.t' wrongly"):
        catalog.format_table("db.t")


def test_hive_stores_the_classes_of_the_format(hive):
    catalog, double = hive
    catalog.create_format_table("db.t", CSV)
    table = double.stored["db", "t"]
    assert (table.sd.inputFormat, table.sd.serdeInfo.serializationLib, table.sd.serdeInfo.parameters) == (
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        {"field.delim": ","},
    )
    assert ([c.name for c in table.sd.cols], [c.name for c in table.partitionKeys]) == (["id", "s"], ["p"])
    assert {k: table.parameters[k] for k in ("type", "file.format", "table_type", "comment")} == {
        "type": "format-table",
        "file.format": "csv",
        "table_type": "CSV",
        "comment": "about t",
    }
    del table.parameters["type"]  # a table that Hive created
    with pytest.raises(UnsupportedError, match=r"db\.t in .* is a table of CSV, not a Paimon table"):
        catalog.format_table("db.t")
    assert catalog.list_tables("db") == []


@pytest.mark.parametrize(
    ("column", "error", "problem"),
    [
        (pa.field("a", pa.int32(), nullable=False), UnsupportedError, "'a' .* INT NOT NULL: .* would store it as INT"),
        (pa.field("a", pa.timestamp("us", "UTC")), UnsupportedError, "would store it as TIMESTAMP"),
        (pa.field("A", pa.int32()), InvalidInputError, "stores names in lower case"),
    ],
)
def test_column_that_hive_would_change(hive, column, error, problem):
    with pytest.raises(error, match=problem):
        hive[0].create_format_table("db.t", Schema(pa.schema([column])))


def test_hive_renames_a_format_table(hive):
    catalog, _ = hive
    catalog.create_format_table("db.t", CSV).write(ROWS)
    catalog.rename_table("db.t", "db.u")
    assert catalog.format_table("db.u").to_arrow().num_rows == 2
    assert isinstance(catalog.named_table("db.u"), FormatTable)
