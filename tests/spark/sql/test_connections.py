"""Statements leave no thread and no connection behind: Spark asks Python in new threads of Java each time."""

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from py4j.clientserver import ClientServerConnection, JavaClient
from pyspark.errors import AnalysisException, IllegalArgumentException

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


@pytest.mark.more
def test_result_lives_until_java_has_it(sql, monkeypatch):
    """Python collects its garbage after each answer, and Java forgets an object as soon as Python drops it."""
    forget, answer = JavaClient.garbage_collect_object, ClientServerConnection._call_proxy

    def answered(connection, *arguments):
        text = answer(connection, *arguments)
        gc.collect()
        return text

    sql("CREATE TABLE t (id BIGINT, v STRING)")
    sql("INSERT INTO t VALUES (1, 'a')")
    monkeypatch.setattr(ClientServerConnection, "_call_proxy", answered)
    monkeypatch.setattr(
        JavaClient, "garbage_collect_object", lambda client, target, enqueue=True: forget(client, target, False)
    )
    assert sql("SHOW TABLES") == [(sql.database, "t", False)]
    assert sql("SELECT * FROM t WHERE id = 1") == [(1, "a")]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM nothing")
    with pytest.raises(IllegalArgumentException, match="unknown option 'buckte'"):
        sql("CREATE TABLE u (id BIGINT) TBLPROPERTIES ('buckte' = '1')")
