"""Metrics that reach a session: statements, past commits, the progress of queries, and the log of workers."""

import json
import time

import pyarrow as pa
import pyspark
import pytest

from paimon_core import metrics
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark import PaimonTable

pytestmark = [pytest.mark.spark, pytest.mark.versions, pytest.mark.everywhere, pytest.mark.more]
ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))


@pytest.fixture
def table(warehouse):
    options = {"bucket": "1", "write-only": "true"}
    return Table.create(f"{warehouse}/db.db/t", Schema(ROWS, primary_keys=["id"], options=options))


def put(table: Table, *ids: int) -> None:
    table.write(pa.table({"id": pa.array(ids, pa.int64()), "v": ["x"] * len(ids)}))


def test_statements_and_past_commits(spark, table):
    put(table, 1, 2, 3)
    target = PaimonTable.forPath(spark, table.path)
    with metrics.collect() as measured:
        changes = target.update("id = 2", {"v": "'y'"})
    [commit] = changes.metrics.commits
    assert (commit.rows_added, commit.snapshot_id) == (1, changes.snapshot.id)
    assert measured.commits == [commit]
    target.compact(full=True)
    history = target.history(metrics=True)
    assert history.columns[:-1] == target.history().columns
    counts = {row.snapshot_id: row.operation_metrics for row in history.collect()}
    assert {name: counts[1][name] for name in ("files_added", "rows_added", "rows_deleted")} == {
        "files_added": 1, "rows_added": 3, "rows_deleted": 0,
    }  # fmt: skip
    assert (counts[3]["rows_added"], counts[3]["rows_deleted"], counts[3]["files_deleted"]) == (3, 4, 2)


def test_log_of_workers_has_metrics_of_write(spark, table, python_writes):
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    try:
        rows = spark.createDataFrame([(1, "a"), (2, "b")], "id long, v string")
        rows.write.format("paimon").mode("append").save(table.path)
        logs = spark.tvf.python_worker_logs().where("logger = 'paimon_core.metrics'")
        found = [row for row in logs.collect() if row.context.get("paimon.table") == table.path]
    finally:
        spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")
    [record] = [row for row in found if row.context["paimon.event"] == "commit"]
    assert (record.level, record.context["paimon.rows_added"]) == ("INFO", "2")
    assert float(record.context["paimon.seconds"]) > 0


def test_log_of_workers_has_metrics_of_reads(spark, table, python_reads):
    put(table, 1, 2, 3)
    put(table, 3, 4)
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    try:
        assert spark.read.format("paimon").load(table.path).count() == 4
        logs = spark.tvf.python_worker_logs().where("logger = 'paimon_core.metrics'")
        actual = [row.context for row in logs.collect() if row.context.get("paimon.table") == table.path]
    finally:
        spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")
    [read] = [context for context in actual if context["paimon.event"] == "read"]
    assert {name: read[f"paimon.{name}"] for name in ("rows_stored", "rows_merged", "rows")} == {
        "rows_stored": "5", "rows_merged": "1", "rows": "4",
    }  # fmt: skip
    assert [context["paimon.files"] for context in actual if context["paimon.event"] == "scan"] == ["2"]


@pytest.mark.skipif(SPARK < (4, 2), reason="Spark 4.1 asks no Python source for its newest offset")
def test_progress_of_query_has_its_lag(spark, table, tmp_path):
    for number in range(4):
        put(table, number)
    options = {"maxFilesPerTrigger": "1", "startingVersion": "1"}
    frame = spark.readStream.format("paimon").options(**options).load(table.path)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.start()
    try:
        query.processAllAvailable()
        deadline = time.monotonic() + 30
        while query.lastProgress.numInputRows and time.monotonic() < deadline:
            time.sleep(0.1)
        progress = [*query.recentProgress, query.lastProgress]
    finally:
        query.stop()
    batches = {p["batchId"]: json.loads(p["sources"][0]["latestOffset"]) for p in progress if p.numInputRows}
    lags = [offset["lag"] for _, offset in sorted(batches.items())]
    assert [(lag["snapshots"], lag["rows"]) for lag in lags] == [(3, 3), (2, 2), (1, 1), (0, 0)]
    assert all(offset["snapshotId"] == 4 for offset in batches.values())
