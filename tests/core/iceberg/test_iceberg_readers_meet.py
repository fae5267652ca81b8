"""Iceberg readers while commits, compactions and expiries run: each read returns the rows of one commit."""

from threading import Thread

import pytest
from pyiceberg.table import StaticTable

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import ORDERS, orders

OPTIONS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.previous-versions-max": "20",
    "metadata.iceberg.compaction.min.file-num": "2",
    "metadata.iceberg.compaction.max.file-num": "3",
    "snapshot.num-retained.min": "20",
    "snapshot.num-retained.max": "20",
}


def commit(path: str, count: int, errors: list[BaseException]) -> None:
    """Commit two rows at a time; compact after every third commit."""
    try:
        for number in range(1, count):
            table = Table.open(path)
            table.write(orders((2 * number, "v", number), (2 * number + 1, "v", number)))
            if number % 3 == 0:
                table.compact(full=True)
    except BaseException as error:
        errors.append(error)


@pytest.mark.parametrize("count", [pytest.param(8, marks=pytest.mark.more), pytest.param(60, marks=pytest.mark.slow)])
def test_each_read_returns_rows_of_one_commit(tmp_path, count):
    path, errors, seen = f"{tmp_path}/t", [], [0]
    table = Table.create(path, Schema(ORDERS, options=OPTIONS))
    table.write(orders((0, "v", 0), (1, "v", 0)))
    writer = Thread(target=commit, args=(path, count, errors))
    writer.start()
    while writer.is_alive():
        opened = StaticTable.from_metadata(path)  # by the hint, as a reader without a catalog does
        ids = sorted(opened.scan(selected_fields=("id",)).to_arrow().column("id").to_pylist())
        assert ids == [*range(len(ids))]
        assert len(ids) % 2 == 0
        seen.append(len(ids))
    writer.join()
    assert not errors
    assert seen == sorted(seen), "no read goes back behind an earlier one"
    assert StaticTable.from_metadata(path).scan().to_arrow().num_rows == 2 * count
