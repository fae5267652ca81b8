"""DELETE of whole partitions, whose rows are not read."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import UnsupportedError
from paimon_core.operations.row_changes import delete as deletes
from paimon_core.operations.row_changes.delete import delete_rows, drop_counted
from paimon_core.predicate.filter import bound_filter

WHOLE_ONLY = {
    "data evolution": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    "first-row": {"merge-engine": "first-row"},
    "aggregation": {"merge-engine": "aggregation"},
    "ignoring": {"ignore-delete": "true"},
}


@pytest.mark.parametrize("name", WHOLE_ONLY)
def test_whole_partitions_are_deleted_where_single_rows_cannot_be(tmp_path, name):
    schema = pa.schema([pa.field("p", pa.int32(), False), pa.field("k", pa.int64(), False), ("v", pa.int64())])
    keys, buckets = ([], {}) if name == "data evolution" else (["p", "k"], {"bucket": "1"})
    options = {**buckets, **WHOLE_ONLY[name]}
    table = Table.create(str(tmp_path / "t"), Schema(schema, keys, ["p"], options))
    for v in (1, 2):
        keys_of_write = [1, 2] if keys else [2 * v - 1, 2 * v]
        table.write(pa.table({"p": [1, 2], "k": keys_of_write, "v": [v, v]}, schema))
    before = table.to_arrow(filter="p = 1").to_pylist()
    with pytest.raises(UnsupportedError):
        table.delete("k = 1")
    for path in (tmp_path / "t" / "p=2").rglob("*.parquet"):
        path.write_bytes(b"unreadable")
    deleted = delete_rows(table.store, bound_filter("p = 2", table.schema.fields))
    assert (deleted.snapshot.commit_kind, deleted.snapshot.operation) == ("OVERWRITE", "DELETE")
    assert deleted.rows in ((2,) if not keys else (1, None))
    assert table.to_arrow().to_pylist() == before
    assert drop_counted(table.store, None).rows in ((2,) if not keys else (1, None))
    assert table.to_arrow().num_rows == 0


def test_rows_added_at_the_same_time_are_dropped_with_their_partition(tmp_path, monkeypatch):
    schema = pa.schema([("p", pa.int32()), ("k", pa.int64())])
    for name, drop, rows in (
        ("plain", lambda table: delete_rows(table.store, bound_filter("p = 1", table.schema.fields)), 2),
        ("counted", lambda table: drop_counted(table.store, bound_filter("p = 1", table.schema.fields)), 2),
    ):
        table = Table.create(str(tmp_path / name), Schema(schema, partition_keys=["p"]))
        table.write(pa.table({"p": [1, 2], "k": [1, 2]}, schema))
        publish, others = deletes.replace_files, [3]

        def late(*args, table=table, publish=publish, others=others, **kwargs):
            if others:
                table.write(pa.table({"p": [1, 2], "k": [others.pop(), 4]}, schema))
            return publish(*args, **kwargs)

        monkeypatch.setattr(deletes, "replace_files", late)
        dropped = drop(table)
        monkeypatch.setattr(deletes, "replace_files", publish)
        assert not others
        assert (dropped.rows, dropped.snapshot.id) == (rows, 3)
        assert ids_of(table) == [2, 4]


def ids_of(table):
    return sorted(table.to_arrow().column("k").to_pylist())
