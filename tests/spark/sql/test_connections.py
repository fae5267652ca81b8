"""Statements leave no thread and no connection behind: Spark asks Python in new threads of Java each time."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.spark.sql.many_statements import sockets, statement

ROOT = Path(__file__).parent.parent.parent.parent


def held_after(before):
    """Return the threads of Python that are not those before, and do not end, and the number of sockets."""
    new = set(threading.enumerate()) - before
    for thread in new:
        thread.join(30)
    return {thread.name for thread in new if thread.is_alive()}, sockets("self")


@pytest.mark.more
def test_statements_leave_no_thread_and_no_socket(sql):
    for name, options in (("a", "'bucket' = '-1'"), ("k", "'primary-key' = 'id', 'bucket' = '1'")):
        sql(f"CREATE TABLE {name} (id INT NOT NULL, v INT) TBLPROPERTIES ({options})")
        sql(f"INSERT INTO {name} SELECT CAST(id AS INT), 0 FROM range(20)")
    for number in range(3):
        statement(sql.spark, number)
    before = set(threading.enumerate())
    first = held_after(before)
    for number in range(3, 9):
        statement(sql.spark, number)
    assert held_after(before) == first


@pytest.mark.slow
@pytest.mark.long
def test_memory_of_session_does_not_grow_with_statements(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "tests.spark.sql.many_statements", str(tmp_path / "warehouse"), "500", "100"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(temporary)}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-5000:]
    states = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert [state.pop("done") for state in states] == [100, 200, 300, 400, 500]
    for name, number in states[0].items():
        assert all(state[name] <= number for state in states[1:]), (name, states)
