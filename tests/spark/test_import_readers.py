"""Tables of the real Delta and Iceberg, on one version of Spark that both have readers for, are imported."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.workers import environment
from tests.conformance.judge import resolve

ROOT = Path(__file__).parents[2]
SPARK_41 = ("pyspark==4.1.*", "pandas>=2.2,<3", "pytest>=8", str(ROOT))
JARS = (
    ("io.delta", "delta-spark_4.1_2.13", "4.1.0"),
    ("io.delta", "delta-storage", "4.1.0"),
    ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.11.0"),
)


@pytest.mark.slow
@pytest.mark.java
def test_tables_of_delta_and_iceberg_are_imported(tmp_path):
    python = environment("spark-4.1-readers", SPARK_41)
    jars = ",".join(str(resolve(*jar)) for jar in JARS)
    environ = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    environ |= {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    environ["PYTHONPATH"] = str(ROOT)
    command = [str(python), str(Path(__file__).with_name("import_readers.py")), str(tmp_path), jars]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout[-5_000:] + ran.stderr[-10_000:]
    assert "imported 4.1" in ran.stdout
