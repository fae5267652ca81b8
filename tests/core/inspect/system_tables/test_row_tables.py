"""The system tables of rows: audit_log, binlog and row_tracking."""

import pickle

import pyarrow as pa
import pytest

from paimon_core.errors import OutOfRangeError, UnsupportedError
from paimon_core.inspect.system_tables.row_tables import packed
from paimon_core.types.datatype import BIGINT, STRING, DataField
from tests.support.tables import append_table, keyed_table, orders, rows_of

FIELDS = (DataField(0, "id", BIGINT), DataField(1, "v", STRING))


def audit(table, **asked):
    return rows_of(table.system_table("audit_log").to_arrow(**asked))


def changed(path, **options):
    """Row 1 is updated, row 2 deleted, row 3 inserted."""
    table = keyed_table(path, **options)
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.write(orders((1, "c", 1), (3, "d", 3)))
    table.write(orders((2, "b", 2)), ["-D"])
    return table


@pytest.mark.parametrize("options", [{"changelog-producer": "input"}, {"write-only": "true"}, {"bucket": "1"}], ids=str)
def test_audit_log_shows_kind_of_newest_row_and_deletes(tmp_path, options):
    table = changed(tmp_path / "t", **options)
    table.write(orders((3, "e", 3)), ["+U"])
    actual = table.system_table("audit_log").to_arrow()
    assert actual.schema.names == ["rowkind", "id", "v", "n"]
    newest = {1: "+I", 3: "+U"}
    shown = [{"rowkind": newest[row["id"]], **row} for row in rows_of(table.to_arrow())]
    deleted = {"rowkind": "-D", "id": 2, "v": "b", "n": 2}
    assert rows_of(actual) == [shown[0], deleted, shown[1]]
    assert sorted(table.system_table("audit_log").to_arrow(columns=["rowkind"]).column(0).to_pylist()) == [
        "+I",
        "+U",
        "-D",
    ]
    assert audit(table, columns=["id"], filter="rowkind = '+U' AND v = 'e'") == [{"id": 3}]
    assert audit(table, filter="rowkind = '-D'") == [deleted]
    assert audit(table, filter="id = 2") == audit(table, filter="n = 2") == [deleted]
    assert [row["rowkind"] for row in audit(table, snapshot_id=1)] == ["+I", "+I"]
    table.with_options({"write-only": "false"}).compact(full=True)
    assert audit(table) == shown


def test_audit_log_of_compacted_deletes(tmp_path):
    """Tables whose reads pass over level 0 show what is compacted; lookups drop deletes at the highest level."""
    for options in ({"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}):
        table = changed(tmp_path / f"t{len(options)}{next(iter(options))}", **options)
        assert audit(table) == [{"rowkind": "+I", **row} for row in rows_of(table.to_arrow())]


def test_audit_log_of_append_table(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    assert audit(table) == [{"rowkind": "+I", "id": 1, "v": "a", "n": 1}]


def test_filter_on_key_prunes_files(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 1)))
    table.write(orders((9, "b", 2)))
    read = table.system_table("audit_log").read(filter="id = 9")
    assert [f.row_count for split in read.plan() for f in split.files] == [1]
    assert sum(len(split.files) for split in table.system_table("audit_log").read().plan()) == 2
    again = pickle.loads(pickle.dumps(read))
    (part,) = pickle.loads(pickle.dumps(read.plan()))
    assert [b.to_pylist() for b in again.to_batches(part)] == [[{"rowkind": "+I", "id": 9, "v": "b", "n": 2}]]


def test_audit_log_of_changes_keeps_their_kinds(tmp_path):
    table = changed(tmp_path / "t", **{"changelog-producer": "input"})
    between = table.with_options({"incremental-between": "1,3"})
    assert between.system_table("audit_log").to_arrow().to_pylist() == table.changes(1, 3).to_pylist()
    kinds = [(r["rowkind"], r["id"]) for r in audit(between)]
    assert kinds == [("+I", 1), ("-D", 2), ("+I", 3)]
    assert [r["id"] for r in audit(between, filter="rowkind = '-D'")] == [2]
    assert [r["rowkind"] for r in audit(between, columns=["rowkind", "id"], filter="n >= 2")] == ["-D", "+I"]
    with pytest.raises(OutOfRangeError):
        audit(table.with_options({"incremental-between": "1,9"}))


def test_binlog_packs_updates_into_arrays(tmp_path):
    table = changed(tmp_path / "t", **{"changelog-producer": "lookup"})
    rows = rows_of(table.system_table("binlog").to_arrow())
    assert rows == [
        {"rowkind": "+I", "id": [1], "v": ["c"], "n": [1]},
        {"rowkind": "+I", "id": [3], "v": ["d"], "n": [3]},
    ]
    without = changed(tmp_path / "without").system_table("binlog")
    assert rows_of(without.to_arrow(filter="rowkind = '-D'")) == [{"rowkind": "-D", "id": [2], "v": ["b"], "n": [2]}]
    between = table.with_options({"incremental-between": "2,6"}).system_table("binlog")
    rows = rows_of(between.to_arrow())
    assert rows == [
        {"rowkind": "+U", "id": [1, 1], "v": ["a", "c"], "n": [1, 1]},
        {"rowkind": "-D", "id": [2], "v": ["b"], "n": [2]},
        {"rowkind": "+I", "id": [3], "v": ["d"], "n": [3]},
    ]
    assert between.to_arrow(columns=["v"], filter="rowkind = '+U'").to_pylist() == [{"v": ["a", "c"]}]
    assert between.to_arrow(columns=["rowkind"]).num_rows == 3


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_updates_are_packed_across_batches(size):
    kinds = ["-U", "+U", "-U", "-D", "+U", "-U", "+U", "-U", "+I", "-U"]
    rows = pa.record_batch({"rowkind": kinds, "id": list(range(10)), "v": [str(i) for i in range(10)]})
    batches = [rows.slice(at, size) for at in range(0, 10, size)]
    actual = [row for batch in packed(iter(batches), FIELDS, ()) for row in batch.to_pylist()]
    assert [(row["rowkind"], row["id"]) for row in actual] == [
        ("+U", [0, 1]), ("-U", [2]), ("-D", [3]), ("+U", [4]), ("+U", [5, 6]), ("-U", [7]), ("+I", [8]), ("-U", [9]),
    ]  # fmt: skip
    assert all(row["v"] == [str(i) for i in row["id"]] for row in actual)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_updates_of_different_keys_are_not_packed(size):
    rows = pa.record_batch({"rowkind": ["-U", "+U", "-U", "+U"], "id": [1, 2, 3, 3], "v": ["a", "b", "c", "d"]})
    batches = (rows.slice(at, size) for at in range(0, 4, size))
    actual = [row["id"] for batch in packed(batches, FIELDS, ["id"]) for row in batch.to_pylist()]
    assert actual == [[1], [2], [3, 3]]


def test_row_tracking_shows_row_ids(tmp_path):
    table = append_table(tmp_path / "t", **{"row-tracking.enabled": "true"})
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.write(orders((3, "c", 3)))
    actual = table.system_table("row_tracking").to_arrow()
    assert actual.schema.names == ["id", "v", "n", "_ROW_ID", "_SEQUENCE_NUMBER"]
    assert [(r["id"], r["_ROW_ID"], r["_SEQUENCE_NUMBER"]) for r in rows_of(actual)] == [
        (1, 0, 1),
        (2, 1, 1),
        (3, 2, 2),
    ]
    assert table.system_table("row_tracking").to_arrow(columns=["v"], filter="_ROW_ID = 2").to_pylist() == [{"v": "c"}]
    with pytest.raises(UnsupportedError, match="needs row ids"):
        keyed_table(tmp_path / "k").system_table("row_tracking").to_arrow()
