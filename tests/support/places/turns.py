"""Java and this engine share a catalog: they take turns, or write to one table at the same time."""

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from paimon_core import Schema, Table
from paimon_core.catalog.catalog import Catalog
from tests.conformance.judge import Judge, JudgeError
from tests.support.places.proxy import FaultyProxy
from tests.support.servers import wait_until

_COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())])
_KEYED = Schema(_COLUMNS, primary_keys=["k"], options={"bucket": "1"})
_LOG = Schema(pa.schema([pa.field("n", pa.int64()), pa.field("who", pa.string())]))
_ACTIONS = ("create", "rename", "drop", "compact", *["write"] * 9)
_HELD_SECONDS = 2.0
LOST = "there maybe exist commit conflicts"
"""Java's words for a commit that lost as often as `commit.max-retries` allows, and is not in the table."""


def _rows_of(table: Table) -> dict[int, str]:
    return {row["k"]: row["v"] for row in table.to_arrow().to_pylist()}


class Players:
    """The two engines, and the rows that each table must have; each action is one turn of one engine."""

    def __init__(self, catalog: Catalog, java: Judge, database: str, *, renames: bool = True) -> None:
        """Create the database. ``renames``: this engine renames tables, which it refuses on object stores."""
        self.catalog, self.java, self.database, self.renames = catalog, java, database, renames
        self.catalog.create_database(database)
        self.expected: dict[str, dict[int, str]] = {}

    def play_turns(self, turns: int, seed: int) -> str:
        """Play, and check all tables at the end; return a sentence that counts the actions."""
        dice = random.Random(seed)
        actions = [self.play(dice, turn) for turn in range(turns)]
        for name in self.expected:
            for by_java in (True, False):
                self.check(name, by_java)
            assert self.catalog.table(f"{self.database}.{name}").verify().sound
        counts = ", ".join(f"{actions.count(action)} {action}" for action in sorted(set(_ACTIONS)))
        return f"{turns} turns ({counts}), no difference"

    def play(self, dice: random.Random, turn: int) -> str:
        """Let one engine act, and check that the other one sees the result."""
        names = sorted(self.expected)
        ours, action = dice.random() < 0.5, dice.choice(_ACTIONS)
        free = [name for name in "abcd" if name not in self.expected]
        if not names or (action in ("create", "rename") and not free):
            action = "write" if names else "create"
        ours = (ours and (action != "rename" or self.renames)) or action == "compact"
        name = dice.choice(free) if action == "create" else dice.choice(names)
        full = f"{self.database}.{name}"
        if action == "create":
            if ours:
                self.catalog.create_table(full, _KEYED)
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
        elif action == "compact":  # the other engine reads its files
            self.catalog.table(full).compact(full=True)
        else:
            rows = {dice.randrange(50): f"{turn}-{number}" for number in range(3)}
            if ours:
                self.catalog.table(full).write(pa.table({"k": [*rows], "v": [*rows.values()]}, _COLUMNS))
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
            found = _rows_of(self.catalog.table(full))
        assert found == self.expected[name]


def write_at_the_same_time(catalog: Catalog, java: Judge, database: str, commits: int) -> str:
    """Let both engines commit to one table, and check that nothing is lost; return a sentence with counts."""
    name = f"{database}.t"
    catalog.create_database(database)
    table = catalog.create_table(name, _LOG)
    failures: list[Exception] = []
    lost: list[int] = []  # Java's rows, once for each time that Java gave up and wrote the row again

    def by_java() -> None:
        try:
            for n in range(commits):
                while not _written(java, name, n):
                    lost.append(n)
        except Exception as error:
            failures.append(error)

    writer = threading.Thread(target=by_java)
    writer.start()
    for n in range(commits):
        table.write(pa.table({"n": [n], "who": ["python"]}))
    writer.join()
    assert not failures, failures
    expected = sorted((n, who) for n in range(commits) for who in ("java", "python"))
    assert sorted((row["n"], row["who"]) for row in table.to_arrow().to_pylist()) == expected
    assert sorted(tuple(row[1:]) for row in java.call("read", table=name)["rows"]) == expected
    snapshots = list(table.snapshots())
    assert [snapshot.id for snapshot in snapshots] == list(range(1, 2 * commits + 1))
    writers = [str(snapshot.writer_version).startswith("pyspark") for snapshot in snapshots]
    switches = sum(one != other for one, other in itertools.pairwise(writers))
    return (
        f"{commits} commits of each engine, {switches} changes of the writer, nothing lost; "
        f"Java gave up and wrote again {len(lost)} times"
    )


@dataclass(frozen=True, slots=True)
class Held:
    """A publication of Java that waits after Java has seen that its snapshot is free."""

    arrived: Callable[[], bool]
    """True once Java waits."""
    let_go: Callable[[], None]


Hold = Callable[[str], AbstractContextManager[Held]]
"""Hold up the publication of a snapshot, given the name of its file."""


def commit_while_java_publishes(catalog: Catalog, java: Judge, hold: Hold, database: str, rounds: int) -> None:
    """Commit after Java has seen that its snapshot is free, and before Java's rename creates it: nothing is lost.

    Java does both under the lock of the catalog, so the commit waits for Java. Without the lock, Java's rename replaces
    the snapshot of the commit. ``hold``: holds up the rename.
    """
    name = f"{database}.t"
    catalog.create_database(database)
    table = catalog.create_table(name, _LOG)
    for n in range(rounds):
        writer = table.writer()
        writer.write(pa.table({"n": [n], "who": ["python"]}))
        messages = writer.prepare_commit()
        with ThreadPoolExecutor(2) as pool, hold(f"snapshot-{2 * n + 1}") as held:
            written = pool.submit(java.call, "write", table=name, rows=[["+I", {"n": n, "who": "java"}]])
            wait_until(held.arrived, seconds=60)
            committed = pool.submit(table.committer().commit, messages)
            wait([committed], _HELD_SECONDS)
            held.let_go()
            committed.result()
            written.result()
        assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, 2 * n + 3))
    expected = [(n, who) for n in range(rounds) for who in ("java", "python")]
    assert sorted((row["n"], row["who"]) for row in table.to_arrow().to_pylist()) == expected


@contextmanager
def held_by_proxy(proxy: FaultyProxy, snapshot: str) -> Iterator[Held]:
    """Hold up the request of Java that creates or replaces a snapshot. ``proxy``: Java's way to an object store."""
    arrived, go = threading.Event(), threading.Event()

    def delays(number: int, line: str) -> bool:
        if not arrived.is_set() and line.startswith("PUT ") and line.endswith(f"/snapshot/{snapshot}"):
            arrived.set()
            go.wait(60)
        return False  # the request does not fail

    proxy.arm("delay", delays)
    try:
        yield Held(arrived.is_set, go.set)
    finally:
        go.set()
        proxy.disarm()


@contextmanager
def held_by_disk(holds: Path, snapshot: str) -> Iterator[Held]:
    """Hold up the rename of Java that creates a snapshot. ``holds``: the directory ``disk`` of the Judge."""
    asked, held = holds / snapshot, holds / f"{snapshot}.held"
    asked.touch()
    try:
        yield Held(held.exists, held.unlink)
    finally:
        asked.unlink(missing_ok=True)
        held.unlink(missing_ok=True)


def _written(java: Judge, table: str, n: int) -> bool:
    """Let Java write a row; return False if its commit lost too often. Another failure is raised."""
    try:
        java.call("write", table=table, rows=[["+I", {"n": n, "who": "java"}]])
    except JudgeError as error:
        if not any(LOST in text for text in (error.error, *error.causes)):
            raise
        return False
    return True
