"""One metastore for all tests, with a database of its own for each."""

import itertools

import pytest

from paimon_core import open_catalog
from tests.support.places.hive import HiveJudge, metastore

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def hive(tmp_path_factory):
    """The URI of a metastore 3.1.3, which gives up the lock of a dead process after 5 seconds."""
    with metastore(tmp_path_factory.mktemp("hive"), lock_seconds=5) as uri:
        yield uri


@pytest.fixture(scope="session")
def hive_warehouse(tmp_path_factory):
    """The warehouse of all catalogs."""
    return str(tmp_path_factory.mktemp("hive_warehouse"))


@pytest.fixture
def options(hive):
    """The options of a catalog whose commits take Hive's lock."""
    return {"metastore": "hive", "uri": hive, "lock.enabled": "true", "lock-check-max-sleep": "200 ms"}


@pytest.fixture
def catalog(hive_warehouse, options):
    """A catalog on the metastore."""
    return open_catalog(hive_warehouse, options=options)


@pytest.fixture
def database(catalog):
    """The name of a new database."""
    name = f"db{next(_NUMBERS)}"
    catalog.create_database(name)
    return name


@pytest.fixture(scope="session")
def java(hive, hive_warehouse, tmp_path_factory):
    """Java's HiveCatalog on the same metastore and warehouse."""
    with HiveJudge(hive, hive_warehouse, tmp_path_factory.mktemp("judge") / "log", lock_enabled="true") as judge:
        yield judge
