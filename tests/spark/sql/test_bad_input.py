"""Answers that fail: the statement ends with an error, whatever was raised. Secrets are shown by none."""

import json
from pathlib import Path

import pytest
from pyspark.errors.exceptions.captured import CapturedException

import paimon_spark
from paimon_spark.sql.table import TableFunction

SECRET = "S3CR3T"


class Odd(BaseException):
    """An exception that no handler expects."""


@pytest.mark.parametrize("error", [ZeroDivisionError("z"), SystemExit(3), KeyboardInterrupt("k"), Odd("o")], ids=repr)
def test_any_exception_of_an_answer_ends_the_statement(sql, monkeypatch, error):
    def fail(*_):
        raise error

    sql("CREATE TABLE t (a INT)")
    with monkeypatch.context() as patch:
        patch.setattr(TableFunction, "scan", fail)
        with pytest.raises(CapturedException, match=f"{type(error).__name__}: {error}"):
            sql("SELECT * FROM t")
    assert sql("SELECT * FROM t") == []


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
    assert SECRET not in repr(table) + table.explain()
    assert sql("SELECT * FROM t") == [(1, "a")]
