"""DeletedRows: the number of rows that a delete removed, for each kind of table."""

from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.operations.row_changes import delete
from tests.support.tables import append_table, keyed_table, orders

VECTORS = {"deletion-vectors.enabled": "true"}
ROWS = [(number, "v", number) for number in range(10)]


def partitioned(path, keys=(), **options) -> Table:
    columns = pa.schema([pa.field("p", pa.int64(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    return Table.create(str(path), Schema(columns, primary_keys=list(keys), partition_keys=["p"], options=options))


@pytest.mark.parametrize("options", [{}, VECTORS], ids=["files rewritten", "deletion vectors"])
def test_rows_of_append_table_are_counted(tmp_path, options):
    table = append_table(tmp_path / "t", **options)
    table.write(orders(*ROWS))
    table.write(orders((20, "x", 1)))
    assert table.delete_counted("id IN (1, 2, 3)").rows == 3
    assert table.delete_counted("id < 5").rows == 2
    assert table.delete_counted("id < 15").rows == 5
    assert table.delete_counted("id < 15") == delete.DeletedRows(0, None)
    last = table.delete_counted("id = 20")
    assert (last.rows, last.snapshot) == (1, table.snapshot())
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize("options", [{}, VECTORS, {"changelog-producer": "lookup"}], ids=str)
def test_rows_of_keyed_table_are_counted_once_for_each_key(tmp_path, options):
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    table.write(orders(*ROWS))
    table.write(orders(*ROWS[:5]))
    assert table.delete_counted("id < 7").rows == 7
    assert table.delete_counted("id < 7").rows == 0


def test_vector_without_number_of_rows_leaves_count_unknown(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t", **VECTORS)
    table.write(orders(*ROWS))
    messages = delete._messages

    def without_cardinality(*arguments):
        return [
            replace(
                message,
                new_indexes=tuple(
                    replace(index, deletion_ranges=tuple(replace(r, cardinality=None) for r in index.deletion_ranges))
                    for index in message.new_indexes
                ),
            )
            for message in messages(*arguments)
        ]

    monkeypatch.setattr(delete, "_messages", without_cardinality)
    assert table.delete_counted("id = 1").rows is None


def test_rows_of_dropped_partitions_are_counted_from_metadata(tmp_path):
    table = partitioned(tmp_path / "t")
    table.write(pa.table({"p": [1, 1, 2], "id": [1, 2, 3]}))
    deleted = table.delete_counted("p = 1")
    assert (deleted.rows, deleted.snapshot) == (2, table.snapshot())
    assert table.delete_counted("p = 1") == delete.DeletedRows(0, None)


def test_rows_of_dropped_partitions_that_need_merge_are_unknown(tmp_path):
    table = partitioned(tmp_path / "t", ["p", "id"], bucket="1", **{"write-only": "true"})
    for _ in range(2):
        table.write(pa.table({"p": [1, 1], "id": [1, 2]}))
    deleted = table.delete_counted("p = 1")
    assert (deleted.rows, deleted.snapshot) == (None, table.snapshot())
