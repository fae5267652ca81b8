"""Tables for the tests of the command."""

import shutil

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from tests.support.tables import keyed_table, orders


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    made = keyed_table(tmp_path_factory.mktemp("template") / "t", bucket="1")
    for number in range(3):
        made.write(orders((number, "v", number), (9, "w", number)))
    made.tags.create("v2", 2)
    made.branches.create("b", "v2")
    return made.path


@pytest.fixture
def table(tmp_path, template):
    """Three snapshots of a table with a primary key, with a branch and a tag of the second."""
    shutil.copytree(template, tmp_path / "t")
    return Table.open(str(tmp_path / "t"))


@pytest.fixture
def warehouse(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path / "w"))
    for database in ("db", "empty"):
        catalog.create_database(database)
    catalog.create_table("db.t", Schema(pa.schema([("a", pa.int64())]))).write(pa.table({"a": [1]}))
    return catalog.warehouse
