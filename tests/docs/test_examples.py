"""Examples in the docstrings of classes that users touch run, and print what the docstring shows."""

import doctest
import inspect

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, MergeBuilder, Schema, Table, col
from paimon_core.commit.table_commit import TableCommit
from paimon_core.operations.history.table_branches import TableBranches
from paimon_core.operations.history.table_tags import TableTags
from paimon_core.operations.table_maintenance import TableMaintenance
from paimon_core.read.stream import Stream
from paimon_core.scan.table_scan import TableScan
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.write.table_write import TableWrite
from paimon_spark import PaimonTable
from tests.spark.conftest import spark

__all__ = ["spark"]  # a fixture
WAREHOUSE = "/tmp/warehouse"
WITH_EXAMPLES = [
    FileSystemCatalog,
    Schema,
    Table,
    Table.update,
    MergeBuilder,
    TableTags,
    TableBranches,
    TableMaintenance,
    TableScan,
    TableWrite,
    TableCommit,
    Stream,
    Snapshot,
    col,
]


@pytest.fixture
def warehouse_of_examples(tmp_path):
    """A warehouse with the table `shop.items`: two snapshots, two rows."""
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("shop")
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    table = catalog.create_table("shop.items", Schema(columns, primary_keys=["id"], options={"bucket": "1"}))
    table.write(pa.table({"id": [1, 2], "name": ["pen", "ink"]}))
    table.write(pa.table({"id": [2], "name": ["blue ink"]}))
    return str(tmp_path)


def run(member, warehouse, **names):
    """Run the examples of a docstring below a directory; return the number of lines that were compared."""
    text = inspect.getdoc(member).replace(WAREHOUSE, warehouse)
    test = doctest.DocTestParser().get_doctest(text, names, member.__name__, None, 0)
    printed = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=printed.append)
    assert not result.failed, "".join(printed)
    return result.attempted


@pytest.mark.parametrize("member", WITH_EXAMPLES, ids=lambda member: member.__name__)
def test_examples_of_docstring_print_their_output(member, warehouse_of_examples):
    assert run(member, warehouse_of_examples) >= 2


@pytest.mark.spark
@pytest.mark.more
def test_examples_of_paimon_table_print_their_output(spark, warehouse_of_examples):
    assert run(PaimonTable, warehouse_of_examples, spark=spark) >= 3
