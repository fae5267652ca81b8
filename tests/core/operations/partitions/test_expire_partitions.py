"""Expiry of partitions: which are due, what a drop leaves, and when a commit checks."""

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.operations.partitions import expire_partitions as module
from paimon_core.operations.partitions.partition_time import time_parser, time_text
from paimon_core.options.option import Options
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import MemoryIO

ROOT = "memory://w/t"
HOUR, DAY = 3_600_000, 86_400_000
COLUMNS = pa.schema([("dt", pa.string()), ("hour", pa.int32()), ("v", pa.int64())])


def micros(text: str | None) -> int | None:
    moment = None if text is None else datetime.fromisoformat(text) - datetime(1970, 1, 1)
    return None if moment is None else moment // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("format", "text", "time"),
    [
        (None, "2024-01-05", "2024-01-05"),
        (None, "2024-1-5", "2024-01-05"),
        (None, "2024-1-5 7:8:9", "2024-01-05T07:08:09"),
        (None, "2024-01-05 07:08:09.25", "2024-01-05T07:08:09.250"),
        (None, "2024-13-05", "2025-01-05"),
        (None, "2024-02-31 25:00:00", "2024-03-03T01:00:00"),
        (None, "2024-01-05 07", None),
        (None, "20240105", None),
        (None, " 2024-01-05", None),
        (None, "tomorrow", None),
        ("yyyyMMdd", "20240105", "2024-01-05"),
        ("yyyyMMdd", "2024-01-05", None),
        ("yyyyMMdd", "20240231", "2024-02-29"),
        ("yyyyMMdd", "20240132", None),
        ("yyyyMMdd", "20241301", None),
        ("yyyyMMddHH", "2024010523", "2024-01-05T23:00:00"),
        ("yyyyMMddHH", "2024010524", None),
        ("yyyy-M-d H:m", "2024-1-5 7:8", "2024-01-05T07:08:00"),
        ("yy/MM/dd", "24/01/05", "2024-01-05"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-01-05T07:08:09.250", "2024-01-05T07:08:09.250"),
        ("yyyy-MM-dd[ HH:mm]", "2024-01-05", "2024-01-05"),
        ("yyyy-MM-dd[ HH:mm]", "2024-01-05 07:08", "2024-01-05T07:08:00"),
        ("yyyy-MM-dd mm", "2024-01-05 08", "2024-01-05"),
        ("yyyyMM", "202401", None),
        ("yyyy'' MM dd", "2024' 01 05", "2024-01-05"),
    ],
)
def test_times_of_texts(format, text, time):
    assert time_parser(format)(text) == micros(time)


def test_partition_times_beyond_range_of_python():
    assert time_parser(None)("-0001-01-01") < micros("0001-01-01")
    assert time_parser(None)("12024-02-29") - time_parser(None)("2024-02-29") == 10_000 // 400 * 146_097 * DAY * 1000


@pytest.mark.parametrize("format", ["yyyy-MMM-dd", "E yyyy", "hh a", "yyyy-MM-dd{", "yyyy[", "'yyyy", "DDD"])
def test_formats_that_are_refused(format):
    with pytest.raises(UnsupportedError, match=r"partition\.timestamp-formatter"):
        time_parser(format)


def test_patterns_name_columns():
    values = {"d": "5", "day": "2024-01-05", "h": "7"}
    assert time_text(None, {"x": "1", "y": "2"}) == "1"
    assert time_text("$day $h:00 $other", values) == "2024-01-05 7:00 $other"
    assert time_text("$d-$day", values) == "5-2024-01-05"


def table_of(now: str, *rows: tuple, columns: pa.Schema = COLUMNS, keys=("dt", "hour"), **options: str) -> Table:
    """A table whose clock is at a time, with one partition for each row."""
    given = {key.replace("_", "-").replace("partition-", "partition."): text for key, text in options.items()}
    io = MemoryIO()
    create_table(io, ROOT, Schema(columns, [], list(keys), given))
    table = opened(io, now)
    if rows:
        data = [pa.array(list(c), f.type) for c, f in zip(zip(*rows, strict=True), columns, strict=True)]
        table.write(pa.table(data, schema=columns))
    return table


def opened(io: MemoryIO, now: str) -> Table:
    schema = Schemas(io, ROOT).latest()
    millis = int(datetime.fromisoformat(now).timestamp() * 1000)
    return Table(FileStore(io, ROOT, schema, now=lambda: millis))


def left(table: Table) -> list[object]:
    return sorted(table.to_arrow(columns=["v"]).column("v").to_pylist())


ROWS = (
    ("2024-01-01", 1, 1),
    ("2024-01-02", 23, 2),
    ("2024-01-03", 0, 3),
    ("later", 1, 4),
    (None, 1, 5),
    ("2024-01-02", None, 6),
)


def test_values_decide_by_first_column():
    table = table_of("2024-01-05T00:00:00", *ROWS)
    verbs = table.maintenance
    assert verbs.expire_partitions("3 d", dry_run=True) == [{"dt": "2024-01-01", "hour": "1"}]
    assert left(table) == [1, 2, 3, 4, 5, 6]
    null = {"dt": "2024-01-02", "hour": "__DEFAULT_PARTITION__"}
    assert verbs.expire_partitions(timedelta(days=2)) == [
        {"dt": "2024-01-01", "hour": "1"}, {"dt": "2024-01-02", "hour": "23"}, null
    ]  # fmt: skip
    assert left(table) == [3, 4, 5]
    newest = table.snapshot()
    assert newest.commit_kind == "OVERWRITE"
    assert verbs.expire_partitions("2 d") == []
    assert table.snapshot() == newest


def test_values_decide_by_pattern():
    table = table_of("2024-01-03T01:00:01", *ROWS)
    actual = table.maintenance.expire_partitions("2 h", timestamp_pattern="$dt $hour:00:00")
    assert [one["hour"] for one in actual] == ["1", "23"]
    assert left(table) == [3, 4, 5, 6]


def test_partition_expires_only_after_its_age():
    rows = [("2024-01-02", 0, 1)]
    assert table_of("2024-01-05T00:00:00", *rows).maintenance.expire_partitions("3 d") == []
    assert len(table_of("2024-01-05T00:00:00.001", *rows).maintenance.expire_partitions("3 d")) == 1


def test_dates_and_timestamps_are_times():
    columns = pa.schema([("dt", pa.date32()), ("ts", pa.timestamp("ms")), ("v", pa.int64())])
    rows = [(date(2024, 1, day), datetime(2024, 1, day, 12), day) for day in (1, 2, 3)]
    by_date = table_of("2024-01-05T00:00:00", *rows, columns=columns, keys=("dt", "ts"))
    assert [one["dt"] for one in by_date.maintenance.expire_partitions("3 d")] == ["2024-01-01"]
    by_time = table_of("2024-01-05T00:00:00", *rows, columns=columns, keys=("ts", "dt"))
    assert len(by_time.maintenance.expire_partitions("59 h")) == 2


def test_newest_file_decides_by_update_time():
    io = table_of("2024-01-01T00:00:00", ("a", 1, 1), ("b", 1, 2)).store.io
    opened(io, "2024-01-03T00:00:00").write(pa.table([["b"], pa.array([1], "int32"), [3]], schema=COLUMNS))
    table = opened(io, "2024-01-04T00:00:00")
    assert table.maintenance.expire_partitions("2 d", strategy="update-time") == [{"dt": "a", "hour": "1"}]
    assert left(table) == [2, 3]


def test_partition_with_new_file_stays_by_update_time(monkeypatch):
    io = table_of("2024-01-01T00:00:00", ("a", 1, 1), ("b", 1, 2)).store.io
    table, found = opened(io, "2024-01-04T00:00:00"), module._due

    def due(*args, **kwargs):
        monkeypatch.setattr(module, "_due", found)
        due = found(*args, **kwargs)
        table.write(pa.table([["a"], pa.array([1], "int32"), [3]], schema=COLUMNS))
        return due

    monkeypatch.setattr(module, "_due", due)
    assert table.maintenance.expire_partitions("2 d", strategy="UPDATE_TIME") == [{"dt": "b", "hour": "1"}]
    assert left(table) == [1, 3]


def files(table: Table) -> dict[str | None, int]:
    """The number of files by the first column of their partition."""
    newest = table.snapshot()
    assert newest is not None
    entries = live_entries(table.store, newest).live
    found = [table.store.partition_values(entry.partition)[0] for entry in entries]
    return {value: found.count(value) for value in found}


def test_compaction_skips_expiring_partitions():
    io = table_of("2024-01-01T00:00:00", ("2024-01-01", 1, 1), ("2024-01-04", 1, 2), (None, 1, 3)).store.io
    table = opened(io, "2024-01-05T00:00:00").with_options({"partition.expiration-check-interval": "100 d"})
    table.write(table.to_arrow())
    table.with_options({"compaction.skip-expired-partitions": "true"}).compact(full=True)  # without an age none expires
    assert files(table) == {"2024-01-01": 1, "2024-01-04": 1, None: 1}
    table.write(table.to_arrow())
    aged = table.with_options({"partition.expiration-time": "2 d"})
    skipping = aged.with_options({"compaction.skip-expired-partitions": "true"})
    skipping.compact(full=True)
    assert files(table) == {"2024-01-01": 2, "2024-01-04": 1, None: 1}
    assert skipping.compact(full=True, partitions=[{"dt": "2024-01-01", "hour": 1}]) is None
    aged.compact(full=True)
    assert files(table) == {"2024-01-01": 1, "2024-01-04": 1, None: 1}


def test_compaction_leaves_out_table_that_expires():
    options = {"partition.expiration-time": "1 d", "compaction.skip-expired-partitions": "true"}
    table = table_of("2024-01-05T00:00:00", ("2024-01-01", 1, 1)).with_options(options)
    table.write(table.to_arrow())
    assert table.compact(full=True) is None


def test_partitions_expire_in_limited_commits():
    rows = [(f"2024-01-0{n}", 1, n) for n in range(1, 8)]
    table = table_of("2025-01-01T00:00:00", *rows, partition_expiration_batch_size="2")
    assert len(table.maintenance.expire_partitions("1 d", max_num=5)) == 5
    assert left(table) == [6, 7]
    assert [s.commit_kind for s in table.snapshots()] == ["APPEND", *["OVERWRITE"] * 3]


@pytest.mark.parametrize(
    ("options", "checked"),
    [
        ({}, [False, False, True, False]),
        ({"partition.expiration-check-interval": "0 s"}, [True] * 4),
        ({"end-input.check-partition-expire": "true"}, [True] * 4),
        ({"write-only": "true", "partition.expiration-check-interval": "0 s"}, [False] * 4),
        ({"partition.expiration-time": None}, [False] * 4),
    ],
)
def test_commits_check_once_in_interval(monkeypatch, options, checked):
    """The third commit is the first one of its hour; a table without offset is checked at full hours."""
    monkeypatch.setattr(module, "blake2b", lambda *a, **k: type("", (), {"digest": lambda self: b"\0"})())
    given = {"partition.expiration-time": "1 d", "commit.max-retries": "0"} | options
    io = MemoryIO()
    settings = {key: text for key, text in given.items() if text is not None}
    create_table(io, ROOT, Schema(COLUMNS, [], ["dt", "hour"], settings))
    opened(io, "2024-01-05T10:05:00").write(pa.table([["new"], pa.array([1], "int32"), [0]], schema=COLUMNS))
    for minute, expected in zip(("10:10", "10:59", "11:00", "11:59"), checked, strict=True):
        table = opened(io, f"2024-01-05T{minute}:00")
        table.write(pa.table([["2024-01-01"], pa.array([1], "int32"), [1]], schema=COLUMNS))
        assert (1 not in left(opened(io, f"2024-01-05T{minute}:00"))) == expected, minute


def test_commit_that_compacts_checks_too():
    """The snapshot before the newest one is of the same commit: it does not decide whether the interval is new."""
    columns = pa.schema([pa.field("dt", pa.string(), nullable=False), pa.field("v", pa.int64(), nullable=False)])
    options = {"bucket": "1", "changelog-producer": "lookup", "partition.expiration-time": "1 d"}
    io = MemoryIO()
    create_table(io, ROOT, Schema(columns, ["dt", "v"], ["dt"], options))
    opened(io, "2024-01-01T10:00:00").write(pa.table([["2024-01-01"], [1]], schema=columns))
    table = opened(io, "2024-01-05T10:00:00")
    table.write(pa.table([["2024-01-05"], [2]], schema=columns))
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds == ["APPEND", "COMPACT", "APPEND", "COMPACT", "OVERWRITE"]
    assert left(table) == [2]


def test_dedicated_job_checks_for_writers_that_do_not():
    io = MemoryIO()
    options = {"write-only": "true", "bucket": "1", "bucket-key": "v", "partition.expiration-time": "1 d"}
    create_table(io, ROOT, Schema(COLUMNS, [], ["dt", "hour"], options))
    for moment in ("01T10:00", "01T10:01", "05T10:00", "05T10:01", "05T10:02"):
        table = opened(io, f"2024-01-{moment}:00")
        table.write(pa.table([[f"2024-01-{moment[:2]}"], pa.array([1], "int32"), [1]], schema=COLUMNS))
        if moment in ("01T10:01", "05T10:02"):
            table.compact(full=True)
    assert {*table.to_arrow().column("dt").to_pylist()} == {"2024-01-05"}


def test_expiry_that_fails_after_commit_is_logged(caplog):
    options = {"partition.expiration-time": "1 d", "partition.expiration-check-interval": "0 s"}
    io = MemoryIO()
    create_table(io, ROOT, Schema(COLUMNS, [], ["dt", "hour"], options | {"partition.expiration-strategy": "my.Class"}))
    table = opened(io, "2024-01-05T10:05:00")
    assert table.write(pa.table([["2024-01-01"], pa.array([1], "int32"), [1]], schema=COLUMNS)).id == 1
    assert "'my.class': use 'values-time' or 'update-time'" in caplog.text


def test_tables_without_partitions_or_age_are_refused():
    with pytest.raises(InvalidInputError, match=r"not set.*'partition.expiration-time'"):
        table_of("2024-01-05T00:00:00").maintenance.expire_partitions()
    with pytest.raises(InvalidInputError, match="no partitions"):
        table_of("2024-01-05T00:00:00", keys=()).maintenance.expire_partitions("1 d")
    with pytest.raises(InvalidInputError, match=r"partition\.expiration-time"):
        table_of("2024-01-05T00:00:00").maintenance.expire_partitions("one day")
    assert Options({}).value(module.PARTITION_EXPIRATION_STRATEGY) == "values-time"
