"""Each call to the name node fails in the ways networks fail: no commit is lost, none is applied twice."""

import pytest

from tests.support.places import network
from tests.support.places.many_names import by_client, check_many_names
from tests.support.places.network import Link
from tests.support.places.rpc_proxy import RPC_MODES, rpc_proxy

pytestmark = [pytest.mark.places, pytest.mark.more]

SHORT, LONG = 5, 2
"""Every such call fails; a commit takes seconds."""


@pytest.fixture
def link(cluster, root):
    with rpc_proxy(int(cluster[0].rpartition(":")[2])) as proxy:
        far = root.replace(cluster[0], f"hdfs://localhost:{proxy.port}")
        found = Link(proxy, f"{root}/d.db/t", {}, f"{far}/d.db/t", {})
        found.create()
        yield found


@pytest.mark.parametrize("step", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", RPC_MODES)
def test_commits_survive_fault_at_every_call(link, mode, step):
    retried = mode == "delay"  # hdfs-native does not repeat calls of a file that is written
    assert network.commits(link, mode, step, retried) > 1
    report("commits", mode, link)


@pytest.mark.slow
@pytest.mark.parametrize("mode", RPC_MODES)
@pytest.mark.parametrize("operation", [network.reads, network.compactions, network.expiries])
def test_operations_survive_fault_at_every_call(link, mode, operation):
    assert operation(link, mode, SHORT) > 1
    report(operation.__name__, mode, link)


@pytest.mark.parametrize("count", [30, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_names(link, count):
    print(f"hdfs: {check_many_names(link, by_client(link), count, 30, 1)}")


def report(operation, mode, link):
    print(f"hdfs: {operation}, {mode}: {len(link.seconds)} attempts, at most {max(link.seconds):.1f} s")
