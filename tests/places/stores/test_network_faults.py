"""Each request of a table's operations fails in the ways networks fail: no commit is lost, none is applied twice."""

from collections import Counter
from collections.abc import Callable

import pytest

from paimon_core import Table
from paimon_core.schema.change import SetOption
from tests.support import draws
from tests.support.places import network
from tests.support.places.network import SCHEMA, Link, batch
from tests.support.places.proxy import MODES, faulty_proxy

pytestmark = pytest.mark.more

OUTAGE_SECONDS = 240.0
"""The longest time after which a commit without a network ends."""


@pytest.fixture
def proxy(store, ports):
    with faulty_proxy(ports[store.name]) as found:
        yield found


@pytest.fixture
def link(store, proxy, root, options):
    path = f"{root}/wh/d.db/t"
    found = Link(proxy, path, options, path, dict(store.options(proxy.port)))
    found.create()
    return found


def step(store):
    return 5 if store.name == "oss" else 1  # the stand-in runs in every run


@pytest.mark.parametrize("mode", ["drop", *(pytest.param(m, marks=pytest.mark.more) for m in MODES[1:])])
def test_commits_survive_fault_at_every_request(store, link, mode):
    assert network.commits(link, mode, step(store)) > 1
    report("commits", store, mode, link)


@pytest.mark.more
@pytest.mark.drawn
@pytest.mark.parametrize(
    "mode", ["drop", *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES if mode != "drop")]
)
@pytest.mark.parametrize("operation", [network.reads, network.compactions, network.expiries])
def test_operations_survive_fault_at_every_request(store, link, mode, operation):
    assert operation(link, mode, max(step(store), draws.step())) > 0
    report(operation.__name__, store, mode, link)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["reset", "503"])
def test_outage_ends_in_an_error(store, link, mode):
    requests = network.outages(link, mode, [0.0, 0.3, 0.6, 0.9], OUTAGE_SECONDS)
    assert requests > 4
    report("outages", store, mode, link)


def report(operation, store, mode, link):
    print(f"{store.name}: {operation}, {mode}: {len(link.seconds)} attempts, at most {max(link.seconds):.1f} s")


@pytest.mark.parametrize("mode", ["drop", "412"])
def test_lost_answers_to_exclusive_creations_are_recognised(store, proxy, root, options, mode):
    """The client repeats a put, and its own file is the taken key: schemas, snapshots and tags compare the content."""
    if mode == "412" and store.name in ("oss", "azure"):
        pytest.skip("the answer for a taken key is 409")
    through = dict(store.options(proxy.port))
    path = f"{root}/wh/d.db/created"

    def losing(name: str, operation: Callable[[], object]) -> None:
        lost = []

        def fails(number, line):
            hit = not lost and name in line and line.startswith(("PUT", "POST"))
            lost.extend([line] if hit else [])
            return hit

        proxy.arm(mode, fails)
        operation()
        assert proxy.failed, (name, proxy.seen)
        proxy.disarm()

    def named(name: str) -> str:
        return "ifGenerationMatch=0" if store.name == "gcs" else name  # the body names the object

    losing(named("schema-0"), lambda: Table.create(path, SCHEMA, through))
    losing(named("schema-1"), lambda: Table.open(path, through).alter([SetOption("snapshot.time-retained", "2 h")]))
    table = Table.open(path, options)
    assert table.schema.id == 1
    table.write(batch(1))
    losing(named("tag-v1"), lambda: Table.open(path, through).tags.create("v1"))
    assert [tag.name for tag in Table.open(path, options).tags.list()] == ["v1"]
    writer = Table.open(path, through).writer()
    writer.write(batch(2))
    messages = writer.prepare_commit()
    losing(named("snapshot-2"), lambda: Table.open(path, through).committer().commit(messages))
    assert Counter(Table.open(path, options).to_arrow()["id"].to_pylist()) == {1: 1, 2: 1}
    assert [s.id for s in Table.open(path, options).snapshots()] == [1, 2]
