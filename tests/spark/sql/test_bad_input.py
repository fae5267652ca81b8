"""Failing calls: the statement ends with an error for every exception, and no error shows a secret."""

import json
from pathlib import Path

import pytest
from pyspark.errors.exceptions.captured import CapturedException

import paimon_spark
from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_spark.sql.bridge import handler
from paimon_spark.sql.table import TableHandler

SECRET = "S3CR3T"


class Odd(BaseException):
    """An exception that no handler expects."""


@pytest.mark.parametrize("error", [ZeroDivisionError("z"), SystemExit(3), KeyboardInterrupt("k"), Odd("o")], ids=repr)
def test_exception_of_handler_ends_statement(sql, monkeypatch, error):
    def fail(*_):
        raise error

    sql("CREATE TABLE t (a INT)")
    with monkeypatch.context() as patch:
        patch.setattr(TableHandler, "scan", fail)
        with pytest.raises(CapturedException, match=f"{type(error).__name__}: {error}"):
            sql("SELECT * FROM t")
    assert sql("SELECT * FROM t") == []


def test_store_that_fails_is_logged_once_for_statement(sql, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError("the store is down")

    sql("CREATE TABLE t (a INT)")
    with monkeypatch.context() as patch:
        patch.setattr(FileSystemCatalog, "named_table", fail)
        patch.setattr(handler, "_failures", handler._Failures())
        for _ in range(2):
            with pytest.raises(CapturedException, match="the store is down"):
                sql("SELECT * FROM t JOIN t AS u USING (a)")
        traces = [record for record in caplog.records if record.name == handler.__name__ and record.exc_info]
    assert len(traces) == 1


@pytest.mark.more
def test_secrets_are_shown_nowhere(sql, tmp_path):
    """Options of the store, and options of a table as another engine may have stored them."""
    warehouse = tmp_path / "warehouse"
    options = {"fs.s3.secret-key": SECRET}
    paimon_spark.catalog(sql.spark, "hidden", warehouse=str(warehouse), storage_options=options)
    sql("USE hidden.default")
    sql("CREATE TABLE t (id INT, v STRING)")
    sql("INSERT INTO t VALUES (1, 'a')")
    (stored,) = Path(warehouse, "default.db", "t", "schema").iterdir()
    schema = json.loads(stored.read_text())
    schema["options"] |= {"fs.s3.secret-key": SECRET, "fs.oss.accessKeySecret": SECRET}
    stored.write_text(json.dumps(schema))

    def shown(action):
        try:
            return repr(action())
        except Exception as error:
            return f"{error} {error!r}"

    for statement in (
        "SHOW CREATE TABLE t",
        "DESCRIBE EXTENDED t",
        "SHOW TBLPROPERTIES t",
        "EXPLAIN EXTENDED SELECT * FROM t WHERE id = 1",
        "EXPLAIN EXTENDED INSERT INTO t SELECT * FROM t",
        "EXPLAIN UPDATE t SET v = 'x'",
        f"SELECT * FROM t WITH ('fs.s3.secret-key' = '{SECRET}')",
        f"ALTER TABLE t SET TBLPROPERTIES ('fs.s3.secret-kex' = '{SECRET}')",
        f"SELECT * FROM hidden.`s3://KEY:{SECRET}@b/x`",
    ):
        assert SECRET not in shown(lambda statement=statement: sql(statement)), statement
    for native in ("true", "false"):
        sql.spark.conf.set("spark.paimon.read.native", native)
        execution = sql.spark.table("t")._jdf.queryExecution()
        assert SECRET not in execution.toString() + execution.executedPlan().toJSON()
    sql.spark.conf.unset("spark.paimon.read.native")
    table = paimon_spark.PaimonTable.forName(sql.spark, "hidden.default.t")
    assert SECRET not in repr(table) + str(table.explain())
    assert sql("SELECT * FROM t") == [(1, "a")]


def texts_of_pages(spark, after):
    """Return the texts of Spark's pages about jobs and the SQL executions above `after`, and the last execution.

    The pages show what the status stores hold, as does the event log.
    """
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    texts, newest = [], after
    executions = store.executionsList()
    for execution in (executions.apply(i) for i in range(executions.size())):
        if execution.executionId() > after:
            newest = max(newest, execution.executionId())
            nodes = store.planGraph(execution.executionId()).allNodes()
            texts += [
                execution.description(),
                execution.details(),
                execution.physicalPlanDescription(),
                str(execution.modifiedConfigs()),
            ]
            texts += [str(nodes.apply(i).desc()) for i in range(nodes.size())]
    jobs = context.statusStore().jobsList(None)
    for job in (jobs.apply(i) for i in range(jobs.size())):
        texts += [job.name(), str(job.description()), str(job.jobTags()), str(job.jobGroup())]
    return texts, newest


@pytest.mark.more
def test_secrets_are_on_no_page_of_spark(sql, tmp_path):
    """Of a table that stores one, in a catalog that has one: reads and writes on every way, of a stream as well."""
    warehouse = tmp_path / "warehouse"
    options = {"fs.s3.secret-key": SECRET}
    paimon_spark.catalog(sql.spark, "hidden", warehouse=str(warehouse), storage_options=options)
    sql("USE hidden.default")
    _, before = texts_of_pages(sql.spark, -1)
    for name, settings in {"t": "'bucket' = '-1'", "k": "'primary-key' = 'id', 'bucket' = '1'"}.items():
        sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ({settings})")
        (stored,) = Path(warehouse, "default.db", name, "schema").iterdir()
        schema = json.loads(stored.read_text())
        schema["options"] |= {"fs.s3.secret-key": SECRET, "fs.oss.accessKeySecret": SECRET}
        stored.write_text(json.dumps(schema))
        source = "(SELECT id, 'm' AS v FROM range(2, 4)) s"
        for statement in (
            f"INSERT INTO {name} VALUES (1, 'a')",
            f"INSERT INTO {name} SELECT id, 'r' FROM range(20000)",
            f"SELECT * FROM {name} WHERE id < 3",
            f"SELECT count(*), min(v) FROM {name}",
            f"UPDATE {name} SET v = 'x' WHERE id = 1",
            f"DELETE FROM {name} WHERE id = 1",
            f"MERGE INTO {name} t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
            f"CALL sys.compact(table => '{name}')",
            f"SELECT * FROM {name} WITH ('fs.s3.secret-key' = '{SECRET}') WHERE id = 2",
            f"INSERT INTO {name} WITH ('fs.s3.secret-key' = '{SECRET}') VALUES (1, 'a')",
            f"INSERT OVERWRITE {name} SELECT id, 'o' FROM range(3)",
        ):
            sql(statement)
        sql.spark.conf.set("spark.paimon.read.native", "false")
        assert len(sql(f"SELECT * FROM {name}")) == 3
        sql.spark.conf.unset("spark.paimon.read.native")
    sql("CREATE TABLE out (id BIGINT, v STRING)")
    rows = sql.spark.readStream.option("fs.s3.secret-key", SECRET).table("hidden.default.t")
    writing = rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).option("fs.s3.secret-key", SECRET)
    writing.trigger(availableNow=True).toTable("hidden.default.out").awaitTermination()
    assert len(sql("SELECT * FROM out")) == 3
    path = str(warehouse / "default.db" / "t")
    read = sql.spark.read.format("paimon").options(**options).load(path)
    assert read.count() == 3
    read.write.format("paimon").options(**options).mode("append").save(path)
    texts, newest = texts_of_pages(sql.spark, before)
    assert newest > before + 20
    assert [text for text in texts if SECRET in text] == []
