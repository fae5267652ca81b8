"""Java and this engine share JDBC catalogs for hundreds of turns, on a local disk and on an object store."""

import itertools
import random
import threading

import pyarrow as pa
import pytest

from paimon_core import Schema, Table, open_catalog
from tests.conformance.judge import Judge, unavailable
from tests.support.places.jdbc_judge import drivers, s3_jar
from tests.support.places.versitygw import java_options, options, versitygw

pytestmark = [pytest.mark.places, pytest.mark.java]

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())])
KEYED = Schema(COLUMNS, primary_keys=["k"], options={"bucket": "1"})
LOG = Schema(pa.schema([pa.field("n", pa.int64()), pa.field("who", pa.string())]))
ACTIONS = ("create", "rename", "drop", *["write"] * 9)


@pytest.fixture(scope="module", params=["disk", "s3"])
def shared(request, database, tmp_path_factory):
    """The options of a catalog, and Java's catalog with the same options."""
    reason = unavailable()
    if reason:
        pytest.skip(f"no Java engine: {reason}")
    given = {**database, "metastore": "jdbc", "catalog-key": f"turns{random.randrange(10**9)}"}
    given |= {"lock.enabled": "true", "lock-check-max-sleep": "200ms"}
    if request.param == "disk":
        warehouse = str(tmp_path_factory.mktemp("turns"))
        with Judge(warehouse, heap="500m", options=given, jars=drivers()) as java:
            yield {**given, "warehouse": warehouse}, java
        return
    del given["lock.enabled"]  # on object stores, both engines take the lock unless an option says false
    with versitygw() as port:
        warehouse = "s3://bucket/wh"
        far = {**given, **java_options(port)}
        with Judge(warehouse, heap="500m", options=far, jars=[*drivers(), s3_jar()]) as java:
            yield {**given, **options(port), "warehouse": warehouse}, java


def rows_of(table: Table) -> dict[int, str]:
    return {row["k"]: row["v"] for row in table.to_arrow().to_pylist()}


class Players:
    """The two engines, and the rows that each table must have; each action is one turn of one engine."""

    def __init__(self, given, java, database: str) -> None:
        self.catalog, self.java, self.database = open_catalog(options=given), java, database
        self.catalog.create_database(database)
        self.renames = "://" not in given["warehouse"]  # on object stores, this engine refuses to rename tables
        self.expected: dict[str, dict[int, str]] = {}

    def play(self, dice: random.Random, turn: int) -> str:
        """Let one engine act, and check that the other one sees the result."""
        names = sorted(self.expected)
        ours, action = dice.random() < 0.5, dice.choice(ACTIONS)
        free = [name for name in "abcd" if name not in self.expected]
        if not names or (action in ("create", "rename") and not free):
            action = "write" if names else "create"
        ours = ours and (action != "rename" or self.renames)
        name = dice.choice(free) if action == "create" else dice.choice(names)
        full = f"{self.database}.{name}"
        if action == "create":
            if ours:
                self.catalog.create_table(full, KEYED)
            else:
                fields = [["k", "BIGINT NOT NULL"], ["v", "STRING"]]
                self.java.call("create_table", table=full, fields=fields, primary_keys=["k"], options={"bucket": "1"})
            self.expected[name] = {}
        elif action == "rename":
            new = dice.choice(free)
            if ours:
                self.catalog.rename_table(full, f"{self.database}.{new}")
            else:
                self.java.call("rename_table", table=full, to=f"{self.database}.{new}")
            self.expected[new], name = self.expected.pop(name), new
        elif action == "drop":
            if ours:
                self.catalog.drop_table(full)
            else:
                self.java.call("drop_table", table=full)
            del self.expected[name]
        else:
            rows = {dice.randrange(50): f"{turn}-{number}" for number in range(3)}
            if ours:
                self.catalog.table(full).write(pa.table({"k": [*rows], "v": [*rows.values()]}, COLUMNS))
            else:
                self.java.call("write", table=full, rows=[["+I", {"k": k, "v": v}] for k, v in rows.items()])
            self.expected[name] |= rows
        self.check(name, by_java=ours)
        return action

    def check(self, name: str, by_java: bool) -> None:
        """Check the names of the tables and the rows of one of them, as one engine sees them."""
        names = (
            self.java.call("list_tables", database=self.database)
            if by_java
            else self.catalog.list_tables(self.database)
        )
        assert sorted(names) == sorted(self.expected)
        if name not in self.expected:
            return
        full = f"{self.database}.{name}"
        if by_java:
            found = {row[1]: row[2] for row in self.java.call("read", table=full)["rows"]}
        else:
            found = rows_of(self.catalog.table(full))
        assert found == self.expected[name]


@pytest.mark.parametrize("turns", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_turns(shared, turns):
    players, dice = Players(*shared, f"turns{turns}"), random.Random(turns)
    actions = [players.play(dice, turn) for turn in range(turns)]
    for name in players.expected:
        for by_java in (True, False):
            players.check(name, by_java)
        assert players.catalog.table(f"turns{turns}.{name}").verify().sound
    print(f"{turns} turns ({', '.join(f'{actions.count(a)} {a}' for a in sorted(set(ACTIONS)))}), no difference")


@pytest.mark.parametrize("commits", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_writers_at_the_same_time_lose_nothing(shared, commits):
    given, java = shared
    catalog, name = open_catalog(options=given), f"both{commits}.t"
    catalog.create_database(f"both{commits}")
    table = catalog.create_table(name, LOG)
    failures = []

    def by_java():
        try:
            for n in range(commits):
                java.call("write", table=name, rows=[["+I", {"n": n, "who": "java"}]])
        except Exception as error:
            failures.append(error)

    writer = threading.Thread(target=by_java)
    writer.start()
    for n in range(commits):
        table.write(pa.table({"n": [n], "who": ["python"]}))
    writer.join()
    assert not failures
    expected = sorted((n, who) for n in range(commits) for who in ("java", "python"))
    assert sorted((row["n"], row["who"]) for row in table.to_arrow().to_pylist()) == expected
    assert sorted(tuple(row[1:]) for row in java.call("read", table=name)["rows"]) == expected
    snapshots = list(table.snapshots())
    assert [snapshot.id for snapshot in snapshots] == list(range(1, 2 * commits + 1))
    switches = sum(one.commit_user != other.commit_user for one, other in itertools.pairwise(snapshots))
    print(f"{commits} commits of each engine, {switches} changes of the writer, nothing lost")
