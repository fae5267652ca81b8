"""Files of other tools become files of a table: rows, statistics, partitions, refusals, moves and repetitions."""

import os
import threading
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.migration import add_files as module
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import RenameColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import files_below, rows_of

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string())])
DAYS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("day", pa.date32()), ("hour", pa.int32())])


def table_of(tmp_path, schema=COLUMNS, keys=(), **options):
    settings = {name.replace("_", "-"): value for name, value in options.items()}
    return Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=keys, options=settings))


def rows(*ids):
    return pa.table({"id": list(ids), "v": [f"v{i}" for i in ids]}, schema=COLUMNS)


def write(path, data=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(1, 2, 3) if data is None else data, path)
    return path


def files_of(table):
    return [entry.file for entry in live_entries(table.store, table.snapshot()).live]


def partitioned(root):
    """Two days, a NULL hour, text that is escaped, and files that are no data."""
    for name, ids in {"day=2026-01-01/hour=5": (1, 2), f"day=2026-01-02/hour={module_null()}": (3,)}.items():
        write(root / name / "part-0.parquet", rows(*ids))
    (root / "_SUCCESS").touch()
    (root / "day=2026-01-01" / ".part-0.crc").write_bytes(b"x")
    (root / "_temporary").mkdir()
    (root / "_temporary" / "junk").write_bytes(b"x")
    (root / "day=2026-01-01" / "hour=5" / "empty").touch()
    return root


def module_null():
    return "__HIVE_DEFAULT_PARTITION__"


def test_added_file_is_copied_unchanged(tmp_path):
    table, path = table_of(tmp_path), write(tmp_path / "a.parquet")
    added = table.add_files(str(path))
    assert (added.files, added.rows, added.bytes, added.skipped) == (1, 3, path.stat().st_size, 0)
    assert added.snapshot == table.snapshot()
    assert table.to_arrow().equals(rows(1, 2, 3))
    (file,) = files_of(table)
    copy = tmp_path / "t" / "bucket-0" / file.file_name
    assert copy.read_bytes() == path.read_bytes()
    assert not os.path.samefile(copy, path)
    assert table.verify(deep=True).sound


def test_filters_skip_added_files_by_their_statistics(tmp_path):
    table = table_of(tmp_path)
    for i in range(3):
        write(tmp_path / "in" / f"{i}.parquet", rows(10 * i, 10 * i + 1))
    table.add_files(str(tmp_path / "in"))
    assert len(table.scan(filter="id = 11").plan().splits[0].files) == 1
    assert table.to_arrow(filter="id >= 11 AND v < 'v20'").column("id").to_pylist() == [11]


def test_partitions_come_from_paths(tmp_path):
    table = table_of(tmp_path, DAYS, ["day", "hour"])
    source = partitioned(tmp_path / "in")
    added = table.add_files(str(source))
    assert (added.files, added.rows) == (2, 3)
    day = date(2026, 1, 1)
    assert rows_of(table.to_arrow()) == [
        {"id": 1, "v": "v1", "day": day, "hour": 5},
        {"id": 2, "v": "v2", "day": day, "hour": 5},
        {"id": 3, "v": "v3", "day": date(2026, 1, 2), "hour": None},
    ]
    assert table.to_arrow(filter="hour IS NULL").num_rows == 1
    assert table.to_arrow(filter="day = DATE '2026-01-01'").num_rows == 2
    assert table.verify(deep=True).sound
    assert {os.path.dirname(name) for name in files_below(tmp_path / "t") if "bucket" in name} == {
        "day=20454/hour=5/bucket-0",
        "day=20455/hour=__DEFAULT_PARTITION__/bucket-0",
    }


def test_directory_of_one_partition_and_partition_by_name(tmp_path):
    table = table_of(tmp_path, DAYS, ["day", "hour"])
    source = partitioned(tmp_path / "in")
    table.add_files(str(source / "day=2026-01-01" / "hour=5" / "part-0.parquet"))
    assert table.to_arrow().column("hour").to_pylist() == [5, 5]
    other = write(tmp_path / "other.parquet", rows(9))
    table.add_files(str(other), {"day": date(2026, 2, 2), "hour": "7"})
    assert table.to_arrow(filter="id = 9").to_pylist() == [{"id": 9, "v": "v9", "day": date(2026, 2, 2), "hour": 7}]
    mixed = write(tmp_path / "hour=8" / "x.parquet", rows(10))
    table.add_files(str(mixed), {"day": "2026-02-03"})
    assert table.to_arrow(filter="id = 10").column("hour").to_pylist() == [8]
    with pytest.raises(InvalidInputError, match="is in partition hour=8, not in hour=9"):
        table.add_files(str(write(tmp_path / "hour=8" / "y.parquet")), {"day": "2026-02-03", "hour": 9})


@pytest.mark.parametrize("text", ["a b", "ü/%", "x=y", "", "  ", "a\\b:c", "null", "__DEFAULT_PARTITION__x"])
def test_texts_of_partitions_are_unescaped(tmp_path, text):
    schema = COLUMNS.append(pa.field("p", pa.string()))
    table = table_of(tmp_path, schema, ["p"])
    data = rows(1).append_column("p", pa.array([text]))
    source = tmp_path / "in"
    ds.write_dataset(data, source, format="parquet", partitioning=ds.partitioning(pa.schema([("p", pa.string())]),
                     flavor="hive"))  # fmt: skip
    table.add_files(str(source))
    assert table.to_arrow().column("p").to_pylist() == [text]


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_orc_and_avro_files_are_added(tmp_path, kind):
    made = Table.create(str(tmp_path / "made"), Schema(COLUMNS, options={"file.format": kind}))
    made.write(rows(1, 2))
    (path,) = (tmp_path / "made" / "bucket-0").iterdir()
    table = table_of(tmp_path)
    table.add_files(str(path))
    table.add_files(str(write(tmp_path / "b.parquet", rows(3))))
    assert rows_of(table.to_arrow()) == rows(1, 2, 3).to_pylist()
    assert table.to_arrow(filter="id > 1").num_rows == 2
    assert table.verify(deep=True).sound
    table.compact(full=True)
    assert rows_of(table.to_arrow()) == rows(1, 2, 3).to_pylist()


def test_same_file_is_added_once(tmp_path, monkeypatch):
    table, path = table_of(tmp_path), write(tmp_path / "in" / "a.parquet")
    table.add_files(str(path))
    monkeypatch.delattr(module, "copy_file")  # no byte is copied in vain
    again = table.add_files([str(path.parent), str(path), f"file://{path}"])
    assert (again.snapshot, again.files, again.skipped) == (None, 0, 1)
    assert len(table.snapshots()) == 1
    monkeypatch.undo()
    write(path, rows(4))  # another file under the old name
    assert table.add_files(str(path)).rows == 1
    assert table.to_arrow().num_rows == 4


def test_two_calls_at_same_time_add_file_once(tmp_path):
    table = table_of(tmp_path)
    for i in range(4):
        write(tmp_path / "in" / f"{i}.parquet", rows(i))
    threads = [threading.Thread(target=table.add_files, args=(str(tmp_path / "in"),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(table.to_arrow().column("id").to_pylist()) == [0, 1, 2, 3]
    assert sum("bucket-0" in name for name in files_below(tmp_path / "t")) == 4


def test_move_leaves_one_copy_and_copies_no_byte(tmp_path):
    table = table_of(tmp_path, DAYS, ["day", "hour"])
    source = partitioned(tmp_path / "in")
    nodes = {path.stat().st_ino for path in source.rglob("*.parquet")}
    assert table.add_files(str(source), move=True).rows == 3
    assert not list(source.rglob("*.parquet"))
    assert (source / "_SUCCESS").exists()
    assert {path.stat().st_ino for path in (tmp_path / "t").rglob("*.parquet")} == nodes
    assert table.verify(deep=True).sound


def test_symbolic_link_that_is_moved_becomes_file(tmp_path):
    table, path = table_of(tmp_path), write(tmp_path / "real" / "a.parquet")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.parquet").symlink_to("../real/a.parquet")
    table.add_files(str(tmp_path / "in"), move=True)
    assert table.to_arrow().equals(rows(1, 2, 3))
    assert path.exists()
    assert not list((tmp_path / "in").iterdir())


def test_failed_move_keeps_originals_and_leaves_no_copy(tmp_path, monkeypatch):
    table, path = table_of(tmp_path), write(tmp_path / "in" / "a.parquet")
    write(tmp_path / "in" / "b.parquet", rows(4))
    copy = module.copy_file

    def fails_for_b(io, source, *rest, **how):
        if source.endswith("b.parquet"):
            raise OSError(28, "no space", source)
        copy(io, source, *rest, **how)

    monkeypatch.setattr(module, "copy_file", fails_for_b)
    with pytest.raises(OSError, match="no space"):
        table.add_files(str(path.parent), move=True)
    assert len(list(path.parent.iterdir())) == 2
    assert not [name for name in files_below(tmp_path / "t") if "bucket" in name]
    assert table.snapshot() is None


def test_file_that_vanishes_or_grows_during_import_is_refused(tmp_path, monkeypatch):
    table, path = table_of(tmp_path), write(tmp_path / "a.parquet")
    monkeypatch.setattr(module, "copy_file", lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError(2, "gone")))
    with pytest.raises(NotFoundError, match="was deleted while it was being added: nothing has changed"):
        table.add_files(str(path))
    monkeypatch.undo()
    copy = module.copy_file

    def later(io, source, *rest, **how):
        write(Path(source), rows(*range(100)))
        copy(io, source, *rest, **how)

    monkeypatch.setattr(module, "copy_file", later)
    with pytest.raises(Exception, match="may have been replaced"):
        table.add_files(str(path))
    assert table.snapshot() is None


def test_files_without_rows_and_empty_directories(tmp_path):
    table = table_of(tmp_path)
    write(tmp_path / "in" / "a.parquet", rows())
    write(tmp_path / "in" / "b.parquet", rows(1))
    added = table.add_files(str(tmp_path / "in"))
    assert (added.files, added.skipped) == (1, 1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="there are no data files in"):
        table.add_files(str(tmp_path / "empty"))
    with pytest.raises(NotFoundError, match="there is no file or directory"):
        table.add_files(str(tmp_path / "missing"))
    with pytest.raises(InvalidInputError, match="inside the table"):
        table.add_files(str(tmp_path / "t" / "bucket-0"))


REFUSED = {
    "a column too many": (pa.table({"id": [1], "v": ["a"], "w": [1]}), "has a column 'w', which the table .* lacks"),
    "another case": (pa.table({"id": [1], "V": ["a"]}), "did you mean 'v'"),
    "another type": (pa.table({"id": pa.array([1], pa.int32()), "v": ["a"]}), "column 'id' of .* is INT, but BIGINT"),
    "a column twice": (pa.Table.from_arrays([pa.array([1])] * 2, ["id", "id"]), "several columns 'id'"),
    "unsigned": (pa.table({"id": pa.array([1], pa.uint64())}), "'id' .* unsigned"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_file_that_does_not_fit_changes_nothing(tmp_path, name):
    data, message = REFUSED[name]
    table = table_of(tmp_path)
    write(tmp_path / "in" / "a.parquet")
    write(tmp_path / "in" / "b.parquet", data)
    before = files_below(tmp_path / "t")
    with pytest.raises((InvalidInputError, UnsupportedError), match=message):
        table.add_files(str(tmp_path / "in"), move=True)
    assert files_below(tmp_path / "t") == before
    assert len(list((tmp_path / "in").iterdir())) == 2


def test_missing_column_is_null_unless_it_must_not_be(tmp_path):
    table = table_of(tmp_path)
    table.add_files(str(write(tmp_path / "a.parquet", pa.table({"id": [1, 2]}))))
    assert table.to_arrow().column("v").to_pylist() == [None, None]
    assert table.to_arrow(filter="v = 'x'").num_rows == 0
    assert table.verify(deep=True).sound
    required = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    strict = Table.create(str(tmp_path / "strict"), Schema(required))
    with pytest.raises(InvalidInputError, match="has no column 'id', which is BIGINT NOT NULL"):
        strict.add_files(str(write(tmp_path / "b.parquet", pa.table({"v": ["a"]}))))
    with pytest.raises(InvalidInputError, match=r"'id' of .* may hold NULL"):
        strict.add_files(str(write(tmp_path / "c.parquet", pa.table({"id": [1, None], "v": ["a", "b"]}))))
    assert strict.add_files(str(write(tmp_path / "d.parquet", rows(1)))).rows == 1  # its footer counts no NULL


def test_nested_types_must_agree(tmp_path):
    inner = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
    table = table_of(tmp_path, pa.schema([("s", inner)]))
    good = pa.table({"s": pa.array([{"x": 1, "y": ["a", None]}, None], inner)})
    table.add_files(str(write(tmp_path / "a.parquet", good)))
    assert table.to_arrow().column("s").to_pylist() == [{"x": 1, "y": ["a", None]}, None]
    for other in (pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]), pa.struct([("x", pa.int32())])):
        path = write(tmp_path / "b.parquet", pa.table({"s": pa.array([None], other)}))
        with pytest.raises(InvalidInputError, match=r"column 's(\.x)?' of"):
            table.add_files(str(path))


def test_partition_column_in_file_must_agree_with_path(tmp_path):
    table = table_of(tmp_path, COLUMNS.append(pa.field("p", pa.int32())), ["p"])
    same, other = (rows(1, 2).append_column("p", pa.array([7, n], pa.int32())) for n in (7, 8))
    table.add_files(str(write(tmp_path / "p=7" / "a.parquet", same)))
    assert table.to_arrow(filter="p = 7").num_rows == 2
    with pytest.raises(InvalidInputError, match="also stores the partition column 'p'"):
        table.add_files(str(write(tmp_path / "p=7" / "b.parquet", other)))


def test_paths_that_are_not_partitions_are_refused(tmp_path):
    table = table_of(tmp_path, COLUMNS.append(pa.field("p", pa.int32())), ["p"])
    write(tmp_path / "a" / "p=1" / "x.parquet")
    write(tmp_path / "a" / "q=1" / "x.parquet")
    with pytest.raises(InvalidInputError, match="all files must have the same partition columns"):
        table.add_files(str(tmp_path / "a"))
    write(tmp_path / "b" / "sub" / "x.parquet")
    with pytest.raises(InvalidInputError, match="sub is not a partition 'column=value'"):
        table.add_files(str(tmp_path / "b"))
    write(tmp_path / "c" / "p=one" / "x.parquet")
    with pytest.raises(InvalidInputError, match="'one' is not a value of column 'p'"):
        table.add_files(str(tmp_path / "c"))
    write(tmp_path / "d" / "x.parquet")
    with pytest.raises(InvalidInputError, match="is not in a directory 'p=value'"):
        table.add_files(str(tmp_path / "d"))
    with pytest.raises(InvalidInputError, match="'z' is not a partition column"):
        table.add_files(str(tmp_path / "d"), {"z": 1})
    write(tmp_path / "e" / "p=1" / "q=1" / "x.parquet")
    with pytest.raises(InvalidInputError, match="'q' is not a partition column"):
        table.add_files(str(tmp_path / "e"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["_delta_log"], "is a Delta table"),
        (["data", "metadata"], "is a Iceberg table"),
        ([".hoodie"], "is a Hudi table"),
        (["schema", "snapshot"], "is a Paimon table already"),
    ],
)
def test_directories_of_table_formats_are_refused(tmp_path, names, message):
    write(tmp_path / "in" / "x.parquet")
    for name in names:
        (tmp_path / "in" / name).mkdir()
    with pytest.raises(UnsupportedError, match=message):
        table_of(tmp_path).add_files(str(tmp_path / "in"))


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        (["id"], {"bucket": "1"}, "has a primary key"),
        ([], {"bucket": "2", "bucket-key": "id"}, "has 2 buckets"),
        ([], {"row-tracking.enabled": "true"}, "tracks row ids"),
    ],
)
def test_tables_that_take_no_files(tmp_path, keys, options, message):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, primary_keys=keys, options=options))
    with pytest.raises(UnsupportedError, match=message):
        table.add_files(str(write(tmp_path / "a.parquet")))


def test_columns_are_found_by_names_of_their_time(tmp_path):
    table = table_of(tmp_path)
    table.add_files(str(write(tmp_path / "a.parquet")))
    table = table.alter([RenameColumn("v", "w")])
    assert table.to_arrow().column("w").to_pylist() == ["v1", "v2", "v3"]
    with pytest.raises(InvalidInputError, match="has a column 'v'"):
        table.add_files(str(write(tmp_path / "b.parquet")))


def test_deletes_and_streams_take_added_files_like_others(tmp_path):
    table = table_of(tmp_path, **{"deletion-vectors.enabled": "true"})
    stream = table.stream()
    stream.plan()
    table.add_files(str(write(tmp_path / "a.parquet")))
    assert sum(batch.num_rows for batch in stream.to_batches()) == 3
    table.delete("id = 2")
    assert table.to_arrow().column("id").to_pylist() == [1, 3]
    assert table.verify(deep=True).sound


def test_modes_of_statistics_hold(tmp_path):
    table = table_of(tmp_path, **{"metadata.stats-mode": "counts"})
    table = table.with_options({})
    table.add_files(str(write(tmp_path / "a.parquet")))
    (file,) = files_of(table)
    assert file.value_stats_cols == ("id", "v")
    assert file.value_stats.null_counts == (0, 0)
    none = Table.create(str(tmp_path / "none"), Schema(COLUMNS, options={"metadata.stats-mode": "none"}))
    none.add_files(str(tmp_path / "a.parquet"))
    assert files_of(none)[0].value_stats_cols == ()
    assert none.to_arrow(filter="id = 2").num_rows == 1


def test_long_texts_are_cut_in_statistics(tmp_path):
    table = table_of(tmp_path)
    data = pa.table({"id": [1, 2], "v": ["a" * 50, "b" * 50]})
    table.add_files(str(write(tmp_path / "a.parquet", data)))
    assert table.to_arrow(filter=f"v = '{'b' * 50}'").num_rows == 1
    assert table.verify(deep=True).sound


def test_orc_files_of_other_writers(tmp_path):
    path = tmp_path / "a.orc"
    orc.write_table(rows(1, 2), path)
    table = table_of(tmp_path)
    table.add_files(str(path))
    assert table.to_arrow().equals(rows(1, 2))
