"""The engine's tests of faults at every call of FileIO, with the table on each store instead of in memory."""

import pytest

from paimon_core.fileio.fileio import FileIO
from tests.fault import test_commit_faults
from tests.support.faulty_io import MODES
from tests.support.places.store_io import store_io
from tests.support.places.stores import BY_NAME

COMMITS = ("append", "upsert", "overwrite", "compact", "delete, marking rows")
"""Cases that run with `make test-places`; the other cases take minutes."""


@pytest.fixture(autouse=True)
def on_store(monkeypatch, root, options):
    """Let tests make their tables on the store."""
    io = FileIO.of(root, options)
    monkeypatch.setattr(test_commit_faults, "MemoryIO", store_io(lambda: (io, root)))


def marked(cases):
    return [pytest.param(name, marks=[] if name in COMMITS else [pytest.mark.slow]) for name in cases]


SERVERS = [pytest.param(name, marks=pytest.mark.places) for name in BY_NAME if name != "oss"]


@pytest.mark.drawn
@pytest.mark.parametrize("store", [*SERVERS, pytest.param("oss", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", marked(test_commit_faults.CASES))
def test_commits(name, mode):
    test_commit_faults.test_survives_a_fault_at_every_call(name, mode)


@pytest.mark.parametrize("landed", [True, False])
def test_lost_answer_of_snapshot(landed):
    test_commit_faults.test_commit_finds_its_snapshot_if_answer_was_lost(landed)
