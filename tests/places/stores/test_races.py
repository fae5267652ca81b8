"""Processes commit to one table of a store at the same time: every acknowledged commit is in the table exactly once."""

import time
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest

from paimon_core import Table
from tests.support.places.racer import COLUMNS, SCHEMA, STEP, Racer

pytestmark = pytest.mark.more


def race(path: str, options: dict[str, str], commits: Sequence[int]) -> list[Racer]:
    """Create a table, and start one writer for each number of commits; all begin together."""
    Table.create(path, SCHEMA, options)
    racers = [Racer(path, options, n, count) for n, count in enumerate(commits)]
    for racer in racers:
        racer.wait_ready()
    for racer in racers:
        racer.go()
    return racers


def rows(path: str, options: dict[str, str]) -> Counter:
    return Counter(Table.open(path, options).to_arrow()["id"].to_pylist())


def check_history(path: str, options: dict[str, str]) -> int:
    """Check that the snapshots are consecutive, and that each adds one row; return their number."""
    table = Table.open(path, options)
    snapshots = list(table.snapshots())
    assert [s.id for s in snapshots] == list(range(1, len(snapshots) + 1))
    assert [s.total_record_count for s in snapshots] == list(range(1, len(snapshots) + 1))
    return len(snapshots)


@pytest.mark.parametrize("writers", [2, pytest.param(8, marks=pytest.mark.more)])
def test_sixty_commits_of_racing_processes(root, options, writers, store):
    path = f"{root}/wh/d.db/t"
    total = 60 if store.name != "oss" else 8
    racers = race(path, options, [total // writers + (n < total % writers) for n in range(writers)])
    for racer in racers:
        assert racer.join() == 0, racer.errors()
    acknowledged = Counter(row for racer in racers for row in racer.acknowledged)
    assert sum(acknowledged.values()) == total
    assert rows(path, options) == acknowledged
    assert check_history(path, options) == total


@pytest.mark.more
def test_killed_writer_leaves_table_that_others_write_to(root, options):
    path = f"{root}/wh/d.db/t"
    racers = race(path, options, [1000, 8])
    while len(racers[0].acknowledged) < 3:
        assert racers[0].process.poll() is None, racers[0].errors()
        time.sleep(0.01)
    racers[0].process.kill()
    assert racers[0].join() == -9
    assert racers[1].join() == 0, racers[1].errors()
    killed, other = ([*racer.acknowledged] for racer in racers)
    found = rows(path, options)
    assert max(found.values()) == 1
    at_most = [*killed, len(killed)]  # the last commit may be in the table without an acknowledgement
    assert {*killed, *other} <= found.keys() <= {*at_most, *other}
    Table.open(path, options).write(pa.table({"id": [5 * STEP]}, schema=COLUMNS))
    assert check_history(path, options) == len(found) + 1
