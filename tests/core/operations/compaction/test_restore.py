"""An old moment as a new snapshot: its rows, and everything that happened since."""

from datetime import datetime, timezone

import pytest

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, UnsupportedError
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.support.tables import ORDERS, append_table, keyed_table, orders, rows_of

KINDS = [
    {"bucket": "2"},
    {"bucket": "-1"},
    {"bucket": "1", "changelog-producer": "lookup"},
    {"bucket": "1", "deletion-vectors.enabled": "true"},
    {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    {"bucket": "1", "merge-engine": "first-row"},
]


def rows(table, **when):
    return rows_of(table.to_arrow(**when))


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_rows_of_moment_come_back_and_nothing_is_lost(tmp_path, options):
    table = keyed_table(tmp_path / "t", **options)
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.tags.create("then")
    then = rows(table)
    assert then
    table.write(orders((1, "c", 5), (3, "d", 3)))
    table.compact(full=True)
    last, newest = rows(table), table.snapshot().id
    result = table.restore("then")
    assert rows(table) == then
    assert result.id == table.snapshot().id > newest
    assert rows(table, snapshot_id=newest) == last
    assert [tag.name for tag in table.tags.list()] == ["then"]
    assert table.restore(result.id).id == result.id, "it is so already"
    table.restore(newest)
    assert rows(table) == last
    table.write(orders((4, "e", 4)))
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than="9999-01-01")
    assert {row["id"] for row in rows(table)} >= {row["id"] for row in last}
    assert rows(table, tag="then") == then


def test_only_partitions_that_differ_are_written(tmp_path):
    schema = Schema(ORDERS, partition_keys=["n"], options={"bucket": "-1"})
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.write(orders((3, "c", 2), (4, "d", 3)))
    same = [split.files for split in table.scan(filter="n = 1").plan().splits]
    table.restore(1)
    assert rows(table) == rows(table, snapshot_id=1)
    assert [split.files for split in table.scan(filter="n = 1").plan().splits] == same


def test_moment_by_time_and_by_watermark_with_columns_of_now(tmp_path):
    table = append_table(tmp_path / "t")
    for number in (1, 2, 3):
        with table.writer() as writer:
            writer.write(orders((number, "a", 1)))
            table.committer().commit(writer.prepare_commit(), watermark=number * 100)
    table = table.alter([AddColumn("z", parse_type("INT"))])
    assert [row["id"] for row in rows(table.with_options({}))] == [1, 2, 3]
    table.restore(watermark=250)
    assert [(row["id"], row["z"]) for row in rows(table)] == [(1, None), (2, None)]
    table.restore(timestamp=datetime.now(timezone.utc))
    assert len(rows(table)) == 2
    assert table.tags.create("w", watermark=150).snapshot.id == 2
    assert table.rollback_to(watermark=150).id == 1


def test_missing_snapshots_and_tags_are_refused(tmp_path):
    table = append_table(tmp_path / "t")
    with pytest.raises(OutOfRangeError, match="no snapshots"):
        table.restore("1")
    table.write(orders((1, "a", 1)))
    for error, given, message in (
        (OutOfRangeError, {"snapshot_id_or_tag": 9}, "snapshot 9 .* does not exist"),
        (NotFoundError, {"snapshot_id_or_tag": "x"}, "version 'x'"),
        (InvalidInputError, {}, "pass exactly one of"),
        (InvalidInputError, {"snapshot_id_or_tag": 1, "watermark": 3}, "pass exactly one of"),
    ):
        for verb in (table.restore, table.rollback_to):
            with pytest.raises(error, match=message):
                verb(**given)
    with pytest.raises(InvalidInputError, match="pass only one of snapshot_id, timestamp and watermark"):
        table.tags.create("t", 1, watermark=2)
    for options, message in (({"bucket": "-2"}, "unseen"), ({"row-tracking.enabled": "true"}, "new ids")):
        keyed = "row-tracking.enabled" not in options
        other = (keyed_table if keyed else append_table)(tmp_path / message.replace(" ", ""), **options)
        other.write(orders((1, "a", 1)))
        with pytest.raises(UnsupportedError, match=message):
            other.restore(1)
