"""An explicit expiry takes more snapshots in each step, and deletes the same files as steps of equal size."""

import pytest

from paimon_core.operations.history import expire
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
