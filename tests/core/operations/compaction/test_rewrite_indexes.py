"""Rewriting file indexes: files get the indexes that the options require; rows, files and their order stay."""

from threading import Barrier, Thread

import pyarrow as pa
import pytest

from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.table_commit import TableCommit
from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError
from paimon_core.fileio.fileio import join
from paimon_core.operations.compaction.rewrite_indexes import plan_indexes, run
from paimon_core.operations.jobs.task import ALL_DUE
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, RenameColumn, SetOption, UpdateType
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.support.index_files import unpack
from tests.support.tables import append_table, files_below, keyed_table, orders, rows_of

BITMAP = "file-index.bitmap.columns"
LARGE = {"file-index.in-manifest-threshold": "1 b"}


def files(table: Table) -> list:
    return [e.file for e in live_entries(table.store, table.snapshot()).live]


def kinds(table: Table) -> list[dict]:
    """Of each live file the kinds of indexes by column."""
    indexes = []
    for entry in live_entries(table.store, table.snapshot()).live:
        data, beside = entry.file.embedded_index, [n for n in entry.file.extra_files if n.endswith(".index")]
        assert len(beside) <= (data is None)
        if beside:
            data = table.store.io.read(join(table.store.bucket_path(entry.bucket_ref), beside[0]))
        indexes.append({} if data is None else {c: set(k) for c, k in unpack(data, "here").items()})
    return indexes


def plain(path, **options: str) -> Table:
    table = append_table(path, **{"compaction.min.file-num": "100", **options})
    for low in (0, 10, 20):
        table.write(orders(*((low + i, f"v{low + i}", i) for i in range(4))))
    return table


def with_index_options(table: Table, columns: str = "v", **options: str) -> Table:
    return table.alter([SetOption(k, v) for k, v in {BITMAP: columns, **options}.items()])


@pytest.mark.parametrize("options", [{}, LARGE], ids=["in the metadata", "in files"])
def test_files_without_indexes_get_them_and_stay(tmp_path, options):
    table = plain(tmp_path / "t", bucket="1", **{"bucket-key": "id"})
    assert table.maintenance.rewrite_file_index() is None
    before, names = rows_of(table.to_arrow()), [f.file_name for f in files(table)]
    table = with_index_options(table, **options)
    snapshot = table.maintenance.rewrite_file_index()
    assert (snapshot.commit_kind, snapshot.delta_record_count, snapshot.total_record_count) == ("COMPACT", 0, 12)
    assert kinds(table) == [{"v": {"bitmap"}}] * 3
    assert [f.file_name for f in files(table)] == names
    assert all(bool(f.extra_files) == bool(options) for f in files(table))
    assert rows_of(table.to_arrow()) == before
    assert rows_of(table.to_arrow(filter="v = 'v12'")) == [{"id": 12, "v": "v12", "n": 2}]
    assert table.to_arrow(filter="v = 'v'").num_rows == 0
    assert table.verify(deep=True).sound
    assert table.maintenance.rewrite_file_index() is None


def test_statistics_of_files_do_not_change(tmp_path):
    table = plain(tmp_path / "t")
    then = [(f.value_stats, f.min_sequence_number, f.file_source, f.creation_time) for f in files(table)]
    table = with_index_options(table)
    table.maintenance.rewrite_file_index()
    assert [(f.value_stats, f.min_sequence_number, f.file_source, f.creation_time) for f in files(table)] == then


def test_only_files_that_lack_index_are_touched(tmp_path):
    table = with_index_options(plain(tmp_path / "t"))
    table.write(orders((50, "new", 1)))
    *_, newest = files(table)
    assert newest.embedded_index is not None
    snapshot = table.maintenance.rewrite_file_index()
    entries = [
        e
        for meta in table.store.manifests.read_list(snapshot.delta_manifest_list)
        for e in table.store.manifests.read(meta.file_name)
    ]
    assert len(entries) == 6
    assert newest.file_name not in {e.file.file_name for e in entries}


def test_new_index_is_added_and_unrequested_index_is_removed(tmp_path):
    table = with_index_options(plain(tmp_path / "t"), **LARGE)
    table.maintenance.rewrite_file_index()
    old = {name for f in files(table) for name in f.extra_files}
    table = with_index_options(table, "id", **{"file-index.bloom-filter.columns": "v"})
    table.maintenance.rewrite_file_index()
    assert kinds(table) == [{"v": {"bloom-filter"}, "id": {"bitmap"}}] * 3
    new = {name for f in files(table) for name in f.extra_files}
    assert not old & new
    assert {name for name in files_below(tmp_path / "t") if name.endswith(".index")} == {
        f"bucket-0/{name}" for name in old | new
    }


def test_no_entry_comes_back(tmp_path):
    """A DELETE cancels every ADD of the same identity in the same manifests, also a later one."""
    table = plain(tmp_path / "t", **{"manifest.merge-min-count": "2", "manifest.full-compaction-threshold-size": "1 b"})
    before, identities = rows_of(table.to_arrow()), []
    for columns in ("v", "id", "v", "id", "v"):
        table = with_index_options(table, columns)
        table.maintenance.rewrite_file_index()
        assert kinds(table) == [{columns: {"bitmap"}}] * 3
        assert rows_of(table.to_arrow()) == before
        identities += [e.identity for e in live_entries(table.store, table.snapshot()).live]
        table.write(orders())
    assert len(set(identities)) == 15
    table.maintenance.compact_manifests()
    assert rows_of(table.to_arrow()) == before
    assert table.verify(deep=True).sound


def there(table: Table) -> set[str]:
    """The names of the files of the only bucket."""
    return {path.rpartition("/")[2] for path in files_below(f"{table.path}/bucket-0")}


def names(table: Table) -> set[str]:
    return {name for f in files(table) for name in (f.file_name, *f.extra_files)}


def test_replaced_index_files_go_when_their_snapshots_expire(tmp_path):
    table = with_index_options(plain(tmp_path / "t"), **LARGE)
    table.maintenance.rewrite_file_index()
    old = names(table)
    table = with_index_options(table, "v,id")
    table.maintenance.rewrite_file_index()
    assert len(there(table)) == 9
    assert there(table) == old | names(table)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert there(table) == names(table)
    assert table.verify(deep=True).sound
    table.truncate()
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert there(table) == set()


def test_tags_protect_replaced_index_files(tmp_path):
    table = with_index_options(plain(tmp_path / "t"), **LARGE)
    table.maintenance.rewrite_file_index()
    table.tags.create("then")
    old = names(table)
    table = with_index_options(table, "v,id")
    table.maintenance.rewrite_file_index()
    table.write(orders((90, "z", 1)))
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert there(table) == old | names(table)
    assert table.to_arrow(version="then", filter="v = 'v1'").num_rows == 1
    table.tags.delete("then")
    assert there(table) == names(table)


def test_branches_protect_replaced_index_files(tmp_path):
    table = with_index_options(plain(tmp_path / "t"), **LARGE)
    table.maintenance.rewrite_file_index()
    table.tags.create("then")
    table.branches.create("b", tag="then")
    table.tags.delete("then")
    old = names(table)
    table = with_index_options(table, "v,id")
    table.maintenance.rewrite_file_index()
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert there(table) == old | names(table)
    assert Table.open(table.path, branch="b").to_arrow(filter="v = 'v1'").num_rows == 1


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_lost_index_file_is_made_again(tmp_path, how):
    table = with_index_options(plain(tmp_path / "t"), **LARGE)
    table.maintenance.rewrite_file_index()
    path = tmp_path / "t/bucket-0" / files(table)[0].extra_files[0]
    path.unlink() if how == "missing" else path.write_bytes(b"?" * 30)
    table.maintenance.rewrite_file_index()
    assert rows_of(table.to_arrow(filter="v = 'v1'")) == [{"id": 1, "v": "v1", "n": 1}]
    assert kinds(table) == [{"v": {"bitmap"}}] * 3


def test_marked_rows_stay_deleted(tmp_path):
    table = plain(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.delete("id = 1 OR id = 12")
    before = rows_of(table.to_arrow())
    table = with_index_options(table)
    table.maintenance.rewrite_file_index()
    assert rows_of(table.to_arrow()) == before
    assert table.to_arrow(filter="v = 'v1'").num_rows == 0
    assert table.verify(deep=True).sound


def test_columns_that_were_renamed_cast_and_added(tmp_path):
    table = plain(tmp_path / "t")
    table = table.alter(
        [RenameColumn("v", "w"), UpdateType("n", parse_type("BIGINT")), AddColumn("x", parse_type("INT"))]
    )
    table.write(table.to_arrow().slice(0, 1))
    table = with_index_options(table, "w,n,x")
    table.maintenance.rewrite_file_index()
    assert kinds(table) == [{"v": {"bitmap"}, "n": {"bitmap"}}] * 3 + [{c: {"bitmap"} for c in "wnx"}]
    assert sorted(table.to_arrow(filter="w = 'v12' AND n = 2")["id"].to_pylist()) == [12]
    assert table.to_arrow(filter="x IS NULL").num_rows == 13
    assert table.maintenance.rewrite_file_index() is None


def test_keys_in_all_levels(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"write-only": "true"})
    for low in range(3):
        table.write(orders(*((low + i, f"v{low}", i) for i in range(4))))
    table.compact(full=True)
    table.write(orders((1, "w", 1)))
    table.write(orders((2, "x", 1)), ["-D"])
    before = rows_of(table.to_arrow())
    table = with_index_options(table)
    table.maintenance.rewrite_file_index()
    assert kinds(table) == [{"v": {"bitmap"}}] * 3
    assert rows_of(table.to_arrow()) == before
    table.compact(full=True)
    assert rows_of(table.to_arrow()) == before


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_levels_that_overlap(tmp_path, engine, producer):
    options = {"merge-engine": engine, "changelog-producer": producer, "num-sorted-run.compaction-trigger": "2"}
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    for low in range(5):
        table.write(orders(*((low + i, f"v{low}", i) for i in range(40 if low == 0 else 2))))
    before = rows_of(table.to_arrow())
    table = with_index_options(table)
    assert table.maintenance.rewrite_file_index() is not None
    assert all(kinds(table))
    assert rows_of(table.to_arrow()) == before


def ties(table: Table) -> None:
    """Two files of level 0 with the same key and sequence number: the later one wins."""
    messages = []
    for value in ("first", "second"):
        writer = table.writer()
        writer.write(orders((1, value, 1)))
        messages.append(writer.prepare_commit())
    for each in messages:
        TableCommit(table.store).commit(each)


def test_file_whose_place_counts_stays(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"write-only": "true"})
    ties(table)
    table = with_index_options(table)
    assert rows_of(table.to_arrow()) == [{"id": 1, "v": "second", "n": 1}]
    table.maintenance.rewrite_file_index()
    assert kinds(table) == [{}, {"v": {"bitmap"}}]
    assert rows_of(table.to_arrow()) == [{"id": 1, "v": "second", "n": 1}]


def test_file_whose_place_counts_since_it_was_planned_is_rejected(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"write-only": "true"})
    late = table.writer()
    late.write(orders((1, "second", 1)))
    messages = late.prepare_commit()
    table.write(orders((1, "first", 1)))
    table = with_index_options(table)
    store = table.store
    (task,) = plan_indexes(store, ALL_DUE)
    message = run(store, task)
    TableCommit(store).commit(messages)
    snapshot, rejected = TableCommit(store).compact([message])
    assert snapshot is None
    assert rejected == [message]
    assert rows_of(Table.open(str(tmp_path / "t")).to_arrow()) == [{"id": 1, "v": "second", "n": 1}]


@pytest.mark.parametrize("options", [{}, LARGE])
def test_another_compaction_wins_or_loses(tmp_path, options):
    table = with_index_options(plain(tmp_path / "t"), **options)
    store, before = table.store, files_below(tmp_path / "t")
    (task,) = plan_indexes(store, ALL_DUE)
    message = run(store, task)
    written = files_below(tmp_path / "t") - before
    assert bool(written) == bool(options)
    table.compact(full=True)
    assert TableCommit(store).compact([message]) == (None, [message])
    assert not written & files_below(tmp_path / "t")
    assert table.maintenance.rewrite_file_index() is None  # what was compacted has them


def test_delete_that_rewrites_files_meets_new_entries(tmp_path):
    table = plain(tmp_path / "t")
    store = table.store
    writer_side = [f.file_name for f in files(table)]
    table = with_index_options(table)
    base = table.snapshot()
    (task,) = plan_indexes(table.store, ALL_DUE)
    table.maintenance.rewrite_file_index()
    stale = run(table.store, task)
    assert TableCommit(store).compact([stale])[1] == [stale]
    assert [f.file_name for f in files(table)] == writer_side
    with pytest.raises(CommitConflictError):
        replace_files(Publisher(store), (), read_at=base)


def test_two_at_time_leave_one_index_each(tmp_path):
    table = with_index_options(plain(tmp_path / "t"), **LARGE)
    start, failed = Barrier(4), []

    def rewrite() -> None:
        start.wait()
        try:
            Table.open(str(tmp_path / "t")).maintenance.rewrite_file_index()
        except Exception as error:
            failed.append(error)

    threads = [Thread(target=rewrite) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert kinds(table) == [{"v": {"bitmap"}}] * 3
    named = {f"bucket-0/{name}" for f in files(table) for name in f.extra_files}
    assert {name for name in files_below(tmp_path / "t") if name.endswith(".index")} == named
    assert table.verify(deep=True).sound


def test_error_leaves_no_index_file(tmp_path):
    table = with_index_options(plain(tmp_path / "t"), **LARGE)
    before = files_below(tmp_path / "t")
    (tmp_path / "t/bucket-0" / files(table)[2].file_name).write_bytes(b"?")
    with pytest.raises(CorruptedError):
        table.maintenance.rewrite_file_index()
    assert files_below(tmp_path / "t") == before


def test_partitions_are_chosen(tmp_path):
    schema = Schema(pa.schema([("p", pa.int32()), ("v", pa.string())]), partition_keys=["p"])
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(pa.table({"p": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    table = with_index_options(table)
    table.maintenance.rewrite_file_index(filter="p = 1")
    assert sorted(map(len, kinds(table))) == [0, 1]
    with pytest.raises(InvalidInputError, match="'v' is no partition column"):
        table.maintenance.rewrite_file_index(filter="v = 'a'")


def test_values_that_cannot_be_indexed_are_tried_and_left(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((-(2**63), "v", 1)))
    table = table.alter([SetOption("file-index.bsi.columns", "id")])
    assert table.maintenance.rewrite_file_index() is None
    assert kinds(table) == [{}]
