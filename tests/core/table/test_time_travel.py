"""Travelling to a snapshot reads it by the schema and the option texts of then."""

from paimon_core.schema.change import DropColumn, RenameColumn
from tests.support.tables import keyed_table, orders, rows_of


def test_snapshot_from_before_its_sequence_field_was_renamed(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"sequence.field": "n"})
    table.write(orders((1, "newer", 2)))
    table.write(orders((1, "late", 1)))
    table = table.alter([RenameColumn("n", "m"), DropColumn("v")])
    assert rows_of(table.to_arrow()) == [{"id": 1, "m": 2}]
    assert rows_of(table.to_arrow(snapshot_id=2)) == [{"id": 1, "v": "newer", "n": 2}]
