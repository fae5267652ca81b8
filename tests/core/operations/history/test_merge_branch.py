"""Merging branches: every row arrives once, nothing else changes, and what is not certain is refused."""

from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.faulty_io import Crash, FaultyIO
from tests.support.tables import ORDERS, append_table, files_below, keyed_table, orders, rows_of


def branch(table: Table, name: str = "b") -> Table:
    return Table.open(table.path, branch=name)


def ids(table: Table) -> list[int]:
    return [row["id"] for row in rows_of(table.to_arrow())]


def split_table(path, **options: str) -> Table:
    """A table and a branch from its first snapshot; each has got a row since."""
    table = append_table(path, **options)
    table.write(orders((1, "both", 0)))
    table.tags.create("one")
    table.branches.create("b", "one")
    table.write(orders((2, "main", 0)))
    branch(table).write(orders((3, "branch", 0)))
    return table


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "id"}], ids=["unaware", "buckets"])
def test_rows_of_branch_arrive_once(tmp_path, options):
    table = split_table(tmp_path / "t", **options)
    before = files_below(table.path)
    assert table.branches.merge("b", dry_run=True) == 1
    assert files_below(table.path) == before
    assert table.branches.merge("b") == 1
    assert (ids(table), ids(branch(table))) == ([1, 2, 3], [1, 3])
    assert table.snapshot().commit_kind == "APPEND"
    assert (table.snapshot().total_record_count, table.snapshot().delta_record_count) == (3, 1)
    assert table.branches.merge("b") == 0
    assert table.branches.merge("main", "b") == 1
    branch(table).write(orders((4, "branch", 0)))
    assert table.branches.merge("b") == 1
    assert ids(table) == ids(branch(table)) == [1, 2, 3, 4]
    assert table.verify(deep=True).sound


def test_branch_without_rows_at_its_start_and_one_without_any(tmp_path):
    table = append_table(tmp_path / "t")
    table.branches.create("b")
    assert table.branches.merge("b") == 0
    branch(table).write(orders((3, "branch", 0)))
    table.write(orders((1, "main", 0)))
    assert table.branches.merge("b") == 1
    assert ids(table) == [1, 3]


def test_shared_files_outlive_either_branch(tmp_path):
    table = split_table(tmp_path / "t")
    table.branches.merge("b")
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    table.maintenance.remove_orphan_files(older_than=0)
    assert (ids(table), ids(branch(table))) == ([1, 2, 3], [1, 3])
    table.branches.delete("b")
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("who", ["main", "b"])
@pytest.mark.parametrize("change", ["compact", "delete", "overwrite"])
def test_branch_that_replaced_files_is_refused(tmp_path, who, change):
    table = split_table(tmp_path / "t")
    one = table if who == "main" else branch(table)
    if change == "compact":
        one.compact(full=True)
    elif change == "delete":
        one.delete("id = 1")
    else:
        one.overwrite(orders((9, "new", 0)))
    before = files_below(table.path)
    with pytest.raises(UnsupportedError, match=f"of branch '{who}' .* is (COMPACT|OVERWRITE)"):
        table.branches.merge("b")
    assert files_below(table.path) == before


def test_deleted_rows_are_not_brought_back(tmp_path):
    table = split_table(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    branch(table).delete("id = 3")
    with pytest.raises(UnsupportedError, match="cannot be merged"):
        table.branches.merge("b")


def test_history_that_has_expired_in_part_is_refused(tmp_path):
    table = split_table(tmp_path / "t")
    table.write(orders((4, "main", 0)))
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(InvalidInputError, match="has expired"):
        table.branches.merge("b")


def test_branches_that_were_altered_apart_are_refused(tmp_path):
    table = split_table(tmp_path / "t")
    branch(table).alter([AddColumn("c", "INT")])
    with pytest.raises(InvalidInputError, match="differ in columns"):
        table.branches.merge("b")
    table = table.alter([AddColumn("d", "INT")])
    with pytest.raises(InvalidInputError, match="differ in columns"):
        table.branches.merge("b")


def test_tables_and_names_that_cannot_be_merged(tmp_path):
    keyed = keyed_table(tmp_path / "k")
    keyed.branches.create("b")
    with pytest.raises(UnsupportedError, match="a primary key"):
        keyed.branches.merge("b")
    tracked = append_table(tmp_path / "r", **{"row-tracking.enabled": "true"})
    tracked.branches.create("b")
    with pytest.raises(UnsupportedError, match="row ids"):
        tracked.branches.merge("b")
    table = append_table(tmp_path / "t")
    table.branches.create("b")
    with pytest.raises(NotFoundError, match="'c'"):
        table.branches.merge("c")
    with pytest.raises(NotFoundError, match="'c'"):
        table.branches.merge("b", "c")
    with pytest.raises(InvalidInputError, match="into itself"):
        table.branches.merge("b", "b")


def test_merge_that_dies_ends_same_when_run_again(tmp_path):
    table = split_table(tmp_path / "t")
    del table
    root, at = str(tmp_path / "t"), 0
    while True:
        io = FaultyIO(FileIO.of(root), at, "crash")
        try:
            _merge(root, io)
        except Crash:
            assert ids(Table.open(root)) in ([1, 2], [1, 2, 3])
            assert ids(branch(Table.open(root))) == [1, 3]
            at += 1
            continue
        break
    assert at > 5
    assert ids(Table.open(root)) == [1, 2, 3]
    assert Table.open(root).verify(deep=True).sound


def _merge(root: str, io: FileIO) -> None:
    store = replace(Table.open(root).store, io=io)
    Table(store).branches.merge("b")


def test_branch_of_partitioned_table_is_merged(tmp_path):
    schema = pa.schema([("p", pa.string()), *ORDERS])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"]))
    table.branches.create("b")
    rows = orders((1, "a", 1), (2, "b", 2))
    branch(table).write(rows.add_column(0, "p", pa.array(["x", None])))
    assert table.branches.merge("b") == 2
    assert sorted(table.to_arrow()["p"].to_pylist(), key=str) == [None, "x"]
