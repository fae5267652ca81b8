"""The REST catalog, with a small server in this process: tables, commits, schema changes and credentials."""

import pickle
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table, open_catalog
from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.catalog import RestCatalog
from paimon_core.catalog.rest.client import RestServerError
from paimon_core.catalog.rest.data_tokens import DataToken, DataTokenIO, TokenSource
from paimon_core.catalog.rest.environment import ExternalEnvironment
from paimon_core.catalog.rest.models import changes_to_json
from paimon_core.errors import (
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    TableChangedError,
    UnsupportedError,
)
from paimon_core.fileio.fileio import FileIO
from paimon_core.operations.partitions.partitions_done import record_done
from paimon_core.schema.change import (
    FIRST,
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateComment,
    UpdateDefault,
    UpdateNullability,
    UpdateTableComment,
    UpdateType,
)
from tests.support.rest_server import BREAK, catalog_server

ROWS = pa.table({"p": ["a", "a", "b c"], "k": [1, 2, 3]})
SCHEMA = Schema(ROWS.schema, partition_keys=["p"], options={"commit.min-retry-wait": "1 ms", "commit.max-retries": "2"})


@pytest.fixture
def server(tmp_path):
    with catalog_server(tmp_path / "warehouse", table__default_x="y") as running:
        running.defaults = {"table-default.snapshot.num-retained.min": "3", "header.X-Tenant": "t1"}
        yield running


@pytest.fixture
def catalog(server):
    catalog = open_catalog(options=server.options)
    catalog.create_database("db", properties={"a": "b"})
    return catalog


@pytest.fixture
def table(catalog):
    return catalog.create_table("db.t", SCHEMA)


def files_of(table):
    return {entry.path for entry in table.store.io.list(f"{table.path}/manifest")}


def test_tables_by_name(server, catalog):
    assert isinstance(catalog, RestCatalog)
    table = catalog.create_table("db.t", SCHEMA)
    assert table.schema.options.get("snapshot.num-retained.min") == "3"
    assert (catalog.list_databases(), catalog.list_tables("db")) == (["db"], ["t"])
    assert catalog.database_properties("db") == {"a": "b"}
    assert catalog.location("db.t") == table.path
    assert not catalog.table_exists("db.u")
    assert catalog.create_table("db.t", SCHEMA, ignore_if_exists=True).path == table.path
    with pytest.raises(NotFoundError, match=r"no table 'db\.u' in w; database 'db' has: t"):
        catalog.table("db.u")
    with pytest.raises(NotFoundError, match="no database 'other' in w; there are: db"):
        catalog.create_table("other.t", SCHEMA)
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []
    catalog.drop_table("db.t", ignore_if_not_exists=True)
    assert {asked.headers.get("X-Tenant") for asked in server.server.asked[1:]} == {"t1"}


def test_options_of_spark_are_accepted(server):
    prefix = "spark.sql.catalog.paimon"
    options = {f"{prefix}.{key}": value for key, value in server.options.items()}
    assert isinstance(open_catalog(options={prefix: "org.apache.paimon.spark.SparkCatalog", **options}), RestCatalog)


def test_unknown_options_are_refused(server):
    with pytest.raises(InvalidInputError, match="unknown option 'token-provider'"):
        open_catalog(options={**server.options, "token-provider": "x"})
    with pytest.raises(UnsupportedError, match="option 'catalog-key' of the catalog is not supported"):
        open_catalog(options={**server.options, "catalog-key": "x"})
    with pytest.raises(InvalidInputError, match="use open_catalog"):
        FileSystemCatalog("w", options=server.options)


def test_tables_of_catalog_have_their_names_wherever_they_are(server, catalog, table):
    """The server chooses the directory of a table, whose name says nothing."""
    catalog.create_table("db.elsewhere", SCHEMA)
    server.moved = {"db.t": "db.elsewhere"}
    assert catalog.table("db.t").path.endswith("/elsewhere")
    for name in ("tables", "all_table_options"):
        rows = catalog.system_table(f"sys.{name}").to_arrow(["database_name", "table_name"]).to_pylist()
        assert {tuple(row.values()) for row in rows} == {("db", "elsewhere"), ("db", "t")}
    catalog.table("db.t").write(ROWS)
    partitions = catalog.system_table("sys.partitions").to_arrow(["table_name"], filter="table_name = 't'")
    assert partitions.to_pylist() == [{"table_name": "t"}] * 2


def test_state_of_catalog_needs_no_directory(catalog, table):
    table.write(ROWS)
    assert [(one.database, one.table, one.stored_rows) for one in catalog.state().tables] == [("db", "t", 3)]


def test_secrets_are_not_shown(server, catalog, table):
    options = {**server.options, "token": "very-secret"}
    shown = open_catalog(options=options)
    rows = shown.system_table("sys.catalog_options").to_arrow().to_pylist()
    text = f"{shown!r} {shown.api!r} {shown.table('db.t').store.environment!r} {rows}"
    assert "very-secret" not in text


@pytest.mark.parametrize("actions", ["mark-event", "success-file,mark-event"])
def test_server_marks_partitions_as_done(server, table, actions):
    table.write(ROWS)
    table = table.with_options({"partition.mark-done-action": actions})
    success = f"{table.path}/p=a/_SUCCESS"
    with pytest.raises(UnsupportedError, match="does not support the request"):
        record_done(table.store, [{"p": "a"}])
    assert not table.store.io.exists(success)
    server.done = []
    with pytest.raises(NotFoundError, match="has no rows"):
        record_done(table.store, [{"p": "a"}, {"p": "z"}])
    assert server.done == []
    files = record_done(table.store, [{"p": "a"}, {"p": "b c"}])
    assert server.done == [("db.t", {"p": "a"}), ("db.t", {"p": "b c"})]
    assert len(files) == (2 if "success-file" in actions else 0)
    assert table.store.io.exists(success) == ("success-file" in actions)


def test_commit_names_table_snapshot_and_partitions(server, table):
    table.write(ROWS)
    (body,) = server.commits
    assert body["tableId"] == "id-0"
    assert body["snapshot"]["id"] == 1
    counted = [{k: v for k, v in s.items() if k in ("spec", "recordCount", "fileCount")} for s in body["statistics"]]
    assert counted == [
        {"spec": {"p": "a"}, "recordCount": 2, "fileCount": 1},
        {"spec": {"p": "b c"}, "recordCount": 1, "fileCount": 1},
    ]
    assert all(s["fileSizeInBytes"] > 0 and s["lastFileCreationTime"] > 0 for s in body["statistics"])
    table.drop_partitions([{"p": "a"}])
    assert [(s["spec"], s["recordCount"], s["fileCount"]) for s in server.commits[1]["statistics"]] == [
        ({"p": "a"}, -2, -1)
    ]


def test_pickled_table_commits_by_server(server, table):
    pickle.loads(pickle.dumps(table)).write(ROWS)
    assert len(server.commits) == 1


def test_store_without_conditional_puts_is_committed_to(server, table, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("the server commits")

    monkeypatch.setattr(FileIO, "check_can_commit", refuse)
    assert table.write(ROWS).id == 1
    assert table.delete("k = 1") is not None


def test_lost_commit_is_tried_again(server, catalog, table):
    def other_first(commit):
        catalog.table("db.t").write(ROWS)
        return commit()

    server._lock = type("NoLock", (), {"__enter__": lambda self: self, "__exit__": lambda self, *e: None})()
    server.faults = [other_first]
    assert table.write(ROWS).id == 2
    assert [body["snapshot"]["id"] for body in server.commits] == [1, 1, 2]
    assert catalog.table("db.t").to_arrow().num_rows == 6


def lost_answer(kind):
    def fault(commit):
        commit()
        return kind

    return fault


@pytest.mark.parametrize("answer", [BREAK, (500, {"message": "Service Failure", "code": 500}), (502, None)])
def test_lost_answer_of_a_commit_is_found(server, table, answer):
    server.faults = [lost_answer(answer)]
    assert table.write(ROWS).id == 1
    assert len(server.commits) == 1
    assert table.to_arrow().num_rows == 3


def test_commit_repeated_for_a_busy_server_is_found(server, table, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    server.faults = [lost_answer((503, None, {"Retry-After": "1"}))]
    assert table.write(ROWS).id == 1
    assert len(server.commits) == 2
    assert table.to_arrow().num_rows == 3


def test_commit_without_any_answer_is_unknown_and_keeps_its_files(server, table):
    server.faults = [lambda commit: BREAK] * 9
    with pytest.raises(CommitUnknownError, match="may be done"):
        table.write(ROWS)
    assert files_of(table)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((403, {"message": "no", "code": 403}), PermissionDeniedError),
        ((400, {"message": "no", "code": 400}), InvalidInputError),
        ((404, {"message": "no", "resourceType": "TABLE", "code": 404}), TableChangedError),
    ],
)
def test_refused_commit_leaves_no_file(server, table, answer, kind):
    server.faults = [lambda commit: answer]
    with pytest.raises(kind):
        table.write(ROWS)
    assert not files_of(table)
    assert table.snapshot() is None


def test_refusal_of_a_repeated_commit_is_unknown(server, table, monkeypatch):
    """The first request may have been done, so its files must stay."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    denied = (403, {"message": "no", "code": 403})
    server.faults = [lambda commit: (503, None), *[lambda commit: denied] * 9]
    with pytest.raises(CommitUnknownError):
        table.write(ROWS)
    assert files_of(table)


def test_server_that_refuses_the_base_is_asked_again(server, table):
    server.faults = [lambda commit: (200, {"success": False})]
    assert table.write(ROWS).id == 1
    assert len(server.commits) == 2


def test_table_created_again_is_not_written(catalog, table):
    catalog.drop_table("db.t")
    catalog.create_table("db.t", SCHEMA)
    with pytest.raises(TableChangedError):
        table.write(ROWS)
    assert catalog.table("db.t").snapshot() is None


def test_schema_changes_by_server(server, catalog, table):
    changed = table.alter([AddColumn("x", "INT", "of x"), SetOption("snapshot.num-retained.min", "5")])
    assert [f.name for f in changed.schema.fields] == ["p", "k", "x"]
    assert changed.schema.options.get("snapshot.num-retained.min") == "5"
    asked = len(server.server.asked)
    with pytest.raises(InvalidInputError):
        table.alter([SetOption("bucket", "many")])
    assert len(server.server.asked) == asked
    catalog.drop_table("db.t")
    with pytest.raises(NotFoundError):
        table.alter([AddColumn("y", "INT")])


def test_schema_of_external_table_is_changed_in_its_files(server, catalog, tmp_path):
    table = Table.create(str(tmp_path / "outside"), SCHEMA)
    server.server.script((200, None))
    external = table.with_store(table.store.of_catalog(ExternalEnvironment(catalog.api, Identifier("db", "t"))))
    external.write(ROWS)
    assert [f.name for f in external.alter([AddColumn("x", "INT")]).schema.fields] == ["p", "k", "x"]
    assert server.server.asked[-1].body["changes"][0]["action"] == "addColumn"
    assert server.commits == []


def test_schema_changes_as_json():
    changes = [
        SetOption("a", "b"),
        RemoveOption("a"),
        UpdateTableComment(None),
        DropPrimaryKey(),
        AddColumn("x", "ROW<a INT, b INT>", "c", "1", FIRST),
        DropColumn("x"),
        RenameColumn(["r", "x"], "y"),
        UpdateType("x", "BIGINT"),
        UpdateNullability("x", True),
        UpdateComment("x", "c"),
        UpdateDefault("x", None),
        MoveColumn("x", Position("after", "k")),
    ]
    records = changes_to_json(changes)
    assert [record["action"] for record in records] == [
        *("setOption", "removeOption", "updateComment", "dropPrimaryKey", "addColumn", "updateColumnDefaultValue"),
        *("dropColumn", "renameColumn", "updateColumnType", "updateColumnNullability", "updateColumnComment"),
        *("updateColumnDefaultValue", "updateColumnPosition"),
    ]
    assert records[4]["move"] == {"fieldName": "x", "referenceFieldName": None, "type": "FIRST"}
    assert [field["id"] for field in records[4]["dataType"]["fields"]] == [1, 2]
    assert records[7] == {"action": "renameColumn", "fieldNames": ["r", "x"], "newName": "y"}
    assert records[12]["move"] == {"fieldName": "x", "referenceFieldName": "k", "type": "AFTER"}
    with pytest.raises(UnsupportedError, match=r"cannot move the nested field 'r\.x'"):
        changes_to_json([MoveColumn(["r", "x"], FIRST)])


def test_rollback_by_server(server, catalog, table):
    table.write(ROWS)
    table.write(ROWS)
    assert table.rollback_to(1).id == 1
    assert server.server.asked[-1].path.endswith("/rollback")
    assert catalog.table("db.t").to_arrow().num_rows == 3


def test_staged_table(catalog):
    staged = catalog.stage_table("db.s", SCHEMA, replace_existing=True)
    staged.table.write(ROWS)
    assert staged.publish().to_arrow().num_rows == 3
    with pytest.raises(UnsupportedError, match=r"table 'db\.s' cannot be replaced"):
        catalog.stage_table("db.s", SCHEMA, replace_existing=True)
    catalog.stage_table("db.u", SCHEMA, replace_existing=False).discard()
    assert catalog.list_tables("db") == ["s"]


def test_clone_into_rest_catalog_is_refused(catalog, table):
    table.write(ROWS)
    with pytest.raises(UnsupportedError, match=r"table 'db\.c' cannot be cloned into a REST catalog"):
        catalog.clone("db.t", catalog, "db.c")


def token(seconds, **options):
    return {"token": options, "expiresAtMillis": int((time.time() + seconds) * 1000)}


def test_credentials_are_renewed_in_every_process(server, table):
    server.tokens = [token(7200, **{"s3.access-key": "one"}), token(10800, **{"s3.access-key": "two"})]
    server.defaults["data-token.enabled"] = "true"
    opened = open_catalog(options=server.options).table("db.t")
    io = opened.store.io
    assert isinstance(io, DataTokenIO)
    assert io._options["s3.access-key"] == "one"
    opened.write(ROWS)
    assert io._options["s3.access-key"] == "one"
    io._token = replace(io._token, expires=time.time() + 3590)
    there = pickle.loads(pickle.dumps(opened))
    assert there.to_arrow().num_rows == 3
    assert there.store.io._options["s3.access-key"] == "two"
    assert "two" not in repr((there, there.store, there.store.io))


def test_credentials_of_both_names_are_read(server, catalog, table):
    name = Identifier("db", "t")
    assert DataToken.from_json({"token": {"a": 1}, "expiresAt": 5000}, name) == DataToken({"a": "1"}, 5.0)
    with pytest.raises(RestServerError, match="expected 'token' and 'expiresAtMillis'") as error:
        DataToken.from_json({"token": {"secret": "hidden"}}, name)
    assert "hidden" not in str(error.value)
    server.tokens = [token(9000, **{"s3.secret-key": "t", "akId": "x"})]
    source = TokenSource(catalog.api, name, {"s3.secret-key": "o", "s3.region": "r"}, "oss.example")
    assert source.load().options == {"s3.secret-key": "t", "s3.region": "r", "fs.oss.endpoint": "oss.example"}
