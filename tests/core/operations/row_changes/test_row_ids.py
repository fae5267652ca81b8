"""Row ids of interleaved partitions are reassigned, and the rows stay the same."""

import pyarrow as pa
import pytest

from paimon_core import CommitConflictError, FileSystemCatalog, InvalidInputError, Schema, Table
from paimon_core.commit.publisher import Publisher

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.string())])
EVOLUTION = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def table_of(tmp_path, partitioned=True, **options):
    catalog = FileSystemCatalog(str(tmp_path / "w"))
    catalog.create_database("db", ignore_if_exists=True)
    keys = ["p"] if partitioned else []
    return catalog.create_table("db.t", Schema(COLUMNS, partition_keys=keys, options=options))


def rows(*ids):
    return pa.table({"id": list(ids), "p": ["ab"[i % 2] for i in ids], "v": [str(i) for i in ids]}, schema=COLUMNS)


def interleaved(tmp_path):
    """Five commits of a row each: ids 0, 2, 4 in partition a, and 1, 3 in b."""
    table = table_of(tmp_path, **EVOLUTION)
    for i in range(5):
        table.write(rows(i))
    return Table.open(table.path)


def ids(table):
    found = Table.open(table.path).to_arrow(columns=["id", "_ROW_ID"]).sort_by("id")
    return found.column("_ROW_ID").to_pylist()


def test_each_partition_gets_range_behind_all_others(tmp_path):
    table = interleaved(tmp_path)
    before = table.to_arrow().sort_by("id")
    assert ids(table) == [0, 1, 2, 3, 4]
    result = table.maintenance.reassign_row_ids()
    assert (result.commit_kind, result.next_row_id) == ("COMPACT", 10)
    assert (result.total_record_count, result.delta_record_count) == (5, 0)
    assert ids(table) == [5, 8, 6, 9, 7]
    assert Table.open(table.path).to_arrow().sort_by("id") == before
    assert table.maintenance.reassign_row_ids() is None
    assert table.verify(deep=True).sound
    table.write(rows(5))
    assert ids(table)[5] == 10


def test_files_of_some_columns_stay_together(tmp_path):
    table = interleaved(tmp_path)
    table.update_columns(pa.table({"_ROW_ID": [0, 3], "v": ["new 0", "new 3"]}))
    table.write(rows(10, 11, 12, 13))
    shown = Table.open(table.path).to_arrow().sort_by("id")
    Table.open(table.path).maintenance.reassign_row_ids()
    assert Table.open(table.path).to_arrow().sort_by("id") == shown
    actual = Table.open(table.path).to_arrow(columns=["p", "_ROW_ID"]).sort_by("_ROW_ID")
    assert actual.column("p").to_pylist() == ["a"] * 5 + ["b"] * 4
    assert len(set(actual.column("_ROW_ID").to_pylist())) == 9
    updated = Table.open(table.path)
    updated.update_columns(pa.table({"_ROW_ID": ids(updated)[:1], "v": ["again"]}))
    assert Table.open(table.path).to_arrow(filter="id = 0").column("v").to_pylist() == ["again"]
    assert Table.open(table.path).verify(deep=True).sound


def test_only_chosen_partitions(tmp_path):
    table = interleaved(tmp_path)
    assert table.maintenance.reassign_row_ids(partitions=[{"p": "c"}]) is None
    table.maintenance.reassign_row_ids(filter="p = 'a'")
    assert ids(table) == [5, 1, 6, 3, 7]
    assert table.maintenance.reassign_row_ids() is None  # b has no other between its own now


def test_separate_ranges_stay(tmp_path):
    table = table_of(tmp_path, **EVOLUTION)
    table.write(rows(0, 2, 4))
    table.write(rows(1, 3))
    assert table.maintenance.reassign_row_ids() is None
    assert table_of(tmp_path / "empty", **EVOLUTION).maintenance.reassign_row_ids() is None


@pytest.mark.parametrize(
    ("options", "named"),
    [({}, "'row-tracking.enabled'"), ({"row-tracking.enabled": "true"}, "'data-evolution.enabled'")],
)
def test_tables_without_data_evolution_are_refused(tmp_path, options, named):
    table = table_of(tmp_path, **options)
    table.write(rows(0))
    with pytest.raises(InvalidInputError, match=named):
        table.maintenance.reassign_row_ids()
    with pytest.raises(InvalidInputError, match="p"):
        interleaved(tmp_path / "i").maintenance.reassign_row_ids(filter="id = 1")


def test_writer_of_columns_that_read_old_ids_conflicts(tmp_path, monkeypatch):
    table = interleaved(tmp_path)
    commit = Publisher.publish

    def late(self, identity, decide, kind, *args):
        if kind == "APPEND" and not raced:
            raced.append(True)
            Table.open(table.path).maintenance.reassign_row_ids()
        return commit(self, identity, decide, kind, *args)

    raced = []
    monkeypatch.setattr(Publisher, "publish", late)
    with pytest.raises(CommitConflictError):
        table.update_columns(pa.table({"_ROW_ID": [0], "v": ["lost?"]}))
    assert raced
    assert Table.open(table.path).verify(deep=True).sound
