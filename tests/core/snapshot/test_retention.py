"""Retention of snapshots: the rule for each id, and the numbers of the reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.options.option import Options
from paimon_core.snapshot.retention import (
    Retention,
    changelog_retention,
    first_retained,
    outlived,
    snapshot_retention,
)

MANY = 2**31 - 1
HOUR = 3_600_000


def hourly(ids):
    return [number * HOUR for number in ids]


def kept_of_20(*, earliest=1, below=None, **rules):
    """The first id kept of snapshots 1 to 20, one an hour, at half past the last one's hour."""
    known = {"least": 10, "most": MANY, "older_than": int(19.5 * HOUR), "limit": 50}
    return first_retained(Retention(**{**known, **rules}), earliest, 20, below, hourly)


@pytest.mark.parametrize(
    ("rules", "first"),
    [
        ({}, 11),
        ({"least": 1}, 20),
        ({"least": 1, "older_than": 19 * HOUR}, 19),
        ({"least": 1, "most": 5, "older_than": 0}, 16),
        ({"below": 4}, 4),
        ({"limit": 2}, 3),
        ({"earliest": 15}, 15),
        ({"least": 30}, 1),
        ({"least": 1, "older_than": 0}, 1),
        ({"least": 1, "older_than": 100 * HOUR}, 20),
    ],
)
def test_first_retained_of_hourly_snapshots(rules, first):
    assert kept_of_20(**rules) == first


numbers = st.integers(1, 12)


@given(earliest=numbers, count=numbers, least=numbers, more=st.integers(0, 12), limit=numbers, data=st.data())
def test_retention_keeps_each_id_as_defined(earliest, count, least, more, limit, data):
    """All below the first kept may go, and the first kept may not: counted out for every id by itself."""
    latest = earliest + count - 1
    times = data.draw(st.lists(st.integers(0, 9) | st.none(), min_size=count, max_size=count))
    older_than, below = data.draw(st.integers(0, 10)), data.draw(st.none() | st.integers(0, 25))
    retention = Retention(least, least + more, older_than, limit)
    at = dict(zip(range(earliest, latest + 1), times, strict=True))
    requested = []

    def look(ids):
        for number in ids:
            requested.append(number)
            yield at[number]

    first = first_retained(retention, earliest, latest, below, look)

    def stays(number: int) -> bool:
        newer = latest - number
        young = newer < retention.most and at[number] is not None and at[number] >= older_than
        return newer < least or number - earliest >= limit or (below is not None and number >= below) or young

    assert earliest <= first <= latest
    assert not any(stays(number) for number in range(earliest, first))
    assert stays(first)
    assert requested == sorted(set(requested))
    assert all(number <= first for number in requested)


def test_retention_from_options():
    now = 10 * HOUR
    assert snapshot_retention(Options({}), now) == Retention(10, MANY, 9 * HOUR, 50)
    given_ = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "5", "snapshot.time-retained": "2 h"}
    assert snapshot_retention(Options(given_), now) == changelog_retention(Options(given_), now)
    assert not outlived(Options(given_))
    longer = {"changelog.num-retained.min": "3", "changelog.num-retained.max": "6", "changelog.time-retained": "3 h"}
    assert changelog_retention(Options(given_ | longer), now) == Retention(3, 6, 7 * HOUR, 50)
    for key, value in longer.items():
        assert outlived(Options(given_ | {key: value}))
    assert not outlived(Options(given_ | {"changelog.time-retained": "1 h"}))


def test_contradicting_limits_are_refused():
    with pytest.raises(InvalidInputError, match="at least 5 snapshots, but at most 4"):
        Retention(5, 4, 0, 1)
    with pytest.raises(InvalidInputError, match="the minimum is 1"):
        Retention(0, 4, 0, 1)
