import pickle

import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.table import Table
from tests.support.tables import ORDERS, append_table, keyed_table, orders, rows_of

FIRST = [{"id": 1, "v": "a", "n": 1}, {"id": 2, "v": "b", "n": 20}]


def view(table):
    return Table.open(table.path + "$ro")


def compacted(path):
    """Two rows fully compacted, and two written since."""
    table = keyed_table(path, write_only="true")
    table.write(orders((1, "a", 1), (2, "b", 20)))
    table.compact(full=True)
    table.write(orders((1, "c", 1), (3, "d", 300)))
    return table


def test_view_shows_rows_of_last_full_compaction(tmp_path):
    table = keyed_table(tmp_path / "t", write_only="true")
    assert view(table).to_arrow().num_rows == 0
    table.write(orders((1, "a", 1)))
    assert view(table).to_arrow().num_rows == 0
    table = compacted(tmp_path / "u")
    assert rows_of(view(table).to_arrow()) == FIRST
    assert [row["v"] for row in rows_of(table.to_arrow())] == ["c", "b", "d"]
    table.compact(full=True)
    assert rows_of(view(table).to_arrow()) == rows_of(table.to_arrow())


def test_merges_nothing_and_prunes_by_any_column(tmp_path):
    table = view(compacted(tmp_path / "t"))
    plan = table.scan().plan()
    assert all(split.raw_convertible for split in plan.splits)
    assert {f.level for split in plan.splits for f in split.files} == {5}
    assert table.to_arrow(filter="n > 100").num_rows == 0
    assert table.scan(filter="n > 100").plan().splits == []
    assert table.to_arrow(filter="v = 'b'", columns=["id"]).to_pylist() == [{"id": 2}]
    assert table.to_arrow(limit=1).num_rows == 1


def test_travels_and_takes_options(tmp_path):
    table = compacted(tmp_path / "t")
    table.compact(full=True)
    assert rows_of(view(table).to_arrow(snapshot_id=3)) == FIRST
    assert rows_of(view(table).with_options({"scan.snapshot-id": "2"}).to_arrow()) == FIRST
    assert rows_of(Table.open(f"{table.path}$ro/", options={"scan.snapshot-id": "3"}).to_arrow()) == FIRST
    assert "$ro" in repr(view(table))
    again = pickle.loads(pickle.dumps(view(table).scan(snapshot_id=3)))
    assert again.read_optimized


def test_append_table_has_all_rows(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table.write(orders((2, "b", 2)))
    assert view(table).to_arrow().equals(table.to_arrow())


def test_cannot_be_written(tmp_path):
    table = compacted(tmp_path / "t")
    for change in (
        lambda t: t.write(orders((9, "x", 9))),
        lambda t: t.overwrite(orders((9, "x", 9))),
        lambda t: t.truncate(),
        lambda t: t.compact(),
        lambda t: t.maintenance,
        lambda t: t.drop_partitions([{"p": 1}]),
        lambda t: t.alter([AddColumn("w", "INT")]),
        lambda t: t.writer(),
        lambda t: t.committer(),
        lambda t: t.with_options({"write-only": "false"}).compact(full=True),
    ):
        with pytest.raises(UnsupportedError, match=r"cannot write to .*t\$ro: a read-optimized view can only be read"):
            change(view(table))
    with pytest.raises(InvalidInputError, match="names a view"):
        Table.create(str(tmp_path / "new$ro"), Schema(ORDERS))
    with pytest.raises(NotFoundError, match="no table at"):
        Table.open(str(tmp_path / "absent$ro"))
    assert not (tmp_path / "new$ro").exists()


def test_by_name_and_of_branch(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("db")
    table = compacted(tmp_path / "db.db" / "t")
    assert rows_of(catalog.table("db.t$ro").to_arrow()) == FIRST
    assert rows_of(catalog.table("db.t$RO", {"scan.snapshot-id": "3"}).to_arrow()) == FIRST
    branch = f"{table.path}/branch/branch-b"
    Schemas(table.store.io, branch).commit(table.store.schemas.get(0))
    here, there = table.store.snapshots, Snapshots(table.store.io, branch)
    table.store.io.create_exclusive(there.path(2), here.get(2).to_json())
    for opened in (catalog.table("db.t$branch_b$ro"), Table.open(f"{table.path}$branch_b$ro")):
        assert opened.store.branch == "b"
        assert rows_of(opened.to_arrow()) == FIRST
    with pytest.raises(InvalidInputError, match="'b'"):
        Table.open(f"{table.path}$branch_b$ro", branch="c")
    for path in (f"{table.path}$branch_b", f"{table.path}$branch_b/"):
        assert Table.open(path).store.branch == "b"
        assert rows_of(Table.open(path).to_arrow()) == rows_of(catalog.table("db.t$branch_b").to_arrow())
        with pytest.raises(InvalidInputError, match="names branch 'b' of a table"):
            Table.create(path, Schema(ORDERS))
    with pytest.raises(InvalidInputError, match="'b'"):
        Table.open(f"{table.path}$branch_b", branch="c")


def test_view_is_not_among_system_tables(tmp_path):
    with pytest.raises(InvalidInputError, match=r"use Table\.read_optimized\(\)"):
        compacted(tmp_path / "t").system_table("ro")
