"""Directories with many names on every object store."""

import pytest

from tests.support.places.fake_gcs import fake_gcs
from tests.support.places.many_names import check_many_names
from tests.support.places.network import Link
from tests.support.places.proxy import faulty_proxy

FEW, SEVERAL_PAGES, MANY = 30, 11_000, 100_000
DELETED = 1100
"""Files of a directory that is deleted: more than one batch of every store."""
PAGE = 7


@pytest.fixture
def port(store, ports):
    if store.name != "gcs":
        yield ports[store.name]
        return
    with fake_gcs(on_disk=True) as found:
        yield found


@pytest.fixture
def link(store, port, root):
    with faulty_proxy(port) as proxy:
        found = Link(proxy, f"{root}/t", dict(store.options(port)), f"{root}/t", dict(store.options(proxy.port)))
        found.create()
        yield found


@pytest.mark.parametrize(
    ("count", "deleted"),
    [
        (FEW, FEW),
        pytest.param(SEVERAL_PAGES, DELETED, marks=pytest.mark.more),
        pytest.param(MANY, DELETED, marks=pytest.mark.slow),  # two servers look at every name for each page
    ],
)
def test_many_names(store, port, link, count, deleted, monkeypatch):
    page = store.page
    if store.name == "oss" and count == FEW:
        page = PAGE
        monkeypatch.setattr("paimon_core.fileio.oss_client._PAGE", PAGE)

    def fill(directory, names):
        store.fill(port, directory.partition("://")[2], names)

    print(f"{store.name}: {check_many_names(link, fill, count, deleted, -(-count // page))}")
