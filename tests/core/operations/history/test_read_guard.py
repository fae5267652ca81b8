"""A tag protects a planned read from expiry."""

from datetime import datetime

import pytest

from paimon_core.operations.history.read_guard import PREFIX, protect_read
from tests.support.tables import keyed_table, orders

GUARD = "scan.plan-auto-tag-for-read.time-retained"


@pytest.fixture
def table(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    table.write(orders((1, "a", 1)))
    return table


def names(table):
    return [tag.name for tag in table.tags.list()]


def expire(table):
    table.write(orders((1, "b", 1)))
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than="9999-01-01")


def test_rows_outlive_their_snapshot_until_read_ends(table):
    guarded = table.with_options({GUARD: "1 h"})
    batches = guarded.to_batches()
    first = next(batches)
    (tag,) = table.tags.list()
    assert tag.name.startswith(f"{PREFIX}1-")
    assert tag.expires > datetime.now()
    expire(table)
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 1
    assert names(table) == []
    assert guarded.to_arrow().column("v").to_pylist() == ["b"]
    assert sum(batch.num_rows for batch in guarded.to_batches(limit=1)) == 1
    assert names(table) == []


def test_splits_of_planned_read_stay_readable_for_their_time(table):
    guarded = table.with_options({GUARD: "1 h"})
    scan = guarded.scan()
    tag = protect_read(scan.store, scan.snapshot)
    splits = scan.plan().splits
    expire(table)
    assert [batch.num_rows for split in splits for batch in guarded.reader().to_batches(split)] == [1]
    assert protect_read(scan.store, tag.snapshot) is None, "the snapshot has expired, and the tag has its files"
    assert table.tags.expire(older_than="9999-01-01") == [tag.name]


def test_nothing_is_written_without_option(table):
    table.to_arrow()
    assert protect_read(table.store, table.snapshot()) is None
    assert names(table) == []
    empty = table.with_options({GUARD: "1 h"})
    assert protect_read(empty.store, None) is None
