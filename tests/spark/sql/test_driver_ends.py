"""A driver that dies in the middle of a statement."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from paimon_core.table import Table
from tests.spark.conftest import ROOT

HEAD = """
    import json, sys, time
    import paimon_spark
    from pyspark.sql import SparkSession, functions as F

    def session():
        quiet = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2"}
        return SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()

    def install(spark):
        paimon_spark.catalog(spark, "pm", warehouse=sys.argv[1])
        spark.sql("USE pm.default")

    spark = session()
    install(spark)
"""


def started(tmp_path, body):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), str(tmp_path / "warehouse")]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def wait_for(process, word):
    for line in process.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"the script ended without {word!r}: {process.wait()}")


def rows_of(tmp_path, name):
    table = Table.open(str(tmp_path / "warehouse" / "default.db" / name))
    return len(table.snapshots()), sorted(table.to_arrow().column("v").to_pylist())


@pytest.mark.more
def test_driver_that_is_killed_leaves_tables_readable(tmp_path, spark, catalog_name):
    """Three statements are under way when it dies; they leave nothing visible, and another driver goes on."""
    process = started(
        tmp_path,
        """
        import threading
        spark.udf.register("wait", F.udf(lambda number: time.sleep(0.5) or number, "bigint"))
        source = "(SELECT id, wait(id) v FROM range(0, 100, 1, 1)) s"
        merge = (f"MERGE INTO {{}} t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v + 1 "
            "WHEN NOT MATCHED THEN INSERT *")
        for name in ("keyed", "append", "over"):
            options = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')" if name == "keyed" else ""
            spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v BIGINT) {options}")
            spark.sql(f"INSERT INTO {name} SELECT id, id FROM range(10)")
        overwrite = f"INSERT OVERWRITE over SELECT id, v FROM {source}"
        for text in (merge.format("keyed"), merge.format("append"), overwrite):
            threading.Thread(target=spark.sql, args=(text,)).start()
        jobs = spark.sparkContext.statusTracker()
        while len(jobs.getActiveJobsIds()) < 3:
            time.sleep(0.1)
        print("begins", flush=True)
        """,
    )
    wait_for(process, "begins")
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    for name in ("keyed", "append", "over"):
        assert rows_of(tmp_path, name) == (1, list(range(10)))
        path = f"{catalog_name}.`{tmp_path}/warehouse/default.db/{name}`"
        assert spark.sql(f"DELETE FROM {path} WHERE id < 5").collect() == [(5,)]
        assert rows_of(tmp_path, name)[1] == list(range(5, 10))


@pytest.mark.more
def test_session_works_after_interrupt_and_after_stop(tmp_path):
    """Ctrl-C, pressed in four statements, cancels their jobs; they leave nothing visible."""
    process = started(
        tmp_path,
        """
        import os, signal, threading

        def interrupted(statement):
            jobs = spark.sparkContext.statusTracker()

            def interrupt():
                while not jobs.getActiveJobsIds():
                    time.sleep(0.1)
                time.sleep(0.5)
                os.kill(os.getpid(), signal.SIGINT)

            threading.Thread(target=interrupt).start()
            try:
                spark.sql(statement).collect()
            except KeyboardInterrupt:
                end = time.monotonic() + 60
                while jobs.getActiveJobsIds() and time.monotonic() < end:
                    time.sleep(0.1)
                return not jobs.getActiveJobsIds()

        def works():
            spark.sql("INSERT INTO t VALUES (10, 10)")
            source = "(SELECT 10L AS id) s"
            found = spark.sql(f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN DELETE").collect()
            return [tuple(row) for row in found], spark.sql("SELECT count(*) FROM t").collect()[0][0]

        spark.sql("CREATE TABLE t (id BIGINT NOT NULL, v BIGINT)")
        spark.sql("INSERT INTO t SELECT id, id FROM range(10)")
        endless = "(SELECT id, length(sha2(string(id), 512)) v FROM range(0, 1000000000000, 1, 2))"
        merge = f"MERGE INTO t USING {endless} s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        spark.udf.register("wait", F.udf(lambda number: time.sleep(600) or number, "bigint"))
        insert, select = f"INSERT INTO t SELECT id, v FROM {endless}", f"SELECT sum(v) FROM {endless}"
        statements = [insert, merge, select, "DELETE FROM t WHERE wait(id) > 0"]
        answers = [[interrupted(statement) for statement in statements], works()]
        spark.stop()
        spark = session()
        install(spark)
        answers.append(works())
        print(json.dumps(answers), flush=True)
        """,
    )
    counts = [[[1, 0, 1, 0]], 10]
    output, _ = process.communicate(timeout=500)
    assert json.loads(output.splitlines()[-1]) == [[True] * 4, counts, counts]
    assert rows_of(tmp_path, "t")[1] == list(range(10))
