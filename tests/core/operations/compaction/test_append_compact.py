import itertools
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CommitConflictError, InvalidInputError
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.operations.compaction.append_compact import plan_append, run
from paimon_core.operations.jobs.task import PlanRequest, partition_choice
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.schema.change import AddColumn, DropColumn, UpdateType
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from paimon_core.write.table_write import WriterRole
from tests.support.draws import draws
from tests.support.tables import ORDERS, append_table, files_below, orders, rows_of

PARTITIONED = pa.schema([("p", pa.string()), ("id", pa.int64())])


def commit(table, tasks):
    return table.committer().commit([run(table.store, task) for task in tasks])


def live(table):
    return [file for split in table.scan().plan().splits for file in split.files]


def written(table, files, rows=3):
    for i in range(files):
        table.write(orders(*((rows * i + j, f"v{i}", j) for j in range(rows))))
    return table


def file(number, size, first=0):
    return DataFileMeta(
        f"f{number}", size, 1, EMPTY_ROW, EMPTY_ROW, EMPTY_STATS, EMPTY_STATS, first or number, number, 0, 0
    )


def names(groups):
    return [[int(f.file_name[1:]) for f in group] for group in groups]


PICKS = AppendCompactionPolicy(target_size=100, small_size=70, open_cost=4)


# ---- picks


@pytest.mark.parametrize(
    ("sizes", "full", "expected"),
    [
        ([10] * 4, False, []),
        ([10] * 5, False, [[0, 1, 2, 3, 4]]),
        ([10] * 4, True, [[0, 1, 2, 3]]),
        ([10], True, []),
        ([69, 70, 71, 500, 69], True, [[0, 4]]),
        ([60, 50, 66, 60, 1], False, [[4, 1, 0, 3, 2]]),
        ([66, 66, 66, 66, 66, 66], False, [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_files_without_buckets_are_grouped_by_size(sizes, full, expected):
    assert names(PICKS.unordered([file(i, size) for i, size in enumerate(sizes)], full=full)) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([10] * 4, []),
        ([10] * 5, [[0, 1, 2, 3, 4]]),
        ([10] * 11, [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]),
        ([100] * 9, []),
        ([150, 100, 10, 10, 10, 10, 10], [[1, 2, 3, 4, 5]]),
        ([10, 10, 200, 10, 10, 10, 10, 10], [[3, 4, 5, 6, 7]]),
    ],
)
def test_ordered_picks_are_neighbours(sizes, expected):
    assert names(PICKS.ordered([file(i, size) for i, size in enumerate(sizes)], full=False)) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([10, 10], []),
        ([10] * 3, [[0, 1, 2]]),
        ([500, 90, 10, 10, 10], [[2, 3, 4]]),
        ([10, 500, 500], []),
        ([500, 10, 10, 500, 10], [[1, 2, 3, 4]]),
    ],
)
def test_full_ordered_picks_leave_leading_large_files(sizes, expected):
    assert names(PICKS.ordered([file(i, size) for i, size in enumerate(sizes)], full=True)) == expected


@given(st.lists(st.integers(1, 250), max_size=60), st.booleans(), st.integers(1, 7))
@draws(200)
def test_picks_are_disjoint_and_ordered_ones_contiguous(sizes, full, least):
    picks = AppendCompactionPolicy(100, 70, 4, least)
    files = [file(i, size) for i, size in enumerate(sizes)]
    for groups, contiguous in ((picks.ordered(files, full=full), True), (picks.unordered(files, full=full), False)):
        picked = [n for group in names(groups) for n in group]
        assert len(picked) == len(set(picked))
        assert all(len(group) > 1 for group in groups)
        if contiguous:
            assert all(g == list(range(g[0], g[-1] + 1)) for g in names(groups))


# ---- tables


def test_small_files_become_one(tmp_path):
    table = written(append_table(tmp_path / "t"), 6)
    before = table.to_arrow()
    (task,) = pickle.loads(pickle.dumps(plan_append(table.store)))
    assert (task.rows, task.size) == (18, sum(f.file_size for f in live(table)))
    snapshot = commit(table, [task])
    assert (snapshot.commit_kind, snapshot.total_record_count, snapshot.delta_record_count) == ("COMPACT", 18, 0)
    (one,) = live(table)
    assert (one.row_count, one.level, one.file_source) == (18, 0, FileSource.COMPACT)
    assert rows_of(table.to_arrow()) == rows_of(before)
    assert table.to_arrow(filter="id = 7").num_rows == 1
    assert plan_append(table.store) == plan_append(table.store, PlanRequest(full=True)) == []


def test_nothing_to_do(tmp_path):
    table = append_table(tmp_path / "t")
    assert plan_append(table.store, PlanRequest(full=True)) == []
    written(table, 4)
    assert plan_append(table.store) == []
    (task,) = plan_append(table.store, PlanRequest(full=True))
    assert len(task.files) == 4


def test_files_roll_at_target_size(tmp_path):
    options = {"target-file-size": "64 kb", "file.compression": "none", "source.split.open-file-cost": "1 b"}
    table = Table.create(str(tmp_path / "t"), Schema(ORDERS, options=options))
    for i in range(8):
        table.write(orders(*((i * 3000 + j, f"value {i} {j}", j) for j in range(3000))))
    many = len(live(table))
    table = table.with_options({"target-file-size": "256 kb"})
    commit(table, plan_append(table.store))
    after = live(table)
    assert 1 < len(after) < many
    assert table.to_arrow().num_rows == 24000


@pytest.mark.parametrize("full", [False, True])
def test_order_within_bucket_is_kept(tmp_path, full):
    table = written(append_table(tmp_path / "t", bucket="2", bucket_key="n", write_only="true"), 7, rows=5)
    before = table.to_arrow().to_pylist()
    tasks = plan_append(table.store, PlanRequest(full=full))
    assert len(tasks) == 2
    commit(table, tasks)
    assert table.to_arrow().to_pylist() == before
    table.write(orders((100, "new", 0), (101, "new", 1), (102, "new", 2)))
    new = [row["id"] for row in table.to_arrow().to_pylist() if row["id"] < 100]
    assert new == [row["id"] for row in before]
    spans = sorted((f.min_sequence_number, f.max_sequence_number) for f in table.scan().plan().splits[0].files)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))


def test_older_schemas_are_rewritten(tmp_path):
    table = written(append_table(tmp_path / "t"), 3)
    table = table.alter([AddColumn("w", parse_type("DOUBLE")), UpdateType("n", parse_type("BIGINT"))])
    table.write(orders((100, "x", 1)).append_column("w", pa.array([0.5])))
    table = table.alter([DropColumn("v")])
    expected = rows_of(table.to_arrow())
    commit(table, plan_append(table.store, PlanRequest(full=True)))
    (one,) = live(table)
    assert one.schema_id == table.schema.id
    assert rows_of(Table.open(table.path).to_arrow()) == expected


def test_partitions_are_chosen(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(PARTITIONED, partition_keys=["p"]))
    for i in range(5):
        table.write(pa.table({"p": ["a", "b", None], "id": [i, i, i]}, schema=PARTITIONED))
    assert len(plan_append(table.store)) == 3
    (task,) = plan_append(table.store, PlanRequest(partitions=partition_choice(table.store, [{"p": "a"}], None)))
    assert table.store.partition_values(task.partition) == ("a",)
    commit(table, [task])
    assert sorted(f.row_count for f in live(table)) == [1] * 10 + [5]
    with pytest.raises(InvalidInputError, match="not a partition of"):
        plan_append(table.store, PlanRequest(partitions=partition_choice(table.store, [{"id": 1}], None)))


def test_concurrent_append_stays(tmp_path):
    table = written(append_table(tmp_path / "t"), 5)
    messages = [run(table.store, task) for task in plan_append(table.store)]
    table.write(orders((999, "late", 1)))
    table.committer().commit(messages)
    assert table.to_arrow().num_rows == 16
    assert len(live(table)) == 2


def test_of_two_compactions_one_is_refused(tmp_path):
    table = written(append_table(tmp_path / "t"), 5)
    one, other = ([run(table.store, task) for task in plan_append(table.store)] for _ in range(2))
    table.committer().commit(one)
    with pytest.raises(CommitConflictError, match="no longer part of the table"):
        table.committer().commit(other)
    assert table.to_arrow().num_rows == 15


def test_interrupted_run_leaves_nothing(tmp_path):
    table = written(append_table(tmp_path / "t"), 6, rows=400)
    (task,) = plan_append(table.store)
    before = files_below(tmp_path)
    missing = table.store.file_path(task.bucket_ref, task.files[-1])
    Path(missing).write_bytes(Path(missing).read_bytes()[:200])
    with pytest.raises(Exception, match=task.files[-1].file_name):
        run(table.store, task)
    assert files_below(tmp_path) == before


def test_compact_is_plan_run_and_commit(tmp_path):
    table = written(append_table(tmp_path / "t"), 4)
    told = []
    assert table.compact() is None
    assert table.compact(full=True, progress=lambda *done: told.append(done)).commit_kind == "COMPACT"
    assert told == [(told[0][1], told[0][1])]
    assert table.compact(full=True) is None
    assert [s.commit_kind for s in table.snapshots()] == ["APPEND"] * 4 + ["COMPACT"]


def test_files_that_others_replaced_are_skipped(tmp_path):
    table = written(append_table(tmp_path / "t"), 5)
    assert table.compact(progress=lambda done, total: table.overwrite(orders((1, "a", 1)))) is None
    assert table.to_arrow().num_rows == 1
    assert len([name for name in files_below(tmp_path) if "/bucket-0/" in name]) == 6


def test_newer_schema_is_not_cut_down(tmp_path):
    stale = written(append_table(tmp_path / "t"), 5)
    table = stale.alter([AddColumn("w", parse_type("INT"))])
    table.write(orders((100, "x", 1)).append_column("w", pa.array([7], pa.int32())))
    before = files_below(tmp_path)
    for compact in (lambda: stale.compact(full=True), lambda: stale.compact(order_by=["id"])):
        with pytest.raises(CommitConflictError, match="open the table again"):
            compact()
    assert files_below(tmp_path) == before
    table.compact(full=True)
    assert table.to_arrow(filter="w = 7").num_rows == 1


# ---- by writers


def test_writer_of_buckets_keeps_files_few_and_rows_in_order(tmp_path):
    table = append_table(tmp_path / "t", bucket="1", bucket_key="id")
    for i in range(24):
        table.write(orders((i, f"v{i}", 2 * i), (-i, "w", 2 * i + 1)))
        assert [row["n"] for row in table.to_arrow().to_pylist()] == list(range(2 * i + 2))
        assert len(live(table)) <= 5
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds.count("APPEND") == 24
    assert kinds.count("COMPACT") == 5


@pytest.mark.parametrize("options", [{"write_only": "true", "bucket": "1", "bucket_key": "id"}, {}])
def test_other_writers_only_append(tmp_path, options):
    table = written(append_table(tmp_path / "t", **options), 8)
    assert len(live(table)) == 8


def test_writers_that_share_buckets_only_append(tmp_path):
    table = append_table(tmp_path / "t", bucket="1", bucket_key="id")
    for i in range(8):
        with table.writer(role=WriterRole(0, 2)) as writer:
            writer.write(orders((i, "v", i)))
            table.committer().commit(writer.prepare_commit())
    assert len(live(table)) == 8


def test_one_writer_of_many_commits(tmp_path):
    table = append_table(tmp_path / "t", bucket="1", bucket_key="id")
    committer = table.committer("me")
    with table.writer() as writer:
        for i in range(12):
            writer.write(orders((i, "v", i)))
            committer.commit(writer.prepare_commit(i), i)
    assert [row["n"] for row in table.to_arrow().to_pylist()] == list(range(12))
    assert len(live(table)) <= 5


def test_writer_continues_after_its_files_are_replaced(tmp_path):
    table = append_table(tmp_path / "t", bucket="1", bucket_key="id")
    for i in range(4):
        table.write(orders((i, "v", i)))
    with table.writer() as writer:
        writer.write(orders((4, "v", 4)))
        messages = writer.prepare_commit()
        assert messages[0].compact_before
        table.compact(full=True)
        table.committer().commit(messages, started_from=writer.started_from)
        assert [row["n"] for row in table.to_arrow().to_pylist()] == [0, 1, 2, 3, 4]
        assert len(live(table)) == 2
        for i in range(5, 12):
            writer.write(orders((i, "v", i)))
            table.committer().commit(writer.prepare_commit())
    assert [row["n"] for row in table.to_arrow().to_pylist()] == list(range(12))


def test_writer_that_fails_leaves_nothing(tmp_path):
    table = written(append_table(tmp_path / "t", bucket="1", bucket_key="id"), 4, rows=300)
    before = files_below(tmp_path)
    (broken,) = [f for f in live(table) if f.min_sequence_number == 300]
    path = Path(table.store.file_path(table.scan().plan().splits[0].bucket_ref, broken))
    content = path.read_bytes()
    path.write_bytes(content[:100])
    with pytest.raises(Exception, match=broken.file_name):
        table.write(orders((5, "v", 5)))
    assert files_below(tmp_path) == before
    path.write_bytes(content)
    table.write(orders((5, "v", 5)))
    assert table.to_arrow().num_rows == 1201
