"""The command on a JDBC catalog, whose options are given or in a file."""

import json

import pyarrow as pa
import pytest

from paimon_core import Schema, open_catalog
from tests.support.command import answer, run


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


def test_options_of_catalog_need_name(jdbc):
    _, warehouse = jdbc
    refused = run("read", f"{warehouse}/shop.db/items", "-o", "metastore=jdbc")
    assert (refused.exit_code, "by its path" in refused.output) == (2, True)
