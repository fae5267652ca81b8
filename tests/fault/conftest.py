"""The store of the fault tests: memory, or with ``PAIMON_TEST_STORE`` one of the stores of tests/support/places.

The names are ``s3``, ``gcs``, ``azure``, ``oss`` and ``hdfs``. Then every `MemoryIO` of these tests, and of the tests'
own subclasses, has its files on that store. ``make test-stores`` runs them on each.
"""

import os
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from paimon_core.fileio.fileio import FileIO
from tests.support import faulty_io
from tests.support.places.store_io import store_io

STORE = os.environ.get("PAIMON_TEST_STORE", "")
_SERVERS = ExitStack()


@cache
def _opened() -> tuple[FileIO, str]:
    """Return the FileIO of the store, whose server the first call starts, and a directory on it."""
    from tests.support.places.fake_gcs import make_bucket  # noqa: PLC0415 - the clients of stores are slow to import
    from tests.support.places.hdfs import QUICK, hdfs_server  # noqa: PLC0415
    from tests.support.places.stores import BY_NAME  # noqa: PLC0415

    if STORE == "hdfs":
        directory = Path(_SERVERS.enter_context(TemporaryDirectory(prefix="hdfs-")))
        root = f"{_SERVERS.enter_context(hdfs_server(directory, QUICK))[0]}/{uuid4().hex[:12]}"
        return FileIO.of(root), root
    store = BY_NAME[STORE]
    root = f"{store.root}/{uuid4().hex[:12]}"
    if STORE == "gcs":
        root = f"gs://{uuid4().hex}"
        make_bucket(_port(), root.removeprefix("gs://"))
    return FileIO.of(root, store.options(_port())), root


@cache
def _port() -> int:
    """Start the server of the store; return its port."""
    from tests.support.places.stores import BY_NAME  # noqa: PLC0415

    return _SERVERS.enter_context(BY_NAME[STORE].start())


if STORE:  # before the modules of the tests import the name
    faulty_io.MemoryIO = store_io(_opened)  # type: ignore[misc]


@pytest.fixture(scope="session", autouse=True)
def _servers():
    yield
    _SERVERS.close()


@pytest.fixture(autouse=True)
def _emptied():
    """Give each test a bucket of its own if the server looks at every object of a bucket for each request."""
    yield
    if STORE == "gcs":
        _opened.cache_clear()


def pytest_report_header():
    """Name the store of the run."""
    return f"store of tests/fault: {STORE or 'memory'}"
