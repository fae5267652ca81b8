"""The option target-file-row-num: files roll at this number of rows, and compaction keeps full files."""

import pyarrow as pa
import pytest

from tests.support.tables import append_table, keyed_table, orders

TEN = {"target-file-row-num": "10"}
TABLES = {
    "keys": (keyed_table, {"bucket": "1"}),
    "append": (append_table, {}),
    "ordered": (append_table, {"bucket": "1", "bucket-key": "id"}),
    "columns": (append_table, {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
    "orc": (append_table, {"file.format": "orc"}),
}


def row_counts(table):
    return [f.row_count for split in table.scan().plan().splits for f in split.files]


def some(*ranges):
    return orders(*((k, f"v{k}", k) for r in ranges for k in r))


@pytest.mark.parametrize("name", TABLES)
def test_file_has_at_most_rows_of_option(tmp_path, name):
    make, options = TABLES[name]
    table = make(tmp_path / "t", **options, **TEN)
    rows = some(range(35))
    table.write(rows)
    assert sorted(row_counts(table)) == [5, 10, 10, 10]
    assert table.to_arrow().sort_by("id").column("id").to_pylist() == list(range(35))


@pytest.mark.parametrize("name", TABLES)
def test_compaction_fills_files_and_keeps_full_ones(tmp_path, name):
    make, options = TABLES[name]
    table = make(tmp_path / "t", **options, **TEN, **{"write-only": "true", "compaction.min.file-num": "2"})
    for start in range(0, 40, 4):
        table.write(some(range(start, start + 4)))
    table = table.with_options({"write-only": "false"})
    table.compact(full=True)
    assert max(row_counts(table)) <= 10
    assert len(row_counts(table)) <= 5
    assert sorted(table.to_arrow().column("id").to_pylist()) == list(range(40))
    for _ in range(2):
        table.compact(full=True)
    newest = table.snapshot().id
    table.compact(full=True)
    table.compact()
    assert table.snapshot().id == newest


def test_replaced_columns_are_in_one_file_for_each_range(tmp_path):
    table = append_table(tmp_path / "t", **TABLES["columns"][1])
    table.write(some(range(25)))
    table = table.with_options(TEN)
    ids = table.to_arrow(columns=["_ROW_ID", "id"])
    table.update_columns(pa.table({"_ROW_ID": ids.column("_ROW_ID"), "v": ["new"] * 25}))
    assert set(table.to_arrow().column("v").to_pylist()) == {"new"}
