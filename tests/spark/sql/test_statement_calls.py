"""The calls of Python and of the store that small statements need. The test counts calls, because times vary."""

from collections import Counter

import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import MEMORY_COMMAND_NAME

from paimon_core.fileio.fileio import FileIO
from paimon_spark.sql.bridge.handler import Handler

STATEMENTS = {
    "INSERT INTO t VALUES (1, 'v'), (2, 'v')": (3, 22),
    "INSERT INTO t SELECT id, 'v' FROM range(100)": (3, 22),
    "SELECT sum(k) FROM t": (2, 13),
    "SELECT v FROM t WHERE k = 2": (2, 7),
    "SELECT count(*) FROM t": (2, 7),
    "SELECT max(v) FROM t": (3, 11),
    "DELETE FROM t WHERE k = 3": (4, 32),
    "INSERT INTO keyed VALUES (1, 'w')": (3, 37),
    "UPDATE keyed SET v = 'u' WHERE k = 1": (6, 44),
}
"""The most calls of Python and of the store, by statement. A statement reads no manifest twice, and a
query reads none that another query has read."""
CREATES = {
    "CREATE TABLE new (k BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'k')": 110,
    "DROP TABLE new": 40,
    "DROP TABLE IF EXISTS new": 30,
}
"""The most calls of the JVM, by statement: a stack or a list of the JVM is one call, not one for each element."""
NAMES = ("read", "open", "write", "create", "create_exclusive", "sync", "exists", "list", "delete")


@pytest.fixture
def counted(monkeypatch):
    """The calls of Python (``asked``), and the calls of the store with their paths (``stored``)."""
    asked, stored = [], []

    def counting(name, method):
        def call(self, path, *arguments, **more):
            stored.append((name, str(path)))
            return method(self, path, *arguments, **more)

        return call

    answer = Handler.call
    monkeypatch.setattr(Handler, "call", lambda self, name, *more: asked.append(name) or answer(self, name, *more))
    for name in NAMES:
        monkeypatch.setattr(FileIO, name, counting(name, getattr(FileIO, name)))
    return asked, stored


def test_small_statements_need_few_calls(sql, counted):
    sql("CREATE TABLE t (k BIGINT, v STRING) TBLPROPERTIES ('bucket' = '-1', 'write-only' = 'true')")
    sql("CREATE TABLE keyed (k BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')")
    for _ in range(2):
        sql("INSERT INTO t VALUES (0, 'v')")
        sql("INSERT INTO keyed VALUES (0, 'v'), (1, 'v')")
    asked, stored = counted
    found = {}
    for statement in STATEMENTS:
        asked.clear()
        stored.clear()
        sql(statement)
        found[statement] = len(asked), len(stored)
        reads = Counter(path for name, path in stored if name == "read" and "/manifest/" in path)
        assert max(reads.values(), default=0) <= 1, (statement, reads)
    more = {text: n for text, n in found.items() if any(a > b for a, b in zip(n, STATEMENTS[text], strict=True))}
    assert not more, found


def test_statements_of_definition_need_few_calls_of_jvm(sql, monkeypatch):
    for statement in CREATES:
        sql(statement)
    calls, send = [], JavaClient.send_command

    def counting(self, command, *more, **named):
        if not command.startswith(MEMORY_COMMAND_NAME):  # it frees an object
            calls.append(command)
        return send(self, command, *more, **named)

    monkeypatch.setattr(JavaClient, "send_command", counting)
    found = {}
    for statement in CREATES:
        calls.clear()
        sql(statement)
        found[statement] = len(calls)
    assert {text: n for text, n in found.items() if n > CREATES[text]} == {}
