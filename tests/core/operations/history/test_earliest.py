"""The hint EARLIEST behind a gap of snapshots."""

from pathlib import Path

import pytest

from paimon_core import InvalidInputError, NotFoundError
from tests.support.tables import keyed_table, orders


def hint(table):
    path = Path(table.path, "snapshot", "EARLIEST")
    return path.read_text() if path.exists() else None


@pytest.fixture
def gap(tmp_path):
    """A table with the snapshots 1, 4 and 5."""
    table = keyed_table(tmp_path / "t")
    for number in range(5):
        table.write(orders((number, "a", number)))
    for number in (2, 3):
        Path(table.store.snapshots.path(number)).unlink()
    return table


def test_history_begins_behind_gap(gap):
    assert gap.maintenance.repair_earliest_snapshot(4) == (1, 4)
    assert hint(gap) == "4"
    assert gap.maintenance.repair_earliest_snapshot(4) == (4, 4)
    assert gap.store.snapshots.earliest_id() == 4
    assert gap.to_arrow().num_rows == 5


def test_oldest_snapshot_may_be_given(gap):
    assert gap.maintenance.repair_earliest_snapshot(1) == (1, 1)
    assert hint(gap) == "1"


@pytest.mark.parametrize(
    ("number", "message"),
    [(5, "follows snapshot 4"), (2, r"can begin at \[1, 4\]"), (6, r"can begin at \[1, 4\]"), (-1, "does not exist")],
)
def test_other_snapshots_are_refused_and_nothing_changes(gap, number, message):
    before = hint(gap)
    with pytest.raises(InvalidInputError, match=message):
        gap.maintenance.repair_earliest_snapshot(number)
    assert hint(gap) == before


def test_empty_table_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="no snapshots"):
        keyed_table(tmp_path / "t").maintenance.repair_earliest_snapshot(1)
