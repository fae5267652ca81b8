"""A driver that dies in the middle of a statement."""

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
    import sys, time
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


@pytest.mark.more
def test_a_driver_that_is_killed_leaves_the_table_readable(tmp_path):
    process = started(
        tmp_path,
        """
        spark.sql("CREATE TABLE k (id BIGINT NOT NULL, v BIGINT) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
        spark.sql("INSERT INTO k SELECT id, id FROM range(10)")
        spark.udf.register("wait", F.udf(lambda number: time.sleep(0.5) or number, "bigint"))
        print("begins", flush=True)
        source = "(SELECT id, wait(id) v FROM range(100)) s"
        spark.sql(f"MERGE INTO k USING {source} ON k.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v + 1 "
            "WHEN NOT MATCHED THEN INSERT *")
        """,
    )
    wait_for(process, "begins")
    time.sleep(4)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    table = Table.open(str(tmp_path / "warehouse" / "default.db" / "k"))
    assert sorted(table.to_arrow().column("v").to_pylist()) == list(range(10))
