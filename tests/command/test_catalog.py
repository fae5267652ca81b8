"""The command on a JDBC catalog, whose options are given or in a file."""

import json

import pyarrow as pa
import pytest

from paimon_core import Schema, open_catalog
from tests.support.command import answer, run
from tests.support.rest_server import catalog_server


@pytest.fixture
def jdbc(tmp_path):
    """The options of a catalog with one table, and its warehouse."""
    options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path / 'catalog.db'}"}
    warehouse = str(tmp_path / "w")
    catalog = open_catalog(warehouse, options=options)
    catalog.create_database("shop")
    catalog.create_table("shop.items", Schema(pa.schema([("a", pa.int64())]))).write(pa.table({"a": [1, 2]}))
    return options, warehouse


def test_options_choose_catalog(jdbc, tmp_path, monkeypatch):
    options, warehouse = jdbc
    given = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    assert answer("ls", "-w", warehouse, *given) == [{"database": "shop", "table": "items"}]
    assert answer("read", "shop.items", "-w", warehouse, *given) == [{"a": 1}, {"a": 2}]
    file = tmp_path / "options.json"
    file.write_text(json.dumps(options))
    monkeypatch.setenv("PAIMON_CATALOG_OPTIONS", str(file))
    assert run("create", "other", "-w", warehouse).exit_code == 0
    assert run("rename", "shop.items", "other.things", "-w", warehouse).exit_code == 0
    assert open_catalog(warehouse, options=options).list_tables("other") == ["things"]
    file.write_text("[]")
    refused = run("ls", "-w", warehouse)
    assert (refused.exit_code, "PAIMON_CATALOG_OPTIONS" in refused.output) == (2, True)


def test_options_of_variable_are_not_for_a_directory(jdbc, tmp_path, monkeypatch):
    """The directory is a catalog of its own; the variable has no effect on it."""
    file = tmp_path / "options.json"
    file.write_text(json.dumps({"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path / 'other.db'}"}))
    monkeypatch.setenv("PAIMON_CATALOG_OPTIONS", str(file))
    warehouse = jdbc[1]
    open_catalog(warehouse).create_table("shop.plain", Schema(pa.schema([("a", pa.int64())])), ignore_if_exists=True)
    assert {"database": "shop", "table": "plain"} in answer("ls", warehouse)
    assert [one["table"] for one in answer("show", f"{warehouse}/shop.db")] == ["items", "plain"]
    path = f"table={warehouse}/shop.db/plain"
    assert run("call", "create_tag", path, "tag=v1").exit_code != 0  # it has no snapshot: the table was found
    assert not (tmp_path / "other.db").exists()


def test_rest_catalog(tmp_path, monkeypatch):
    """The warehouse is a name on the server, in the option or in the file of the variable."""
    with catalog_server(tmp_path / "w") as server:
        options = server.options
        given = [word for key, value in options.items() if key != "warehouse" for word in ("-o", f"{key}={value}")]
        catalog = open_catalog(options=options)
        assert "no database in w" in run("ls", "-w", "w", *given).output
        catalog.create_database("shop")
        catalog.create_table("shop.items", Schema(pa.schema([("a", pa.int64())]))).write(pa.table({"a": [1, 2]}))
        assert answer("ls", "-w", "w", *given, "-o", "s3.region=r") == [{"database": "shop", "table": "items"}]
        file = tmp_path / "options.json"
        file.write_text(json.dumps(options))
        monkeypatch.setenv("PAIMON_CATALOG_OPTIONS", str(file))
        assert answer("ls", "shop") == [{"database": "shop", "table": "items"}]
        assert [(one["table"], one["stored_rows"]) for one in answer("show", "shop")] == [("items", 2)]
        assert [one["stored_rows"] for one in answer("ls", "-l")] == [2]
        assert answer("show", "shop.items")["path"] == catalog.location("shop.items")
        assert answer("read", "shop.items") == [{"a": 1}, {"a": 2}]
        refused = run("doctor")
        assert (refused.exit_code, "has no directory to test" in refused.output) == (2, True)


def test_options_of_catalog_need_name(jdbc):
    _, warehouse = jdbc
    refused = run("read", f"{warehouse}/shop.db/items", "-o", "metastore=jdbc")
    assert (refused.exit_code, "by its path" in refused.output) == (2, True)
