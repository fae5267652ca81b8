"""The shell blocks of the pages about clusters and Connect run, and so do the Python blocks about Connect."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.spark.conftest import standalone
from tests.support.markdown import ROOT, fences, python_blocks
from tests.support.servers import free_port
from tests.support.standalone import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.more]
__all__ = ["standalone"]  # a fixture
SPARK_HOME = Path(pyspark.__file__).parent


def shell(code, folder):
    """Run a shell block below a directory; return what it prints."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(SPARK_HOME / "bin"), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_PID_DIR": str(folder),
        "SPARK_LOG_DIR": str(folder),
    }
    done = subprocess.run(
        ["bash", "-ec", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=540
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def commands(name):
    """Return the shell blocks of a page that run."""
    return [block.code for block in fences(ROOT / "docs" / "guides" / name) if block.info == "sh" and not block.reason]


@pytest.mark.slow
def test_job_of_page_runs_on_cluster(tmp_path, standalone):
    (code,) = commands("cluster.md")
    for shown, used in (
        ("/tmp/warehouse", str(tmp_path / "warehouse")),
        ("spark://master:7077", f"{standalone} --conf spark.executor.memory=700m"),
        ("spark-conf/", f"{ROOT}/spark-conf/"),
    ):
        assert shown in code
        code = code.replace(shown, used)
    assert "rows: 10000" in shell(code, tmp_path)


@pytest.fixture
def connect_server(tmp_path):
    """The port of a Connect server that the page's commands have started."""
    pytest.importorskip("grpc", reason="the extra connect is not installed")
    (code,) = commands("connect.md")
    port = free_port()
    assert "=15002" in code
    try:
        shell(code.rstrip().replace("=15002", f"={port}") + " --conf spark.ui.enabled=false", tmp_path)
        wait_for(port, 120)
        yield port
    finally:
        shell(f"export SPARK_HOME='{SPARK_HOME}'; $SPARK_HOME/sbin/stop-connect-server.sh", tmp_path)


def test_program_of_page_runs_with_its_server(tmp_path, connect_server):
    blocks = python_blocks(ROOT / "docs" / "guides" / "connect.md")
    program = "".join(block.code for block in blocks)
    assert "sc://localhost:15002" in program
    program = program.replace("localhost:15002", f"127.0.0.1:{connect_server}")
    (tmp_path / "program.py").write_text(program.replace("/tmp/warehouse", str(tmp_path / "warehouse")))
    printed = shell("python program.py", tmp_path)
    assert printed.split() == "".join(block.output for block in blocks).split()
