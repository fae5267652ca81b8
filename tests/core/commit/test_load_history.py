"""The load history of a table: each file once, also with statements at the same time and processes that die."""

import json

import pytest

from paimon_core import Schema, Table
from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.commit.load_history import LOAD_PROPERTY, LOAD_USER, LoadedFile, LoadHistory, LoadSource
from tests.support.tables import ORDERS, orders

A, B = LoadSource("file:/in/a.csv", 10, 1000), LoadSource("file:/in/b.csv", 20, 2000)


@pytest.fixture
def table(tmp_path):
    return Table.create(str(tmp_path / "t"), Schema(ORDERS))


def commit(table, number, statement):
    with table.writer() as writer:
        writer.write(orders((1, "x", 1)))
        messages = writer.prepare_commit()
    commits = IdempotentCommits(table.store, LOAD_USER)
    commits.commit(messages, number, properties={LOAD_PROPERTY: statement})


def test_a_file_is_loaded_once_until_it_changes(table):
    history = LoadHistory(table.store)
    number = history.next_number()
    assert (number, history.loaded([A, B])) == (0, set())
    history.begin(number, "ab", [LoadedFile(A, 3)])
    commit(table, number, "ab")
    assert history.finish(number, "ab")
    assert history.next_number() == 1
    assert history.loaded([A, B, LoadSource(A.path, 11, 1000), LoadSource(A.path, 10, 1001)]) == {A}
    record = json.loads(
        next(table.store.io.read(f.path) for f in table.store.io.list(f"{table.path}/copy-into/history"))
    )
    assert {key: record[key] for key in ("filePath", "fileSize", "lastModified", "snapshotId", "rowsLoaded")} == {
        "filePath": A.path, "fileSize": 10, "lastModified": 1000, "snapshotId": 1, "rowsLoaded": 3
    }  # fmt: skip


def test_of_two_statements_at_the_same_time_one_commits(table):
    first, second = LoadHistory(table.store), LoadHistory(table.store)
    assert first.next_number() == second.next_number() == 0
    for history, statement in ((first, "a1"), (second, "b2")):
        history.begin(0, statement, [LoadedFile(A, 3)])
    commit(table, 0, "a1")
    commit(table, 0, "b2")
    assert table.to_arrow().num_rows == 1
    assert not second.finish(0, "b2")
    assert second.next_number() == 1
    assert second.loaded([A]) == {A}, "the history of the winner, before the winner writes it"
    assert first.finish(0, "a1")


def test_the_next_statement_completes_the_history_of_a_process_that_died(table):
    dead = LoadHistory(table.store)
    dead.begin(0, "dead", [LoadedFile(A, 3)])
    assert LoadHistory(table.store).next_number() == 0, "its commit may still come, and would take the number"
    assert LoadHistory(table.store).loaded([A]) == set()
    commit(table, 0, "dead")
    assert LoadHistory(table.store).next_number() == 1
    assert LoadHistory(table.store).loaded([A]) == {A}
    dead.begin(1, "failed", [LoadedFile(B, 1)])
    assert LoadHistory(table.store).next_number() == 1
    assert LoadHistory(table.store).loaded([B]) == set()
