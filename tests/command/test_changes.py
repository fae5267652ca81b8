"""Create, change, rename and drop databases and tables, and import rows of files."""

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema
from tests.support.command import answer, run
from tests.support.tables import files_below

COLUMNS = ("-c", "id BIGINT NOT NULL", "-c", "`v` STRING", "-c", "tags ARRAY<STRING>")


@pytest.fixture
def catalog(warehouse):
    return FileSystemCatalog(warehouse)


def test_table_has_columns_keys_and_options(catalog):
    given = ("--primary-key", "id,v", "--partition-by", "v", "--set", "bucket=2", "--set", "team=web", "--comment", "c")
    assert answer("create", "db.o", "-w", catalog.warehouse, *COLUMNS, *given) == {"created": True}
    schema = catalog.table("db.o").schema
    assert [str(f.type) for f in schema.fields] == ["BIGINT NOT NULL", "STRING NOT NULL", "ARRAY<STRING>"]
    assert (schema.primary_keys, schema.partition_keys, schema.comment) == (("id", "v"), ("v",), "c")
    assert (schema.options["bucket"], schema.options["team"]) == ("2", "web")
    assert answer("create", "db.o", "-w", catalog.warehouse, *COLUMNS, "--if-not-exists")["created"] is False


def test_database_has_properties(catalog):
    answer("create", "shop", "-w", catalog.warehouse, "--set", "team=web", "--comment", "orders")
    assert catalog.database_properties("shop") == {"team": "web", "comment": "orders"}
    assert answer("create", "shop", "-w", catalog.warehouse, "--if-not-exists")["created"] is False


def test_changes_are_made_in_one_step(catalog):
    changes = ("--rename", "a=b", "--type", "b=DECIMAL(20, 0)", "--column-comment", "b=the key", "--add", "n INT")
    more = ("--set", "team=web", "--comment", "new")
    result = answer("alter", "db.t", "-w", catalog.warehouse, *changes, *more)
    assert result == {"schema_id": 1}
    schema = catalog.table("db.t").schema
    assert [(f.name, str(f.type), f.description) for f in schema.fields] == [
        ("b", "DECIMAL(20, 0)", "the key"),
        ("n", "INT", None),
    ]
    assert (schema.options["team"], schema.comment) == ("web", "new")
    answer("alter", "db.t", "-w", catalog.warehouse, "--drop", "n", "--unset", "team")
    schema = catalog.table("db.t").schema
    assert ([f.name for f in schema.fields], "team" in schema.options) == (["b"], False)


def test_table_is_renamed(catalog):
    assert answer("rename", "db.t", "empty.u", "-w", catalog.warehouse) == {"to": "empty.u"}
    assert catalog.table("empty.u").to_arrow().num_rows == 1
    assert not catalog.table_exists("db.t")


def test_tables_and_databases_are_dropped(catalog):
    assert answer("drop", "db.t", "-w", catalog.warehouse, "--yes")["dropped"] == ["db.t"]
    assert answer("drop", "db.t", "-w", catalog.warehouse, "--yes", "--if-exists")["dropped"] == []
    answer("create", "db.o", "-w", catalog.warehouse, *COLUMNS)
    assert answer("drop", "db", "-w", catalog.warehouse, "--yes", "--cascade")["dropped"] == ["db.o"]
    assert answer("drop", "empty", "-w", catalog.warehouse, "-y")["dropped"] == []
    assert catalog.list_databases() == []


def test_drop_asks_on_terminal(catalog, monkeypatch):
    monkeypatch.setattr("paimon_command.commands.changing._is_terminal", lambda: True)
    for reply, code in (("n\n", 1), ("y\n", 0)):
        result = run("drop", "db.t", "-w", catalog.warehouse, input=reply)
        assert result.exit_code == code
        assert "Drop table db.t? It cannot be undone [y/N]" in result.output
        assert catalog.table_exists("db.t") is bool(code)


@pytest.fixture
def csv(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,n\n5,x\n6,\n")
    return file


def test_import_into_new_and_old_tables(catalog, csv):
    created = ("--create", "--primary-key", "a", "--set", "bucket=1")
    result = answer("import", "db.o", csv, "-w", catalog.warehouse, *created)
    assert result == {"dry_run": False, "files": 1, "rows": 2, "snapshot": 1}
    table = catalog.table("db.o")
    assert [str(f.type) for f in table.schema.fields] == ["BIGINT NOT NULL", "STRING"]
    assert answer("import", "db.o", csv, "-w", catalog.warehouse)["snapshot"] == 2
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["a"]) == [{"a": 5, "n": "x"}, {"a": 6, "n": None}]
    csv.write_text("a\n7\n")
    answer("import", "db.t", csv, "-w", catalog.warehouse, "--overwrite")
    assert catalog.table("db.t").to_arrow().to_pylist() == [{"a": 7}]


def test_import_that_fails_leaves_no_table(catalog, tmp_path):
    (tmp_path / "a.csv").write_text("a,n\n" + "1,1\n" * 300_000 + "x,1\n")  # the type is known from the first rows
    result = run("import", "db.o", tmp_path / "a.csv", "-w", catalog.warehouse, "--create")
    assert (result.exit_code, "CSV conversion error to int64: invalid value 'x'" in result.output) == (1, True)
    assert not catalog.table_exists("db.o")
    assert not any("o/" in name for name in files_below(catalog.warehouse))


def test_import_does_not_touch_table_that_others_create_meanwhile(catalog, csv, monkeypatch):
    """Another process creates the table, and writes a row, after the import has looked."""
    stage = FileSystemCatalog.stage_table

    def staged(*arguments, **how):
        prepared = stage(*arguments, **how)
        catalog.create_table("db.o", Schema(pa.schema([("a", pa.int64())]))).write(pa.table({"a": [1]}))
        return prepared

    monkeypatch.setattr(FileSystemCatalog, "stage_table", staged)
    result = run("import", "db.o", csv, "-w", catalog.warehouse, "--create")
    assert (result.exit_code, "was created by another process" in result.output) == (1, True), result.output
    assert catalog.table("db.o").to_arrow().to_pylist() == [{"a": 1}]


def test_names_with_spaces_and_backticks(catalog):
    answer("create", "db.o", "-w", catalog.warehouse, "-c", "`a b``c`  DECIMAL(10, 2) NOT NULL", "-c", "ü STRING")
    assert [f.name for f in catalog.table("db.o").schema.fields] == ["a b`c", "ü"]


DRY = (
    ["create", "other", "--set", "a=b"],
    ["create", "db.o", *COLUMNS],
    ["alter", "db.t", "--add", "n INT"],
    ["rename", "db.t", "db.u"],
    ["drop", "db.t"],
    ["drop", "db", "--cascade"],
    ["import", "db.o", "{csv}", "--create"],
)


@pytest.mark.parametrize("arguments", DRY, ids=lambda arguments: " ".join(arguments[:2]))
def test_dry_run_changes_nothing(catalog, csv, arguments):
    before = files_below(catalog.warehouse)
    given = [one.format(csv=csv) for one in arguments]
    assert answer(*given, "-w", catalog.warehouse, "--dry-run")["dry_run"] is True
    assert files_below(catalog.warehouse) == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["create", "db"], 1, "database 'db' exists already"),
        (["create", "db.t", *COLUMNS], 1, "table 'db.t' exists already"),
        (["create", "db.o"], 2, "a table needs columns"),
        (["create", "db.o", "-c", "id"], 2, "'id' is not 'NAME TYPE'"),
        (["create", "db.o", "-c", "id BIGNIT"], 1, "BIGNIT"),
        (["create", "db.o", *COLUMNS, "--set", "bukcet=1"], 1, "did you mean 'bucket'?"),
        (["create", "db.o", *COLUMNS, "--set", "bukcet=1", "--dry-run"], 1, "did you mean 'bucket'?"),
        (["create", "no.o", *COLUMNS], 1, "no database 'no'"),
        (["create", "no.o", *COLUMNS, "--dry-run"], 1, "no database 'no'"),
        (["create", "sys", "--dry-run"], 1, "'sys' cannot name a database: it is reserved"),
        (["create", "a/b", "--dry-run"], 1, "a/b"),
        (["import", "no.o", "{csv}", "--create", "--dry-run"], 1, "no database 'no'"),
        (["import", "db.t", "{csv}", "s3://b/x.csv"], 2, "the files are in several stores"),
        (["create", "other", *COLUMNS], 2, "'other' is a database, which has no --column"),
        (["alter", "db.t"], 2, "nothing to change"),
        (["alter", "db.t", "--drop", "q"], 1, "q"),
        (["alter", "db.t", "--drop", "q", "--dry-run"], 1, "q"),
        (["rename", "db", "dc"], 2, "databases keep their names"),
        (["rename", "db.x", "db.y", "--dry-run"], 1, "no table 'db.x'"),
        (["drop", "db.t"], 2, "confirm it with --yes"),
        (["drop", "db", "--yes"], 1, "database 'db' has 1 table"),
        (["drop", "db.x", "--yes"], 1, "no table 'db.x'"),
        (["import", "db.t", "{csv}", "--primary-key", "a"], 2, "--primary-key needs --create"),
        (["import", "db.t", "{csv}", "--set", "a=b"], 2, "--set needs --create"),
        (["import", "db.t", "{csv}", "--delimiter", "||"], 2, "--delimiter is one character"),
        (["import", "db.t", "{csv}", "--create"], 1, "table 'db.t' exists already"),
        (["import", "db.t", "{csv}"], 1, "has columns ['n'] that the table lacks"),
        (["import", "db.x", "{csv}"], 1, "no table 'db.x'"),
    ],
)
def test_mistakes_are_named(catalog, csv, arguments, code, message):
    before = files_below(catalog.warehouse)
    result = run(*(one.format(csv=csv) for one in arguments), "-w", catalog.warehouse)
    assert result.exit_code == code, result.output
    assert message in result.output
    assert files_below(catalog.warehouse) == before
