"""Deletes by a filter: what is left is what a filter over all rows leaves, in every kind of table."""

import itertools
from typing import ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.datafile.deletion_vectors import read_entries, vector_entries
from paimon_core.deletion.vector_files import StoredVector
from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.operations.row_changes.delete import check_deletes
from paimon_core.scan.entries import live_entries
from paimon_core.scan.split import DataSplit
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn, UpdateType
from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.table import Table
from paimon_core.write.table_write import TableWrite
from tests.support.draws import draws
from tests.support.tables import ORDERS, append_table, files_below, keyed_table, orders, rows_of

MARKS = {"deletion-vectors.enabled": "true"}
TABLES = {
    "marked": MARKS,
    "marked, 64 bits": MARKS | {"deletion-vectors.bitmap64": "true"},
    "marked in buckets": MARKS | {"bucket": "2", "bucket-key": "id", "write-only": "true"},
    "rewritten": {},
    "rewritten in buckets": {"bucket": "2", "bucket-key": "id", "write-only": "true"},
}


def ids(table, **more):
    return sorted(table.to_arrow(columns=["id"], **more).column(0).to_pylist())


def vectors(table):
    return read_entries(table.store, vector_entries(table.store, table.snapshot()))


def ten(table, *starts):
    for start in starts:
        table.write(orders(*((k, f"v{k % 3}", k) for k in range(start, start + 10))))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("name", TABLES)
def test_matching_rows_are_deleted(tmp_path, name, file_format):
    table = append_table(tmp_path / "t", **{"file.format": file_format, **TABLES[name]})
    ten(table, 0, 10, 20)
    before = table.snapshot()
    snapshot = table.delete("id in (3, 5, 17) or id >= 20")
    assert (snapshot.id, snapshot.commit_kind) == (4, "OVERWRITE")
    assert ids(table) == [k for k in range(20) if k not in (3, 5, 17)]
    assert ids(table, snapshot_id=before.id) == list(range(30))
    assert bool(vectors(table)) == ("marked" in name)
    assert len([f for f in table.scan().plan().splits for f in f.files]) == (4 if "buckets" in name else 2)
    assert table.delete("id = 3") is None
    assert table.snapshot().id == 4
    table.delete("v = 'v0' and id < 10")
    assert ids(table) == [k for k in range(20) if k not in (0, 3, 5, 6, 9, 17)]
    ten(table, 100)
    assert ids(table, filter="id > 15") == [16, 18, 19, *range(100, 110)]


def test_marks_change_no_file_and_rewriting_leaves_others_alone(tmp_path):
    for name, options in (("marked", MARKS), ("rewritten", {})):
        table = append_table(tmp_path / name, **options)
        ten(table, 0, 10)
        first, second = sorted(f for f in files_below(tmp_path / name) if "/data-" in f)
        table.delete("id = 14")
        live = {f.file_name for s in table.scan().plan().splits for f in s.files}
        assert len({first.split("/")[-1], second.split("/")[-1]} & live) == (2 if options else 1)


@pytest.mark.parametrize("options", [MARKS, {}])
def test_partitions_are_dropped_unread(tmp_path, options):
    schema = pa.schema([("p", pa.int32()), ("k", pa.int64())])
    settings_ = {k.replace("_", "-"): v for k, v in options.items()}
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=settings_))
    table.write(pa.table({"p": [1, 1, 2, None], "k": [1, 2, 3, 4]}, schema))
    for path in (tmp_path / "t" / "p=2").rglob("*.parquet"):
        path.write_bytes(b"unreadable")
    assert table.delete("p = 7") is None
    assert table.delete("p = 2").commit_kind == "OVERWRITE"
    assert sorted(table.to_arrow().column("k").to_pylist()) == [1, 2, 4]
    table.delete("p = 1 and k = 2")
    table.delete("p is null and k > 0")
    assert table.to_arrow().to_pylist() == [{"p": 1, "k": 1}]
    assert table.snapshot().total_record_count == (2 if options else 1)


def test_vectors_are_deleted_with_their_partitions(tmp_path):
    schema = pa.schema([("p", pa.int32()), ("k", pa.int64())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=MARKS))
    table.write(pa.table({"p": [1, 1, 2, 2, 3, 3], "k": [1, 2, 3, 4, 5, 6]}, schema))
    table.delete("k in (1, 3, 5)")
    assert len(vectors(table)) == 3
    table.overwrite(pa.table({"p": [1], "k": [7]}, schema), "dynamic")
    assert len(vectors(table)) == 2
    table.drop_partitions([{"p": 2}])
    assert sorted(table.to_arrow().column("k").to_pylist()) == [6, 7]
    assert len(vectors(table)) == 1
    table.truncate()
    assert table.snapshot().index_manifest is None


rows_strategy = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["a", "b", None])), min_size=1, max_size=8)
filters = st.one_of(
    st.integers(0, 30).map(lambda k: (f"id = {k}", lambda r: r[0] == k)),
    st.integers(0, 30).map(lambda k: (f"id < {k}", lambda r: r[0] < k)),
    st.just(("v = 'a'", lambda r: r[1] == "a")),
    st.just(("v is null", lambda r: r[1] is None)),
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(
        lambda k: (
            f"id >= {k[0]} and v <> 'b' or id = {k[1]}",
            lambda r: (r[0] >= k[0] and r[1] == "a") or r[0] == k[1],
        )
    ),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), rows_strategy),
        st.tuples(st.just("delete"), filters),
        st.tuples(st.just("compact"), st.booleans()),
        st.tuples(st.just("sort"), st.none()),
        st.tuples(st.just("overwrite"), rows_strategy),
    ),
    min_size=2,
    max_size=8,
)


@draws(40)
@given(st.data(), steps)
def test_random_deletes_agree_with_list_of_rows(tmp_path_factory, data, drawn):
    options = dict(TABLES[data.draw(st.sampled_from(sorted(TABLES)))])
    options |= {"file.format": data.draw(st.sampled_from(["avro", "parquet"])), "file.block-size": "1 b"}
    options |= {"deletion-vector.index-file.target-size": data.draw(st.sampled_from(["1 b", "2 mb"]))}
    options["compaction.min.file-num"] = "2"
    table = append_table(tmp_path_factory.mktemp("t") / "t", **options)
    model: list[tuple] = []
    number = itertools.count()
    past = {}
    for what, given_ in drawn:
        if what in ("write", "overwrite"):
            rows = [(k, v, next(number)) for k, v in given_]
            model = [*(model if what == "write" else []), *rows]
            (table.write if what == "write" else table.overwrite)(orders(*rows))
        elif what == "delete":
            text, test = given_
            left = [r for r in model if not test(r)]
            assert (table.delete(text) is None) == (len(left) == len(model))
            model = left
        elif what == "compact":
            table.compact(full=given_)
        elif "bucket" not in options:
            table.compact(order_by=["v"])
        past[table.snapshot().id if table.snapshot() else 0] = sorted(r[2] for r in model)
        assert sorted(table.to_arrow().column("n").to_pylist()) == past.get(max(past))
        for text, test in (("id < 15", lambda r: r[0] < 15), ("v = 'a'", lambda r: r[1] == "a")):
            actual = sorted(table.to_arrow(filter=text).column("n").to_pylist())
            assert actual == sorted(r[2] for r in model if test(r))
        assert table.to_arrow(limit=3).num_rows == min(3, len(model))
    for snapshot_id, expected in past.items():
        if snapshot_id:
            assert sorted(table.to_arrow(snapshot_id=snapshot_id).column("n").to_pylist()) == expected


def test_compaction_drops_deleted_rows_for_good(tmp_path):
    table = append_table(tmp_path / "t", **MARKS, **{"compaction.small-file-ratio": "0"})
    ten(table, 0, 10, 20)
    table.delete("id in (0, 11, 12, 13)")
    marked = {name for name, v in vectors(table).items() if v.cardinality == 3}
    assert table.compact() is not None  # of one file more than compaction.delete-ratio-threshold is deleted
    assert ids(table) == [k for k in range(30) if k not in (0, 11, 12, 13)]
    assert [v.cardinality for v in vectors(table).values()] == [1]
    assert marked.isdisjoint(f.file_name for s in table.scan().plan().splits for f in s.files)
    assert table.compact() is None
    table.compact(full=True)
    assert vectors(table) == {}
    assert table.snapshot().index_manifest is None
    assert table.snapshot().total_record_count == 26
    table.delete("id = 1")
    table.compact(order_by=["v"])
    assert vectors(table) == {}
    assert ids(table) == [k for k in range(2, 30) if k not in (11, 12, 13)]


def test_files_are_compacted_away_that_have_no_row_left(tmp_path):
    table = append_table(tmp_path / "t", **MARKS)
    table.write(orders(*((k, "x", k) for k in range(10))))
    table.delete("id < 9")
    table.delete("id = 9")
    assert table.scan().plan().splits == []
    assert table.snapshot().total_record_count == 0
    assert table.compact(full=True) is None


def test_writer_that_compacts_leaves_deleted_rows_out(tmp_path):
    table = append_table(tmp_path / "t", **MARKS, **{"bucket": "1", "bucket-key": "id", "compaction.min.file-num": "3"})
    ten(table, 0, 10)
    table.delete("id in (3, 14)")
    ten(table, 20)
    assert table.snapshot().commit_kind == "COMPACT"
    assert ids(table) == [k for k in range(30) if k not in (3, 14)]
    assert vectors(table) == {}
    assert table.to_arrow(columns=["id"]).column(0).to_pylist() == ids(table)


def test_remaining_vectors_of_index_file_are_written_again(tmp_path):
    """Others read these files from end to end: an entry must name all that its file holds."""
    table = append_table(tmp_path / "t", **MARKS)
    ten(table, 0, 10, 20)
    table.delete("id in (1, 2, 11, 12, 21)")
    table.delete("id < 10")
    (entry,) = vector_entries(table.store, table.snapshot())
    assert entry.row_count == len(entry.deletion_ranges) == 2
    size = 1 + sum(r.length + 8 for r in entry.deletion_ranges)
    assert entry.file_size == size == len(table.store.io.read(table.store.index_path(entry)))


def test_columns_may_change_under_deleted_rows(tmp_path):
    table = append_table(tmp_path / "t", **MARKS)
    ten(table, 0)
    table.delete("v = 'v1'")
    changed = table.alter([RenameColumn("n", "m"), UpdateType("m", "BIGINT"), AddColumn("x", "INT"), DropColumn("v")])
    assert ids(changed) == [0, 2, 3, 5, 6, 8, 9]
    changed.delete("m = 5 or x > 0")
    assert ids(changed) == [0, 2, 3, 6, 8, 9]
    changed.delete("x is null and id > 5")
    assert ids(changed) == [0, 2, 3]
    changed.compact(full=True)
    assert ids(changed) == [0, 2, 3]


def test_splits_travel_with_their_vectors_and_know_their_rows(tmp_path):
    table = append_table(tmp_path / "t", **MARKS)
    ten(table, 0, 10)
    table.delete("id in (3, 4, 15)")
    (split,) = table.scan().plan().splits
    assert (split.row_count, split.certain_row_count) == (20, 17)
    back = DataSplit.from_bytes(split.to_bytes())
    assert back == split
    assert sum(b.num_rows for b in table.reader(columns=[]).to_batches(back)) == 17
    assert all(isinstance(v, StoredVector) for v in back.vectors)
    assert "2 with deleted rows" in str(table.explain())
    small = table.with_options({"source.split.target-size": "1 b"})
    assert small.to_arrow(limit=9).num_rows == 9
    assert len(small.scan(limit=8).plan().splits) == 1
    assert len(small.scan(limit=9).plan().splits) == 2


def test_row_groups_that_are_skipped_shift_no_position(tmp_path):
    table = append_table(tmp_path / "t", **MARKS, **{"file.block-size": "1 kb"})
    count = 20_000
    table.write(orders(*((k, "x" * 20, k) for k in range(count))))
    dead = set(range(5, count, 1000)) | set(range(15_000, 15_100))
    table.delete(f"id in ({', '.join(map(str, sorted(dead)))})")
    for low in (0, 4_990, 14_990, 15_050, 19_000):
        actual = ids(table, filter=f"id between {low} and {low + 40}")
        assert actual == [k for k in range(low, low + 41) if k not in dead and k < count]
    table.delete("id between 15100 and 15200 or id = 6")
    assert ids(table) == [k for k in range(count) if k not in dead and k != 6 and not 15100 <= k <= 15200]


# ---- bad input


def test_damaged_index_file_is_named_and_yields_no_row(tmp_path):
    table = append_table(tmp_path / "t", **MARKS)
    ten(table, 0)
    table.delete("id = 3")
    (path,) = (tmp_path / "t" / "index").iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"", whole[:12] + b"\x99" + whole[13:], whole[:5] + b"\0\0\0\0" + whole[9:]):
        path.write_bytes(damaged)
        for read in (table.to_arrow, lambda: table.delete("id = 4"), lambda: table.compact(full=True)):
            with pytest.raises(CorruptedError, match=path.name):
                read()
    path.unlink()
    with pytest.raises(CorruptedError, match=path.name):
        table.to_arrow()
    assert table.snapshot().id == 2


def test_vector_with_positions_beyond_file_is_refused(tmp_path):
    table = append_table(tmp_path / "t", **MARKS)
    ten(table, 0)
    table.delete("id = 9")
    other = append_table(tmp_path / "o", **MARKS)
    other.write(orders(*((k, "x", k) for k in range(100))))
    other.delete("id = 64")
    (mine,), (theirs,) = (list((tmp_path / t / "index").iterdir()) for t in "to")
    mine.write_bytes(theirs.read_bytes())
    with pytest.raises(CorruptedError, match="deletes row 64 of 10"):
        table.to_arrow()


def test_filter_is_needed_and_must_fit(tmp_path):
    table = append_table(tmp_path / "t")
    with pytest.raises(InvalidInputError, match="truncate"):
        table.delete(None)
    with pytest.raises(InvalidInputError, match="nix"):
        table.delete("nix = 1")
    assert table.delete("id = 1") is None
    with pytest.raises(UnsupportedError, match="read-optimized"):
        table.read_optimized().delete("id = 1")


# ---- with a primary key


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket": "-1"},
        {"bucket": "-2"},
        {"sequence.field": "n"},
        {"sequence.field": "n", "sequence.field.sort-order": "descending"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-sequence-group": "n",
         "fields.n.sequence-group": "v"},
        {"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true",
         "fields.n.aggregate-function": "sum"},
    ],
)  # fmt: skip
def test_rows_with_key_are_followed_by_their_deletion(tmp_path, options):
    table = keyed_table(tmp_path / "t", **options)
    ten(table, 0, 5)
    assert table.delete("id in (3, 7) or v = 'v1' and id > 10").commit_kind in ("APPEND", "COMPACT")
    assert ids(table) == [k for k in range(15) if k not in (3, 7, 13)]
    assert table.delete("id = 3") is None
    table.compact(full=True)
    assert ids(table) == [k for k in range(15) if k not in (3, 7, 13)]
    table.write(orders((3, "back", 1)))
    assert {r["id"]: r["v"] for r in rows_of(table.to_arrow())}[3] == "back"


def test_marked_rows_of_keys_are_shown_once_compacted_or_merged(tmp_path):
    large = {"compaction.max-size-amplification-percent": "10000000", "compaction.size-ratio": "0"}
    table = keyed_table(tmp_path / "t", **MARKS, **large, bucket="1")
    table.write(orders(*((k, f"{k * 2654435761 % 2**32:08x}", k) for k in range(2000))))
    table.compact(full=True)
    waiting = table.with_options({"write-only": "true"})
    waiting.write(orders((3, "new", 1), (5000, "new", 1)))
    waiting.delete("id = 7")
    assert ids(table) == list(range(2000))
    assert ids(table, filter="v = 'new'") == []
    merged = table.with_options({"deletion-vectors.merge-on-read": "true"})
    after = [*(k for k in range(2000) if k != 7), 5000]
    assert ids(merged) == after
    assert ids(merged, filter="v = 'new'") == [3, 5000]
    table.compact()
    assert [v.cardinality for v in vectors(table).values()] == [2]
    for seen in (table, merged):
        assert ids(seen) == after
        assert ids(seen, filter="v = 'new'") == [3, 5000]
        assert ids(seen, filter="id = 3 and v <> 'new'") == []
    assert len(table.scan(limit=4).plan().splits) == 1
    assert table.to_arrow(limit=4).num_rows == 4


@pytest.mark.parametrize(
    ("options", "way"),
    [
        ({"merge-engine": "first-row"}, "first-row"),
        ({"merge-engine": "partial-update"}, "partial-update.remove-record-on-delete"),
        ({"merge-engine": "aggregation"}, "aggregation.remove-record-on-delete"),
        ({"ignore-delete": "true"}, "ignore-delete"),
        ({"rowkind.field": "v"}, "'v'"),
    ],
)
def test_tables_that_take_no_deletes_are_refused_with_way_out(tmp_path, options, way):
    table = Table.create(str(tmp_path / "t"), Schema(ORDERS, primary_keys=["id"], options={"bucket": "1", **options}))
    with pytest.raises(UnsupportedError, match=way):
        table.delete("id = 1")


def test_rows_in_several_files_are_not_deleted_by_half():
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    with pytest.raises(UnsupportedError, match="data-evolution"):
        check_deletes(create(Schema(ORDERS, options=options), 0))
    check_deletes(create(Schema(ORDERS, options={**options, "deletion-vectors.enabled": "true"}), 0))


@pytest.mark.parametrize("options", [{}, MARKS])
def test_rows_that_are_tracked_keep_their_ids(tmp_path, options):
    table = append_table(tmp_path / "t", **options, **{"row-tracking.enabled": "true"})
    ten(table, 0, 10)
    ids_before = {r["id"]: (r["_ROW_ID"], r["_SEQUENCE_NUMBER"]) for r in tracked(table)}
    table.delete("id in (0, 3, 14)")
    ten(table, 20)
    table.delete("id = 5 or id = 21")
    for compacted in (False, True):
        if compacted:
            table.compact(full=True)
        left = {r["id"]: (r["_ROW_ID"], r["_SEQUENCE_NUMBER"]) for r in tracked(table)}
        assert sorted(left) == [k for k in range(30) if k not in (0, 3, 5, 14, 21)]
        assert len({row_id for row_id, _ in left.values()}) == 25
        assert {k: v for k, v in left.items() if k < 20} == {k: v for k, v in ids_before.items() if k in left}


def tracked(table):
    return table.to_arrow(columns=["id", "_ROW_ID", "_SEQUENCE_NUMBER"]).to_pylist()


# ---- with concurrent commits


class Meddler(TableWrite):
    """A writer with concurrent commits, each after it has read the table and before it commits."""

    others: ClassVar[list] = []

    def prepare_commit(self, identifier=None):
        messages = super().prepare_commit(identifier)
        if self.others:
            self.others.pop(0)()
        return messages


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket": "-1"},
        {"bucket": "-2"},
        {"sequence.field": "n"},
        {"changelog-producer": "input"},
        MARKS,
    ],
)
def test_rows_that_no_longer_match_stay(tmp_path, monkeypatch, options):
    table = keyed_table(tmp_path / "t", **{"bucket": "1", **options})
    table.write(orders((1, "old", 1), (2, "old", 1), (3, "young", 1)))
    others = [
        lambda: table.write(orders((1, "young", 2), (4, "old", 2))),
        lambda: table.write(orders((3, "old", 3))),
        lambda: table.compact(full=True),
    ]
    monkeypatch.setattr("paimon_core.operations.row_changes.delete.TableWrite", Meddler)
    monkeypatch.setattr(Meddler, "others", others)
    table.delete("v = 'old'")
    assert others == []
    table.compact(full=True)
    assert [(r["id"], r["v"]) for r in rows_of(table.to_arrow())] == [(1, "young")]
    live = {f.file_name for split in table.scan().plan().splits for f in split.files}
    known = {e.file.file_name for s in table.snapshots() for e in live_entries(table.store, s).live} | live
    told = {e.file.file_name for s in table.snapshots() for e in changelog_of(table, s)}
    assert {p.split("/")[-1] for p in files_below(tmp_path / "t") if "/bucket-" in f"/{p}"} <= known | told


def changelog_of(table, snapshot):
    if snapshot.changelog_manifest_list is None:
        return []
    manifests = table.store.manifests
    return [e for m in manifests.read_list(snapshot.changelog_manifest_list) for e in manifests.read(m.file_name)]


def test_rows_that_moved_to_another_partition_stay(tmp_path, monkeypatch):
    schema = pa.schema([("p", pa.int32()), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], primary_keys=["id"]))
    table.write(pa.table({"p": [1, 1], "id": [1, 2], "v": ["old", "old"]}, schema))
    monkeypatch.setattr("paimon_core.operations.row_changes.delete.TableWrite", Meddler)
    monkeypatch.setattr(Meddler, "others", [lambda: table.write(pa.table({"p": [2], "id": [1], "v": ["new"]}, schema))])
    table.delete("v = 'old'")
    assert table.to_arrow().to_pylist() == [{"p": 2, "id": 1, "v": "new"}]


def test_delete_that_always_loses_raises_conflict(tmp_path, monkeypatch):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "old", 1)))
    monkeypatch.setattr("paimon_core.operations.row_changes.delete.TableWrite", Meddler)
    monkeypatch.setattr(Meddler, "others", [lambda: table.write(orders((1, "old", 2)))] * 20)
    with pytest.raises(CommitConflictError, match="has changed rows in a bucket that was read"):
        table.delete("v = 'old'")
    assert len(Meddler.others) == 10
    assert ids(table) == [1]


def test_delete_ignores_commits_to_other_buckets(tmp_path, monkeypatch):
    schema = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    table = Table.create(
        str(tmp_path / "t"), Schema(schema, partition_keys=["p"], primary_keys=["p", "id"], options={"bucket": "1"})
    )
    table.write(pa.table({"p": [1, 2], "id": [1, 2]}, schema))
    monkeypatch.setattr("paimon_core.operations.row_changes.delete.TableWrite", Meddler)
    monkeypatch.setattr(Meddler, "others", [lambda: table.write(pa.table({"p": [2], "id": [1]}, schema))] * 2)
    assert table.delete("id = 1 and p < 2").id == 3
    assert len(Meddler.others) == 1
    assert table.to_arrow().num_rows == 2
    assert table.committer().commit(table_rows(table, 1, 5), started_from=StartedFrom(3, guards=Guard.ROWS)).id == 4
    with pytest.raises(CommitConflictError, match="snapshot 4"):
        table.committer().commit(table_rows(table, 1, 6), started_from=StartedFrom(3, guards=Guard.ROWS))
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**62)
    with pytest.raises(CommitConflictError, match="expired"):
        table.committer().commit(table_rows(table, 1, 6), started_from=StartedFrom(2, guards=Guard.ROWS))


def table_rows(table, partition, key):
    with table.writer() as writer:
        writer.write(pa.table({"p": [partition], "id": [key]}, table.schema.arrow))
        return writer.prepare_commit()


def test_invisible_rows_are_not_deleted_unseen(tmp_path, monkeypatch):
    table = keyed_table(tmp_path / "t", **{"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"})
    table.write(orders((1, "old", 1), (2, "old", 1), (3, "young", 1)))
    table.compact()
    monkeypatch.setattr("paimon_core.operations.row_changes.delete.TableWrite", Meddler)
    monkeypatch.setattr(Meddler, "others", [lambda: table.write(orders((1, "young", 2)))])
    before = files_below(tmp_path / "t")
    with pytest.raises(UnsupportedError, match=r"compact\(\) first"):
        table.delete("v = 'old'")
    assert len([f for f in files_below(tmp_path / "t") - before if "/data-" in f]) == 1  # of the other
    table.compact()
    table.delete("v = 'old'")
    table.compact()
    assert [(r["id"], r["v"]) for r in rows_of(table.to_arrow())] == [(1, "young"), (3, "young")]


def test_rows_that_wait_for_compaction_count(tmp_path):
    table = keyed_table(tmp_path / "t", **MARKS, bucket="1")
    table.write(orders((1, "old", 1), (2, "old", 1)))
    table.compact(full=True)
    waiting = table.with_options({"write-only": "true"})
    waiting.write(orders((1, "young", 2), (3, "old", 2)))
    waiting.delete("v = 'old'")
    table.compact(full=True)
    assert [(r["id"], r["v"]) for r in rows_of(table.to_arrow())] == [(1, "young")]


@pytest.mark.parametrize("forced", [False, True])
def test_partitions_of_keys_are_deleted_row_by_row_where_changelog_is_asked_for(tmp_path, forced):
    schema = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    options = {"bucket": "1", "changelog-producer": "input", "delete.force-produce-changelog": str(forced).lower()}
    table = Table.create(str(tmp_path / "t"), Schema(schema, ["p", "id"], ["p"], options))
    table.write(pa.table({"p": [1, 1, 2], "id": [1, 2, 3]}, schema))
    result = table.delete("p = 1")
    assert ids(table) == [3]
    assert result.commit_kind == ("APPEND" if forced else "OVERWRITE")
    told = table.changes(1).to_pylist()
    assert sorted((row["rowkind"], row["id"]) for row in told) == ([("-D", 1), ("-D", 2)] if forced else [])
