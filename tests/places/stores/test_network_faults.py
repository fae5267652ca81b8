"""Each request of a table's operations fails in the ways networks fail: no commit is lost, none is applied twice."""

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import PaimonError
from paimon_core.schema.change import SetOption
from tests.support.places.proxy import MODES, FaultyProxy, faulty_proxy

pytestmark = pytest.mark.more

COLUMNS = pa.schema([pa.field("id", pa.int64(), False), pa.field("v", pa.string())])
SCHEMA = Schema(COLUMNS, primary_keys=["id"], options={"bucket": "1", "write-only": "true"})


@pytest.fixture
def proxy(store, ports):
    with faulty_proxy(ports[store.name]) as found:
        yield found


@pytest.fixture
def path(root, options):
    path = f"{root}/wh/d.db/t"
    table = Table.create(path, SCHEMA, options)
    for number in (1, 2):
        table.write(batch(-number))
    return path


def batch(number):
    return pa.table({"id": [number], "v": [f"v{number}"]}, schema=COLUMNS)


def attempt(operation: Callable[[], object]) -> bool:
    """Return True if an operation succeeds; any failure is an OSError or an error of the engine."""
    try:
        operation()
    except (OSError, PaimonError):
        return False
    return True


def rows(path, options) -> Counter:
    return Counter(Table.open(path, options).to_arrow()["id"].to_pylist())


def points(store_name: str, proxy: FaultyProxy, mode, operation: Callable[[int], None]) -> int:
    """Run an operation with its n-th request failing, for n = 0, 1, ... until no request fails; return the last n."""
    number = 0
    while True:
        proxy.arm(mode, lambda n, line, at=number: n == at)
        operation(number)
        proxy.disarm()
        if not proxy.failed:
            return number
        number += 1 if store_name != "oss" else 5  # the stand-in runs in every run


@pytest.mark.parametrize("mode", ["drop", *(pytest.param(m, marks=pytest.mark.more) for m in MODES[1:])])
def test_commits_survive_fault_at_every_request(store, proxy, path, options, mode):
    through = dict(store.options(proxy.port))
    expected = rows(path, options)

    def commit(number):
        acknowledged = attempt(lambda: Table.open(path, through).write(batch(number)))
        proxy.disarm()
        found = rows(path, options)
        assert max(found.values()) == 1
        assert found.keys() - {number} == expected.keys()
        assert number in found or not acknowledged
        expected.update(found.keys() - expected.keys())
        failed = proxy.failed[:1]
        resumed = any("upload_id=" in line for line in failed)  # gcsfs cannot resume an upload that has ended
        assert acknowledged or mode == "412" or resumed, (failed, "a single fault is retried")
        attempt(lambda: Table.open(path, options).write(batch(number)))
        expected[number] = 1

    assert points(store.name, proxy, mode, commit) > 4
    snapshots = [s.id for s in Table.open(path, options).snapshots()]
    assert snapshots == list(range(1, len(snapshots) + 1))


@pytest.mark.more
@pytest.mark.parametrize("mode", MODES)
def test_reads_and_compactions_survive_fault_at_every_request(store, proxy, path, options, mode):
    through = dict(store.options(proxy.port))

    def read(number):
        found = []
        if attempt(lambda: found.append(Counter(Table.open(path, through).to_arrow()["id"].to_pylist()))):
            assert found == [{-1: 1, -2: 1}]

    def compact(number):
        attempt(lambda: Table.open(path, through).compact(full=True))
        proxy.disarm()
        assert rows(path, options) == {-1: 1, -2: 1}
        Table.open(path, options).write(batch(-1))  # something to compact

    assert points(store.name, proxy, mode, read) > 4
    assert points(store.name, proxy, mode, compact) > 4


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
    assert rows(path, options) == {1: 1, 2: 1}
    assert [s.id for s in Table.open(path, options).snapshots()] == [1, 2]
