"""Wrong clocks: writers that are ahead or behind, clocks that jump back, zones, daylight saving time, leap days."""

from datetime import datetime

import pyarrow as pa
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.clock import earlier_clock
from paimon_core.table import Table
from tests.year.world import DAY, HOUR, MINUTE, World, in_zone

COLUMNS = pa.schema([pa.field("day", pa.string(), nullable=False), ("n", pa.int64())])


def world_at(moment: str, **ahead: int) -> World:
    """A world at a local time, with machines whose clocks are ahead."""
    found = World(round(datetime.fromisoformat(moment).timestamp() * 1000))
    found.clock.ahead.update(ahead)
    return found


def make(world: World, **options: str) -> None:
    given = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    world.create("t", Schema(COLUMNS, [], ["day"], {"file.format": "avro", **given}))


def write(world: World, machine: str = "steady", day: str | None = None) -> Table:
    table = world.open("t", machine)
    table.write(pa.table([[day or world.clock.day], [world.clock.time]], schema=COLUMNS))
    return table


def test_times_do_not_decrease_and_select_snapshots():
    world = world_at("2028-01-01T10:00:00", ahead=10 * MINUTE, behind=-10 * MINUTE)
    make(world)
    begin = world.clock.time
    for machine in ("steady", "ahead", "behind", "steady", "behind"):
        table = write(world, machine)
        world.clock.time += MINUTE
    times = [(snapshot.time_millis - begin) // MINUTE for snapshot in table.snapshots()]
    assert times == [0, 11, 11, 11, 11], "snapshots wait for the clock of the machine that is ahead"
    assert table.snapshot(timestamp=begin + 5 * MINUTE).id == 1
    assert table.snapshot(timestamp=begin + 11 * MINUTE).id == 5


def test_clock_that_is_behind_expires_nothing_itself():
    world = world_at("2028-01-01T10:00:00", behind=-3 * HOUR)
    make(world, snapshot__num_retained__min="1", snapshot__time_retained="2 h")
    write(world)
    world.clock.time += HOUR
    write(world, "behind")
    world.clock.time += 100 * MINUTE
    assert [s.id for s in write(world, "behind").snapshots()] == [1, 2, 3]
    assert [s.time_millis for s in world.open("t").snapshots()][1:] == 2 * [world.clock.time - 160 * MINUTE]
    assert [s.id for s in write(world).snapshots()] == [4], "by their times all others are older than two hours"


def test_clock_of_store_prevails_over_machine_that_is_ahead(caplog):
    """A machine is a year ahead: it must delete no file of a running writer, and nothing that is not due."""
    world = world_at("2028-01-01T10:00:00", wrong=365 * DAY)
    make(world, partition__expiration_time="30 d", partition__expiration_check_interval="1 h",
         consumer__expiration_time="10 d", tag__default_time_retained="20 d")  # fmt: skip
    table = write(world)
    table.tags.create("kept")
    table.consumers.reset("reader", 1)
    running = world.open("t").writer()
    running.write(pa.table([["2028-01-01"], [7]], schema=COLUMNS))
    messages = running.prepare_commit()
    world.clock.time += HOUR
    wrong = write(world, "wrong")
    assert wrong.maintenance.remove_orphan_files().count == 0
    assert wrong.maintenance.expire_partitions() == []
    assert wrong.tags.expire() == []
    assert "is 31536000 s ahead of the clock of the store" in caplog.text
    table.committer().commit(messages)
    assert table.to_arrow().num_rows == 3
    assert [tag.name for tag in table.tags.list()] == ["kept"]
    assert Consumers(table.store.io, table.path).list() == {"reader": 1}
    assert not table.verify(deep=True).faults


def test_earlier_clock_leaves_no_file():
    world = world_at("2028-01-01T10:00:00", ahead=HOUR, behind=-HOUR, little=MINUTE)
    make(world)
    before = set(world.disk.files)
    times = [earlier_clock(world.open("t", machine).store) for machine in ("steady", "ahead", "behind", "little")]
    assert [(time - world.clock.time) // MINUTE for time in times] == [0, 0, -60, 1]
    assert set(world.disk.files) == before


@pytest.mark.parametrize(
    ("begin", "hours", "names"),
    [
        ("2028-02-28T22:00:00", 5, ["28 21", "28 22", "28 23", "29 00", "29 01"]),
        ("2028-03-26T00:00:00", 4, ["25 23", "26 00", "26 02", "26 03"]),  # there is no 02:00, and 03:00 ends it
        ("2028-10-29T01:00:00", 4, ["29 00", "29 01", "29 02"]),  # 02:00 comes twice, and the tag is the first one's
    ],
)
def test_hourly_tags_over_leap_day_and_daylight_saving_time(begin, hours, names):
    with in_zone("Europe/Berlin"):
        world = world_at(begin)
        make(world, tag__automatic_creation="process-time", tag__creation_period="hourly")
        for _ in range(hours):
            table = write(world)
            world.clock.time += HOUR
        assert [tag.name[8:] for tag in table.tags.list()] == names


def test_tags_are_created_once_by_clocks_that_differ_at_midnight():
    world = world_at("2028-02-28T23:52:00", ahead=10 * MINUTE, behind=-10 * MINUTE)
    make(world, tag__automatic_creation="process-time")
    for _ in range(10):
        for machine in ("steady", "ahead", "behind"):
            table = write(world, machine)
        world.clock.time += 3 * MINUTE
    assert [tag.name for tag in table.tags.list()] == ["2028-02-27", "2028-02-28"]
    world.clock.time += DAY
    assert [tag.name for tag in write(world, "behind").tags.list()][2:] == ["2028-02-29"]


def test_partition_of_leap_day_expires_in_local_time():
    with in_zone("America/New_York"):
        world = world_at("2028-02-28T12:00:00")
        make(world, partition__expiration_time="1 d", partition__expiration_check_interval="1 s")
        write(world, day="2028-02-28")
        write(world, day="2028-02-29")
        left = []
        for moment in ("2028-02-28T23:59:00", "2028-02-29T00:00:01", "2028-02-29T23:59:59", "2028-03-01T00:00:01"):
            world.clock.time = round(datetime.fromisoformat(moment).timestamp() * 1000)
            left.append(sorted({*write(world, day="9999-01-01").to_arrow().column("day").to_pylist()})[:-1])
        assert left == [["2028-02-28", "2028-02-29"], ["2028-02-29"], ["2028-02-29"], []]
