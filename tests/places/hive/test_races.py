"""Processes that race on one metastore: for names, for commits under the lock, and with Java in turns."""

import multiprocessing
import os
import random
import signal
import time

import pyarrow as pa
import pytest

from paimon_core import Schema, open_catalog
from paimon_core.errors import AlreadyExistsError, CommitConflictError
from paimon_core.store.environment import NotLockedError

pytestmark = pytest.mark.places
COLUMNS = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string())])
SCHEMA = Schema(COLUMNS, primary_keys=["k"], options={"bucket": "1"})
TURNS = 25
SPAWN = multiprocessing.get_context("spawn")


def row(key, value):
    return pa.table({"k": [key], "v": [value]}, COLUMNS)


def create(number, warehouse, options, database, names, barrier, results):
    """Create each table; report the names that this process won."""
    catalog = open_catalog(warehouse, options=options)
    won = []
    for name in names:
        barrier.wait()
        try:
            catalog.create_table(f"{database}.{name}", Schema(COLUMNS, comment=str(number)))
            won.append(name)
        except AlreadyExistsError:
            continue
    results.put((number, won))


def commit(number, warehouse, options, name, commits, results):
    """Commit rows of this process's keys, one at a time."""
    table = open_catalog(warehouse, options=options).table(name)
    for i in range(commits):
        while True:
            try:
                table.write(row(1000 * number + i, str(number)))
                break
            except NotLockedError:
                raise
            except CommitConflictError:
                continue
    results.put((number, commits))


def hold(warehouse, options, name, held):
    """Take the lock of a table, and keep it until this process is killed."""
    with open_catalog(warehouse, options=options).table(name).store.environment.locked():
        held.set()
        time.sleep(600)


def run(processes, results):
    for process in processes:
        process.start()
    found = dict(results.get(timeout=300) for _ in processes)
    for process in processes:
        process.join(30)
    return found


@pytest.mark.parametrize("writers", [2, 8])
def test_one_process_creates_a_name(catalog, database, hive_warehouse, options, writers):
    names, barrier, results = [f"t{i}" for i in range(15)], SPAWN.Barrier(writers), SPAWN.Queue()
    arguments = (hive_warehouse, options, database, names, barrier, results)
    found = run([SPAWN.Process(target=create, args=(n, *arguments)) for n in range(writers)], results)
    assert sorted(name for won in found.values() for name in won) == sorted(names)
    assert catalog.list_tables(database) == sorted(names)
    for number, won in found.items():
        for name in won:
            assert catalog.table(f"{database}.{name}").schema.comment == str(number)
            assert catalog._client.table(database, name).parameters["comment"] == str(number)


@pytest.mark.parametrize("writers", [2, 8])
def test_commits_under_the_lock(catalog, database, hive_warehouse, options, writers):
    name, commits, results = f"{database}.t", 60 // writers, SPAWN.Queue()
    catalog.create_table(name, SCHEMA)
    arguments = (hive_warehouse, options, name, commits, results)
    run([SPAWN.Process(target=commit, args=(n, *arguments)) for n in range(writers)], results)
    rows = catalog.table(name).to_arrow()
    expected = sorted(1000 * n + i for n in range(writers) for i in range(commits))
    assert sorted(rows["k"].to_pylist()) == expected


def test_lock_of_a_killed_process_is_free_after_its_timeout(catalog, database, hive_warehouse, options):
    name, held = f"{database}.t", SPAWN.Event()
    catalog.create_table(name, SCHEMA)
    process = SPAWN.Process(target=hold, args=(hive_warehouse, options, name, held))
    process.start()
    assert held.wait(60)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    hasty = open_catalog(hive_warehouse, options={**options, "lock-acquire-timeout": "300 ms"})
    with pytest.raises(NotLockedError, match=r"was not free within 0\.3 s"):
        hasty.table(name).write(row(1, "a"))
    assert hasty.table(name).snapshot() is None
    patient = open_catalog(hive_warehouse, options={**options, "lock-acquire-timeout": "60 s"})
    begun = time.monotonic()
    patient.table(name).write(row(1, "a"))
    assert time.monotonic() - begun > 1
    assert catalog.table(name).to_arrow().num_rows == 1


@pytest.mark.parametrize("turns", [2 * TURNS, pytest.param(500, marks=pytest.mark.slow)])
def test_turns_with_java(catalog, database, java, turns):
    """One engine acts, and the other one sees the result: rows of three tables, columns, and names."""
    dice, expected = random.Random(turns), {}
    for turn in range(turns):
        ours, action = dice.random() < 0.5, dice.choice(["rename", "drop", *["write"] * 6])
        free = [name for name in "abcd" if name not in expected]
        if len(expected) < 2:
            action = "create"
        name = dice.choice(free if action == "create" else sorted(expected))
        full = f"{database}.{name}"
        if action == "create":
            catalog.create_table(full, SCHEMA) if ours else java.tell("create", full)
            expected[name] = {}
        elif action == "rename":
            new = dice.choice(free)
            catalog.rename_table(full, f"{database}.{new}") if ours else java.tell("rename", full, f"{database}.{new}")
            expected[new], name = expected.pop(name), new
        elif action == "drop":
            catalog.drop_table(full) if ours else java.tell("drop", full)
            del expected[name]
        else:
            key, value = dice.randrange(50), f"{'ours' if ours else 'java'}{turn}"
            catalog.table(full).write(row(key, value)) if ours else java.tell("write", full, key, value)
            expected[name][key] = value
        check(catalog, java if ours else None, database, name, expected)
    for name in expected:
        for reader in (java, None):
            check(catalog, reader, database, name, expected)


def check(catalog, java, database, name, expected):
    """Check the names of the tables and the rows of one; ``java``: Java reads; `None`: this engine."""
    names = java.tell("tables", database)[1:-1].split(", ") if java else catalog.list_tables(database)
    assert sorted(filter(None, names)) == sorted(expected)
    if name in expected:
        full = f"{database}.{name}"
        if java:
            found = set(filter(None, java.tell("read", full).split(",")))
        else:
            found = {f"{r['k']}={r['v']}" for r in catalog.table(full).to_arrow().to_pylist()}
        assert found == {f"{key}={value}" for key, value in expected[name].items()}


@pytest.mark.parametrize("commits", [TURNS, pytest.param(200, marks=pytest.mark.slow)])
def test_two_writers_under_the_shared_lock_lose_nothing(catalog, database, java, commits):
    name, keys = f"{database}.t", range(commits)
    options = {"bucket": "1", "write-only": "true"}  # a compaction by Java would conflict, and be given up
    table = catalog.create_table(name, Schema(COLUMNS, primary_keys=["k"], options=options))
    for key in keys:
        java.begin("write", name, key + 1_000_000, "java")
    for key in keys:
        table.write(row(key, "ours"))
    answers = [java.answer() for _ in keys]
    assert answers == ["ok"] * commits
    assert catalog.table(name).to_arrow().num_rows == 2 * commits


def test_connection_is_opened_again(catalog, database):
    catalog._client._open[1].close()
    assert database in catalog.list_databases()
