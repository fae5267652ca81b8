"""An explicit expiry takes more snapshots in each step, and deletes the same files as steps of equal size."""

import pytest

from paimon_core.operations.history import expire
from paimon_core.snapshot import retention
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import FaultyIO
from tests.support.tables import keyed_table, orders, rows_of
from tests.support.timeline import all_files, prolong

FUTURE = 1 << 50


def _written(path):
    table = keyed_table(path, bucket="1", **{"snapshot.expire.limit": "2", "write-only": "true"})
    for i in range(12):
        table.write(orders((i % 3, "v", i)))
        if i == 5:
            table.tags.create("fifth", 5)
        if i % 4 == 3:
            table.maintenance.compact()
    return table


@pytest.mark.parametrize("retained", [1, 4])
def test_growing_steps_delete_same_files(tmp_path, monkeypatch, retained):
    results = []
    for few_files in (0, 10_000):
        monkeypatch.setattr(expire, "_FEW_FILES", few_files)
        table = _written(tmp_path / f"of_{few_files}")
        expired = table.maintenance.expire_snapshots(FUTURE, retained, retained)
        assert len(expired.snapshots) == 14 - retained
        results.append(
            (expired.snapshots, expired.files, len(all_files(table.store.io, table.path)), rows_of(table.to_arrow()))
        )
    assert results[0] == results[1]


def test_number_of_listings_grows_slower_than_number_of_snapshots(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"snapshot.expire.limit": "2", "write-only": "true"})
    table.write(orders((1, "v", 1)))
    prolong(table.store, 300)
    io = FaultyIO(table.store.io)
    expired = Table(FileStore(io, table.path, table.schema)).maintenance.expire_snapshots(FUTURE, 1, 1)
    assert len(expired.snapshots) == 299
    assert sum(call == "list" and path.endswith("/snapshot") for call, path in io.log) < 25


def _listings(table, commits, *, consumes):
    """Commit, and return the number of listings of snapshots and of changelogs, and the largest numbers of both."""
    io = FaultyIO(table.store.io)
    committed, snapshots, changelogs = Table(FileStore(io, table.path, table.schema)), 0, 0
    for number in range(commits):
        committed.write(orders((number % 5, "v", number)))
        if consumes:
            table.consumers.reset("reader", max(table.store.snapshots.latest_id() - 60, 1))
        snapshots = max(snapshots, len(table.store.snapshots.ids()))
        changelogs = max(changelogs, len(table.store.changelogs.ids()))
    lists = [path.rpartition("/")[2] for call, path in io.log if call == "list"]
    return lists.count("snapshot"), lists.count("changelog"), snapshots, changelogs


@pytest.mark.parametrize(
    "kind", ["kept", *(pytest.param(kind, marks=pytest.mark.more) for kind in ("with changelogs", "held by consumer"))]
)
def test_expiry_of_many_snapshots_does_not_list_them_for_each_commit(tmp_path, monkeypatch, kind):
    options = {"snapshot.num-retained.min": "40", "snapshot.num-retained.max": "40"}
    if kind == "with changelogs":
        options |= {
            "changelog-producer": "input",
            "changelog.num-retained.min": "80",
            "changelog.num-retained.max": "80",
        }
    listed = {}
    for share in (1_000, 10):
        monkeypatch.setattr(retention, "LISTED_FOR_ONE", share)
        table = keyed_table(tmp_path / f"of_{share}", bucket="1", **options)
        held = kind == "held by consumer"
        _listings(table, 120, consumes=held)
        listed[share] = _listings(table, 40, consumes=held)
    often, seldom = listed[1_000], listed[10]
    assert seldom[0] <= often[0] / 3
    assert often[2] <= seldom[2] <= often[2] + 8
    if kind == "with changelogs":
        assert 0 < seldom[1] <= often[1] / 3
        assert seldom[3] <= often[3] + 10


def test_explicit_expiry_waits_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "LISTED_FOR_ONE", 1)
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for number in range(5):
        table.write(orders((1, "v", number)))
    assert table.maintenance.expire_snapshots(FUTURE, 4, 4).snapshots == (1,)
