"""Defaults of columns are for new rows: what changes, moves or removes a stored row keeps its NULL."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.schema.change import UpdateDefault
from tests.core.operations.row_changes.test_statements import APPEND, KEYED, data, row, stored_rows, table_of

KINDS = [*APPEND, *KEYED]
WAITING = {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false", "postpone.default-bucket-num": "2"}


def with_defaults(table):
    """The table, with defaults for rows that are written later."""
    return table.alter([UpdateDefault("s", "new"), UpdateDefault("a", "7")])


def in_order(table):
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


@pytest.fixture(params=KINDS)
def table(request, tmp_path):
    """A table whose rows were written before its columns got defaults."""
    table = table_of(tmp_path / "t", request.param)
    table.write(data((1, None, None, "y"), (2, 2, "x", "y"), (3, None, None, "y")))
    return with_defaults(table)


def test_update_keeps_nulls_of_other_columns(table):
    table.update({"p": "changed"}, "k = 1")
    assert stored_rows(table) == [row(1, None, None, "changed"), row(2, 2), row(3, None, None)]


def test_update_keeps_values_of_other_columns(table):
    table.update({"p": "changed"}, "k = 2")
    assert stored_rows(table) == [row(1, None, None), row(2, 2, "x", "changed"), row(3, None, None)]


def test_update_sets_null(table):
    table.update({"s": None, "p": "changed"}, "k = 1")
    assert stored_rows(table) == [row(1, None, None, "changed"), row(2, 2), row(3, None, None)]


def test_only_inserted_rows_of_merge_get_defaults(table):
    source = pa.table({"k": pa.array([1, 5], pa.int32()), "p": ["merged", "merged"]})
    table.upsert(source, "k")
    assert stored_rows(table) == [
        row(1, None, None, "merged"),
        row(2, 2),
        row(3, None, None),
        row(5, 7, "new", "merged"),
    ]


def test_written_nulls_get_defaults(table):
    table.write(data((1, None, None, "again"), (4, None, None, "y")))
    assert row(4, 7, "new") in stored_rows(table)
    assert row(1, 7, "new", "again") in stored_rows(table)


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_delete_finds_row_in_partition_null(tmp_path, engine):
    """With keys that do not name the partition, the row of kind -D goes into the partition of the row."""
    columns = pa.schema([pa.field("k", pa.int32(), False), ("a", pa.int32()), ("p", pa.string())])
    options = {"bucket": "-1", "merge-engine": engine, "partial-update.remove-record-on-delete": "true"}
    table = Table.create(str(tmp_path / "t"), Schema(columns, ["k"], ["p"], options))
    table.write(pa.table([pa.array([1, 2], pa.int32()), pa.array([1, 2], pa.int32()), [None, "x"]], columns))
    table = table.alter([UpdateDefault("p", "x")])
    table.update({"a": 5}, "k = 1")
    assert in_order(table) == [(1, 5, None), (2, 2, "x")]
    table.delete("k = 1")
    assert in_order(table) == [(2, 2, "x")]


def test_rescaled_rows_keep_nulls(tmp_path):
    for name in ("buckets", "deduplicate"):
        table = table_of(tmp_path / name, name)
        table.write(data((1, None, None, "y"), (2, 2, "x", "y")))
        table = with_defaults(table)
        table.maintenance.rescale(3)
        assert stored_rows(table) == [row(1, None, None), row(2, 2)]


@pytest.mark.parametrize("kind", ["rewritten", "marked", "buckets", *KEYED])
def test_restored_rows_keep_nulls(tmp_path, kind):
    table = table_of(tmp_path / "t", kind)
    table.write(data((1, None, None, "y"), (2, 2, "x", "y")))
    table = with_defaults(table)
    before = table.snapshot().id
    table.write(data((9, 9, "z", "y")))
    table.restore(before)
    assert stored_rows(table) == [row(1, None, None), row(2, 2)]


def test_rows_that_wait_for_bucket_keep_nulls(tmp_path):
    columns = pa.schema([pa.field("k", pa.int32(), False), ("a", pa.int32()), ("s", pa.string()), ("p", pa.string())])
    table = Table.create(str(tmp_path / "t"), Schema(columns, ["k"], [], WAITING))
    table.write(data((1, None, None, "y"), (2, 2, "x", "y")))
    table = with_defaults(table)
    table.compact()
    assert stored_rows(table) == [row(1, None, None), row(2, 2)]
