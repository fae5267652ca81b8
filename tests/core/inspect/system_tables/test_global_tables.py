"""The system tables of a catalog."""

import pickle

import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.catalog.global_tables import GLOBAL_TABLES
from paimon_core.errors import InvalidInputError
from paimon_core.schema.schema import Schema
from tests.core.inspect.system_tables.test_metadata_tables import partitioned
from tests.support.tables import ORDERS, orders


@pytest.fixture
def catalog(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path), {"s3.secret-key": "hush"}, {"table-default.bucket": "1"})
    for database in ("a", "b"):
        catalog.create_database(database)
    catalog.create_table("a.t", Schema(ORDERS, primary_keys=["id"]))
    partitioned(tmp_path / "b.db" / "p")
    return catalog


def shown(catalog, name, **asked):
    return catalog.system_table(f"sys.{name}").to_arrow(**asked).to_pylist()


def test_sys_tables_lists_all_tables(catalog):
    rows = shown(catalog, "tables")
    assert [(r["database_name"], r["table_name"], r["partitioned"], r["primary_key"]) for r in rows] == [
        ("a", "t", False, True),
        ("b", "p", True, False),
    ]
    assert {r["table_type"] for r in rows} == {"table"}
    assert [r["table_name"] for r in shown(catalog, "tables", filter="database_name = 'b'")] == ["p"]


def test_filter_opens_only_these_tables(catalog, tmp_path):
    (tmp_path / "a.db" / "t" / "schema" / "schema-0").write_text("unreadable")
    for text in ("database_name = 'b'", "table_name IN ('p')"):
        assert [r["table_name"] for r in shown(catalog, "tables", filter=text)] == ["p"]


def test_partitions_and_options(catalog):
    catalog.table("a.t").write(orders((1, "a", 1)))  # without partitions
    names = [(r["table_name"], r["partition_name"], r["record_count"]) for r in shown(catalog, "partitions")]
    assert sorted(names) == [
        ("p", "p=__DEFAULT_PARTITION__/d=__DEFAULT_PARTITION__", 1),
        ("p", "p=a, b/d=20484", 1),
        ("p", "p=x/d=20484", 1),
    ]
    created = catalog.system_table("b.p$files").to_arrow(columns=["creation_time"]).num_rows
    assert created == 3
    options = {(r["table_name"], r["key"]): r["value"] for r in shown(catalog, "all_table_options")}
    assert options["t", "bucket"] == "1"
    assert options["p", "path"].endswith("b.db/p")
    of_catalog = {r["key"]: r["value"] for r in shown(catalog, "catalog_options")}
    assert of_catalog == {"table-default.bucket": "1", "warehouse": catalog.warehouse}


@pytest.mark.parametrize("name", GLOBAL_TABLES)
def test_they_travel_and_cannot_be_written(catalog, name):
    table = pickle.loads(pickle.dumps(catalog.system_table(f"sys.{name.upper()}")))
    assert table.to_arrow().schema == table.arrow_schema
    assert table.to_arrow(limit=1).num_rows == 1


def test_unknown_global_table_names_nearest(catalog):
    with pytest.raises(InvalidInputError, match=r"'sys.table'; did you mean 'sys.tables'\?"):
        catalog.system_table("sys.table")
    with pytest.raises(InvalidInputError, match="no branches"):
        catalog.system_table("sys.tables$files")
