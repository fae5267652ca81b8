"""Paimon's Java engine and this one on the same HDFS: in turns, and at the same time without a lock."""

import pytest

from paimon_core import FileSystemCatalog
from tests.conformance.judge import Judge, unavailable
from tests.support.places.turns import Players, write_at_the_same_time

pytestmark = [pytest.mark.places, pytest.mark.java]


@pytest.fixture(scope="module")
def shared(cluster):
    """A catalog on HDFS, and Java's catalog of the same warehouse."""
    reason = unavailable()
    if reason:
        pytest.skip(f"no Java engine: {reason}")
    url = f"{cluster[0]}/java"
    with Judge(url, heap="300m", jvm=("-XX:TieredStopAtLevel=1",)) as java:
        yield FileSystemCatalog(url), java


@pytest.mark.parametrize("turns", [8, pytest.param(80, marks=pytest.mark.slow)])
def test_turns(shared, turns):
    print(Players(*shared, f"turns{turns}").play_turns(turns, seed=turns))


@pytest.mark.parametrize("commits", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_writers_at_the_same_time_without_a_lock_lose_nothing(shared, commits):
    print(write_at_the_same_time(*shared, f"both{commits}", commits))
