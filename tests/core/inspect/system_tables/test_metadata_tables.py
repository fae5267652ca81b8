"""The system tables of metadata: columns, rows and what a filter saves."""

import datetime
import json
import pickle

import pyarrow as pa
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.inspect.system_tables.table_registry import SYSTEM_TABLES
from paimon_core.inspect.system_tables.value_text import iso_duration
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn, SetOption
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.consumers import Consumers
from paimon_core.table import SystemTable, Table, open_any
from tests.support.index_files import unpack
from tests.support.tables import append_table, keyed_table, orders, rows_of

PARTITIONED = pa.schema(
    [pa.field("p", pa.string()), pa.field("d", pa.date32()), pa.field("id", pa.int64(), nullable=False)]
)


def shown(table, name, **asked):
    return table.system_table(name).to_arrow(**asked).to_pylist()


def partitioned(path, **options):
    table = Table.create(str(path), Schema(PARTITIONED, partition_keys=["p", "d"], options=options))
    day = datetime.date(2026, 1, 31)
    for p in ("a, b", "x", None):
        table.write(pa.table({"p": [p], "d": [day if p else None], "id": [1]}, schema=PARTITIONED))
    return table


@pytest.mark.parametrize("name", sorted(SYSTEM_TABLES))
def test_of_an_empty_table(tmp_path, name):
    table = (
        keyed_table(tmp_path / "t")
        if name != "row_tracking"
        else append_table(tmp_path / "t", **{"row-tracking.enabled": "true"})
    )
    actual = table.system_table(name).to_arrow()
    assert actual.schema == table.system_table(name).arrow_schema
    assert actual.num_rows == (0 if name not in ("schemas", "options", "aggregation_fields") else actual.num_rows)
    again = pickle.loads(pickle.dumps(table.system_table(name)))
    assert again.schema == table.system_table(name).schema
    assert pickle.loads(pickle.dumps(again.read())).plan() == again.read().plan()


def test_snapshots_has_row_for_each_snapshot(tmp_path):
    table = keyed_table(tmp_path / "t", write_only="true")
    for n in range(3):
        table.write(orders((n, "a", n)))
    rows = shown(table, "snapshots")
    assert [row["snapshot_id"] for row in rows] == [1, 2, 3]
    newest = table.snapshot()
    wall = datetime.datetime.fromtimestamp(newest.time_millis // 1000) + datetime.timedelta(
        milliseconds=newest.time_millis % 1000
    )
    assert rows[-1]["commit_time"] == wall
    assert rows[-1]["total_record_count"] == 3
    assert rows[-1]["operation"] == newest.operation
    assert [r["snapshot_id"] for r in shown(table, "snapshots", filter="snapshot_id > 1", columns=["snapshot_id"])] == [
        2,
        3,
    ]
    assert shown(table, "snapshots", limit=1)[0]["snapshot_id"] == 1


def test_filter_on_id_reads_only_these_snapshots(tmp_path, monkeypatch):
    table = keyed_table(tmp_path / "t", write_only="true")
    for n in range(4):
        table.write(orders((n, "a", n)))
    for number in (1, 2, 4):
        (tmp_path / "t" / "snapshot" / f"snapshot-{number}").write_bytes(b"unreadable")
    for text in ("snapshot_id = 3", "snapshot_id > 2 AND snapshot_id < 4", "snapshot_id IN (3, 17)"):
        assert [row["snapshot_id"] for row in shown(table, "snapshots", filter=text)] == [3], text


def test_schemas_options_and_functions(tmp_path):
    table = keyed_table(tmp_path / "t", **{"merge_engine": "aggregation", "fields.n.aggregate_function": "sum"})
    table = table.alter([AddColumn("w", "INT", comment="weight")])
    rows = shown(table, "schemas")
    assert [row["schema_id"] for row in rows] == [0, 1]
    assert json.loads(rows[0]["fields"])[0] == {"id": 0, "name": "id", "type": "BIGINT NOT NULL"}
    assert rows[0]["primary_keys"] == '["id"]'
    assert rows[0]["partition_keys"] == "[]"
    assert json.loads(rows[1]["options"])["bucket"] == "2"
    assert [row["schema_id"] for row in shown(table, "schemas", filter="schema_id = 1")] == [1]
    assert {row["key"]: row["value"] for row in shown(table, "options")} == dict(table.schema.options)
    assert {r["field_name"]: r for r in shown(table, "aggregation_fields")}["n"] == {
        "field_name": "n", "field_type": "INT", "function": "[sum]",
        "function_options": "[fields.n.aggregate-function]", "comment": None,
    }  # fmt: skip
    assert shown(table, "aggregation_fields")[-1]["comment"] == "weight"
    assert shown(table.with_options({"scan.mode": "latest"}), "options") == shown(table, "options")


def test_tags_branches_and_consumers(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table.tags.create("kept")
    table.tags.create("short", retained=datetime.timedelta(days=2))
    table.branches.create("b", tag="kept")
    Consumers(table.store.io, table.store.branch_root).record("c", 2)
    kept, short = shown(table, "tags")
    assert (kept["tag_name"], kept["snapshot_id"], kept["record_count"]) == ("kept", 1, 1)
    assert kept["create_time"] is kept["time_retained"] is None
    assert short["time_retained"] == "PT48H"
    assert abs(short["create_time"] - datetime.datetime.now()) < datetime.timedelta(minutes=5)
    assert [row["tag_name"] for row in shown(table, "tags", filter="tag_name = 'short'")] == ["short"]
    assert [row["branch_name"] for row in shown(table, "branches")] == ["b"]
    assert shown(table, "consumers") == [{"consumer_id": "c", "next_snapshot_id": 2}]
    assert shown(Table.open(table.path, branch="b"), "tags")[0]["tag_name"] == "kept"


def test_files_has_row_for_each_live_file(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 1), (7, None, -5)))
    (row,) = shown(table, "files")
    (entry,) = table.scan().plan().splits[0].files
    assert row["file_path"] == f"{table.path}/bucket-0/{entry.file_name}"
    assert {key: row[key] for key in row if key not in ("file_path", "creation_time", "file_size_in_bytes")} == {
        "partition": "{}", "bucket": 0, "file_format": "parquet", "schema_id": 0, "level": 0, "record_count": 2,
        "min_key": "[1]", "max_key": "[7]", "null_value_counts": "{id=0, n=0, v=1}",
        "min_value_stats": "{id=1, n=-5, v=a}", "max_value_stats": "{id=7, n=1, v=a}",
        "min_sequence_number": 0, "max_sequence_number": 1, "deleteRowCount": 0, "file_source": "APPEND",
        "first_row_id": None, "write_cols": None,
    }  # fmt: skip
    table.write(orders((1, "b", 1)))
    table.compact(full=True)
    assert [(r["level"], r["file_source"]) for r in shown(table, "files")] == [(5, "COMPACT")]
    assert [r["level"] for r in shown(table, "files", snapshot_id=1)] == [0]
    assert shown(table, "file_key_ranges")[0]["max_key"] == "[7]"
    assert shown(table, "files", columns=["level"], filter="level = 0") == []
    assert shown(table, "files", columns=["level"], filter="max_key = '[7]'") == [{"level": 5}]


def test_files_show_statistics_of_columns_of_now(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    table = table.alter([AddColumn("w", "INT"), DropColumn("v"), RenameColumn("n", "m")])
    table.write(pa.table({"id": [2], "m": pa.array([3], pa.int32()), "w": pa.array([None], pa.int32())}))
    actual = {r["schema_id"]: r for r in shown(table, "files")}
    assert actual[0]["null_value_counts"] == "{id=0, m=0, w=1}"
    assert actual[0]["min_value_stats"] == "{id=1, m=1, w=null}"
    assert actual[1]["max_value_stats"] == "{id=2, m=3, w=null}"
    assert {r["min_key"] for r in actual.values()} == {None}


def test_partitions_and_buckets(tmp_path):
    table = partitioned(tmp_path / "t")
    rows = shown(table, "partitions")
    assert [row["partition"] for row in rows] == [
        "p=__DEFAULT_PARTITION__/d=__DEFAULT_PARTITION__", "p=a, b/d=2026-01-31", "p=x/d=2026-01-31",
    ]  # fmt: skip
    assert {(r["record_count"], r["file_count"], r["done"], r["total_buckets"]) for r in rows} == {(1, 1, False, -1)}
    assert [r["partition"] for r in shown(table, "buckets")] == [
        "{a, b, 2026-01-31}", "{null, null}", "{x, 2026-01-31}",
    ]  # fmt: skip
    created = {r["creation_time"] for r in shown(table, "files")}
    assert {r["last_update_time"] for r in rows} == created
    table.drop_partitions([{"p": "x"}])
    assert len(shown(table, "partitions")) == len(shown(table, "files")) == len(shown(table, "buckets")) == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("files", "partition = '{x, 2026-01-31}'"),
        ("buckets", "partition IN ('{x, 2026-01-31}')"),
        ("partitions", "partition = 'p=x/d=2026-01-31'"),
    ],
)
def test_partition_filter_reads_only_its_manifests(tmp_path, name, text):
    table = partitioned(tmp_path / "t")
    every = shown(table, name)
    expected = [row for row in every if row["partition"] in ("{x, 2026-01-31}", "p=x/d=2026-01-31")]
    for row in shown(table, "manifests"):
        if not row["min_partition_stats"].startswith("{x"):
            (tmp_path / "t" / "manifest" / row["file_name"]).unlink()
    assert shown(table, name, filter=text) == expected
    assert len(expected) == 1


def test_texts_of_partitions_that_look_like_others(tmp_path):
    table = partitioned(tmp_path / "t")
    day = datetime.date(2026, 1, 31)
    table.write(pa.table({"p": ["null"], "d": [None], "id": [1]}, schema=PARTITIONED))
    table.write(pa.table({"p": ["a"], "d": [day], "id": [1]}, schema=PARTITIONED))
    for row in shown(table, "files"):
        text = row["partition"].replace("'", "''")
        expected = [r for r in shown(table, "files") if r["partition"] == row["partition"]]
        assert shown(table, "files", filter=f"partition = '{text}'") == expected
    for text in ("", "x", "{x}", "{x, y}", "{, }", "{x, 2026-01-31, z}", "p=x", "p=x/d=zero", "d=2026-01-31/p=x"):
        for name in ("files", "partitions", "buckets"):
            assert shown(table, name, filter=f"partition = '{text}'") == [], text


def test_deleted_files_are_not_shown_and_added_again_are(tmp_path):
    table = append_table(tmp_path / "t")
    for n in range(6):
        table.write(orders((n, "a", n)))
    live = {row["file_path"] for row in shown(table, "files")}
    table.delete("id = 3")
    left = {row["file_path"] for row in shown(table, "files")}
    files = [f.file_name for split in table.scan().plan().splits for f in split.files]
    assert {path.rpartition("/")[2] for path in left} == set(files)
    assert left < live or left != live
    for level in (0, 1):
        assert len(shown(table, "files", filter=f"level = {level}")) == (len(left) if level == 0 else 0)


def test_manifests_indexes_and_statistics(tmp_path):
    table = partitioned(tmp_path / "t")
    rows = shown(table, "manifests")
    assert sum(row["num_added_files"] for row in rows) == 3
    assert {row["min_partition_stats"] for row in rows} == {"{a, b, 2026-01-31}", "{x, 2026-01-31}", "{null, null}"}
    keyed = keyed_table(tmp_path / "k", **{"deletion-vectors.enabled": "true"})
    keyed.write(orders((1, "a", 1), (2, "b", 2)))
    keyed.write(orders((1, "c", 1)))
    (row,) = shown(keyed, "table_indexes")
    assert (row["partition"], row["index_type"], row["row_count"]) == ("{}", "DELETION_VECTORS", 1)
    assert row["dv_ranges"][0]["_CARDINALITY"] == 1
    assert shown(keyed, "statistics") == []
    hashed = keyed_table(tmp_path / "h", bucket="-1")
    hashed.write(orders((1, "a", 1), (2, "b", 2)))
    assert [r["index_type"] for r in shown(hashed, "table_indexes")] == ["HASH"]


def test_file_indexes_has_row_for_each_index(tmp_path):
    options = {"file-index.bitmap.columns": "v,n", "file-index.bloom-filter.columns": "v"}
    options["file-index.bloom-filter.v.items"] = "10"
    table = append_table(tmp_path / "t", **options)
    table.write(orders((1, "a", None), (2, "b", None)))
    (file,) = table.scan().plan().splits[0].files
    path = f"{table.path}/bucket-0/{file.file_name}"
    rows = rows_of(table.system_table("file_indexes").to_arrow(), ["column_name", "index_type"])
    same = {
        "partition": "{}", "bucket": 0, "file_path": path, "file_size_in_bytes": file.file_size, "record_count": 2,
        "schema_id": 0, "storage_type": "EMBEDDED", "index_file_path": None,
        "index_container_size_in_bytes": len(file.embedded_index),
    }  # fmt: skip
    bodies = unpack(file.embedded_index, "here")
    expected = [("n", "bitmap"), ("v", "bitmap"), ("v", "bloom-filter")]
    assert rows == [
        {
            **same,
            "column_name": c,
            "index_type": k,
            "index_size_in_bytes": len(bodies[c][k]),
            "is_empty": not bodies[c][k],
        }
        for c, k in expected
    ]
    assert [row["is_empty"] for row in rows][1:] == [False, False]
    beside = table.alter([SetOption("file-index.in-manifest-threshold", "1 b"), RenameColumn("v", "w")])
    beside.write(pa.table({"id": [3], "w": ["c"], "n": pa.array([1], pa.int32())}))
    actual = shown(beside, "file_indexes", filter="storage_type = 'FILE'")
    assert {(row["column_name"], row["index_type"]) for row in actual} == {
        ("w", "bitmap"), ("w", "bloom-filter"), ("n", "bitmap")
    }  # fmt: skip
    (index,) = {row["index_file_path"] for row in actual}
    assert index == actual[0]["file_path"] + ".index"
    size = len(beside.store.io.read(index))
    assert {row["index_container_size_in_bytes"] for row in actual} == {size}
    assert sum(row["index_size_in_bytes"] for row in actual) < size
    assert len(shown(beside, "file_indexes", snapshot_id=1)) == 3
    assert len(shown(beside, "file_indexes", columns=["column_name"])) == 6
    beside.store.io.delete(index)
    with pytest.raises(CorruptedError, match="is missing"):
        shown(beside, "file_indexes")


def test_by_name_and_by_path(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("db")
    table = keyed_table(tmp_path / "db.db" / "t")
    table.write(orders((1, "a", 1)))
    table.tags.create("v")
    table.branches.create("b", tag="v")
    for opened in (
        catalog.system_table("db.t$FILES"),
        SystemTable.open(table.path + "$files"),
        open_any(table.path + "$Files/"),
        table.system_table("Files"),
    ):
        assert opened.to_arrow().num_rows == 1
        assert str(opened.location) == table.path + "$files"
        assert "$files" in repr(opened)
    branch_b = Table.open(table.path, branch="b")
    for opened in (
        catalog.any_table("db.t$branch_b$snapshots"),
        SystemTable.open(table.path + "$branch_b$snapshots"),
        SystemTable.open(table.path + "$snapshots", branch="b"),
        branch_b.system_table("snapshots"),
    ):
        assert opened.to_arrow().num_rows == 1
        assert str(opened.location) == table.path + "$branch_b$snapshots"
    for name in ("db.t$file", "db.t$snapshot"):
        with pytest.raises(InvalidInputError, match=rf"did you mean '\${name[5:]}s'"):
            catalog.table(name)
    with pytest.raises(InvalidInputError, match=r"no system table '\$zzz' There|no system table '\$zzz'"):
        Table.open(table.path + "$zzz")
    with pytest.raises(NotFoundError):
        catalog.table("db.absent$files")
    assert catalog.list_tables("db") == ["t"]


def test_system_table_opened_as_table_is_refused(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("db")
    table = keyed_table(tmp_path / "db.db" / "t")
    for opening in (
        lambda: Table.open(f"{table.path}$files"),
        lambda: Table.open(f"{table.path}$Files/"),
        lambda: catalog.table("db.t$files"),
        lambda: catalog.table("sys.tables"),
    ):
        with pytest.raises(UnsupportedError, match=r"a system table can only be read; open it as a SystemTable"):
            opening()
    with pytest.raises(InvalidInputError, match="names no system table"):
        SystemTable.open(table.path)
    with pytest.raises(InvalidInputError, match="names no system table"):
        catalog.system_table("db.t$ro")
    with pytest.raises(InvalidInputError, match="names a view"):
        Table.create(str(tmp_path / "new$files"), Schema(PARTITIONED))


def test_system_table_has_no_method_that_only_raises(tmp_path):
    files = keyed_table(tmp_path / "t").system_table("files")
    assert not isinstance(files, Table)
    for name in ("write", "truncate", "maintenance", "tags", "changes", "stream", "get", "read_optimized"):
        assert not hasattr(files, name), name


def test_system_table_reads_with_bad_arguments_are_refused(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    files = table.system_table("files")
    with pytest.raises(InvalidInputError, match="has no history: leave out 'snapshot_id'"):
        table.system_table("snapshots").to_arrow(snapshot_id=1)
    with pytest.raises(InvalidInputError, match="has no history: leave out 'timestamp'"):
        table.system_table("snapshots").to_arrow(timestamp=1)
    with pytest.raises(InvalidInputError, match="did you mean 'snapshot_id'"):
        files.to_arrow(snapshotid=1)
    with pytest.raises(InvalidInputError, match="does not exist in the table; it has partition, bucket"):
        files.to_arrow(columns=["path"])
    with pytest.raises(InvalidInputError, match="limit must not be negative"):
        files.to_arrow(limit=-1)


def test_secrets_are_not_shown(tmp_path):
    table = keyed_table(tmp_path / "t")
    path = tmp_path / "t" / "schema" / "schema-0"  # another engine keeps options that this one refuses
    document = json.loads(path.read_text())
    document["options"] |= {
        "s3.secret-key": "hush",
        "fs.oss.accessKeySecret": "hush",
        "x.uri": "jdbc://me:hush@host/db",
    }
    path.write_text(json.dumps(document))
    table = Table.open(table.path)
    options = {row["key"]: row["value"] for row in shown(table, "options")}
    assert options["s3.secret-key"] == options["fs.oss.accessKeySecret"] == "******"
    assert options["x.uri"] == "jdbc://***@host/db"
    assert "hush" not in str(shown(table, "options") + shown(table, "schemas"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "PT0S"), (172800, "PT48H"), (5400, "PT1H30M"), (1.5, "PT1.5S"), (3601, "PT1H1S"), (60, "PT1M")],
)
def test_durations_are_printed_as_by_java(seconds, text):
    assert iso_duration(datetime.timedelta(seconds=seconds)) == text
