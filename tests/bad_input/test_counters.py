"""Counters in metadata at their limits: the next write works or raises CorruptedError, and no row is lost or mixed."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.avro import read_avro, write_avro
from tests.support.edited_metadata import edit_entries, edit_json
from tests.support.tables import append_table, files_below, keyed_table, orders, rows_of

LARGEST = 2**63 - 1
OLD, NEW = orders((1, "a", 1), (2, "b", 2)), orders((1, "new", 9), (2, "new", 9))
TRACKED = {"row-tracking.enabled": "true"}
KINDS = {
    "keyed": lambda path: keyed_table(path, bucket="1"),
    "append": append_table,
    "append, buckets": lambda path: append_table(path, bucket="1", bucket_key="id"),
    "tracked": lambda path: append_table(path, **TRACKED),
}


def written(table):
    table.write(OLD)
    return table


@pytest.mark.parametrize("left", [0, 1, 2, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_writes_beyond_largest_sequence_number_are_refused(tmp_path, kind, left):
    """Rows of a bucket continue its numbers; append tables without buckets and tracked rows do not."""
    table = edit_entries(written(KINDS[kind](tmp_path / "t")), _MAX_SEQUENCE_NUMBER=LARGEST - left)
    files = files_below(table.path)
    if left < 2 and kind in ("keyed", "append, buckets"):
        with pytest.raises(CorruptedError, match=r"bucket-0 .*sequence numbers up to 92233720"):
            table.write(NEW)
        assert files_below(table.path) == files
        assert Table.open(table.path).to_arrow().sort_by("id") == OLD
        table.overwrite(NEW)
        table.write(OLD)
    else:
        table.write(NEW)
    rows = rows_of(Table.open(table.path).to_arrow(), ("id", "n"))
    both = rows_of(pa.concat_tables([OLD, NEW]), ("id", "n"))
    newest = OLD if left < 2 else NEW
    assert rows == (rows_of(newest) if kind == "keyed" else both)
    Table.open(table.path).compact(full=True)
    assert rows_of(Table.open(table.path).to_arrow(), ("id", "n")) == rows


@pytest.mark.parametrize(("left", "works"), [(0, False), (1, False), (2, True)])
def test_next_row_id(tmp_path, left, works):
    table = written(append_table(tmp_path / "t", **TRACKED))
    edit_json(table.store.snapshots.path(1), nextRowId=LARGEST - left)
    table = Table.open(table.path)
    if works:
        table.write(NEW)
    else:
        with pytest.raises(CorruptedError, match=r"nextRowId"):
            table.write(NEW)
    table = Table.open(table.path)
    ids = table.system_table("row_tracking").to_arrow().column("_ROW_ID").to_pylist()
    assert ids == ([0, 1, LARGEST - 2, LARGEST - 1] if works else [0, 1])


def test_row_ids_of_file_do_not_wrap_around(tmp_path):
    table = edit_entries(written(append_table(tmp_path / "t", **TRACKED)), _FIRST_ROW_ID=LARGEST - 1)
    assert table.system_table("row_tracking").to_arrow().column("_ROW_ID").to_pylist() == [LARGEST - 1, LARGEST]
    table = edit_entries(table, _FIRST_ROW_ID=LARGEST)
    with pytest.raises(CorruptedError, match="row ids from 9223372036854775807"):
        table.system_table("row_tracking").to_arrow()
    assert table.to_arrow() == OLD


def test_commit_after_largest_snapshot_id_is_refused(tmp_path):
    table = written(append_table(tmp_path / "t"))
    folder = tmp_path / "t" / "snapshot"
    edit_json(folder / "snapshot-1", id=LARGEST - 1)
    (folder / "snapshot-1").rename(folder / f"snapshot-{LARGEST - 1}")
    for hint in ("LATEST", "EARLIEST"):
        (folder / hint).write_text(str(LARGEST - 1))
    assert Table.open(table.path).write(NEW).id == LARGEST
    for _ in range(2):
        with pytest.raises(CorruptedError, match=r"snapshot 9223372036854775808.*'id' must be"):
            Table.open(table.path).write(NEW)
    assert Table.open(table.path).to_arrow().num_rows == 4


def test_total_record_count(tmp_path):
    table = written(append_table(tmp_path / "t"))
    edit_json(table.store.snapshots.path(1), totalRecordCount=LARGEST)
    with pytest.raises(CorruptedError, match="totalRecordCount"):
        Table.open(table.path).write(NEW)
    assert Table.open(table.path).to_arrow() == OLD


def test_row_count_of_file(tmp_path):
    for count in (LARGEST, 2**62, 3):
        table = edit_entries(written(append_table(tmp_path / str(count))), _ROW_COUNT=count)
        with pytest.raises(CorruptedError, match=f"holds 2 rows, but its manifest entry says {count}"):
            table.to_arrow()


def test_commit_identifier_beyond_long_is_refused(tmp_path):
    table = append_table(tmp_path / "t")
    with table.writer() as writer:
        writer.write(OLD)
        messages = writer.prepare_commit()
        with pytest.raises(InvalidInputError, match="commit identifier 9223372036854775808"):
            table.committer("me").commit(messages, LARGEST + 1)
        assert table.committer("me").commit(messages, LARGEST - 1) is not None
    assert Table.open(table.path).to_arrow() == OLD


def test_alter_after_largest_schema_id_is_refused(tmp_path):
    table = written(append_table(tmp_path / "t"))
    folder = tmp_path / "t" / "schema"
    (folder / f"schema-{LARGEST}").write_bytes((folder / "schema-0").read_bytes())
    edit_json(folder / f"schema-{LARGEST}", id=LARGEST)
    with pytest.raises(CorruptedError, match=r"schema 9223372036854775808"):
        Table.open(table.path).alter([AddColumn("x", "INT")])
    assert Table.open(table.path).schema.id == LARGEST
    (folder / f"schema-{LARGEST}").unlink()
    edit_json(folder / "schema-0", id=-1)
    with pytest.raises(CorruptedError, match="the id -1"):
        Table.open(table.path)


def test_column_ids_stay_below_ids_of_system_fields(tmp_path):
    """Larger ids belong to system fields such as _SEQUENCE_NUMBER: a column would be taken for one."""
    table = written(append_table(tmp_path / "t"))
    path = tmp_path / "t" / "schema" / "schema-0"
    edit_json(path, highestFieldId=2147483595)
    table = Table.open(table.path).alter([AddColumn("x", "INT")])
    assert table.schema.fields[-1].id == 2147483596
    with pytest.raises(CorruptedError, match="the column id 2147483597"):
        table.alter([AddColumn("y", "INT")])
    assert table.to_arrow().column("x").null_count == 2
    for highest in (2147483646, 2**31, 2**70):
        edit_json(path, highestFieldId=highest)
        with pytest.raises(CorruptedError, match=f"the column id {highest}"):
            Table.open(table.path).store.schemas.get(0)
    schema = json.loads(path.read_text())
    edit_json(path, highestFieldId=2, fields=[{**schema["fields"][0], "id": 2147483646}])
    with pytest.raises(CorruptedError, match="the column id 2147483646"):
        Table.open(table.path).store.schemas.get(0)


@pytest.mark.parametrize("bucket", [2**15, 2**16 - 1, 2**16, 2**31 - 1])
def test_dynamic_bucket_beyond_16_bits_is_refused(tmp_path, bucket):
    """A hash index holds buckets in 16 bits: more bits would make another bucket of it, or none."""
    table = keyed_table(tmp_path / "t", bucket="-1", **{"dynamic-bucket.target-row-num": "1"})
    table.write(orders((1, "a", 1)))
    table = edit_entries(table, _BUCKET=bucket)
    for path in (tmp_path / "t" / "manifest").glob("index-manifest-*"):
        schema, entries = read_avro(path.read_bytes())
        path.write_bytes(write_avro(schema, [{**entry, "_BUCKET": bucket} for entry in entries]))
    (Path(table.path) / "bucket-0").rename(Path(table.path) / f"bucket-{bucket}")
    assert table.to_arrow().num_rows == 1
    with pytest.raises(CorruptedError, match=f"names bucket {bucket}, but dynamic buckets have numbers up to 32767"):
        table.write(NEW)


def test_buckets_of_cross_partition_table(tmp_path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=False)])
    table = Table.create(str(tmp_path / "t"), Schema(schema, ["id"], ["p"], {"bucket": "-1"}))
    table.write(pa.table([[1], ["x"]], schema=schema))
    table = edit_entries(table, _BUCKET=2**16)
    (tmp_path / "t" / "p=x" / "bucket-0").rename(tmp_path / "t" / "p=x" / f"bucket-{2**16}")
    assert table.to_arrow().num_rows == 1
    with pytest.raises(CorruptedError, match="names bucket 65536"):
        table.write(pa.table([[1], ["y"]], schema=schema))
