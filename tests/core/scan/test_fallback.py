"""Rows of two branches: the second branch supplies the partitions that the first branch lacks."""

import pyarrow as pa
import pytest

from paimon_core.errors import NotFoundError, UnsupportedError
from paimon_core.schema.change import AddColumn, SetOption, UpdateNullability
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.support.tables import ORDERS, orders


@pytest.fixture
def table(tmp_path):
    """Branch b has the partitions 1 and 2, main has 2 and 3."""
    table = Table.create(str(tmp_path / "t"), Schema(ORDERS, partition_keys=["n"], options={"bucket": "-1"}))
    table.branches.create("b")
    Table.open(table.path, branch="b").write(orders((1, "b", 1), (2, "b", 2)))
    table.write(orders((2, "m", 2), (3, "m", 3)))
    return table


def shown(table, **how):
    return sorted((row["id"], row["v"]) for row in table.to_arrow(**how).to_pylist())


def test_fallback_branch_supplies_missing_partitions(table):
    fallback = table.with_options({"scan.fallback-branch": "b"})
    assert shown(fallback) == [(1, "b"), (2, "m"), (3, "m")]
    assert shown(fallback, filter="n = 2") == [(2, "m")]
    assert shown(fallback, filter="v = 'b'") == [(1, "b")]
    assert sum(batch.num_rows for batch in fallback.to_batches(columns=["v"], limit=2)) == 2
    assert shown(table.with_options({"scan.primary-branch": "b"})) == [(1, "b"), (2, "b"), (3, "m")]


@pytest.mark.parametrize("option", ["scan.fallback-branch", "scan.primary-branch"])
def test_changes_ignore_fallback_branch(table, option):
    both = table.with_options({option: "b"})
    assert both.changes(0).equals(table.changes(0))
    assert both.changes(0, mode="diff").num_rows == 2
    between = both.with_options({"incremental-between": "0,1"})
    assert sorted(row["id"] for row in between.to_arrow().to_pylist()) == [2, 3]
    stream = both.stream(changelog=True)
    first = [row for batch in stream.to_batches() for row in batch.to_pylist()]
    assert sorted(row["id"] for row in first) == [2, 3]
    Table.open(table.path, branch="b").write(orders((8, "b", 8)))
    table.write(orders((9, "m", 9)))
    later = [row for batch in stream.to_batches() for row in batch.to_pylist()]
    assert [row["id"] for row in later] == [9]


def test_fallback_branch_missing_is_refused(table):
    fallback = table.with_options({"scan.fallback-branch": "b"})
    for read in (
        lambda: fallback.to_arrow(snapshot_id=1),
        lambda: fallback.scan().plan(),
        lambda: fallback.explain(),
        lambda: fallback.delete("id = 1"),
    ):
        with pytest.raises(UnsupportedError, match=r"scan\.fallback-branch"):
            read()
    with pytest.raises(NotFoundError, match="no branch 'c'"):
        table.with_options({"scan.fallback-branch": "c"}).to_arrow()
    Table.open(table.path, branch="b").alter([AddColumn("z", parse_type("INT"))])
    with pytest.raises(UnsupportedError, match="other columns or keys"):
        fallback.to_arrow()


def test_null_of_branch_is_not_read_as_a_value(table):
    branch = Table.open(table.path, branch="b").alter([UpdateNullability("id", True)])
    branch.write(orders((7, "b", 7)).set_column(0, "id", pa.nulls(1, pa.int64())))
    with pytest.raises(UnsupportedError, match=r"column 'id' .* is NOT NULL in branch 'main', but may be NULL in"):
        table.with_options({"scan.fallback-branch": "b"}).to_arrow()
    stricter = table.with_options({"scan.primary-branch": "b"})
    with pytest.raises(UnsupportedError, match="column 'id'"):
        stricter.to_arrow()


def test_branch_is_read_by_options_of_its_snapshot(tmp_path):
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}
    schema = Schema(ORDERS, primary_keys=["id", "n"], partition_keys=["n"], options=options)
    table = Table.create(str(tmp_path / "t"), schema)
    table.branches.create("b")
    branch = Table.open(table.path, branch="b")
    branch.write(orders((1, "b", 1), (2, "b", 1)))
    branch.compact(full=True)
    branch.delete("id = 1")
    branch.store.alter([SetOption("deletion-vectors.enabled", "false")])  # Java checks nothing
    assert shown(Table.open(table.path, branch="b")) == [(2, "b")]
    assert shown(Table.open(table.path).with_options({"scan.fallback-branch": "b"})) == [(2, "b")]
