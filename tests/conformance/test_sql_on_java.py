"""The Java connector 0.9 gives the same answers to the SQL corpus, or the file names the reason."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.spark import CONNECTOR
from benchmarks.workers import SPARK_35, environment
from tests.conformance.judge import resolve

HERE = Path(__file__).parent
FILES = sorted((HERE.parent / "spark" / "sql" / "corpus").glob("*.sql.txt"))


@pytest.mark.slow
@pytest.mark.java
def test_corpus_on_java(tmp_path):
    python = environment("spark-3.5-bench", SPARK_35)
    environ = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "PYTHONPATH")}
    environ |= {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [python, HERE / "sql_on_java.py", resolve(*CONNECTOR), tmp_path, *FILES]
    ran = subprocess.run([str(part) for part in command], env=environ, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-2_000:]
