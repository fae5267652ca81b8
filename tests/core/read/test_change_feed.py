"""The change feed: changes of commits, applied to the rows before them, give the rows after them."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, UnsupportedError
from paimon_core.memory import MemoryShares
from paimon_core.read.change_feed import FeedRead
from paimon_core.read.row_numbers import row_numbers
from paimon_core.scan.change_feed import CHANGE_FIELDS, ChangeFeed, FeedRange, time_range, version_range
from paimon_core.scan.feed_stream import FeedStream
from paimon_core.scan.position import Position
from paimon_core.schema.change import AddColumn, RenameColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import INT
from tests.support.draws import rounds

COLUMNS = pa.schema([pa.field("k", pa.int64(), False), pa.field("p", pa.int32(), False), ("v", pa.string())])
VECTORS = {"deletion-vectors.enabled": "true"}
KINDS = {
    "append": {},
    "append with vectors": VECTORS,
    "append in buckets": {"bucket": "2", "bucket-key": "k"},
    "tracked": {"row-tracking.enabled": "true"},
    "evolving": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    "evolving with vectors": {"row-tracking.enabled": "true", "data-evolution.enabled": "true", **VECTORS},
    "keyed": {"bucket": "2"},
    "keyed with vectors": {"bucket": "2", **VECTORS},
    "dynamic": {"bucket": "-1"},
    "postponed": {"bucket": "-2"},
    "lookup": {"bucket": "1", "changelog-producer": "lookup"},
    "full compaction": {"bucket": "1", "changelog-producer": "full-compaction"},
    "input": {"bucket": "1", "changelog-producer": "input"},
    "first row": {"bucket": "1", "merge-engine": "first-row"},
    "partial update": {"bucket": "1", "merge-engine": "partial-update"},
    "aggregation": {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "max"},
}
APPEND = {"append", "append with vectors", "append in buckets", "tracked", "evolving", "evolving with vectors"}
UPSERTS_ONLY = {"first row", "partial update", "aggregation"}


def made(path, kind: str, partitioned: bool = False) -> Table:
    keys = [] if kind in APPEND else ["p", "k"] if partitioned else ["k"]
    schema = Schema(
        COLUMNS,
        primary_keys=keys,
        partition_keys=["p"] if partitioned else [],
        options={**KINDS[kind], "write-only": "false"},
    )
    return Table.create(str(path), schema)


def some(*rows: tuple) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], schema=COLUMNS)


def changes(
    table: Table, commits: FeedRange, *, updates: bool = False, cancel: bool = True, columns=None
) -> list[dict]:
    planner = ChangeFeed(table.store, cancel=cancel)
    fields = (*table.schema.fields, *CHANGE_FIELDS)
    read = FeedRead(table.store, fields if columns is None else columns, updates=updates)
    return [row for split in planner.plan(commits) for batch in read.to_batches(split) for row in batch.to_pylist()]


def contents(table: Table, snapshot_id: int) -> Counter:
    if snapshot_id == 0:
        return Counter()
    return Counter(tuple(row.values()) for row in table.to_arrow(snapshot_id=snapshot_id).to_pylist())


def replayed(rows: Counter, changed: list[dict]) -> Counter:
    """Apply changes; raise if a deleted row does not exist."""
    result = rows.copy()
    for row in sorted(
        changed, key=lambda r: (r["_commit_version"], r["_change_type"] not in ("delete", "update_preimage"))
    ):
        values = tuple(row.values())[:-3]
        result[values] += -1 if row["_change_type"] in ("delete", "update_preimage") else 1
        assert result[values] >= 0, row
    return +result


def turn(rng: random.Random, table: Table, kind: str) -> None:
    """Make one random commit."""
    rows = [(rng.randrange(8), rng.randrange(2), rng.choice("abc")) for _ in range(rng.randrange(1, 6))]
    if kind not in APPEND:
        rows = list({row[0]: (row[0], row[0] % 2, row[2]) for row in rows}.values())
    move = rng.choice(["write", "write", "write", "delete", "overwrite", "compact", "truncate"])
    if move == "delete" and (kind == "evolving" or (kind == "evolving with vectors" and rng.random() < 0.5)):
        tracked = table.system_table("row_tracking").to_arrow() if table.store.snapshots.latest_id() else None
        if tracked is not None and tracked.num_rows:
            tracked = tracked.slice(rng.randrange(tracked.num_rows)).select(["_ROW_ID"])
            table.update_columns(tracked.append_column("v", pa.array([rng.choice("xyz")] * tracked.num_rows)))
    elif move == "delete" and kind not in UPSERTS_ONLY:
        table.delete(f"k < {rng.randrange(8)} AND v = '{rng.choice('abc')}'")
    elif move == "overwrite":
        table.overwrite(some(*rows), rng.choice([None, "dynamic"]) if table.schema.partition_keys else None)
    elif move == "compact":
        table.compact(full=rng.random() < 0.7)
    elif move == "truncate" and rng.random() < 0.3:
        table.truncate()
    else:
        table.write(some(*rows))


@pytest.mark.cases(8)
@pytest.mark.drawn
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitioned", [False, pytest.param(True, marks=pytest.mark.more)])
def test_changes_lead_from_each_version_to_each_later_one(tmp_path, kind, partitioned, monkeypatch):
    rng = random.Random(f"{kind} {partitioned}")
    monkeypatch.setattr(MemoryShares, "of", lambda options: MemoryShares(compared=1 << 14))  # several passes
    table = made(tmp_path / "t", kind, partitioned)
    for _ in range(rounds(24, 6)):
        turn(rng, table, kind)
    last = table.store.snapshots.latest_id()
    states = {i: contents(table, i) for i in range(last + 1)}
    for _ in range(rounds(12, 4)):
        first, end = sorted(rng.sample(range(last + 1), 2))
        updates = rng.random() < 0.5
        found = changes(table, FeedRange(first + 1, end), updates=updates)
        assert replayed(states[first], found) == states[end]
        assert {row["_commit_version"] for row in found} <= set(range(first + 1, end + 1))
        assert updates or {row["_change_type"] for row in found} <= {"insert", "delete"}
        raw = changes(table, FeedRange(first + 1, end), updates=updates, cancel=False)
        assert replayed(states[first], raw) == states[end]


def test_rows_that_are_copied_are_no_changes(tmp_path):
    table = made(tmp_path / "t", "append")
    table.write(some((1, 0, "a"), (2, 0, "b"), (2, 0, "b"), (3, 0, "c")))
    table.delete("k = 1")
    table.overwrite(some((2, 0, "b"), (4, 0, "d")))
    found = [(r["_commit_version"], r["_change_type"], r["k"]) for r in changes(table, FeedRange(2, 3))]
    assert sorted(found) == [(2, "delete", 1), (3, "delete", 2), (3, "delete", 3), (3, "insert", 4)]
    assert len(changes(table, FeedRange(2, 2), cancel=False)) == 7
    snapshot = table.store.snapshots.get(3)
    row = changes(table, FeedRange(3, 3))[0]
    assert row["_commit_timestamp"].timestamp() * 1000 == pytest.approx(snapshot.time_millis)


def test_updates_of_a_key_are_two_rows(tmp_path):
    table = made(tmp_path / "t", "keyed")
    table.write(some((1, 0, "a"), (2, 0, "b")))
    table.write(some((1, 0, "c"), (2, 0, "b"), (3, 0, "d")))
    found = [(r["_change_type"], r["k"], r["v"]) for r in changes(table, FeedRange(2, 2), updates=True)]
    assert sorted(found) == [("insert", 3, "d"), ("update_postimage", 1, "c"), ("update_preimage", 1, "a")]
    assert changes(table, FeedRange(2, 2), columns=(CHANGE_FIELDS[0],)) == [
        {"_change_type": kind} for kind in ("delete", "insert", "insert")
    ]


def test_rows_are_mapped_to_the_columns_of_today(tmp_path):
    for kind in ("append", "keyed"):
        table = made(tmp_path / kind, kind)
        table.write(some((1, 0, "a"), (2, 0, "b")))
        table = table.alter([AddColumn("n", INT), RenameColumn("v", "w")])
        table.delete("k = 1")
        found = changes(table, FeedRange(1, table.store.snapshots.latest_id()))
        rows = sorted(((r["_change_type"], r["k"], r["w"], r["n"]) for r in found), reverse=True)
        assert rows == [("insert", 2, "b", None), ("insert", 1, "a", None), ("delete", 1, "a", None)]


def test_ranges(tmp_path):
    table = made(tmp_path / "t", "append")
    store = table.store
    assert version_range(store, None, None) == FeedRange(1, 0)
    assert time_range(store, 0, None) == FeedRange(1, 0)
    for number in range(4):
        table.write(some((number, 0, "a")))
    table.tags.create("two", snapshot_id=2)
    assert version_range(store, "1", "3") == FeedRange(1, 3)
    assert version_range(store, "two", "3", with_start=False, with_end=False) == FeedRange(3, 2)
    assert version_range(store, "0", None) == version_range(store, None, None) == FeedRange(1, 4)
    with pytest.raises(NotFoundError, match="'three' is neither a snapshot nor a tag"):
        version_range(store, "three", None)
    with pytest.raises(OutOfRangeError, match=r"version 5 of .* does not exist: the newest is 4"):
        version_range(store, "1", "5")
    with pytest.raises(OutOfRangeError, match="the first version, 3, is after the last version, 2"):
        version_range(store, "3", "2")
    times = [store.snapshots.get(i).time_millis * 1000 for i in (2, 3)]
    all_same = times[0] == times[1]
    assert all_same or time_range(store, times[0], times[1]) == FeedRange(2, 3)
    assert time_range(store, 0, None) == FeedRange(1, 4)
    assert time_range(store, times[1] + 10**12, None) == FeedRange(5, 4)
    with pytest.raises(InvalidInputError, match="the first time is after the last time"):
        time_range(store, times[1], times[1] - 1)


def test_expired_snapshots_are_named(tmp_path):
    table = made(tmp_path / "t", "keyed")
    for number in range(5):
        table.write(some((number, number % 2, "a")))
    table.tags.create("kept", snapshot_id=2)
    table.maintenance.expire_snapshots(retain_max=2, retain_min=1)
    oldest = table.store.snapshots.earliest_id()
    assert oldest > 3
    with pytest.raises(
        OutOfRangeError, match=f"version {oldest} .* are unknown, because snapshot {oldest - 1} has expired"
    ):
        changes(table, FeedRange(oldest, oldest))
    with pytest.raises(OutOfRangeError, match=r"version 3 .* are unknown, because snapshot 3 has expired"):
        changes(table, FeedRange(3, 3))
    with pytest.raises(OutOfRangeError, match="are not complete: snapshots before"):
        time_range(table.store, 0, None)
    assert changes(table, FeedRange(oldest + 1, oldest + 1))


def test_tables_without_a_feed_are_refused(tmp_path):
    expiring = {"record-level.expire-time": "1 d", "record-level.time-field": "k"}
    table = made(tmp_path / "t", "keyed").with_options(expiring)
    with pytest.raises(UnsupportedError, match=r"expire without a commit \('record-level\.expire-time'\)"):
        ChangeFeed(table.store)
    with pytest.raises(UnsupportedError, match=r"second branch \('scan\.fallback-branch'\)"):
        ChangeFeed(made(tmp_path / "u", "keyed").with_options({"scan.fallback-branch": "b"}).store)
    named = Table.create(str(tmp_path / "w"), Schema(pa.schema([("_change_type", pa.string())])))
    with pytest.raises(InvalidInputError, match="has a column '_change_type', which is also a column of its changes"):
        ChangeFeed(named.store)


def test_stream_continues_and_detects_rollback(tmp_path):
    table = made(tmp_path / "t", "keyed").with_options({"consumer-id": "c", "scan.mode": "latest"})
    stream = FeedStream(table.store, 1)
    start = stream.start()
    assert stream.advance(start) == start
    table.write(some((1, 0, "a")))
    table.write(some((1, 0, "b"), (2, 0, "c")))
    end = stream.advance(start)
    splits = list(stream.plan(start, end))
    again = FeedStream(table.store, 1)
    assert list(again.plan(Position.from_json(start.to_json()), Position.from_json(end.to_json()))) == splits
    assert {split.snapshot_id for split in splits} == {1, 2}
    table.write(some((3, 0, "d")))
    later = stream.advance(end)
    assert [split.snapshot_id for split in stream.plan(end, later)] == [3]
    table.rollback_to(2)
    table.write(some((4, 0, "e")))
    with pytest.raises(OutOfRangeError, match="was rolled back"):
        stream.advance(later)
    with pytest.raises(OutOfRangeError, match="was rolled back"):
        list(stream.plan(end, later))
    altered = table.alter([AddColumn("n", INT)])
    altered.write(some((5, 0, "f")))
    with pytest.raises(InvalidInputError, match=r"the columns of .* changed at snapshot 4"):
        stream.advance(Position.end_of(table.store.snapshots.get(3)))


def test_stream_does_not_skip_expired_commits(tmp_path):
    table = made(tmp_path / "t", "append")
    for number in range(4):
        table.write(some((number, 0, "a")))
    table.maintenance.expire_snapshots(retain_max=2, retain_min=1)
    with pytest.raises(OutOfRangeError, match=r"the changes of version 1 .* are unknown"):
        FeedStream(table.store, 1).start()
    assert FeedStream(table.store, 4).start().snapshot_id == 3


def test_numbers_of_rows():
    inner = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
    values = [
        None,
        {"x": 1, "y": ["a", None]},
        {"x": 1, "y": ["a"]},
        {"x": 1, "y": []},
        {"x": 1, "y": None},
        {"x": None, "y": []},
    ]
    structs = pa.array(values * 2, inner)
    maps = pa.array(
        [[], [("a", 1)], [("a", 2)], None, [("a", 1), ("b", None)], [("b", 1)]] * 2, pa.map_(pa.string(), pa.int32())
    )
    floats = pa.array([0.0, -0.0, float("nan"), None, 1.0, 2.0] * 2)
    for column in (structs, maps, floats):
        numbers = row_numbers([column], len(column))
        assert len(set(numbers)) == 6
        assert (numbers[:6] == numbers[6:]).all()
        assert (row_numbers([column.slice(1)], len(column) - 1)[:5] == row_numbers([column.slice(7)], 5)).all()
    several = row_numbers([pa.array([1, 1, 2]), pa.array(["a", "b", "a"])], 3)
    assert len(set(several)) == 3
    assert (row_numbers([], 3) == np.zeros(3)).all()
