"""JDBC catalogs on PostgreSQL and MariaDB, alone and shared with Java."""

import multiprocessing
import random
import threading

import pyarrow as pa
import pytest

from paimon_core import Schema, open_catalog
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from paimon_core.schema.change import SetOption
from tests.support.places.jdbc_judge import answers, java, start

pytestmark = [pytest.mark.places, pytest.mark.java]

SCHEMA = Schema(
    pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string())]),
    primary_keys=["k"],
    options={"bucket": "1"},
)


def row(key, value):
    return pa.table({"k": pa.array([key], pa.int32()), "v": [value]})


@pytest.fixture
def options(database, tmp_path):
    """The options of a catalog of its own in the database, with the lock."""
    return {
        **database,
        "metastore": "jdbc",
        "warehouse": str(tmp_path / "warehouse"),
        "catalog-key": f"key{random.randrange(10**9)}",
        "lock.enabled": "true",
        "lock-check-max-sleep": "200ms",
    }


def test_catalog_of_this_engine_is_one_for_java(options):
    catalog = open_catalog(options=options)
    catalog.create_database("db", properties={"comment": "ours"})
    catalog.create_table("db.t", SCHEMA).write(row(1, "here"))
    found = java(
        options,
        "databases",
        "properties:db",
        "tables:db",
        "write:db:t:2:1:there",
        "read:db:t",
        "set:db:t:snapshot.num-retained.max:30",
    )
    assert found == ["[db]", f"{{comment=ours, location={options['warehouse']}/db.db}}", "[t]", "[1=here, 2=there]"]
    table = catalog.table("db.t")
    assert table.schema.options.get("snapshot.num-retained.max") == "30"
    table.alter([SetOption("snapshot.num-retained.min", "2")])
    catalog.rename_table("db.t", "db.u")
    assert java(options, "tables:db", "read:db:u", "rename:db:u:v", "create:db:w", "write:db:w:7:1:new") == [
        "[u]",
        "[1=here, 2=there]",
    ]
    assert catalog.list_tables("db") == ["v", "w"]
    assert sorted(catalog.table("db.v").to_arrow().column("k").to_pylist()) == [1, 2]
    assert catalog.table("db.w").to_arrow().to_pylist() == [{"k": 7, "v": "new"}]
    catalog.drop_table("db.v")
    assert java(options, "tables:db", "create:db:v", "drop:db:w", "tables:db") == ["[w]", "[v]"]
    catalog.drop_database("db", cascade=True)
    assert java(options, "databases") == ["[]"]


def test_two_writers_lose_nothing(options):
    catalog = open_catalog(options=options)
    catalog.create_database("db")
    table = catalog.create_table("db.t", SCHEMA)
    process = start(options, "write:db:t:1000:30:java")
    for number in range(30):
        table.write(row(number, "python"))
    answers(process)
    keys = sorted(table.to_arrow().column("k").to_pylist())
    assert keys == [*range(30), *range(1000, 1030)]
    assert java(options, "read:db:t")[0].count("=") == 60


@pytest.mark.slow
def test_turns_with_java(options):
    """Java and this engine take turns at 200 changes of one catalog, and each sees the rows of the other."""
    catalog, dice = open_catalog(options=options), random.Random(7)
    catalog.create_database("db")
    expected: dict[str, dict[int, str]] = {}
    for turn in range(25):
        ours = turn % 2 == 0
        commands = []
        for number in range(8):
            free = [name for name in "abcdef" if name not in expected]
            action = dice.choice(["create", "write", "write", "write", "rename", "drop"])
            if action == "create" and free:
                name = dice.choice(free)
                expected[name] = {}
                commands.append(f"create:db:{name}")
            elif action == "write" and expected:
                name, key = dice.choice(sorted(expected)), dice.randrange(20)
                expected[name][key] = f"v{turn}x{number}"
                commands.append(f"write:db:{name}:{key}:1:v{turn}x{number}")
            elif action == "rename" and expected and free:
                old, new = dice.choice(sorted(expected)), dice.choice(free)
                expected[new] = expected.pop(old)
                commands.append(f"rename:db:{old}:{new}")
            elif action == "drop" and len(expected) > 3:
                name = dice.choice(sorted(expected))
                del expected[name]
                commands.append(f"drop:db:{name}")
        if ours:
            for command in commands:
                _do(catalog, command.split(":"))
            reads = [f"read:db:{name}" for name in sorted(expected)]
            found = java(options, "tables:db", *reads)
            assert found[0] == f"[{', '.join(sorted(expected))}]"
            for name, text in zip(sorted(expected), found[1:], strict=True):
                assert text == f"[{', '.join(sorted(f'{k}={v}' for k, v in expected[name].items()))}]"
        else:
            java(options, *commands)
            assert catalog.list_tables("db") == sorted(expected)
            for name, rows in expected.items():
                assert {r["k"]: r["v"] for r in catalog.table(f"db.{name}").to_arrow().to_pylist()} == rows


def _do(catalog, words):
    name = f"db.{words[2]}"
    if words[0] == "create":
        catalog.create_table(name, SCHEMA)
    elif words[0] == "write":
        catalog.table(name).write(row(int(words[3]), words[5]))
    elif words[0] == "rename":
        catalog.rename_table(name, f"db.{words[3]}")
    else:
        catalog.drop_table(name)


def _race(options, what, results, barrier):
    catalog = open_catalog(options=options)
    for number in range(5):
        barrier.wait()
        try:
            if what == "create":
                catalog.create_table(f"db.t{number}", SCHEMA)
            elif what == "rename":
                catalog.rename_table(f"db.t{number}", f"db.r{number}")
            else:
                catalog.drop_table(f"db.t{number}")
            results.put((number, "won"))
        except (AlreadyExistsError, NotFoundError, InvalidInputError, FileNotFoundError) as error:
            results.put((number, type(error).__name__))


@pytest.mark.parametrize("what", ["create", "rename", "drop"])
def test_one_process_wins(options, what):
    catalog = open_catalog(options=options)
    catalog.create_database("db")
    if what != "create":
        for number in range(5):
            catalog.create_table(f"db.t{number}", SCHEMA)
    context = multiprocessing.get_context("spawn")
    results, barrier = context.Queue(), context.Barrier(2)
    processes = [context.Process(target=_race, args=(options, what, results, barrier)) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in range(10)]
    for process in processes:
        process.join(20)
    assert sorted(number for number, result in found if result == "won") == [0, 1, 2, 3, 4]
    assert len(catalog.list_tables("db")) == (0 if what == "drop" else 5)


def test_first_catalogs_create_the_tables_together(database, tmp_path):
    failed = []

    def open_one(number):
        try:
            opened = open_catalog(str(tmp_path), options={**database, "metastore": "jdbc", "catalog-key": f"k{number}"})
            opened.create_database("db")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=open_one, args=(random.randrange(10**9),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
