"""The stores of these tests: one server each for all tests, and a new directory for each test."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.support.places.stores import BY_NAME, TestedStore


@pytest.fixture(scope="session")
def ports(request: pytest.FixtureRequest) -> Iterator[dict[str, int]]:
    """The port of each server that was started, by the name of its store."""
    found: dict[str, int] = {}
    request.session.stash[_STACK] = []
    yield found
    for started in reversed(request.session.stash[_STACK]):
        started.__exit__(None, None, None)


_STACK = pytest.StashKey[list]()


@pytest.fixture(
    params=[pytest.param(name, marks=[] if name == "oss" else [pytest.mark.places]) for name in BY_NAME],
    scope="session",
)
def store(request: pytest.FixtureRequest, ports: dict[str, int]) -> TestedStore:
    """A kind of store whose server runs."""
    found = BY_NAME[request.param]
    if found.name not in ports:
        started = found.start()
        ports[found.name] = started.__enter__()
        request.session.stash[_STACK].append(started)
    return found


@pytest.fixture
def root(store: TestedStore) -> str:
    """A directory of the store that is empty."""
    return f"{store.root}/{uuid4().hex[:12]}"


@pytest.fixture
def options(store: TestedStore, ports: dict[str, int]) -> dict[str, str]:
    """The storage options for the store."""
    return dict(store.options(ports[store.name]))
