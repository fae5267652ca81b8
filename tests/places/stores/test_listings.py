"""Directories with many names on every object store."""

import pytest

from tests.support.places.many_names import check_many_names
from tests.support.places.network import Link
from tests.support.places.proxy import faulty_proxy

FEW, MANY = 30, 100_000
DELETED = 5500
"""Files of a directory that is deleted: several batches of every store, and two pages of its listing."""
PAGE = 7


@pytest.fixture
def link(store, ports, root, options):
    with faulty_proxy(ports[store.name]) as proxy:
        found = Link(proxy, f"{root}/t", options, f"{root}/t", dict(store.options(proxy.port)))
        found.create()
        yield found


@pytest.mark.parametrize(("count", "deleted"), [(FEW, FEW), pytest.param(MANY, DELETED, marks=pytest.mark.more)])
def test_many_names(store, ports, link, count, deleted, monkeypatch):
    page = store.page
    if store.name == "oss" and count == FEW:
        page = PAGE
        monkeypatch.setattr("paimon_core.fileio.oss_client._PAGE", PAGE)

    def fill(directory, names):
        store.fill(ports[store.name], directory.partition("://")[2], names)

    print(f"{store.name}: {check_many_names(link, fill, count, deleted, -(-count // page))}")
