"""Every selector finds its snapshot or says what there is instead."""

import json
from datetime import datetime, timedelta, timezone

import pytest

from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.snapshot.snapshot import NO_WATERMARK, Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags
from paimon_core.snapshot.time_travel import TimeTravel, epoch_millis
from tests.support.faulty_io import MemoryIO

ROOT = "memory://t"


def content(number, watermark=None):
    return Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="b",
        delta_manifest_list="d",
        commit_user="u",
        commit_identifier=number,
        commit_kind="APPEND",
        time_millis=number * 1000,
        watermark=watermark,
    ).to_json()


def table(ids=(3, 4, 5), tags=(), watermarks=()):
    marks = dict(watermarks)
    files = {f"{ROOT}/snapshot/snapshot-{number}": content(number, marks.get(number)) for number in ids}
    files |= {f"{ROOT}/tag/tag-{name}": content(number) for name, number in tags}
    io = MemoryIO(files)
    return Snapshots(io, ROOT), Tags(io, ROOT)


def ask(where, **selector):
    found = TimeTravel(**selector).resolve(*where)
    return found.id if found else None


TAGS = [("v1", 1), ("4", 2), ("watermark-9", 5)]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, 5),
        ({"snapshot_id": 4}, 4),
        ({"tag": "v1"}, 1),
        ({"tag": "4"}, 2),
        ({"timestamp_millis": 4000}, 4),
        ({"timestamp_millis": 4999}, 4),
        ({"timestamp_millis": 2**53}, 5),
        ({"version": "v1"}, 1),
        ({"version": "4"}, 2),  # a tag of that name wins over the id
        ({"version": "5"}, 5),
        ({"version": 3}, 3),
        ({"version": "watermark-9"}, 5),
        ({"version": "watermark-150"}, 5),
        ({"watermark": 100}, 4),
        ({"watermark": 101}, 5),
        ({"watermark": -7}, 4),
    ],
)
def test_each_selector_finds_its_snapshot(selector, expected):
    assert ask(table(tags=TAGS, watermarks={3: NO_WATERMARK, 4: 100, 5: 200}), **selector) == expected


@pytest.mark.parametrize(
    ("selector", "error", "message"),
    [
        ({"snapshot_id": 2}, OutOfRangeError, "snapshot 2 of memory://t does not exist; available: 3 to 5"),
        ({"version": "6"}, OutOfRangeError, "available: 3 to 5"),
        ({"version": "v2"}, NotFoundError, r"version 'v2' .* \(there are 4, v1, watermark-9\)"),
        ({"version": "-1"}, NotFoundError, "nor a snapshot id"),
        ({"version": "a/b"}, NotFoundError, "version 'a/b'"),
        ({"version": ""}, NotFoundError, "version ''"),
        ({"tag": "v2"}, NotFoundError, "tag 'v2' of memory://t does not exist; there are 4, v1"),
        (
            {"timestamp_millis": 2999},
            OutOfRangeError,
            r"no snapshot earlier than or equal to timestamp 2999 \(1970-01-01 00:00:02.999\+00:00\) .* snapshot 3",
        ),
        ({"watermark": 201}, OutOfRangeError, "later than or equal to 201 .*the highest is 200"),
        (
            {"snapshot_id": 3, "tag": "v1"},
            InvalidInputError,
            "only one of the following parameters may be set: snapshot_id, tag",
        ),
    ],
)
def test_missing_snapshot_is_named(selector, error, message):
    with pytest.raises(error, match=message):
        ask(table(tags=TAGS, watermarks={4: 100, 5: 200}), **selector)


def test_time_travel_on_empty_table():
    empty = table(ids=())
    assert ask(empty) is ask(empty, timestamp_millis=5) is ask(empty, watermark=5) is None
    with pytest.raises(OutOfRangeError, match="no snapshots"):
        ask(empty, snapshot_id=1)
    with pytest.raises(NotFoundError, match="there are no tags"):
        ask(empty, tag="a")


def test_watermark_without_any_in_table_is_refused():
    with pytest.raises(OutOfRangeError, match="no snapshot has a watermark"):
        ask(table(), watermark=1)


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ([2026, 11, 21, 9, 5, 7, 123456789], datetime(2026, 11, 21, 9, 5, 7, 123456)),
        ([2026, 11, 21, 9, 5], datetime(2026, 11, 21, 9, 5)),
        ("2026-11-21T09:05:07", datetime(2026, 11, 21, 9, 5, 7)),
        (None, None),
    ],
)
def test_tags_carry_their_retention(created, expected):
    where, tags = table()
    record = {**json.loads(content(3)), "tagCreateTime": created, "tagTimeRetained": 129605.0, "other": 1}
    where.io.write(tags.path("t"), json.dumps(record).encode())
    tag = tags.get("t")
    assert (tag.create_time, tag.time_retained) == (expected, timedelta(hours=36, seconds=5))
    assert tag.snapshot.extra == {"other": 1}


@pytest.mark.parametrize("created", [[2026], [2026, 13, 1], "soon", 5, {}])
def test_broken_creation_time_is_corrupted(created):
    where, tags = table()
    where.io.write(tags.path("t"), json.dumps({**json.loads(content(3)), "tagCreateTime": created}).encode())
    with pytest.raises(CorruptedError, match="tag/tag-t: cannot read tagCreateTime"):
        tags.get("t")


def test_tags_are_listed_by_snapshot_without_marker_files():
    where, tags = table(tags=[("b", 3), ("a", 4), ("c", 3)])
    where.io.write(f"{ROOT}/tag/tag-success-file/a_SUCCESS", b"")
    assert [(tag.name, tag.snapshot.id) for tag in tags.list()] == [("b", 3), ("c", 3), ("a", 4)]
    assert tags.names() == ["a", "b", "c"]


def test_moment_is_same_as_argument_and_as_option():
    assert TimeTravel.of({"timestamp": "1970-01-01 00:00:07+00:00", "tag": None}) == TimeTravel(timestamp_millis=7000)
    assert TimeTravel.from_options({"scan.timestamp-millis": "7000"}) == TimeTravel.of({"timestamp": 7000})
    assert TimeTravel.from_options({"scan.version": "3", "bucket": "1"}) == TimeTravel.of({"version": 3})
    assert TimeTravel.from_options({}) == TimeTravel.of({}) == TimeTravel()
    assert epoch_millis(" 7000 ") == epoch_millis(datetime(1970, 1, 1, 0, 0, 7, tzinfo=timezone.utc)) == 7000
    with pytest.raises(InvalidInputError, match=r"'scan.timestamp', 'scan.timestamp-millis' each choose a snapshot"):
        TimeTravel.from_options({"scan.timestamp-millis": "7000", "scan.timestamp": "1970-01-01"})
    refusals = [
        ({"wen": 1}, "unknown argument 'wen'"),
        ({"snapshot": 1}, "unknown argument 'snapshot'.*did you mean 'snapshot_id'"),
        ({"snapshot_id": "x"}, "must be a number"),
    ]
    for when, message in refusals:
        with pytest.raises(InvalidInputError, match=message):
            TimeTravel.of(when)
