"""A warehouse whose directory does not exist, and names that are close to existing names."""

import warnings

import pytest

import paimon_spark
from paimon_core.options import warn_once

pytestmark = pytest.mark.spark


@pytest.fixture
def new_warehouse(spark, catalog_name, tmp_path):
    """The catalog ``fresh`` of a missing directory, and the warnings of its installation."""
    warn_once.cache_clear()
    path = tmp_path / "typo"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            paimon_spark.catalog(spark, "fresh", warehouse=str(path))
    return path, [str(warning.message) for warning in caught if "warehouse" in str(warning.message)]


def test_new_warehouse_warns_once_and_is_made_by_first_create(spark, new_warehouse):
    path, messages = new_warehouse
    assert messages == [f"the warehouse {path} is new and empty: the first CREATE makes its directory"]
    assert [row[0] for row in spark.sql("SHOW DATABASES IN fresh").collect()] == ["default"]
    assert spark.sql("SHOW TABLES IN fresh.default").collect() == []
    assert not spark.catalog.tableExists("fresh.default.t")
    assert spark.sql("DESCRIBE DATABASE fresh.default").count() > 0
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("fresh.default.t")
    assert not path.exists()
    spark.sql("CREATE TABLE fresh.default.t AS SELECT 1 AS id")
    assert spark.table("fresh.default.t").count() == 1
    assert {entry.name for entry in path.iterdir()} == {"default.db"}


def test_first_database_of_new_warehouse_makes_default(spark, new_warehouse):
    path, _ = new_warehouse
    spark.sql("CREATE DATABASE fresh.shop")
    assert {entry.name for entry in path.iterdir()} == {"default.db", "shop.db"}
    spark.sql("DROP DATABASE fresh.default")
    assert [row[0] for row in spark.sql("SHOW DATABASES IN fresh").collect()] == ["shop"]


def test_catalog_without_database_names_its_databases(sql, catalog_name):
    with pytest.raises(Exception, match=r"pm is a catalog, and its databases are .*SHOW TABLES IN pm\."):
        sql("SHOW TABLES IN pm")


def test_misspelt_name_has_near_name(sql):
    sql("CREATE TABLE orders (id BIGINT)")
    database = sql.database
    near = rf"Did you mean pm.{database}.orders\? SQLSTATE|Did you mean pm.{database}.orders\?\n"
    for name in ("ordrs", f"pm.{database}.oders"):
        with pytest.raises(Exception, match=near):
            sql(f"SELECT * FROM {name}")
    sql.spark.catalog.setCurrentCatalog("spark_catalog")
    with pytest.raises(Exception, match=rf"Did you mean pm.{database}\?"):
        sql(f"SHOW TABLES IN pm.{database}x")
    sql("USE pm." + database)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
        sql("SELECT * FROM nothing_like_it")
    assert "Did you mean" not in str(caught.value)
    sql("DROP TABLE IF EXISTS ordrs")
    assert not sql.spark.catalog.tableExists("ordrs")
