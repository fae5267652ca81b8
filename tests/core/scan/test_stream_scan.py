"""Streams: their start, the end of a batch, stable positions, and the end of a stream."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, UnsupportedError
from paimon_core.scan.batch_limits import Limits
from paimon_core.scan.position import ALL, Position
from paimon_core.scan.stream_lag import LagCounter, StreamLag
from paimon_core.scan.stream_scan import StreamScan
from paimon_core.schema.change import AddColumn, DropColumn, SetOption
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.types.datatype import INT
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.tables import ORDERS, append_table, keyed_table, orders

LIMITS = st.builds(Limits, *(st.none() | st.integers(1, most) for most in (3, 4000, 9)))


def changed(table: Table, limits: Limits = Limits(), at: Position | None = None) -> list[list[tuple]]:  # noqa: B008
    """Return the batches from a position, or from the start, until there is nothing new."""
    stream = table.stream(changelog=True)
    if at is not None:
        stream.restore(at.to_json())
    batches = []
    while (before := stream.checkpoint()) is not None:
        rows = [row for b in stream.to_batches(limits) for row in b.to_pylist()]
        if stream.checkpoint() == before:
            return batches
        batches.append([(row["rowkind"], row["id"], row["v"]) for row in rows])
    raise AssertionError


def stream_rows(table: Table, **options: str) -> list[tuple]:
    """Return all rows of a stream with options (with _ for - and .)."""
    return [row for batch in changed(table.with_options(options)) for row in batch]


def timeline(table: Table) -> Table:
    """Make four commits of one row each; the third commit has another value."""
    for row in ((1, "a", 0), (2, "b", 0), (1, "c", 0), (3, "d", 0)):
        table.write(orders(row))
    return table


A, B, C, D = ("+I", 1, "a"), ("+I", 2, "b"), ("+I", 1, "c"), ("+I", 3, "d")


# ---- positions


def test_position_round_trips_as_json():
    position = Position(7, 3, True, "manifest-list-1", "1700000000000")
    assert position.to_json() == {
        "snapshotId": 7, "index": 3, "scanSnapshot": True, "mark": "manifest-list-1", "table": "1700000000000",
    }  # fmt: skip
    assert Position.from_json(position.to_json()) == position
    assert Position.from_json({**position.to_json(), "more": 1}) == position


@pytest.mark.parametrize(
    ("change", "named"),
    [({"index": "3"}, "index"), ({"mark": None}, "mark"), ({"snapshotId": True}, "snapshotId"), ({}, None)],
)
def test_position_of_other_source_is_refused(change, named):
    document = {**Position(1, 2).to_json(), **change} if named else {"reservoirVersion": 4}
    with pytest.raises(InvalidInputError, match=f"{named or 'snapshotId'}.*new stream state"):
        Position.from_json(document)


def test_next_snapshot_is_oldest_snapshot_needed():
    assert Position(4, ALL).next_snapshot == 5
    assert Position(4, 2).next_snapshot == 4
    assert Position(4, 2, scan_snapshot=True).next_snapshot == 4
    assert Position(0, -1, scan_snapshot=True).next_snapshot == 1


# ---- where it starts


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [C, B, D]),
        ({"scan.mode": "full"}, [C, B, D]),
        ({"scan.mode": "latest"}, []),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": "3"}, [C, D]),
        ({"scan.snapshot-id": "1"}, [A, B, C, D]),
        ({"scan.snapshot-id": "5"}, []),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"}, [A, B, C, D]),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "3"}, [C, B, D]),
        ({"scan.timestamp-millis": "0"}, [A, B, C, D]),
        ({"scan.timestamp": "2999-01-01 00:00:00"}, []),
        ({"scan.mode": "compacted-full"}, [C, B, D]),
        ({"incremental-between": "1,3"}, [B, C]),
        ({"incremental-between": "3,9"}, [D]),
    ],
)
def test_start_follows_scan_mode(tmp_path, options, expected):
    table = timeline(keyed_table(tmp_path / "t", bucket="1"))
    assert stream_rows(table, **options) == expected
    again = stream_rows(table, **options, **{"source.split.target-size": "1 b"})
    assert again == expected


def test_start_follows_timestamp_options(tmp_path):
    table = timeline(keyed_table(tmp_path / "t", bucket="1"))
    for snapshot in table.snapshots():
        younger = [s.id for s in table.snapshots() if s.time_millis >= snapshot.time_millis]
        result = stream_rows(table, **{"scan.timestamp-millis": str(snapshot.time_millis)})
        assert result == [A, B, C, D][min(younger) - 1 :]


def test_compacted_full_starts_at_compaction(tmp_path):
    table = timeline(keyed_table(tmp_path / "t", bucket="1"))
    table.compact(full=True)
    table.write(orders((4, "e", 0)))
    assert changed(table.with_options({"scan.mode": "compacted-full"})) == [[C, B, D], [("+I", 4, "e")]]


def test_start_from_file_creation_time(tmp_path):
    table = timeline(append_table(tmp_path / "t"))
    assert len(stream_rows(table, **{"scan.file-creation-time-millis": "0"})) == 4
    assert stream_rows(table, **{"scan.file-creation-time-millis": "99999999999999"}) == []
    assert len(stream_rows(table, **{"scan.creation-time-millis": "0"})) == 4
    keyed = timeline(keyed_table(tmp_path / "k"))
    with pytest.raises(UnsupportedError, match=r"scan\.timestamp-millis"):
        stream_rows(keyed, **{"scan.file-creation-time-millis": "0"})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scan.snapshot-id": "6"}, OutOfRangeError, "an id up to 5"),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "5"}, OutOfRangeError, "newest snapshot is 4"),
        ({"scan.tag-name": "x"}, UnsupportedError, r"scan\.snapshot-id"),
        ({"scan.mode": "latest-delta"}, InvalidInputError, "latest-delta"),
        ({"incremental-between": "3,2"}, InvalidInputError, "'3,7'"),
        (
            {"incremental-between": "a,b"},
            InvalidInputError,
            "'a,b'.*Tags and times are .* batch reads: use the ids",
        ),
        ({"scan.timestamp": "yesterday"}, InvalidInputError, "yesterday"),
        ({"scan.bucket": "0"}, UnsupportedError, "scan.bucket"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, InvalidInputError, "excludes"),
    ],
)
def test_unsupported_starts_are_refused(tmp_path, options, error, message):
    table = timeline(keyed_table(tmp_path / "t", bucket="1"))
    with pytest.raises(error, match=message):
        stream_rows(table, **options)


@pytest.mark.parametrize(
    "options", [{}, {"scan.mode": "latest"}, {"scan.snapshot-id": "1"}, {"scan.timestamp": "2020-01-01"}]
)
def test_stream_of_empty_table_starts_with_first_rows(tmp_path, options):
    table = keyed_table(tmp_path / "t", bucket="1")
    stream = table.with_options(options).stream(changelog=True)
    start = stream.checkpoint()
    assert stream.plan() == []
    assert stream.checkpoint() == start
    table.overwrite(orders((1, "a", 0)))  # only a stream that starts with all rows emits it
    table.write(orders((2, "b", 0)))
    stream.restore(start)
    rows = [(r["rowkind"], r["id"]) for _ in range(3) for b in stream.to_batches() for r in b.to_pylist()]
    assert rows == ([("+I", 1), ("+I", 2)] if not options else [("+I", 2)])


def test_consumer_continues_from_progress(tmp_path):
    table = timeline(keyed_table(tmp_path / "t", bucket="1"))
    consumers = Consumers(table.store.io, table.path)
    assert stream_rows(table, **{"consumer-id": "me"}) == [C, B, D]
    consumers.record("me", 4)
    assert stream_rows(table, **{"consumer-id": "me"}) == [D]
    assert stream_rows(table, **{"consumer-id": "me", "scan.snapshot-id": "3"}) == [D]
    assert stream_rows(table, **{"consumer-id": "me", "consumer.ignore-progress": "true"}) == [C, B, D]


def test_stream_of_read_optimized_view_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="not changes"):
        keyed_table(tmp_path / "t").read_optimized().stream()


# ---- how far


@given(LIMITS, LIMITS)
@draws(8)
def test_limits_do_not_change_rows(histories, limits, others):
    for table, everything in histories:
        batches = changed(table, limits)
        assert sorted(row for batch in batches for row in batch) == everything
        scan, after = StreamScan(table.store), StreamScan(table.store).start()
        while (through := scan.advance(after, limits)) != after:
            between = after
            while between != through:
                step = scan.advance(between, others, through)
                assert between.order < step.order or between.undecided
                assert step.order <= through.order
                between = step
            after = through


@pytest.fixture(scope="module")
def histories(tmp_path_factory):
    """Return tables, and all rows of their streams."""
    made = []
    for producer in ("none", "lookup", "input"):
        table = keyed_table(tmp_path_factory.mktemp("t") / producer, bucket="3", changelog_producer=producer)
        for n in range(3):
            table.write(orders(*((i, f"{producer}{n}", n) for i in range(n, n + 6))))
        table = table.with_options({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"})
        made.append((table, sorted(row for batch in changed(table) for row in batch)))
    return made


def test_batch_ends_with_unit_that_reaches_limit(tmp_path):
    table = timeline(append_table(tmp_path / "t")).with_options({"scan.snapshot-id": "1"})
    assert changed(table, Limits(rows=1)) == [[A], [B], [C], [D]]
    assert changed(table, Limits(rows=2)) == [[A, B], [C, D]]
    assert changed(table, Limits(rows=3, files=9)) == [[A, B, C], [D]]
    assert changed(table, Limits(bytes=1)) == [[A], [B], [C], [D]]
    assert changed(table) == [[A, B, C, D]]


def test_changes_of_one_key_stay_in_order(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="2", write_only="true")
    for n in range(4):
        table.write(orders(*((i, str(n), n) for i in range(8))))
    scan = StreamScan(table.with_options({"scan.snapshot-id": "1", "source.split.target-size": "1 b"}).store)
    splits = scan.plan(scan.start(), scan.latest())
    assert len(splits) == 2
    for split in splits:
        assert [p.split.snapshot_id for p in split.units] == [1, 2, 3, 4]
    unordered = append_table(tmp_path / "a")
    for n in range(4):
        unordered.write(orders((n, "x", 0)))
    scan = StreamScan(unordered.with_options({"scan.snapshot-id": "1", "source.split.target-size": "1 b"}).store)
    assert len(scan.plan(scan.start(), scan.latest())) == 4


def test_plan_is_repeatable(tmp_path):
    """A plan does not depend on later commits or on the split options."""
    table = timeline(keyed_table(tmp_path / "t", bucket="2", changelog_producer="input"))
    scan, ranges = StreamScan(table.store), []
    after = scan.start()
    for n in range(3):
        while (through := scan.advance(after, Limits(files=1))) != after:
            ranges.append((after, through, [set(_files(s)) for s in scan.plan(after, through)]))
            after = through
        table.write(orders(*((i, f"n{n}", 0) for i in range(5))))
    table.compact(full=True)
    later = StreamScan(table.with_options({"source.split.target-size": "1 b"}).store)
    for after, through, files in ranges:
        assert set().union(*(set(_files(s)) for s in later.plan(after, through))) == set().union(*files)


def _files(split):
    return [f.file_name for piece in split.units for f in piece.split.files]


def test_unmatched_partitions_are_pruned(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(ORDERS, partition_keys=["v"]))
    table.write(orders((1, "a", 0), (2, "b", 0)))
    stream = table.stream(filter="v = 'b' AND n = 0", columns=["id"])
    splits = stream.plan(Limits(files=1))
    assert splits == []
    assert [row for b in stream.to_batches() for row in b.to_pylist()] == [{"id": 2}]


def test_bounded_watermark_ends_stream(tmp_path):
    table = append_table(tmp_path / "t")
    for n, watermark in enumerate((5, 7, 9)):
        with table.writer() as writer:
            writer.write(orders((n, "x", 0)))
            table.committer().commit(writer.prepare_commit(), watermark=watermark)
    assert stream_rows(table, **{"scan.snapshot-id": "1", "scan.bounded.watermark": "7"}) == [
        ("+I", 0, "x"),
        ("+I", 1, "x"),
    ]


def test_snapshot_delay_holds_back_new_snapshots(tmp_path):
    table = timeline(append_table(tmp_path / "t"))
    assert stream_rows(table, **{"scan.snapshot-id": "1", "streaming.read.snapshot.delay": "1 h"}) == []
    assert stream_rows(table, **{"scan.snapshot-id": "1", "streaming.read.snapshot.delay": "0 s"}) == [A, B, C, D]


class CountingIO(MemoryIO):
    """A store that counts its calls."""

    asked = 0

    def read(self, path: str) -> bytes:
        self.asked += 1
        return super().read(path)

    def exists(self, path: str) -> bool:
        self.asked += 1
        return super().exists(path)

    def list(self, directory: str) -> list:
        self.asked += 1
        return super().list(directory)


def test_check_without_changes_has_constant_cost():
    io, root = CountingIO(), "memory://w/t"
    create_table(io, root, Schema(ORDERS))
    table = Table(FileStore(io, root, Schemas(io, root).get(0)))
    scan, after = StreamScan(table.store), Position(0, ALL)
    for _ in range(4):
        table.write(orders((1, "a", 0)))
        after = scan.advance(after)
        io.asked = 0
        assert scan.advance(after) == after
        assert io.asked == 5


# ---- what ends it


def position_after(table: Table, snapshot_id: int) -> Position:
    scan = StreamScan(table.with_options({"scan.snapshot-id": str(snapshot_id + 1)}).store)
    return scan.start()


def test_stream_at_expired_snapshot_fails(tmp_path):
    table = timeline(keyed_table(tmp_path / "t"))
    scan, after = StreamScan(table.store), position_after(table, 1)
    through = scan.advance(after)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    for ask in (lambda: scan.advance(after), lambda: scan.plan(after, through)):
        with pytest.raises(
            OutOfRangeError, match=r"snapshot 2 of .* has expired.*oldest that can be read is 4.*consumer-id"
        ):
            ask()


def test_stream_after_rollback_fails(tmp_path):
    table = timeline(keyed_table(tmp_path / "t"))
    scan, after = StreamScan(table.store), position_after(table, 4)
    assert scan.advance(after) == after
    for gone in (3, 4):
        (Path(table.path) / "snapshot" / f"snapshot-{gone}").unlink()
    (Path(table.path) / "snapshot" / "LATEST").write_text("2")
    with pytest.raises(OutOfRangeError, match="rolled back: snapshot 4"):
        scan.advance(after)
    table.write(orders((8, "x", 0)))
    table.write(orders((9, "x", 0)))
    for ask in (lambda: scan.advance(after), lambda: scan.plan(position_after(table, 2), after)):
        with pytest.raises(OutOfRangeError, match="rolled back: snapshot 4"):
            ask()


def test_stream_of_recreated_table_fails(tmp_path):
    table = timeline(keyed_table(tmp_path / "t"))
    scan, after = StreamScan(table.store), position_after(table, 2)
    shutil.rmtree(table.path)
    with pytest.raises(NotFoundError, match="dropped"):
        scan.advance(after)
    timeline(keyed_table(tmp_path / "t"))
    with pytest.raises(InvalidInputError, match="replaced by another table"):
        scan.advance(after)


def test_stream_stops_at_changed_columns(tmp_path):
    table = timeline(keyed_table(tmp_path / "t", bucket="1", write_only="true"))
    options = {"scan.snapshot-id": "4"}
    query, some = (StreamScan(table.with_options(options).store, f) for f in (None, table.schema.fields[:2]))
    table.alter([SetOption("snapshot.time-retained", "2 h")]).write(orders((4, "e", 0)))
    altered = table.alter([AddColumn("more", INT)])
    altered.write(orders((5, "f", 0)))
    through = query.advance(query.start())
    assert through.snapshot_id == 5
    with pytest.raises(InvalidInputError, match=r"snapshot 6, with schema 2.*: more\. Restart the reader"):
        query.advance(through)
    assert some.advance(some.start()).snapshot_id == 6
    again = StreamScan(altered.with_options(options).store)
    assert again.advance(through).snapshot_id == 6
    altered.alter([DropColumn("v")]).write(orders((6, "g", 0)).drop_columns("v"))
    with pytest.raises(InvalidInputError, match=": v"):
        some.advance(position_after(table, 6))


def test_stream_stops_at_changed_changelog_producer(tmp_path):
    """The changelog does not contain rows that were written before it began."""
    table = timeline(keyed_table(tmp_path / "t", bucket="1"))
    without_changelog = StreamScan(table.with_options({"scan.snapshot-id": "4"}).store)
    altered = table.alter([SetOption("changelog-producer", "input")])
    altered.write(orders((5, "f", 0)))
    through = without_changelog.advance(without_changelog.start())
    assert through.snapshot_id == 4
    with pytest.raises(InvalidInputError, match=r"changelog-producer.*was 'input' at snapshot 5.*is 'none'"):
        without_changelog.advance(through)
    told_by_input = StreamScan(altered.with_options({"scan.snapshot-id": "4"}).store)
    with pytest.raises(InvalidInputError, match="was 'none' at snapshot 4"):
        told_by_input.advance(told_by_input.start())
    assert stream_rows(altered, **{"scan.snapshot-id": "4", "changelog-producer": "none"})[:1] == [D]


# ---- lag


def known(lag: StreamLag) -> tuple:
    return lag.snapshots, lag.rows


def test_lag_counts_unplanned_changes(tmp_path):
    table = timeline(keyed_table(tmp_path / "t", bucket="1", write_only="true"))
    stream = table.with_options({"scan.snapshot-id": "2"}).stream()
    size = {s.id: sum(f.file_size for f in split_files(table, s.id)) for s in table.snapshots()}
    assert known(stream.lag()) == (3, 3)
    assert stream.lag().bytes == size[2] + size[3] + size[4]
    assert stream.lag().seconds >= 0
    list(stream.to_batches(Limits(files=1)))
    assert known(stream.lag()) == (2, 2)
    assert stream.lag().bytes == size[3] + size[4]
    list(stream.to_batches())
    assert stream.lag() == StreamLag(0, 0, 0, 0.0)
    table.write(orders((7, "x", 0), (8, "y", 0)))
    assert known(stream.lag()) == (1, 2)


def split_files(table: Table, snapshot_id: int) -> list:
    """Return the files that one snapshot added."""
    scan = StreamScan(table.store)
    return [f for split in scan.plan(Position(snapshot_id - 1, ALL), Position(snapshot_id, ALL)) for f in split.files]


def test_lag_before_first_batch_counts_all_rows(tmp_path):
    empty = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    stream = empty.stream()
    assert stream.lag() == StreamLag()
    timeline(empty)
    assert known(stream.lag()) == (1, 4), "the snapshot with which it begins; merging leaves three rows"
    list(stream.to_batches())
    empty.write(orders((7, "x", 0)))
    assert known(stream.lag()) == (1, 1)
    begun = empty.stream()
    list(begun.to_batches(Limits(files=1)))
    empty.write(orders((8, "x", 0)))
    rest = begun.lag()
    read = sum(batch.num_rows for limits in range(9) for batch in begun.to_batches())
    assert rest.rows >= read > 0


def test_lag_counts_compaction_snapshots_without_rows(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    stream = table.with_options({"scan.mode": "latest"}).stream()
    timeline(table)
    table.with_options({"write-only": "false"}).compact(full=True)
    assert known(stream.lag()) == (5, 4)


def test_lag_excludes_filtered_partitions(tmp_path):
    schema = Schema(ORDERS, partition_keys=["v"], options={"bucket": "-1"})
    table = timeline(Table.create(str(tmp_path / "t"), schema))
    stream = table.with_options({"scan.snapshot-id": "1"}).stream(filter="v = 'a'")
    assert known(stream.lag()) == (4, 1)


def test_lag_counts_each_snapshot_once(tmp_path, monkeypatch):
    table = timeline(keyed_table(tmp_path / "t", bucket="1", write_only="true"))
    scan, planned = StreamScan(table.store), []
    plan = StreamScan.plan

    def noted(self, after, through):
        planned.append(through.snapshot_id)
        return plan(self, after, through)

    monkeypatch.setattr(StreamScan, "plan", noted)
    counter = LagCounter(scan)
    assert counter.lag(Position(0, ALL), most=3).to_json().keys() == {"snapshots", "seconds"}
    assert sorted(planned) == [1, 2, 3]
    assert known(counter.lag(Position(1, ALL), most=3)) == (3, 3)
    assert sorted(planned) == [1, 2, 3, 4]
    assert known(counter.lag(Position(4, ALL))) == (0, 0)


def test_lag_of_consumer_follows_its_snapshot(tmp_path):
    table = timeline(keyed_table(tmp_path / "t", bucket="1", write_only="true"))
    table.consumers.reset("slow", 2)
    table.consumers.reset("fast", 5)
    lag = table.consumers.lag()
    assert {name: known(one) for name, one in lag.items()} == {"slow": (3, 3), "fast": (0, 0)}
    table.consumers.reset("slow", 1)
    Path(table.path, "snapshot", "snapshot-1").unlink()
    assert known(table.consumers.lag()["slow"]) == (4, None)
