"""The tests marked everywhere, run again over Connect and on clusters of two executor processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

FEW = "append_to_keyed"
"""The test whose sessions have artifacts of their own."""
FILE_OF_FEW = HERE / "test_format.py"
"""The file of that test, so that pytest does not collect the others."""


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif("PAIMON_SPARK_MODE" in os.environ, reason="this is already such a run")
@pytest.mark.parametrize(
    ("mode", "some"),
    [
        pytest.param("connect", FEW, marks=pytest.mark.more),
        pytest.param("connect", "upserted_once or replaces_table or update_delete", marks=pytest.mark.slow),
        # The clusters differ only in who starts the executors, so each cluster runs some of the tests.
        pytest.param("cluster", "killed or masks", marks=pytest.mark.more),
        pytest.param("standalone", "append or killed or executors", marks=pytest.mark.slow),
        pytest.param("connect", "", marks=pytest.mark.slow),
        pytest.param("cluster", "", marks=pytest.mark.slow),
        pytest.param("standalone", "", marks=pytest.mark.slow),
    ],
)
def test_format_paimon_reads_and_writes_in_mode(mode, some, tmp_path):
    """A process of its own: one process cannot hold two kinds of session.

    Further cases, which are marked more, run on a kind of session only where all of its tests do.
    """
    marked = "everywhere and not slow" + " and not more" * bool(some)
    tests = FILE_OF_FEW if some == FEW else HERE
    command = [sys.executable, "-m", "pytest", "-q", "-m", marked, "-k", some, str(tests)]
    command += ["-p", "no:cacheprovider"]
    environment = {**os.environ, "PAIMON_SPARK_MODE": mode, "PAIMON_ISOLATED": str(some == FEW)}
    log = tmp_path / "log"
    command.append(f"--basetemp={tmp_path / 'run'}")
    with log.open("wb") as out:
        result = subprocess.run(command, cwd=HERE.parent.parent, env=environment, stdout=out, stderr=out)
    text = log.read_text(errors="replace")
    assert result.returncode == 0, text[-10000:]
    print(text.splitlines()[-1])
