"""System tables through the format, without a session: what Spark's processes do."""

import pickle

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.inspect.system_tables.table_registry import SYSTEM_TABLES
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.options import stream_request
from tests.support.tables import append_table, keyed_table, orders


def changed(path, **options):
    table = keyed_table(path, **{"changelog-producer": "input", **options})
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.write(orders((1, "c", 1), (3, "d", 3)), ["+U", "+I"])
    table.write(orders((2, "b", 2)), ["-D"])
    return table


def read(path, filters=(), **options):
    """The rows, by tasks in processes of their own."""
    source = PaimonDataSource({"path": path, **options})
    reader = source.reader(source.schema())
    tasks = pickle.loads(pickle.dumps(reader.partitions()))
    again = pickle.loads(pickle.dumps(reader))
    return [row for task in tasks for batch in again.read(task) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", sorted(SYSTEM_TABLES))
def test_every_one_is_read_as_by_the_engine(tmp_path, name):
    table = changed(tmp_path / "t")
    if name == "row_tracking":
        table = append_table(tmp_path / "a", **{"row-tracking.enabled": "true"})
        table.write(orders((1, "a", 1)))
    table.tags.create("v")
    expected = table.system_table(name).to_arrow()
    source = PaimonDataSource({"path": f"{table.path}${name}"})
    assert source.schema().names == expected.schema.names
    actual = read(f"{table.path}${name}")
    assert sorted(actual, key=str) == sorted(expected.to_pylist(), key=str)


def test_columns_filter_limit_and_time_travel(tmp_path):
    table = changed(tmp_path / "t")
    path = table.path
    assert read(path + "$snapshots", columns="snapshot_id", filter="snapshot_id > 1", limit="1") == [{"snapshot_id": 2}]
    assert len(read(path + "$files", versionAsOf="1")) == 1
    assert [r["id"] for r in read(path + "$audit_log", versionAsOf="1", filter="v = 'a'")] == [1]
    assert read(path + "$binlog", columns="v", filter="rowkind = '+I'", versionAsOf="1", limit="1")[0]["v"] == ["a"]
    between = read(path + "$audit_log", **{"incremental-between": "1,3"})
    assert sorted((r["rowkind"], r["id"]) for r in between) == [("+I", 3), ("+U", 1), ("-D", 2)]
    with pytest.raises(InvalidInputError, match="has no history"):
        read(path + "$tags", versionAsOf="1")
    with pytest.raises(UnsupportedError, match="'incremental-between' is for reads of changes"):
        read(path + "$files", **{"incremental-between": "1,3"})
    with pytest.raises(InvalidInputError, match="did you mean '\\$files'"):
        read(path + "$file")
    with pytest.raises(InvalidInputError, match="of-snapshot' is for tables"):
        read(path + "$files", **{"read.rows-of-snapshot": "1"})


def test_option_filter_saves_reading_metadata(tmp_path):
    table = changed(tmp_path / "t")
    (tmp_path / "t" / "snapshot" / "snapshot-1").write_bytes(b"unreadable")
    actual = read(table.path + "$snapshots", filter="snapshot_id > 1 AND commit_kind = 'APPEND'")
    assert [row["snapshot_id"] for row in actual] == [2, 3]


def test_writes_and_most_streams_are_refused(tmp_path):
    path = changed(tmp_path / "t").path
    schema = PaimonDataSource({"path": path}).schema()
    for name in ("files", "audit_log", "ro"):
        source = PaimonDataSource({"path": f"{path}${name}"})
        for write in (source.writer, source.streamWriter):
            with pytest.raises(UnsupportedError, match=rf"\${name} can only be read"):
                write(schema, False)
    for name in ("files", "snapshots", "ro"):
        with pytest.raises(UnsupportedError, match=rf"\${name} cannot be read as a stream"):
            PaimonDataSource({"path": f"{path}${name}"}).streamReader(schema)


def stream_rows(path, **options):
    """Rows of everything that a stream from snapshot 1 on has to read now."""
    source = PaimonDataSource({"path": path, "scan.mode": "from-snapshot", "scan.snapshot-id": "1", **options})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    parts = pickle.loads(pickle.dumps(reader.partitions(start, reader.latestOffset(start))))
    return [tuple(row.values()) for part in parts for rows in reader.read(part) for row in rows.to_pylist()]


def test_stream_of_binlog_has_update_in_one_row(tmp_path):
    numbered = {"changelog_producer": "lookup", "table-read.sequence-number.enabled": "true"}
    table = keyed_table(tmp_path / "t", bucket="1", **numbered)
    table.write(orders((1, "a", 0), (2, "b", 0)))
    table.write(orders((1, "c", 0)))
    table.write(orders((2, "b", 0)), ["-D"])
    inserted = [("+I", 0, [1], ["a"], [0]), ("+I", 1, [2], ["b"], [0])]
    changed = [*inserted, ("+U", 2, [1, 1], ["a", "c"], [0, 0]), ("-D", 3, [2], ["b"], [0])]
    assert [row[0:1] + row[2:] for row in stream_rows(table.path + "$binlog")] == [r[0:1] + r[2:] for r in changed]
    assert stream_rows(table.path + "$binlog", columns="v,rowkind") == [(row[3], row[0]) for row in changed]
    kinds = stream_rows(table.path + "$audit_log", columns="rowkind,_SEQUENCE_NUMBER")
    assert [kind for kind, _ in kinds] == ["+I", "+I", "-U", "+U", "-D"]
    assert kinds[:2] == [("+I", 0), ("+I", 1)]


def test_stream_of_audit_log_is_one_with_row_kinds(tmp_path):
    path = changed(tmp_path / "t").path
    source = PaimonDataSource({"path": path + "$audit_log", "scan.mode": "from-snapshot", "scan.snapshot-id": "2"})
    assert source.schema().names == ["rowkind", "id", "v", "n"]
    plain = stream_request({"path": path, "read.changelog": "true"})
    assert stream_request({"path": path + "$audit_log"}) == plain
    some = stream_request({"path": path + "$audit_log", "columns": "rowkind, id"})
    assert some.columns == ("id",)
    with pytest.raises(InvalidInputError, match="has row kinds"):
        stream_request({"path": path + "$audit_log", "read.changelog": "false"})
    with pytest.raises(InvalidInputError, match="contradict"):
        stream_request({"path": path + "$audit_log", "read.ignore-deletes": "true"})


def test_planned_read_is_tagged_for_its_time(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    table.write(orders((1, "a", 0)))
    source = PaimonDataSource({"path": table.path, "scan.plan-auto-tag-for-read.time-retained": "1 h"})
    reader = source.reader(source.schema())
    tasks = reader.partitions()
    table.write(orders((1, "b", 0)))
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than="9999-01-01")
    assert [row["v"] for task in tasks for batch in reader.read(task) for row in batch.to_pylist()] == ["a"]
    assert [tag.name[:13] for tag in table.tags.list()] == ["batch-read-1-"]


def test_timestamps_of_rows_have_microseconds(tmp_path):
    table = append_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("ts", pa.timestamp("ns"))]))
    table.write(pa.table({"id": [1], "ts": pa.array([1_577_836_800_000_001_999], pa.timestamp("ns"))}))
    (row,) = read(table.path + "$audit_log")
    assert str(row["ts"]) == "2020-01-01 00:00:00.000001"
    assert "TIMESTAMP(9)" in read(table.path + "$schemas")[0]["fields"]
