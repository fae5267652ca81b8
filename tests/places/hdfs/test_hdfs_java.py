"""Paimon's Java engine and this one on the same HDFS: in turns, and at the same time without a lock."""

import itertools
import threading

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from tests.conformance.judge import Judge, unavailable

pytestmark = [pytest.mark.places, pytest.mark.java]

KEYED = Schema(
    pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())]),
    primary_keys=["k"],
    options={"bucket": "1"},
)
LOG = Schema(pa.schema([pa.field("n", pa.int64()), pa.field("who", pa.string())]))


@pytest.fixture(scope="module")
def java(cluster):
    """Yield two Java engines over one warehouse on HDFS, and its URL."""
    reason = unavailable()
    if reason:
        pytest.skip(f"no Java engine: {reason}")
    url = f"{cluster[0]}/java"
    with Judge(url, heap="300m", jvm=("-XX:TieredStopAtLevel=1",)) as first:
        yield first, url


def read_by_java(judge, name):
    return sorted(tuple(row[1:]) for row in judge.call("read", table=name)["rows"])


@pytest.mark.parametrize("turns", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_engines_take_turns(java, turns):
    judge, url = java
    name = f"turns{turns}.t"
    catalog = FileSystemCatalog(url)
    catalog.create_database(f"turns{turns}")
    catalog.create_table(name, KEYED)
    expected = {}
    for turn in range(turns):
        table = Table.open(f"{url}/turns{turns}.db/t")
        mine = {turn: f"python {turn}", turn + 1: f"python {turn}"}
        table.write(pa.table({"k": list(mine), "v": list(mine.values())}))
        expected |= mine
        assert read_by_java(judge, name) == sorted(expected.items())
        theirs = {turn + 1: f"java {turn}", 1000 + turn: f"java {turn}"}
        judge.call("write", table=name, rows=[["+I", {"k": k, "v": v}] for k, v in theirs.items()])
        expected |= theirs
        assert {row["k"]: row["v"] for row in table.to_arrow().to_pylist()} == expected
        if turn % 10 == 3:
            table.maintenance.compact(full=True)
    print(f"{turns} turns of each engine, no difference")


@pytest.mark.parametrize("commits", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_engines_write_at_the_same_time_without_a_lock(java, commits):
    judge, url = java
    name = f"both{commits}.t"
    catalog = FileSystemCatalog(url)
    catalog.create_database(f"both{commits}")
    table = catalog.create_table(name, LOG)
    failures = []

    def by_java():
        try:
            for n in range(commits):
                judge.call("write", table=name, rows=[["+I", {"n": n, "who": "java"}]])
        except Exception as error:
            failures.append(error)

    writer = threading.Thread(target=by_java)
    writer.start()
    ours = Table.open(table.path)
    for n in range(commits):
        ours.write(pa.table({"n": [n], "who": ["python"]}))
    writer.join()
    assert not failures
    expected = sorted((n, who) for n in range(commits) for who in ("java", "python"))
    assert sorted((row["n"], row["who"]) for row in table.to_arrow().to_pylist()) == expected
    assert read_by_java(judge, name) == expected
    users = [snapshot.commit_user for snapshot in table.snapshots()]
    switches = sum(one != other for one, other in itertools.pairwise(users))
    print(f"{commits} commits of each engine, {switches} changes of the writer, nothing lost")
