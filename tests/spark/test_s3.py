"""Tables on S3 through Spark: tasks write there, the driver commits there by a conditional put."""

import logging
import threading

import pyarrow as pa
import pytest

from paimon_core.errors import UnsupportedError
from paimon_core.operations.compaction.compact import run_task
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark import PaimonTable
from paimon_spark.distribute import task_frame
from tests.support.s3_server import s3_server

pytestmark = pytest.mark.spark
pytest.importorskip("s3fs", reason="the extra s3 is not installed")
pytest.importorskip("moto", reason="the S3 server for tests is not installed")


@pytest.fixture(scope="module")
def store():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line per request otherwise
    with s3_server() as (root, options):
        yield root, options


@pytest.mark.more
def test_spark_writes_upserts_and_reads_on_s3(spark, store):
    root, options = store
    path = f"{root}/warehouse/db.db/orders"
    frame = spark.range(1000).selectExpr("id", "concat('v', id) AS v", "CAST(id % 3 AS STRING) AS p")
    settings = {**options, "primary-key": "p,id", "partition": "p", "bucket": "2"}
    frame.write.format("paimon").mode("append").options(**settings).save(path)
    newer = spark.range(0, 1000, 10).selectExpr("id", "'newer' AS v", "CAST(id % 3 AS STRING) AS p")
    newer.write.format("paimon").mode("append").options(**options).save(path)
    read = spark.read.format("paimon").options(**options).load(path)
    assert read.count() == 1000
    assert read.filter("v = 'newer'").count() == 100
    assert spark.read.format("paimon").options(**options, versionAsOf="1").load(path).filter("v = 'newer'").count() == 0
    spark.createDataFrame([(1, "only", "0")], "id long, v string, p string").write.format("paimon").mode(
        "overwrite"
    ).options(**options).save(path)
    fresh = spark.read.format("paimon").options(**options).load(path)  # a frame that was read once keeps its snapshot
    assert [tuple(r) for r in fresh.collect()] == [(1, "only", "0")]
    assert not [e for e in Table.open(path, options).store.io.list(f"{path}/snapshot") if "tmp" in e.name]


@pytest.mark.more
def test_committers_on_s3_lose_nothing(store):
    root, options = store
    path = f"{root}/warehouse/db.db/raced"
    Table.create(path, Schema(pa.schema([("id", pa.int64())])), options)

    def append(writer):
        table = Table.open(path, options)
        for i in range(3):
            table.write(pa.table({"id": [writer * 10 + i]}))

    threads = [threading.Thread(target=append, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = Table.open(path, options)
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(n * 10 + i for n in range(4) for i in range(3))
    assert [s.id for s in table.snapshots()] == list(range(1, 13))


@pytest.mark.more
def test_credentials_are_never_shown(spark, store):
    root, options = store
    wrong = {**options, "s3.secret-key": "very-secret", "s3.endpoint": "http://127.0.0.1:9"}
    with pytest.raises(Exception) as caught:
        spark.read.format("paimon").options(**wrong).load(f"{root}/nothing").count()
    assert "very-secret" not in str(caught.value)
    assert "very-secret" not in repr(Table)


@pytest.mark.more
def test_compaction_on_s3_takes_credentials_along_unseen(spark, store, capfd):
    root, options = store
    path = f"{root}/warehouse/db.db/compacted"
    settings = {**options, "primary-key": "id", "bucket": "3", "write-only": "true"}
    for i in range(2):
        spark.range(100).selectExpr("id", f"{i} AS v").write.format("paimon").mode("append").options(**settings).save(
            path
        )
    result = PaimonTable.forPath(spark, path, **options).compact(full=True)
    assert result.commit_kind == "COMPACT"
    assert spark.read.format("paimon").options(**options).load(path).agg({"v": "min", "id": "count"}).first() == (
        1,
        100,
    )
    task_frame(spark, Table.open(path, options).store, ["a", "b"], [[0], [1]], run_task).explain("extended")
    shown = capfd.readouterr()
    assert "MapInArrow" in shown.out
    assert options["s3.secret-key"] not in shown.out + shown.err


def test_store_without_conditional_puts_is_refused():
    with s3_server(ignore_conditions=True) as (root, options), pytest.raises(UnsupportedError, match="If-None-Match"):
        Table.create(f"{root}/t", Schema(pa.schema([("id", pa.int64())])), options).write(pa.table({"id": [1]}))
