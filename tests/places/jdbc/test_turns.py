"""Java and this engine share JDBC catalogs for hundreds of turns, on a local disk and on an object store."""

import random
from functools import partial

import pytest

from paimon_core import open_catalog
from tests.conformance.judge import Judge, unavailable
from tests.support.places.jdbc_judge import drivers, s3_jar
from tests.support.places.proxy import faulty_proxy
from tests.support.places.turns import (
    Players,
    commit_while_java_publishes,
    held_by_disk,
    held_by_proxy,
    write_at_the_same_time,
)
from tests.support.places.versitygw import java_options, options, versitygw

pytestmark = [pytest.mark.places, pytest.mark.java]


@pytest.fixture(scope="module", params=["disk", "s3"])
def shared(request, database, tmp_path_factory):
    """The options of a catalog, Java's catalog with the same options, and what holds up a publication of Java."""
    reason = unavailable()
    if reason:
        pytest.skip(f"no Java engine: {reason}")
    given = {**database, "metastore": "jdbc", "catalog-key": f"turns{random.randrange(10**9)}"}
    given |= {"lock.enabled": "true", "lock-check-max-sleep": "200ms"}
    if request.param == "disk":
        warehouse, holds = str(tmp_path_factory.mktemp("turns")), tmp_path_factory.mktemp("holds")
        with Judge(warehouse, heap="500m", options=given, jars=drivers(), disk=str(holds)) as java:
            yield {**given, "warehouse": warehouse}, java, partial(held_by_disk, holds)
        return
    del given["lock.enabled"]  # on object stores, both engines take the lock unless an option says false
    with versitygw() as port, faulty_proxy(port) as proxy:
        warehouse = "s3://bucket/wh"
        far = {**given, **java_options(proxy.port)}
        with Judge(warehouse, heap="500m", options=far, jars=[*drivers(), s3_jar()]) as java:
            yield {**given, **options(port), "warehouse": warehouse}, java, partial(held_by_proxy, proxy)


@pytest.mark.parametrize("turns", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_turns(shared, turns):
    given, java, _ = shared
    players = Players(open_catalog(options=given), java, f"turns{turns}", renames="://" not in given["warehouse"])
    print(players.play_turns(turns, seed=turns))


@pytest.mark.parametrize("commits", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_writers_at_the_same_time_lose_nothing(shared, commits):
    given, java, _ = shared
    print(write_at_the_same_time(open_catalog(options=given), java, f"both{commits}", commits))


def test_lock_keeps_snapshots_that_java_would_replace(shared):
    given, java, hold = shared
    commit_while_java_publishes(open_catalog(options=given), java, hold, "between", rounds=2)
