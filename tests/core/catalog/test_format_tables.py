"""Format tables in the catalogs that hold them, a REST server and a Hive metastore in this process."""

import datetime as dt
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, FormatTable, Schema, open_catalog
from paimon_core.catalog.rest.client import RestServerError
from paimon_core.errors import (
    AlreadyExistsError,
    CorruptedError,
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    UnsupportedError,
)
from paimon_core.options import warn_once
from paimon_core.schema.change import (
    FIRST,
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateComment,
    UpdateTableComment,
    UpdateType,
)
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


BY_DAY = Schema(
    pa.schema([("id", pa.int32()), ("dt", pa.date32()), ("p", pa.string())]),
    partition_keys=["dt", "p"],
    options={"file.format": "csv", "metastore.partitioned-table": "true"},
)
DAY = dt.date(2024, 1, 1)
DAYS = pa.table({"id": [1, 2, 3], "dt": [DAY, DAY, None], "p": ["x/y", "z", "z"]})


def ids(table, **read):
    return sorted(table.to_arrow(["id"], **read)["id"].to_pylist())


def counts(server, name="db.t"):
    """Return the rows and files of each partition as the server counts them."""
    found = server.partitions.get(name, [])
    return {"/".join(p["spec"].values()): (p["recordCount"], p["fileCount"]) for p in found}


def test_only_partitions_in_the_catalog_have_rows(rest):
    catalog, server = rest
    table = pickle.loads(pickle.dumps(catalog.create_format_table("db.t", BY_DAY)))
    assert (table.has_catalog_partitions, table.partitions()) == (True, [])
    table.write(DAYS)
    table.write(DAYS.slice(0, 1))
    null = "__DEFAULT_PARTITION__"
    assert counts(server) == {"19723/x/y": (2, 2), "19723/z": (1, 1), f"{null}/z": (1, 1)}
    assert server.partitions["db.t"][0]["spec"] == {"dt": "19723", "p": "x/y"}
    assert (ids(table), ids(table, filter="p = 'z' AND id > 2")) == ([1, 1, 2, 3], [3])
    foreign = Path(table.path, "dt=2024-01-02", "p=new")
    foreign.mkdir(parents=True)
    (foreign / "f.csv").write_text("7\n")
    assert (ids(table), len(table.partitions())) == ([1, 1, 2, 3], 3)
    assert table.repair_partitions() == ([{"dt": "2024-01-02", "p": "new"}], [])
    assert ids(table, filter="dt = DATE '2024-01-02'") == [7]
    assert table.drop_partitions({"p": "z"}) == 2
    assert (ids(table), set(counts(server))) == ([1, 1, 7], {"19723/x/y", "2024-01-02/new"})
    assert not Path(table.path, "dt=19723", "p=z").exists()
    shutil.rmtree(foreign)
    assert ids(table) == [1, 1]
    server.partitions["db.v"] = server.partitions.pop("db.t")
    warn_once.cache_clear()
    with pytest.warns(match=r"the catalog lists no partitions of db.t, but its directory has 'dt=19723'"):
        assert ids(table) == []
    server.partitions["db.t"] = server.partitions.pop("db.v")
    assert table.repair_partitions() == ([], [])
    foreign.with_name("p=other").mkdir(parents=True)
    shutil.rmtree(foreign, ignore_errors=True)
    assert table.repair_partitions(add=False, drop=True) == ([], [{"dt": "2024-01-02", "p": "new"}])
    assert table.add_partition({"dt": "2024-01-03", "p": "n"})
    assert not table.add_partition({"dt": "2024-01-03", "p": "n"})
    assert (len(table.partitions()), Path(table.path, "dt=19725", "p=n").is_dir()) == (2, True)
    catalog.rename_table("db.t", "db.u")
    assert ids(catalog.format_table("db.u")) == [1, 1]


def test_overwrites_of_partitions_in_the_catalog(rest):
    catalog, server = rest
    table = catalog.create_format_table("db.t", BY_DAY)
    table.write(DAYS)
    waiting = Path(table.path, "dt=19723", "p=w")
    waiting.mkdir()
    (waiting / "f.csv").write_text("7\n")
    table.overwrite(DAYS.slice(0, 1))  # what waits for a repair is not a part of the table
    assert counts(server)["19723/x/y"] == (1, 1)
    assert counts(server)["19723/z"] == (0, 0)
    assert (ids(table), waiting.joinpath("f.csv").exists()) == ([1], True)
    row = pa.table({"id": [8], "dt": [DAY], "p": ["w"]})
    table.overwrite(row, "dynamic")  # the old rows must not appear with the new partition
    assert ids(table) == [1, 8]
    table.overwrite(row.slice(0, 0), {"dt": "2024-01-01"})
    assert (ids(table), counts(server)["19723/w"], len(table.partitions())) == ([], (0, 0), 4)
    table.write(DAYS)
    table.truncate_partitions({"p": "z"})
    assert (ids(table), counts(server)["19723/z"]) == ([1], (0, 0))
    table.truncate()
    assert (ids(table), len(table.partitions()), counts(server)["19723/x/y"]) == ([], 4, (0, 0))
    with pytest.raises(InvalidInputError, match=r"no partition of db\.t is named"):
        table.truncate_partitions({})


def test_partitions_that_cannot_be_registered_leave_no_files(rest):
    catalog, server = rest
    table, usual = catalog.create_format_table("db.t", BY_DAY), server.server.answer
    table.write(DAYS)
    server.server.answer = lambda asked: (403, {}) if asked.path.endswith("partitions") else usual(asked)
    with pytest.raises(PermissionDeniedError):
        table.write(DAYS)
    server.server.answer = lambda asked: (403, {}) if asked.body else usual(asked)
    with pytest.raises(PermissionDeniedError):
        table.overwrite(DAYS.slice(0, 1))
    missing = {"message": "no such path", "code": 404}
    server.server.answer = lambda asked: (404, missing) if asked.body else usual(asked)  # as before Java 2
    with pytest.raises(UnsupportedError, match=r"stores no partitions of format table 'db\.t', as servers before"):
        table.write(DAYS)
    server.server.answer = usual
    assert (ids(table), len(list(Path(table.path).rglob("data-*")))) == ([1, 2, 3], 3)


PARTS = {"dt": "19723", "p": "x"}


@pytest.mark.parametrize(
    "spec", [{"dt": "19723"}, PARTS | {"p": ""}, {"dt": "19723", "q": "x"}, PARTS | {"q": "x"}, PARTS | {"p": ".."}]
)
def test_entry_that_names_no_partition(rest, spec):
    catalog, server = rest
    only_values = {"format-table.partition-path-only-value": "true"} if spec.get("p") == ".." else {}
    table = catalog.create_format_table("db.t", replace(BY_DAY, options={**BY_DAY.options, **only_values}))
    server.partitions["db.t"] = [{"spec": spec}]
    with pytest.raises(CorruptedError, match=r"the catalog lists the partition .* of db\.t, which has .* dt, p"):
        table.to_arrow()


def test_partitions_on_several_pages(rest):
    """A page without partitions is not the last one, and a list without end is an error."""
    catalog, server = rest
    table, usual = catalog.create_format_table("db.t", BY_DAY), server.server.answer
    table.write(DAYS)
    whole = server.partitions["db.t"]
    pages = {"": [], "a": whole[:2], "b": [], "c": whole[2:]}
    following = {"": "a", "a": "b", "b": "c", "c": None}

    def paged(asked):
        path, _, query = asked.path.partition("?")
        if not path.endswith("partitions"):
            return usual(asked)
        token = query.partition("pageToken=")[2]
        return 200, {"partitions": pages[token], "nextPageToken": following[token]}

    server.server.answer = paged
    assert ids(table) == [1, 2, 3]
    following["c"] = "a"
    with pytest.raises(RestServerError, match="the same page token twice"):
        table.to_arrow()


@pytest.mark.parametrize("catalog_kind", ["rest", "hive"])
def test_catalog_that_lists_no_partitions(request, catalog_kind, tmp_path):
    catalog = request.getfixturevalue(catalog_kind)[0]
    options = {**BY_DAY.options, **({"path": str(tmp_path / "t")} if catalog_kind == "rest" else {})}
    reason = "makes it external" if catalog_kind == "rest" else "only REST catalogs list partitions"
    with pytest.raises(UnsupportedError, match=rf"db\.t has 'metastore.partitioned-table' = 'true', but .*{reason}"):
        catalog.create_format_table("db.t", replace(BY_DAY, options=options))
    engine = {**BY_DAY.options, "file.format": "orc", "format-table.implementation": "engine"}
    with pytest.raises(InvalidInputError, match="which reads the directories instead of the catalog"):
        catalog.create_format_table("db.t", replace(BY_DAY, options=engine))
    plain = catalog.create_format_table("db.t", CSV)
    with pytest.raises(UnsupportedError, match=r"the partitions of db\.t are its directories"):
        plain.repair_partitions()


def test_rest_alters_a_format_table(rest):
    catalog, _ = rest
    catalog.create_format_table("db.t", CSV).write(ROWS)
    changes = [
        AddColumn("x", "INT", "new"),
        UpdateTableComment("changed"),
        UpdateComment("s", "a text"),
        SetOption("csv.include-header", "true"),
        RemoveOption("note.mine"),
    ]
    table = catalog.alter_format_table("db.t", changes)
    table.write(pa.table({"id": [3], "s": ["c"], "p": ["x"], "x": [7]}))
    assert [(f.name, f.description) for f in table.schema.fields][1::2] == [("s", "a text"), ("x", "new")]
    assert (table.schema.comment, table.schema.options.get("note.mine")) == ("changed", None)
    assert table.to_arrow(["id", "x"]).sort_by("id").to_pylist()[-1] == {"id": 3, "x": 7}
    orc = catalog.create_format_table("db.o", Schema(COLUMNS, options={"file.format": "orc"}))
    orc.write(ROWS)
    changed = catalog.alter_format_table("db.o", [DropColumn("s"), AddColumn("n", "ARRAY<INT>")])
    assert changed.to_arrow().to_pylist() == [{"id": 1, "p": "x", "n": None}, {"id": 2, "p": None, "n": None}]
    catalog.create_format_table("db.j", replace(CSV, options={"file.format": "json"}))
    with pytest.raises(UnsupportedError, match="the files and directories keep the values"):
        catalog.alter_format_table("db.j", [DropColumn("p")])


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        (RenameColumn("s", "t"), UnsupportedError, "RenameColumn is not possible .*: the files keep their columns"),
        (UpdateType("id", "BIGINT"), UnsupportedError, "UpdateType is not possible"),
        (MoveColumn("s", FIRST), UnsupportedError, "MoveColumn is not possible"),
        (DropColumn("s"), UnsupportedError, "the files and directories keep the values"),
        (AddColumn("x", "INT NOT NULL"), UnsupportedError, "leave out NOT NULL and DEFAULT"),
        (AddColumn("x", "INT", position=FIRST), UnsupportedError, "a new column is the last one"),
        (AddColumn(["s", "x"], "INT"), UnsupportedError, "the fields of a column are as in its files"),
        (AddColumn("S", "INT"), AlreadyExistsError, "column 'S' of db.t exists already"),
        (AddColumn("x", "TIMESTAMP_LTZ(6)"), UnsupportedError, "cannot be stored in CSV"),
        (UpdateComment("z", "c"), InvalidInputError, "'z' is not a column of db.t"),
        (SetOption("file.format", "orc"), InvalidInputError, "'file.format' of format table db.t cannot change"),
        (SetOption("bucket", "2"), InvalidInputError, "option 'bucket' has no effect"),
        (RemoveOption("type"), InvalidInputError, "'type' of format table db.t cannot change"),
    ],
)
def test_change_that_old_rows_would_not_survive(rest, change, error, problem):
    catalog, server = rest
    catalog.create_format_table("db.t", CSV)
    before = repr(server.format_tables)
    with pytest.raises(error, match=problem):
        catalog.alter_format_table("db.t", [change])
    assert repr(server.format_tables) == before


def test_hive_alters_no_format_table(hive):
    hive[0].create_format_table("db.t", CSV)
    with pytest.raises(UnsupportedError, match=r"'db\.t' cannot be altered .* as in Java, only REST catalogs"):
        hive[0].alter_format_table("db.t", [UpdateTableComment("c")])
