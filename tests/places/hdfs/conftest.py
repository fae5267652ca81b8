"""One HDFS for the whole session, and a directory of it for each test."""

import re

import pytest

from tests.support.places.hdfs import class_path, hdfs_server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Yield the URL and the process id of an HDFS."""
    try:
        class_path()
    except RuntimeError as error:
        pytest.skip(f"HDFS cannot be installed: {error}")
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


@pytest.fixture
def root(cluster, request):
    """Return a URL that no other test uses."""
    return f"{cluster[0]}/{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())}"
