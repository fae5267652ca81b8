"""A catalog named pm in the session of the run; a database for each test."""

import itertools
from contextlib import contextmanager

import pytest

import paimon_spark
from tests.spark.conftest import MODE

NUMBERS = itertools.count()


@contextmanager
def current_database(spark, name):
    """Make a database of a catalog current, and the former catalog and database afterwards."""
    before = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    spark.sql(f"USE {name}")
    yield
    spark.catalog.setCurrentCatalog(before[0])
    spark.catalog.setCurrentDatabase(before[1])


@pytest.fixture(scope="session")
def catalog_name(spark, tmp_path_factory):
    """The catalog ``pm``, installed once for all tests."""
    if MODE == "connect":
        pytest.skip("a catalog needs a classic session")
    paimon_spark.catalog(spark, "pm", warehouse=str(tmp_path_factory.mktemp("warehouse")))
    return "pm"


@pytest.fixture
def sql(spark, catalog_name):
    """A function that runs a statement in a database of the test's own and returns its rows as tuples."""
    spark.catalog.setCurrentCatalog(catalog_name)
    database = f"db{next(NUMBERS)}"
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")

    def run(statement, **parameters):
        return [tuple(row) for row in spark.sql(statement, **parameters).collect()]

    run.database = database
    run.spark = spark
    yield run
    spark.catalog.setCurrentCatalog(catalog_name)
    spark.sql(f"DROP DATABASE {database} CASCADE")
    spark.catalog.setCurrentCatalog("spark_catalog")
