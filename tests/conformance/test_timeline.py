"""Branches, tags, times, expiry and rollback: both engines mean the same rows by them."""

import json
import time

import pytest

from paimon_core.errors import OutOfRangeError
from paimon_core.operations.analyze import ColumnStatistics, TableStatistics, commit_statistics, to_text
from tests.conformance.compare import same
from tests.conformance.kinds import keyed
from tests.conformance.shared_table import SharedTable, created_by_java

pytestmark = pytest.mark.java
KIND = keyed("timeline")


@pytest.fixture
def table(judge, name, rng):
    """Four commits by turns, a tag on the second and a schema change after it."""
    table = created_by_java(judge, name, KIND)
    table.java("write", rows=KIND.rows(rng, 20))
    table.we_write(KIND.rows(rng, 20))
    table.java("create_tag", name="v1", snapshot=2)
    table.java(
        "alter_table", changes=[{"op": "drop_column", "name": "c8"}, {"op": "add_column", "name": "z", "type": "INT"}]
    )
    table.java("write", rows=KIND.rows(rng, 20))
    time.sleep(0.02)
    table.java("compact", kind="full")
    return table


def test_tags_read_same_rows_in_both_engines(table):
    tagged = table.agree(tag="v1")
    same(tagged, table.agree(snapshot=2), "a tag is the snapshot it was made of")
    fields = table.fields_at(tag="v1")
    same(table.our_rows(fields, version="v1"), tagged, "version by name")
    same(table.our_rows(fields, version="2"), tagged, "version by number")
    table.java("expire_snapshots", retain_max=1, retain_min=1)
    same(table.agree(tag="v1"), tagged, "a tag outlives its snapshot")
    with pytest.raises(OutOfRangeError):
        table.ours().to_arrow(snapshot_id=1)


def test_times_select_same_snapshots_in_both_engines(table):
    for snapshot in table.ours().snapshots():
        fields = table.fields_at(snapshot_id=snapshot.id)
        by_time = table.our_rows(fields, timestamp=snapshot.time_millis)
        theirs = table.java_rows(fields, options={"scan.timestamp-millis": str(snapshot.time_millis)})
        same(by_time, theirs, f"{table.name} at {snapshot.time_millis}")


def test_branches_are_read_and_written_by_both_engines(table, judge, rng):
    table.java("create_branch", name="b1", tag="v1")
    table.java("create_branch", name="empty")
    branch = SharedTable(judge, table.name, branch="b1")
    before = table.agree()
    branch.agree()
    branch.java("write", rows=KIND.rows(rng, 20))
    branch.agree()
    branch.we_write(KIND.rows(rng, 20))
    branch.java("compact", kind="full")
    branch.agree_everywhere()
    same(table.agree(), before, "a branch leaves main alone")
    SharedTable(judge, table.name, branch="empty").agree()
    table.java("fast_forward", name="b1")
    table.agree_everywhere()


def test_restored_snapshot_is_read_by_java(table, rng):
    tagged = table.agree(tag="v1")
    newest = table.agree()
    table.ours().restore(2)
    fields = table.fields_at()
    restored = table.agree_everywhere()
    assert len(restored) == len(tagged)
    table.java("write", rows=[])
    table.ours().restore(4)
    same(table.agree(), newest, "the moment before is there again")
    assert fields == table.fields_at()
    table.java("expire_snapshots", retain_max=1, retain_min=1)
    same(table.agree(), newest, "its files outlive those it replaced")
    same(table.agree(tag="v1"), tagged, "and a tag its own")


def test_rollback_and_expiry(table, rng):
    table.we_write(KIND.rows(rng, 20))
    table.java("rollback_to", snapshot=2)
    table.agree_everywhere()
    table.we_write(KIND.rows(rng, 20))
    table.java("write", rows=KIND.rows(rng, 20))
    table.agree_everywhere()
    table.java("expire_snapshots", retain_max=2, retain_min=1)
    table.we_write(KIND.rows(rng, 20))
    table.java("compact", kind="full")
    table.java("remove_orphan_files")
    table.agree_everywhere()


def test_watermarks_and_properties(judge, name, rng):
    """Watermark and properties of other commits survive our commit."""
    table = created_by_java(judge, name, KIND)
    table.java("write", rows=KIND.rows(rng, 5), identifier=1, user="stream", watermark=1000, properties={"a": "b"})
    table.we_write(KIND.rows(rng, 5))
    assert [s["watermark"] for s in table.java("snapshots")] == [1000, 1000]
    table.java("analyze")
    table.we_write(KIND.rows(rng, 5))
    table.java("write", rows=KIND.rows(rng, 5), identifier=2, user="stream")
    table.agree_everywhere()
    fields = table.fields_at()
    same(
        table.our_rows(fields, watermark=1000), table.java_rows(fields, options={"scan.watermark": "1000"}), "watermark"
    )


def test_java_reads_our_statistics(judge, name, rng):
    table = created_by_java(judge, name, KIND)
    table.we_write(KIND.rows(rng, 5))
    ours = table.ours()
    field = ours.schema.fields[0]
    columns = {field.name: ColumnStatistics(field.id, 5, to_text(1, field.type), to_text(9, field.type), 0, 8, 8)}
    commit_statistics(ours.store, TableStatistics(ours.snapshot().id, ours.schema.id, 5, 100, columns))
    answer = table.judge.call("read", table=f"{name}$statistics")
    actual = dict(zip(answer["columns"], answer["rows"][0][1:], strict=True))
    assert (actual["snapshot_id"], actual["mergedRecordCount"], actual["mergedRecordSize"]) == (1, 5, 100)
    expected = {"colId": field.id, "distinctCount": 5, "min": "1", "max": "9", "nullCount": 0, "avgLen": 8, "maxLen": 8}
    assert json.loads(actual["colstat"]) == {field.name: expected}
    table.java("write", rows=KIND.rows(rng, 5))
    table.agree_everywhere()


def test_java_sees_the_oldest_snapshot_after_we_fast_forwarded(table, judge, rng):
    """The branch begins before the oldest snapshot of main, which the hint EARLIEST names, and goes on beyond it."""
    table.java("create_branch", name="b", tag="v1")
    branch = SharedTable(judge, table.name, branch="b")
    for _ in range(3):
        branch.we_write(KIND.rows(rng, 5))
    table.java("expire_snapshots", retain_max=1, retain_min=1)
    table.ours().branches.fast_forward("b")
    ids = [snapshot.id for snapshot in table.ours().snapshots()]
    assert ids == [2, 3, 4, 5, 6]
    assert [row[1] for row in judge.call("read", table=f"{table.name}$snapshots")["rows"]] == ids
    table.agree_everywhere()
