"""Compaction from Spark: a table in the tasks of a job, and the buckets that a write has touched."""

import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pytest

import paimon_spark
from paimon_core.errors import InvalidInputError
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.compaction.compact import plan_compaction, run_task
from paimon_core.operations.distributed_write import PreparedWrite
from paimon_core.operations.jobs.task import PlanRequest
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark.distribute import JobNames, SparkRunner, balance
from paimon_spark.options import write_request
from paimon_spark.types import spark_schema
from paimon_spark.write_job import WriteJob
from paimon_spark.writer import table_to_write
from tests.support.compaction import check_levels, delta, levels_of, shape
from tests.support.tables import files_below, rows_of

pytestmark = pytest.mark.spark
everywhere = pytest.mark.everywhere
MODE = os.environ.get("PAIMON_SPARK_MODE", "classic")
DAYS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("dt", pa.string(), nullable=False), ("v", pa.string())]
)


@pytest.fixture
def path(warehouse):
    return f"{warehouse}/db.db/days"


def days(path, buckets, *, writes=3, rows=200, **options):
    """A keyed table of two partitions whose buckets hold one run per write."""
    settings = {"bucket": str(buckets), "write-only": "true", **options}
    table = Table.create(path, Schema(DAYS, primary_keys=["dt", "id"], partition_keys=["dt"], options=settings))
    for i in range(writes):
        ids = list(range(20 * i, 20 * i + rows))
        for day in ("a", "b"):
            table.write(pa.table({"id": ids, "dt": [day] * rows, "v": [f"{i}"] * rows}, schema=DAYS))
    return table


def live_rows(table):
    return rows_of(table.to_arrow(), ("dt", "id"))


def open_spark(spark, path, **options):
    return paimon_spark.PaimonTable.forPath(spark, path, **options)


def data_files(path):
    return {name for name in files_below(path) if "/bucket-" in f"/{name}"}


def live_files(table):
    return {f.file_name for levels in levels_of(table).values() for f in levels.all_files}


# ---- distributed


@everywhere
@pytest.mark.more
def test_every_bucket_is_task_and_every_core_runs_some(spark, path):
    table = days(path, 26, writes=2)
    rows = live_rows(table)
    tasks = plan_compaction(table.store, PlanRequest(full=True))
    assert len(tasks) >= 50
    done = SparkRunner(spark, "test").results(table.store, tasks, run_task)
    workers = {result.worker for result in done}
    assert len(workers) == 2, "both cores, or executors, had tasks"
    assert [result.number for result in done] == list(range(len(tasks)))
    snapshot, late = table.committer().compact([result.message for result in done])
    assert (snapshot.commit_kind, late) == ("COMPACT", [])
    assert live_rows(table) == rows
    assert open_spark(spark, path).compact(full=True, progress=False) is None
    check_levels(table, most_runs=1)


@everywhere
def test_full_compaction_in_one_commit(spark, path):
    table = days(path, 4)
    rows = live_rows(table)
    snapshot = open_spark(spark, path).compact(full=True)
    assert (snapshot.commit_kind, snapshot.id) == ("COMPACT", table.snapshots()[-1].id)
    assert snapshot.total_record_count == len(rows)
    check_levels(table, most_runs=1)
    assert live_rows(table) == rows
    assert spark.read.format("paimon").load(path).count() == len(rows)
    assert open_spark(spark, path).compact(full=True) is None


@everywhere
@pytest.mark.more
def test_deleted_rows_stay_deleted_after_compaction(spark, path):
    """Splits and tasks refer to the deletion vectors, also for some of the files of a partition."""
    options = {"deletion-vectors.enabled": "true", "target-file-size": "1 b"}
    table = Table.create(path, Schema(DAYS, partition_keys=["dt"], options=options))
    for i in range(2):
        table.write(pa.table({"id": list(range(50)), "dt": ["a", "b"] * 25, "v": [f"{i}"] * 50}, schema=DAYS))

    def found():
        rows = spark.read.format("paimon").load(path).collect()
        return sorted((row.id, row.dt, row.v) for row in rows)

    table.delete("id between 10 and 29 and v = '0' or id = 40")
    left = [(i, "ab"[i % 2], v) for i in range(50) for v in "01" if i != 40 and not (10 <= i < 30 and v == "0")]
    assert found() == left
    assert spark.read.format("paimon").load(path).where("id < 20 and v = '0'").count() == 10
    open_spark(spark, path).compact(orderBy=["v"], partitions=[{"dt": "a"}])
    assert found() == left
    open_spark(spark, path).compact(full=True)
    assert found() == left
    assert table.snapshot().index_manifest is None


def test_minor_compaction_follows_policy(spark, path):
    days(path, 2, writes=3)
    assert open_spark(spark, path).compact() is None
    assert open_spark(spark, path, **{"num-sorted-run.compaction-trigger": "3"}).compact() is not None


def test_partitions_and_filters_limit_compaction(spark, path):
    table = days(path, 2)

    def runs():
        return {table.store.partition_values(p)[0]: len(levels.runs) for (p, _), levels in levels_of(table).items()}

    open_spark(spark, path).compact(full=True, partitions=[{"dt": "b"}])
    assert runs() == {"a": 3, "b": 1}
    open_spark(spark, path).compact(full=True, filter="dt < 'b'")
    assert runs() == {"a": 1, "b": 1}
    with pytest.raises(InvalidInputError, match="'id' is no partition column"):
        open_spark(spark, path).compact(filter="id = 1")
    with pytest.raises(InvalidInputError, match="only its newest snapshot"):
        open_spark(spark, path, versionAsOf="1").compact()


@everywhere
def test_append_tables_are_compacted_and_sorted_in_ranges(spark, path):
    table = Table.create(path, Schema(pa.schema([("x", pa.int64()), ("pad", pa.string())])))
    for i in range(6):
        xs = [(k * 7919 + i) % 100_003 for k in range(5000)]
        table.write(pa.table({"x": xs, "pad": [f"{x:032}" for x in xs]}))
    rows = rows_of(table.to_arrow(), ("x",))
    assert open_spark(spark, path).compact().total_record_count == 30_000
    assert len(data_files(path)) == 6 + 1
    assert rows_of(table.to_arrow(), ("x",)) == rows
    sorted_ = open_spark(spark, path, **{"target-file-size": "32 kb"}).compact(orderBy=["x"])
    assert sorted_.commit_kind == "COMPACT"
    assert rows_of(table.to_arrow(), ("x",)) == rows
    read = [table.reader().to_batches(split) for split in table.scan(filter="x < 1000").plan().splits]
    assert 0 < sum(batch.num_rows for batches in read for batch in batches) < 15_000


# ---- commits and failures during the job


def meddling(function):
    """Progress that does something once, when half is done."""
    left = [function]

    def progress(done, total):
        if left and done:
            left.pop()()

    return progress


def test_rows_written_while_job_runs_stay(spark, path):
    table = days(path, 4)
    more = pa.table({"id": [1, 9999], "dt": ["a", "b"], "v": ["new", "new"]}, schema=DAYS)
    open_spark(spark, path).compact(full=True, progress=meddling(lambda: table.write(more)))
    assert {row["v"] for row in live_rows(table) if (row["id"], row["dt"]) in {(1, "a"), (9999, "b")}} == {"new"}
    assert len(live_rows(table)) == 2 * 240 + 1
    check_levels(table)


def test_buckets_that_other_jobs_compacted_are_skipped(spark, path):
    table = days(path, 4)
    rows = live_rows(table)
    meddler = meddling(lambda: table.compact(full=True, partitions=[{"dt": "a"}]))
    open_spark(spark, path).compact(full=True, progress=meddler)
    assert live_rows(table) == rows
    check_levels(table, most_runs=1)
    assert len([s for s in table.snapshots() if s.commit_kind == "COMPACT"]) == 2


def run_and_die_once(store, task):
    """The first attempt at bucket 1 ends with its process, after it has written."""
    message = run_task(store, task)
    marker = Path(store.root, "died")
    if task.bucket == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return message


@everywhere
@pytest.mark.more
def test_killed_worker_is_replaced(spark, path):
    table = days(path, 6)
    rows = live_rows(table)
    tasks = plan_compaction(table.store, PlanRequest(full=True))
    messages = SparkRunner(spark, "test").run_all(table.store, tasks, run_and_die_once, None)
    assert Path(path, "died").exists()
    table.committer().compact(messages)
    assert live_rows(table) == rows
    check_levels(table, most_runs=1)
    files = {name.rsplit("/", 1)[1] for name in data_files(path)}
    assert live_files(table) < files, "what the killed attempt wrote is there, but nothing refers to it"


def run_or_break(store, task):
    """Bucket 2 fails, after it and others have written."""
    message = run_task(store, task)
    if task.bucket == 2:
        time.sleep(2)  # the others have ended by then: what a task writes that Spark has yet to stop may stay
        raise OSError("the disk is full")
    return message


@everywhere
@pytest.mark.more
def test_job_that_fails_leaves_nothing(spark, path):
    table = days(path, 4)
    before = files_below(path)
    tasks = plan_compaction(table.store, PlanRequest(full=True))
    with pytest.raises(Exception, match="the disk is full"):
        SparkRunner(spark, "test").run_all(table.store, tasks, run_or_break, None)
    end = time.monotonic() + 10
    while files_below(path) != before and time.monotonic() < end:
        time.sleep(0.2)
    assert files_below(path) == before


@everywhere
@pytest.mark.more
def test_error_of_engine_names_file(spark, path):
    table = days(path, 2)
    (victim, *_) = sorted(data_files(path))
    Path(path, victim).write_bytes(b"garbage")
    before = files_below(path)
    with pytest.raises(Exception, match=Path(victim).name):
        open_spark(spark, path).compact(full=True)
    assert files_below(path) == before
    assert [s.commit_kind for s in table.snapshots()] == ["APPEND"] * 6


# ---- progress, names, balance


@everywhere
def test_progress_ends_with_all_bytes(spark, path):
    days(path, 4)
    reports = []
    open_spark(spark, path).compact(full=True, progress=lambda done, total: reports.append((done, total)))
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})
    assert reports[-1][0] == reports[-1][1] > 0


def test_progress_bar_is_shown_only_on_request(spark, path, capfd):
    days(path, 2)
    open_spark(spark, path).compact(full=True)
    assert "compact" not in capfd.readouterr().err
    table = Table.open(path)
    table.write(pa.table({"id": [1], "dt": ["a"], "v": ["x"]}, schema=DAYS))
    open_spark(spark, path).compact(full=True, progress=True)
    assert f"compact {path}: 100%" in capfd.readouterr().err


def test_job_description_of_session_is_restored(spark, path):
    context = spark.sparkContext
    context.setLocalProperty("spark.job.description", "mine")
    days(path, 2)
    open_spark(spark, path).compact(full=True)
    assert context.getLocalProperty("spark.job.description") == "mine"
    assert context.getLocalProperty("spark.jobGroup.id") is None
    context.setLocalProperty("spark.job.description", None)


def test_balance_puts_large_tasks_first_in_even_groups():
    assert balance([], 8) == []
    assert balance([1, 5, 3], 8) == [[1], [2], [0]]
    groups = balance([0] * 10_000, 64)
    assert {len(group) for group in groups} <= {156, 157}
    assert sorted(i for group in groups for i in group) == list(range(10_000))
    assert balance([10, 1, 1, 1, 1], 2) == [[0], [1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [([], 0), ([1] * 8, 8), ([1] * 200, 8), ([1 << 20] * 200, 12), ([16 << 20] * 200, 200), ([1 << 30] * 5_000, 4096)],
)
def test_small_tasks_share_spark_task(sizes, groups):
    runner = SparkRunner(None, "test")
    runner._cores = 2
    assert len(balance(sizes, runner._spark_tasks(sizes))) == groups


def test_job_names_recognise_their_own_files():
    names, others = JobNames("0123456789ab4def"), JobNames("0123456789ab4dee")
    made = {names() for _ in range(100)}
    assert len(made) == 100
    assert all(
        names.is_of_job(f"data-{name}-0.parquet") and not others.is_of_job(f"data-{name}-0.parquet") for name in made
    )


# ---- inline


def upsert(frame, path, mode="append", **options):
    frame.write.format("paimon").mode(mode).options(**{k.replace("_", "-"): v for k, v in options.items()}).save(path)


def changes(spark, i, tasks=4, keys=400):
    return spark.range(0, keys, numPartitions=tasks).selectExpr("id", f"'{i}-' || id AS v", f"{i} AS n")


def kinds(table):
    return [s.commit_kind for s in table.snapshots()]


@pytest.mark.more
def test_files_stay_few_over_many_upserts(spark, path):
    for i in range(5):
        upsert(changes(spark, i, tasks=3), path, primary_key="id", bucket="2")
        check_levels(Table.open(path), most_runs=5)
    table = Table.open(path)
    assert table.to_arrow(filter="n = 4").num_rows == table.to_arrow().num_rows == 400
    assert "COMPACT" in kinds(table)
    assert live_files(table) <= {name.rsplit("/", 1)[1] for name in data_files(path)}


def test_write_only_job_does_not_compact(spark, path, writes_by_tasks):
    for i in range(2):
        upsert(changes(spark, i), path, primary_key="id", bucket="1", write_only="true")
    table = Table.open(path)
    assert kinds(table) == ["APPEND"] * 2
    assert shape(table) == [(0, 100)] * 8
    upsert(changes(spark, 3), path, write_only="false")
    assert kinds(table)[2:] == ["APPEND", "COMPACT"]
    assert len(shape(table)) < 6


@pytest.mark.more
@everywhere
def test_rows_of_first_row_table_are_visible_after_any_write(spark, path):
    settings = {"primary_key": "id", "bucket": "1", "merge_engine": "first-row"}
    for i in range(2):
        upsert(changes(spark, i, tasks=2, keys=100 * (i + 1)), path, **settings)
        table = Table.open(path)
        assert spark.read.format("paimon").load(path).count() == 100 * (i + 1)
        assert kinds(table)[-2:] == ["APPEND", "COMPACT"]
    assert {row["id"] // 100: row["n"] for row in rows_of(table.to_arrow())} == {0: 0, 1: 1}
    upsert(changes(spark, 9, keys=50), path, mode="overwrite")
    assert spark.read.format("paimon").load(path).where("n = 9").count() == 50


@everywhere
def test_tasks_that_own_their_buckets_compact_them(spark, path):
    upsert(changes(spark, 0, tasks=1), path, primary_key="id", bucket="3", **{"num_sorted_run.compaction_trigger": "2"})
    for i in range(1, 3):
        upsert(changes(spark, i).transform(paimon_spark.clustered(path)), path)
        check_levels(Table.open(path), most_runs=2)
    table = Table.open(path)
    assert table.to_arrow(filter="n = 2").num_rows == table.to_arrow().num_rows == 400
    made_with_rows = [s for s in table.snapshots() if s.commit_kind == "COMPACT" and same_job(table, s)]
    assert made_with_rows, "compacted by the tasks, committed as part of the write"


def same_job(table, snapshot):
    before = table.snapshot(snapshot_id=snapshot.id - 1)
    return (before.commit_user, before.commit_kind) == (snapshot.commit_user, "APPEND")


@pytest.mark.more
def test_task_that_only_seems_to_own_its_buckets_loses_no_row(spark, path):
    """Two rows a task: some of them happen to be in the task that `clustered` would choose."""
    options = {"primary_key": "id", "bucket": "2", "num_sorted_run.compaction_trigger": "2"}
    for i in range(2):
        upsert(changes(spark, i, tasks=8, keys=16), path, **options)
        table = Table.open(path)
        assert {row["n"] for row in rows_of(table.to_arrow())} == {i}
        check_levels(table, most_runs=2)
        files = {name.rsplit("/", 1)[1] for name in data_files(path)}
        assert live_files(table) <= files
    referenced = {e.file.file_name for s in table.snapshots() for e in delta(table, s)}
    assert files <= referenced, "what was compacted in vain is deleted"


@pytest.mark.more
def test_writes_compact_buckets_of_append_tables(spark, path):
    for i in range(2):
        upsert(changes(spark, i), path, bucket="1", bucket_key="id", **{"compaction.min.file_num": "3"})
    table = Table.open(path)
    assert table.to_arrow().num_rows == 800
    assert len(live_files(table)) <= 3


def test_compaction_that_fails_does_not_undo_write(spark, path, writes_by_tasks):
    upsert(changes(spark, 0), path, primary_key="id", bucket="1", write_only="true")
    table = Table.open(path)
    (victim, *_) = sorted(data_files(path))
    content = Path(path, victim).read_bytes()
    Path(path, victim).write_bytes(b"garbage")
    upsert(changes(spark, 1), path, write_only="false", **{"num-sorted-run.compaction-trigger": "2"})
    assert kinds(table) == ["APPEND", "APPEND"]
    Path(path, victim).write_bytes(content)
    assert {row["n"] for row in table.to_arrow().to_pylist()} == {1}
    assert data_files(path) == {f"bucket-0/{name}" for name in live_files(table)}


@pytest.mark.parametrize("hides", [True, False])
def test_failed_compaction_after_write_is_logged(path, caplog, hides):
    marked = {"deletion-vectors.enabled": "true"} if hides else {"num-sorted-run.compaction-trigger": "1"}
    table = days(path, 1, writes=1, **{"write-only": "true", **marked})
    buckets = {e.bucket_ref for e in live_entries(table.store, table.snapshot()).live}
    for name in data_files(path):
        Path(path, name).write_bytes(b"garbage")
    request = write_request({"path": path, "write-only": "false"}, DAYS.names)
    schema = spark_schema(table.schema.fields)
    job = WriteJob(table_to_write(request, schema), request, schema, overwrite=False)
    table.write(pa.table({"id": [1], "dt": ["a"], "v": ["x"]}, schema=DAYS))
    job.finish(PreparedWrite(tuple(CommitMessage(partition, bucket, 1) for partition, bucket in buckets), None))
    assert "but not compacted" in caplog.text
    assert ("only then do they show" in caplog.text) == hides
