"""Dedicated compaction of primary-key tables: plans of tasks that run anywhere, and one commit."""

import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.operations.compaction.compact import plan_compaction, run_task
from paimon_core.operations.compaction.compact_table import compact_table
from paimon_core.operations.compaction.request import CompactionRequest
from paimon_core.operations.jobs.task import PlanRequest
from paimon_core.schema.schema import Schema
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.compaction import check_levels, levels_of, only_levels, shape
from tests.support.tables import files_below, keyed_table, orders, rows_of

DAYS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("dt", pa.string(), nullable=False), ("v", pa.string())]
)


def daily(path, **options) -> Table:
    settings = {"bucket": "2", "write-only": "true", **options}
    table = Table.create(str(path), Schema(DAYS, primary_keys=["dt", "id"], partition_keys=["dt"], options=settings))
    for i in range(3):
        for day in ("a", "b/c", "d"):
            rows = {"id": list(range(10 * i, 10 * i + 20)), "dt": [day] * 20, "v": [f"{i}"] * 20}
            table.write(pa.table(rows, schema=DAYS))
    return table


def runs_by_day(table: Table) -> dict[str, set[tuple[int, ...]]]:
    found: dict[str, set[tuple[int, ...]]] = {}
    for (partition, _), levels in levels_of(table).items():
        (day,) = table.store.partition_values(partition)
        found.setdefault(day, set()).add(tuple(run.level for run in levels.runs))
    return found


def test_write_only_table_is_compacted_by_others(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for i in range(7):
        table.write(orders((i, "a", i), (100, "b", i)))
    assert shape(table) == [(0, 2)] * 7
    rows = rows_of(table.to_arrow())
    snapshot = table.compact()
    assert (snapshot.commit_kind, snapshot.total_record_count) == ("COMPACT", 8)
    assert shape(table) == [(5, 8)]
    assert rows_of(table.to_arrow()) == rows
    assert table.compact() is None
    assert table.compact(full=True) is None


def test_minor_compaction_takes_files_of_policy(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders(*((i, "x" * 30, i) for i in range(5000))))
    table.compact(full=True)
    for i in range(3):
        table.write(orders((i, "y", i)))
    assert table.compact() is None
    table.write(orders((3, "y", 3)))
    table.compact()
    assert shape(table) == [(4, 4), (5, 5000)]
    table.compact(full=True)
    assert shape(table) == [(5, 5000)]


def test_partitions_and_filters_choose_where(tmp_path):
    table = daily(tmp_path / "t")
    rows = rows_of(table.to_arrow(), ("dt", "id"))
    table.compact(full=True, partitions=[{"dt": "b/c"}])
    assert runs_by_day(table) == {"a": {(0, 0, 0)}, "b/c": {(5,)}, "d": {(0, 0, 0)}}
    table.compact(full=True, filter="dt > 'c'")
    assert runs_by_day(table) == {"a": {(0, 0, 0)}, "b/c": {(5,)}, "d": {(5,)}}
    assert table.compact(full=True, partitions=[{"dt": "nowhere"}]) is None
    with pytest.raises(InvalidInputError, match="'id' is no partition column"):
        table.compact(filter="id = 3")
    with pytest.raises(InvalidInputError, match="partition columns are"):
        table.compact(partitions=[{"v": "x"}])
    assert rows_of(table.to_arrow(), ("dt", "id")) == rows


def test_buckets_choose_where(tmp_path):
    table = daily(tmp_path / "t")
    before = rows_of(table.to_arrow(), ("dt", "id"))
    table.maintenance.compact(full=True, buckets=[1], partitions=[{"dt": "a"}])
    compacted = [key for key, levels in levels_of(table).items() if len(levels.runs) == 1]
    assert [(*table.store.partition_values(partition), bucket) for partition, bucket in compacted] == [("a", 1)]
    table.maintenance.compact(full=True, buckets=range(2))
    assert {len(levels.runs) for levels in levels_of(table).values()} == {1}
    assert rows_of(table.to_arrow(), ("dt", "id")) == before
    assert table.maintenance.compact(full=True, buckets=[0]) is None


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {"buckets": [2]}, "buckets 0 to 1, got [2]"),
        ({}, {"buckets": []}, "got none"),
        ({}, {"buckets": [-1, 0]}, "got [-1, 0]"),
        ({"bucket": "-1"}, {"buckets": [0]}, "no fixed number of buckets ('bucket' = -1)"),
        ({}, {"buckets": [0], "order_by": ["v"]}, "cannot be sorted by buckets"),
    ],
)
def test_wrong_buckets_are_refused(tmp_path, options, arguments, message):
    table = daily(tmp_path / "t", **options)
    newest = table.snapshot().id
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        table.maintenance.compact(**arguments)
    assert table.snapshot().id == newest


def test_tasks_are_values_that_run_anywhere(tmp_path):
    table = daily(tmp_path / "t")
    tasks = plan_compaction(table.store, PlanRequest(full=True))
    assert len(tasks) == 6
    live = [f for levels in levels_of(table).values() for f in levels.all_files]
    assert sum(task.size for task in tasks) == sum(f.file_size for f in live)
    assert sum(task.rows for task in tasks) == sum(f.row_count for f in live) == 180
    messages = []
    for task in pickle.loads(pickle.dumps(tasks)):
        elsewhere = FileStore.open(table.path)
        messages.append(pickle.loads(pickle.dumps(run_task(elsewhere, task))))
    rows = rows_of(table.to_arrow(), ("dt", "id"))
    snapshot = table.committer().commit(messages)
    assert snapshot.commit_kind == "COMPACT"
    assert snapshot.total_record_count == table.to_arrow().num_rows == 120
    assert rows_of(table.to_arrow(), ("dt", "id")) == rows
    assert plan_compaction(table.store, PlanRequest(full=True)) == []


def test_progress_is_reported_in_bytes(tmp_path):
    table = daily(tmp_path / "t")
    told: list[tuple[int, int]] = []
    table.compact(full=True, progress=lambda done, total: told.append((done, total)))
    assert len(told) == 6
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] > 0
    assert {total for _, total in told} == {told[-1][1]}


def test_empty_table_has_nothing_to_do(tmp_path):
    assert keyed_table(tmp_path / "t").compact(full=True) is None


def test_of_two_results_later_one_is_rejected_and_others_committed(tmp_path):
    table = daily(tmp_path / "t")
    rows = rows_of(table.to_arrow(), ("dt", "id"))
    tasks = plan_compaction(table.store, PlanRequest(full=True))
    messages = [run_task(table.store, task) for task in tasks]
    table.compact(full=True, partitions=[{"dt": "a"}])
    snapshot, late = table.committer().compact(messages)
    assert snapshot.commit_kind == "COMPACT"
    assert {table.store.partition_values(message.partition) for message in late} == {("a",)}
    assert runs_by_day(table) == {"a": {(5,)}, "b/c": {(5,)}, "d": {(5,)}}
    assert rows_of(table.to_arrow(), ("dt", "id")) == rows
    there = {name.rsplit("/", 1)[1] for name in files_below(tmp_path)}
    assert not {file.file_name for message in late for file in message.compact_after} & there
    again, late = table.committer().compact(messages[-1:])
    assert again is None
    assert late == messages[-1:]


class _Meddler:
    """Compacts the table itself on progress, so that the planned compaction comes too late."""

    def __init__(self, table: Table, times: int) -> None:
        self.table, self.left, self.calls = table, times, 0

    def __call__(self, done: int, total: int) -> None:
        self.calls += 1
        if self.left:
            self.left -= 1
            self.table.compact(full=True)
            self.table.write(orders((self.left, "meddled", self.left)))


@pytest.mark.parametrize("times", [1, 3, 50])
def test_bucket_that_another_job_compacted_is_planned_again(tmp_path, times):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for i in range(3):
        table.write(orders((i, "a", i)))
    meddler = _Meddler(table, times)
    snapshot = compact_table(table.store, CompactionRequest(full=True), progress=meddler)
    assert meddler.calls == min(times + 1, 5)
    assert (snapshot is not None) == (times < 5)
    last = rows_of(table.to_arrow())[-1]
    assert (last["id"], last["v"]) == {1: (2, "a"), 3: (2, "meddled"), 50: (49, "meddled")}[times]
    check_levels(table)
    assert (shape(table)[0][0] == 5) == (times < 5)


def test_failing_task_leaves_nothing(tmp_path):
    table = daily(tmp_path / "t")
    victim = only_file(table, "d")
    content = victim.read_bytes()
    victim.write_bytes(b"garbage")
    before = files_below(tmp_path)
    with pytest.raises(Exception, match=victim.name):
        table.compact(full=True)
    assert files_below(tmp_path) == before
    victim.write_bytes(content)
    assert table.compact(full=True) is not None


def only_file(table: Table, day: str):
    store = table.store
    for bucket, levels in levels_of(table).items():
        if store.partition_values(bucket.partition) == (day,):
            path = store.file_path(bucket, levels.all_files[0])
            return Path(path)
    raise AssertionError(day)


def test_bucket_of_another_number_of_buckets_keeps_its_number(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for i in range(3):
        table.write(orders((i, "a", i)))
    table.with_options({}).compact(full=True)
    (task,) = plan_compaction(
        table.store.with_options({"compaction.force-rewrite-all-files": "true"}), PlanRequest(full=True)
    )
    assert task.total_buckets == 1
    assert task.unit.rewrite
    assert task.to_top
    assert task.drop_deletes
    assert only_levels(table).max_level == 5
