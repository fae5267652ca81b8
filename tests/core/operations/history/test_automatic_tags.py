"""Automatic tags: which snapshots get which names, how many stay, and what commits do for them."""

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.fileio import UNKNOWN_MODIFIED, FileIO
from paimon_core.operations.history.automatic_tags import create_due_tags, trigger
from paimon_core.options.option import Options
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.automatic_tags import AutomaticTags
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.tables import ORDERS, orders

ROOT = "memory://w/t"
DAILY = {"tag.automatic-creation": "process-time"}
HOURLY = {**DAILY, "tag.creation-period": "hourly"}


def made(**options: str) -> MemoryIO:
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, ["id"], [], {"bucket": "1", "file.format": "avro", **options}))
    return io


def at(io: MemoryIO, moment: str) -> Table:
    """The table, opened at a local time."""
    millis = int(datetime.fromisoformat(moment).timestamp() * 1000)
    schema = Schemas(io, ROOT).latest()
    return Table(FileStore(io, ROOT, schema, now=lambda: millis))


def commit(io: MemoryIO, *moments: str) -> Table:
    for moment in moments:
        at(io, moment).write(orders((1, "a", 1)))
    return at(io, moments[-1])


def tags(table: Table) -> dict[str, int]:
    return {tag.name: tag.snapshot.id for tag in table.tags.list()}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "2024-12-05"),
        ({"tag.period-formatter": "without_dashes"}, "20241205"),
        ({"tag.period-formatter": "without_dashes_and_spaces"}, "20241205"),
        ({"tag.creation-period": "hourly"}, "2024-12-05 07"),
        ({"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes"}, "20241205 07"),
        ({"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes_and_spaces"}, "2024120507"),
        ({"tag.creation-period": "two-hours"}, "2024-12-05 06"),
        ({"tag.creation-period-duration": "30 min"}, "202412050730"),
    ],
)
def test_tag_is_named_after_its_period(options, name):
    """The times are 08:10 on the next day for daily names, else 08:10."""
    rule = AutomaticTags.of(Options({**DAILY, **options}))
    moment = (
        datetime(2024, 12, 6, 8, 10)
        if (name.startswith("2024-12-05") and len(name) == 10) or len(name) == 8
        else datetime(2024, 12, 5, 8, 10)
    )
    begin = rule.tagged((moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1), None)
    assert rule.name(begin) == name
    assert rule.begin(name) == begin
    assert rule.begin("v1") is None
    assert rule.begin(name + "x") is None


def test_first_snapshot_of_period_is_tagged():
    io = made(**DAILY, **{"tag.creation-delay": "1 h"})
    table = commit(io, "2024-12-05T00:05:00")
    assert tags(table) == {"2024-12-04": 1}
    assert tags(commit(io, "2024-12-06T00:30:00")) == {"2024-12-04": 1}
    assert tags(commit(io, "2024-12-06T01:00:00", "2024-12-06T02:00:00")) == {"2024-12-04": 1, "2024-12-05": 3}
    assert tags(commit(io, "2024-12-09T05:00:00")) == {"2024-12-04": 1, "2024-12-05": 3, "2024-12-08": 5}


def test_name_of_tag_may_consist_of_digits():
    table = commit(made(**DAILY, **{"tag.period-formatter": "without_dashes"}), "2024-12-05T00:05:00")
    assert tags(table) == {"20241204": 1}
    assert table.to_arrow(tag="20241204").num_rows == 1
    table.tags.create("20241203")
    assert tags(table) == {"20241203": 1, "20241204": 1}
    table.tags.delete("20241204")
    table.tags.delete("20241203")
    assert tags(table) == {}


def test_missed_periods_are_tagged_if_asked_for():
    io = made(**HOURLY, **{"tag.automatic-completion": "true"})
    table = commit(io, *(f"2024-12-05T{hour}:00" for hour in ("10:10", "13:20", "13:30", "13:40", "13:50")))
    assert tags(table) == {"2024-12-05 09": 1, "2024-12-05 10": 2, "2024-12-05 11": 3, "2024-12-05 12": 4}


def test_snapshots_of_other_writers_are_tagged_later():
    io = made(**HOURLY, **{"write-only": "true"})
    table = commit(io, *(f"2024-12-05T{time}:00" for time in ("10:10", "10:20", "11:05", "11:10", "13:01")))
    assert tags(table) == {}
    assert [tag.name for tag in create_due_tags(table.store)] == ["2024-12-05 09", "2024-12-05 10", "2024-12-05 12"]
    assert tags(table) == {"2024-12-05 09": 1, "2024-12-05 10": 3, "2024-12-05 12": 5}
    assert create_due_tags(table.store) == []
    assert trigger(table.store) == []


def test_existing_tag_of_name_does_not_change():
    io = made(**DAILY)
    table = commit(io, "2024-12-05T00:05:00")
    table.tags.create("2024-12-05", 1)
    assert tags(commit(io, "2024-12-06T00:05:00", "2024-12-07T01:00:00")) == {
        "2024-12-04": 1,
        "2024-12-05": 1,
        "2024-12-06": 3,
    }


def test_newest_automatic_tags_stay():
    io = made(**DAILY, **{"tag.num-retained-max": "2", "tag.default-time-retained": "10 d"})
    table = commit(io, "2024-12-05T00:05:00")
    table.tags.create("mine", 1)
    table = commit(io, *(f"2024-12-0{day}T00:05:00" for day in range(6, 9)))
    assert tags(table) == {"mine": 1, "2024-12-06": 3, "2024-12-07": 4}
    assert table.tags.get("2024-12-07").time_retained == timedelta(days=10)


def test_tags_are_deleted_at_their_age_after_commits():
    io = made(**{"tag.default-time-retained": "1 d"})
    table = commit(io, "2024-12-05T00:05:00")
    table.tags.create("v1")
    table.tags.create("v2", retained="9 d")
    assert tags(commit(io, "2024-12-06T00:05:00")) == {"v1": 1, "v2": 1}
    assert tags(commit(io, "2024-12-06T00:05:01")) == {"v2": 1}
    kept = at(made(**{"tag.time-expire-enabled": "false"}), "2024-12-05T00:05:00")
    kept.write(orders((1, "a", 1)))
    kept.tags.create("v1", retained="1 s")
    assert tags(commit(kept.store.io, "2025-12-06T00:05:00")) == {"v1": 1}


def test_batch_writes_replace_tag_of_day():
    io = made(**{"tag.automatic-creation": "batch"})
    assert tags(commit(io, "2024-12-05T00:05:00", "2024-12-05T10:05:00")) == {"batch-write-2024-12-05": 2}
    assert tags(commit(io, "2024-12-06T10:05:00")) == {"batch-write-2024-12-05": 2, "batch-write-2024-12-06": 3}
    table = at(io, "2024-12-07T10:05:00").with_options(
        {"tag.batch.customized-name": "done", "tag.num-retained-max": "2"}
    )
    table.write(orders((1, "a", 1)))
    assert tags(table) == {"batch-write-2024-12-06": 3, "done": 4}
    table.branches.create("b", snapshot_id=1)
    table.write(orders((1, "a", 1)))
    assert tags(table) == {"batch-write-2024-12-06": 3, "done": 6, "branch-b": 1}, "the tag of a branch stays"
    writer = table.writer()
    writer.write(orders((1, "a", 1)))
    IdempotentCommits(table.store, "stream").commit(writer.prepare_commit(), 0)
    assert [tag.name for tag in create_due_tags(table.store)] == [], "only batch writes"


def test_watermarks_have_zone():
    io = made(
        **{
            "tag.automatic-creation": "watermark",
            "tag.creation-period": "hourly",
            "sink.watermark-time-zone": "Asia/Tokyo",
        }
    )
    table = commit(io, "2024-12-05T00:05:00")
    assert tags(table) == {}
    for minute in (10, 50, 70):
        moment = datetime(2024, 12, 5, 10, tzinfo=timezone.utc) + timedelta(minutes=minute)
        writer = table.writer()
        writer.write(orders((1, "a", 1)))
        table.committer().commit(writer.prepare_commit(), watermark=int(moment.timestamp() * 1000))
    create_due_tags(table.store)
    tokyo = datetime(2024, 12, 5, 10, tzinfo=timezone.utc).astimezone(ZoneInfo("Asia/Tokyo"))
    assert tags(table) == {f"{tokyo - timedelta(hours=1):%Y-%m-%d %H}": 2, f"{tokyo:%Y-%m-%d %H}": 4}


def test_stream_without_rows_makes_snapshot_for_tag():
    io = made(**HOURLY)
    table = commit(io, "2024-12-05T10:05:00")
    numbers = iter(range(10))

    def empty(moment: str) -> int | None:
        store = at(io, moment).store
        snapshot = IdempotentCommits(store, "stream").commit([], next(numbers))
        create_due_tags(store)
        return None if snapshot is None else snapshot.id

    assert [empty("2024-12-05T10:55:00"), empty("2024-12-05T11:00:00"), empty("2024-12-05T11:10:00")] == [None, 2, None]
    assert tags(table) == {"2024-12-05 09": 1, "2024-12-05 10": 2}
    io = made(**{"tag.automatic-creation": "watermark", "snapshot.watermark-idle-timeout": "5 min"})
    table = commit(io, "2024-12-05T10:05:00")
    writer = table.writer()
    writer.write(orders((1, "a", 1)))
    table.committer().commit(writer.prepare_commit(), watermark=table.store.now())
    assert [empty("2024-12-05T10:09:59"), empty("2024-12-05T10:10:00")] == [None, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**HOURLY, "tag.creation-delay": "1 h"}, "must be less than the period"),
        ({"tag.automatic-creation": "watermark", "sink.watermark-time-zone": "Mars/Dust"}, "not a time zone"),
        ({}, "no automatic tags"),
    ],
)
def test_options_that_make_no_sense(options, message, caplog):
    table = commit(made(**options), "2024-12-05T10:05:00")
    if options:
        assert message in caplog.text
    with pytest.raises(InvalidInputError, match=message):
        trigger(table.store)


def test_success_files_follow_tags():
    io = made(**DAILY, **{"tag.create-success-file": "true", "tag.num-retained-max": "1"})
    commit(io, "2024-12-05T00:05:00")
    assert f"{ROOT}/tag/tag-success-file/2024-12-04_SUCCESS" in io.files
    table = commit(io, "2024-12-06T00:05:00")
    assert [path for path in io.files if "success" in path] == [f"{ROOT}/tag/tag-success-file/2024-12-05_SUCCESS"]
    assert b'"creationTime"' in io.files[f"{ROOT}/tag/tag-success-file/2024-12-05_SUCCESS"]
    assert tags(table) == {"2024-12-05": 2}


def test_many_snapshots_cost_few_reads():
    """The first snapshot that is due is searched by bisection, and without a due tag only the newest is read."""
    io = made(**DAILY, **{"write-only": "true"})
    commit(io, "2024-12-05T00:05:00", *(f"2024-12-05T{n // 60:02d}:{n % 60:02d}:00" for n in range(60, 120)))
    create_due_tags(at(io, "2024-12-05T10:00:00").store)
    table = commit(io, "2024-12-06T00:05:00", "2024-12-06T00:06:00")
    counting = FaultyIO(io)
    store = FileStore(counting, ROOT, table.store.schema, now=table.store.now)
    assert [tag.snapshot.id for tag in create_due_tags(store)] == [62]
    assert sum("/snapshot-" in path for verb, path in counting.log if verb == "read") < 20
    counting.log.clear()
    assert create_due_tags(store) == []
    assert sum("/snapshot-" in path for verb, path in counting.log if verb == "read") == 1


def test_existing_tags_are_not_read_if_none_is_due():
    """The names of the tags show that none is due; so a commit does not become slower with every tag."""
    io = made(**DAILY, **{"tag.num-retained-max": "9"})
    table = commit(io, *(f"2024-12-{day:02d}T00:05:00" for day in range(1, 8)))
    table.tags.create("v1")
    counting = FaultyIO(io)
    for moment, is_due in (("2024-12-07T00:06", False), ("2024-12-07T23:59:59", False), ("2024-12-08T00:00", True)):
        at(io, moment).with_options({"write-only": "true"}).write(orders((1, "a", 1)))
        counting.log.clear()
        create_due_tags(FileStore(counting, ROOT, table.store.schema, now=at(io, moment).store.now))
        assert any("/tag/" in path for verb, path in counting.log if verb == "read") == is_due
    assert len(tags(table)) == 9


def test_commits_read_only_new_tags(tmp_path):
    """A commit lists the tags to find expired ones, and reads only tags that are new to this process."""
    table, counting = on_disk(tmp_path)
    for number in range(5):
        table.tags.create(f"v{number}", retained="9 d")
    for new, reads in ((0, 5), (0, 0), (1, 1)):
        for number in range(new):
            table.tags.create(f"new{number}")
        counting.log.clear()
        table.write(orders((1, "a", 1)))
        assert sum("/tag/" in path for verb, path in counting.log if verb == "read") == reads


def test_tag_that_was_replaced_within_a_tick_keeps_its_files(tmp_path):
    """A file of the same size and time may be another tag: it is not expired, and its snapshot keeps its files."""
    table, _ = on_disk(tmp_path)
    for number in range(2, 6):
        table.write(orders((number, "a", 1)))
    path = tmp_path / "t" / "tag" / "tag-v"
    table.tags.create("v", 2)
    written = path.stat()
    assert [tag.snapshot.id for tag in table.store.tags.remembered()] == [2]
    table.tags.replace("v", 3)
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert path.stat().st_size == written.st_size
    assert [tag.snapshot.id for tag in table.store.tags.remembered()] == [2], "the process does not see the change"
    table.maintenance.expire_snapshots(retain_max=1)
    assert len(table.snapshots()) == 1
    assert table.to_arrow(tag="v").column("id").to_pylist() == [1, 2, 3]


def test_tags_of_store_without_times_are_always_read():
    class TimelessIO(MemoryIO):
        def list(self, directory):
            return [file._replace(modified_ms=UNKNOWN_MODIFIED) for file in super().list(directory)]

    io = TimelessIO()
    create_table(io, ROOT, Schema(ORDERS, ["id"], [], {"bucket": "1"}))
    table = commit(io, "2024-12-05T00:05:00", "2024-12-05T00:06:00", "2024-12-05T00:07:00")
    for number in (2, 3):
        io.files[f"{ROOT}/tag/tag-v"] = io.files[f"{ROOT}/snapshot/snapshot-{number}"]
        assert [tag.snapshot.id for tag in table.store.tags.remembered()] == [number]


def on_disk(directory: Path) -> tuple[Table, FaultyIO]:
    """A table with a snapshot, and the log of its requests."""
    root, counting = str(directory / "t"), FaultyIO(FileIO.of(str(directory)))
    create_table(counting, root, Schema(ORDERS, ["id"], [], {"bucket": "1"}))
    table = Table(FileStore(counting, root, Schemas(counting, root).latest()))
    table.write(orders((1, "a", 1)))
    return table, counting


def test_local_time_uses_time_zone_of_process(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        io = made(**HOURLY)
        store = FileStore(io, ROOT, Schemas(io, ROOT).latest(), now=lambda: 1_733_392_800_000)  # 10:00 in UTC
        Table(store).write(orders((1, "a", 1)))
        assert tags(Table(store)) == {"2024-12-05 18": 1}
    finally:
        monkeypatch.undo()
        time.tzset()
