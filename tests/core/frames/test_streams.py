"""Arrow C streams into a table and out of it: a batch at a time, read again, and whole or not at all."""

import pyarrow as pa
import pytest

from paimon_core.commit.publisher import Publisher
from paimon_core.errors import InvalidInputError, OutOfRangeError
from paimon_core.options.lsm import WRITE_BUFFER_SIZE
from paimon_core.read.table_read import TableRead
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.schema import Schema
from paimon_core.table import Selection, Table, open_any

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])
ROWS = 20_000  # in a batch


class Exporter:
    """An object that exports batches as a stream, and notes what Arrow holds in memory before each of them."""

    def __init__(self, batches, schema=SCHEMA):
        self.batches, self.schema, self.held, self.exports = batches, schema, [], 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.exports += 1
        return pa.RecordBatchReader.from_batches(self.schema, self._noted()).__arrow_c_stream__(requested_schema)

    def _noted(self):
        for batch in self.batches:
            self.held.append(pa.total_allocated_bytes())
            yield batch


def batch(first, rows=ROWS):
    ids = range(first, first + rows)
    return pa.record_batch([pa.array(ids), pa.array([f"note number {i} of many" for i in ids])], schema=SCHEMA)


def append_table(path, **options):
    return Table.create(str(path / "t"), Schema(SCHEMA, options=options))


def test_stream_is_written_in_bounded_memory(tmp_path):
    table = append_table(tmp_path, **{WRITE_BUFFER_SIZE.key: "2 mb", "write-only": "true"})
    one = batch(0).nbytes
    source = Exporter(batch(n * ROWS) for n in range(40))
    before = pa.total_allocated_bytes()
    table.write(source)
    assert table.to_arrow(["id"])["id"].to_pylist() == list(range(40 * ROWS))
    assert len(source.held) == 40
    assert max(source.held) - before < 20 * one < 40 * one


@pytest.mark.parametrize("write", ["write", "overwrite"])
def test_stream_that_fails_leaves_table_as_it_was(tmp_path, write):
    def torn():
        yield batch(100)
        raise LookupError("the source is gone")

    table = append_table(tmp_path)
    table.write(batch(0, 3))
    files = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(pa.ArrowInvalid, match="the source is gone"):
        getattr(table, write)(Exporter(torn()))
    assert table.to_arrow()["id"].to_pylist() == [0, 1, 2]
    assert set(tmp_path.rglob("*.parquet")) == files


def test_stream_is_exported_once_even_if_commit_conflicts(tmp_path, monkeypatch):
    table, source = append_table(tmp_path), Exporter([batch(0, 2)])

    def conflicting(*_):
        raise OutOfRangeError("the snapshot expired")

    monkeypatch.setattr(Publisher, "publish", conflicting)
    with pytest.raises(OutOfRangeError):
        table.write(source)
    assert source.exports == 1


def test_stream_takes_no_row_kinds_and_empty_streams_make_no_snapshot(tmp_path):
    table = append_table(tmp_path)
    with pytest.raises(InvalidInputError, match="the length of a stream is unknown"):
        table.write(Exporter([batch(0, 1)]), ["+I"])
    assert table.write(Exporter([])) is None
    assert table.snapshot() is None


def test_streams_without_rows_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="Arrow stream of this ChunkedArray"):
        append_table(tmp_path).write(pa.chunked_array([[1, 2]]))


def test_wrong_column_of_stream_is_named_with_its_row(tmp_path):
    table = append_table(tmp_path)
    durations = pa.schema([("id", pa.duration("us"))])
    with pytest.raises(InvalidInputError, match=r"column 'id': duration\[us\] cannot be stored as BIGINT"):
        table.write(Exporter([pa.record_batch([pa.array([1], pa.duration("us"))], schema=durations)], durations))
    floats = pa.schema([("id", pa.float64())])
    late = [pa.record_batch([pa.array([1.0, 2.0])], schema=floats), pa.record_batch([pa.array([2.5])], schema=floats)]
    with pytest.raises(InvalidInputError, match=r"column 'id', row 2: 2\.5"):
        table.write(Exporter(late, floats))
    assert table.snapshot() is None


def test_table_is_written_into_another(tmp_path):
    table = append_table(tmp_path)
    table.write(batch(0, 5))
    copy = Table.create(str(tmp_path / "copy"), Schema(SCHEMA))
    copy.write(table)
    assert copy.to_arrow() == table.to_arrow()
    copy.overwrite(table.to_arrow_batch_reader(filter="id > 2"))
    assert copy.to_arrow()["id"].to_pylist() == [3, 4]


def test_new_columns_of_stream_are_added_with_merge_schema(tmp_path):
    table = append_table(tmp_path).with_options({"write.merge-schema": "true"})
    wider = pa.schema([("id", pa.int64()), ("more", pa.float64())])
    table.write(Exporter([pa.record_batch([pa.array([1]), pa.array([2.5])], schema=wider)], wider))
    assert Table.open(table.path).to_arrow().to_pylist() == [{"id": 1, "note": None, "more": 2.5}]


def test_columns_are_updated_and_keys_are_found_by_streams(tmp_path):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = append_table(tmp_path, **options)
    table.write(batch(0, 3))
    ids = table.to_arrow(["_ROW_ID"], filter="id = 1")["_ROW_ID"]
    rows = pa.table({"_ROW_ID": ids, "note": ["changed"]})
    table.update_columns(Exporter(rows.to_batches(), rows.schema))
    assert table.to_arrow(["note"], filter="id = 1").to_pylist() == [{"note": "changed"}]
    keyed = Table.create(str(tmp_path / "k"), Schema(SCHEMA, ["id"], options={"bucket": "1"}))
    keyed.write(batch(0, 9))
    requested = pa.record_batch({"id": [7, 2]})
    for keys in (requested, Exporter([requested], requested.schema)):
        assert keyed.get(keys)["id"].to_pylist() == [7, 2]


# ---- reads


@pytest.fixture
def table(tmp_path):
    """Three commits, each a file: ids 0 to 29."""
    table = append_table(tmp_path, **{"write-only": "true"})
    for first in (0, 10, 20):
        table.write(batch(first, 10))
    return table


@pytest.fixture
def opened(monkeypatch):
    """The splits that reads opened."""
    splits, original = [], TableRead.to_batches
    monkeypatch.setattr(TableRead, "to_batches", lambda self, split: splits.append(split) or original(self, split))
    return splits


def test_reader_opens_files_one_by_one(table, opened):
    table = table.with_options({"source.split.open-file-cost": "1 gb"})  # each file is a split
    reader = table.to_arrow_batch_reader()
    assert opened == []
    assert reader.schema == table.arrow_schema
    reader.read_next_batch()
    assert len(opened) == 1
    assert [row for b in reader for row in b["id"].to_pylist()] == list(range(10, 30))
    assert len(opened) == 3


def test_reader_has_columns_filter_and_limit_of_read(table):
    reader = table.to_arrow_batch_reader(["note", "id"], "id >= 5", 7, snapshot_id=1)
    assert reader.schema.names == ["note", "id"]
    assert reader.read_all()["id"].to_pylist() == [5, 6, 7, 8, 9]
    with pytest.raises(InvalidInputError, match="limit"):
        table.to_arrow_batch_reader(limit=-1)


def test_reader_stays_at_its_snapshot_and_table_does_not(table):
    reader = table.to_arrow_batch_reader(["id"])
    table.write(batch(30, 1))
    assert reader.read_all().num_rows == 30
    assert pa.table(table).num_rows == 31


def test_table_is_stream_that_can_be_read_again(table):
    for _ in range(2):
        assert pa.table(table) == table.to_arrow()
    expected = pa.schema([("id", pa.int64()), ("note", pa.large_string())])
    assert pa.table(table, schema=expected).schema == expected


def test_error_of_stream_keeps_its_message(table):
    reader = table.to_arrow_batch_reader()
    table.truncate()
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than="2999-01-01 00:00:00")
    with pytest.raises(OutOfRangeError, match="expired"):
        reader.read_all()


def test_each_kind_of_read_is_stream(table):
    table.tags.create("first", 1)
    table.branches.create("b")
    kinds = {
        "": {"id": 30},
        "$ro": {"id": 30},
        "$branch_b": {"id": 0},
        "$snapshots": {"snapshot_id": 3},
        "$tags": {"tag_name": 1},
    }
    for suffix, ((column, rows),) in ((suffix, kind.items()) for suffix, kind in kinds.items()):
        actual = open_any(table.path + suffix)
        assert pa.table(actual).num_rows == actual.to_arrow_batch_reader([column]).read_all().num_rows == rows, suffix
    changes = table.with_options({"incremental-between": "1,3"})
    assert sorted(pa.table(changes)["id"].to_pylist()) == list(range(10, 30))
    assert pa.table(changes.with_options({"incremental-between": "1,1"})).num_rows == 0


def test_second_branch_of_read_stays_at_its_snapshot(tmp_path):
    table = append_table(tmp_path)
    table.branches.create("b")
    branch = Table.open(table.path, branch="b")
    branch.write(batch(0, 2))
    both = table.with_options({"scan.fallback-branch": "b"})
    read = both._read(Selection())
    assert [pa.table(read).num_rows for _ in range(2)] == [2, 2]
    branch.write(batch(2, 2))
    assert [pa.table(read).num_rows, pa.table(both).num_rows] == [2, 4]


def test_reads_of_merged_rows_are_streams_of_merged_rows(tmp_path):
    keyed = Table.create(str(tmp_path / "k"), Schema(SCHEMA, ["id"], options={"bucket": "1", "write-only": "true"}))
    for note in "ab":
        keyed.write(pa.table({"id": [1, 2], "note": [note, note]}))
    keyed.delete("id = 2")
    assert pa.table(keyed).to_pylist() == [{"id": 1, "note": "b"}]


def test_nothing_is_planned_before_first_batch(table, monkeypatch):
    plans, original = [], TableScan.plan
    monkeypatch.setattr(TableScan, "plan", lambda self: plans.append(self) or original(self))
    read = table._read(Selection())
    capsules = [read.__arrow_c_stream__() for _ in range(3)]
    assert capsules
    assert not plans
    assert read.reader().read_all().num_rows == 30
    assert len(plans) == 1
