"""Directories with many names on every object store."""

import pytest

from tests.support.places.many_names import check_many_names
from tests.support.places.network import Link
from tests.support.places.proxy import faulty_proxy

FEW, MANY = 30, 100_000
PAGE = 7


@pytest.fixture
def link(store, ports, root, options):
    with faulty_proxy(ports[store.name]) as proxy:
        found = Link(proxy, f"{root}/t", options, f"{root}/t", dict(store.options(proxy.port)))
        found.create()
        yield found


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_many_names(store, link, count, monkeypatch):
    if store.name == "oss" and count == FEW:
        monkeypatch.setattr("paimon_core.fileio.oss_client._PAGE", PAGE)
    print(f"{store.name}: {check_many_names(link, count)}")
