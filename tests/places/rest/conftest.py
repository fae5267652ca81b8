"""Paimon's own REST server, once for all tests of the REST catalog."""

import pytest

from paimon_core import open_catalog
from tests.support.places.rest import rest_server, unavailable


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    reason = unavailable()
    if reason:
        pytest.skip(f"the REST server cannot be installed: {reason}")
    with rest_server(tmp_path_factory.mktemp("rest")) as running:
        yield running


@pytest.fixture
def catalog(server):
    catalog = open_catalog(options=server.options)
    catalog.create_database("db", ignore_if_exists=True)
    return catalog
