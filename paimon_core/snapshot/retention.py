"""Retention of snapshots and of changelogs that outlive them (behaviour 7.10)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import chain

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.options.option import Options
from paimon_core.options.snapshot import (
    CHANGELOG_NUM_RETAINED_MAX,
    CHANGELOG_NUM_RETAINED_MIN,
    CHANGELOG_TIME_RETAINED,
    SNAPSHOT_EXPIRE_LIMIT,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
    SNAPSHOT_TIME_RETAINED,
)
from paimon_core.snapshot.snapshot import Snapshot

Times = Callable[[range], Iterable[int | None]]
"""A function from ids to commit times (epoch ms) in the order of the ids, read lazily; `None`: no such id."""


LISTED_FOR_ONE = 1_000
"""The most ids that an expiry after a commit lists for each id that it removes."""


@dataclass(frozen=True, slots=True)
class Retention:
    """A retention rule: at least ``least`` and at most ``most`` of the newest ids stay.

    Between the two bounds, ids with a commit time from ``older_than`` on (epoch ms) stay. One expiry removes at most
    ``limit`` ids.
    """

    least: int
    most: int
    older_than: int
    limit: int

    def __post_init__(self) -> None:
        if self.least < 1:
            raise InvalidInputError(f"cannot keep at least {self.least} snapshots: the minimum is 1, the newest one")
        if self.most < self.least:
            raise InvalidInputError(
                f"cannot keep at least {self.least} snapshots, but at most {self.most}: lower the first number or "
                "raise the second"
            )


def snapshot_retention(options: Options, now: int) -> Retention:
    """Return the rule for snapshots from the options ``snapshot.*`` at the time ``now`` (epoch ms)."""
    return Retention(
        options.value(SNAPSHOT_NUM_RETAINED_MIN),
        options.value(SNAPSHOT_NUM_RETAINED_MAX),
        now - _millis(options.value(SNAPSHOT_TIME_RETAINED)),
        options.value(SNAPSHOT_EXPIRE_LIMIT),
    )


def changelog_retention(options: Options, now: int) -> Retention:
    """Return the rule for changelogs from the options ``changelog.*`` at the time ``now`` (epoch ms).

    An option that is not set takes the value of its counterpart for snapshots.
    """
    least, most, time = _changelog_options(options)
    return Retention(least, most, now - _millis(time), options.value(SNAPSHOT_EXPIRE_LIMIT))


def outlived(options: Options) -> bool:
    """Return True if changelogs stay longer than their snapshots."""
    least, most, time = _changelog_options(options)
    return (
        least > options.value(SNAPSHOT_NUM_RETAINED_MIN)
        or most > options.value(SNAPSHOT_NUM_RETAINED_MAX)
        or time > options.value(SNAPSHOT_TIME_RETAINED)
    )


def times_of(find: Callable[[int], Snapshot | None]) -> Times:
    """Return a function for the commit times of snapshots or changelogs, which reads each of them once.

    The first one is read on its own: in a table with frequent expiry it is usually too new, and no other one needs to
    be read.
    """
    find = cache(find)

    def times(ids: range) -> Iterator[int | None]:
        found = chain(map(find, ids[:1]), parallel_map(find, ids[1:]))
        return (None if one is None else one.time_millis for one in found)

    return times


def first_retained(retention: Retention, earliest: int, latest: int, bound: int | None, times: Times) -> int:
    """Return the oldest id that stays; ``earliest``: no id expires.

    Args:
        retention: the rule.
        earliest: the oldest existing id.
        latest: the newest existing id.
        bound: an id from which all ids stay, regardless of their age; `None`: no bound.
        times: the commit times of ids.
    """
    end = min(latest - retention.least + 1, earliest + retention.limit, latest + 1 if bound is None else bound)
    aged = range(max(latest - retention.most + 1, earliest), end)
    for number, time in zip(aged, times(aged), strict=False):
        if time is not None and time >= retention.older_than:
            return number
    return max(end, earliest)


def least_due(retention: Retention, earliest: int, latest: int, *, patient: bool) -> int:
    """Return the number of ids that must be due for an expiry to start: 1, unless it is ``patient``.

    An expiry lists all ids. If each commit of a table with 10,000 snapshots expires one of them, a listing takes longer
    than the rest of the commit. So a patient expiry waits until a thousandth of the ids is due.
    """
    return max(1, min((latest - earliest) // LISTED_FOR_ONE, retention.limit)) if patient else 1


def are_due(retention: Retention, least: int, earliest: int, latest: int, times: Times) -> bool:
    """Return True if at least ``least`` ids are due, apart from bounds such as consumers. Arguments: `first_retained`.

    Cost: reads one id, because commit times never decrease.
    """
    last = earliest + least - 1
    return first_retained(replace(retention, limit=1), last, latest, None, times) > last


def _changelog_options(options: Options) -> tuple[int, int, timedelta]:
    least, most = options.value(CHANGELOG_NUM_RETAINED_MIN), options.value(CHANGELOG_NUM_RETAINED_MAX)
    time = options.value(CHANGELOG_TIME_RETAINED)
    return (
        options.value(SNAPSHOT_NUM_RETAINED_MIN) if least is None else least,
        options.value(SNAPSHOT_NUM_RETAINED_MAX) if most is None else most,
        options.value(SNAPSHOT_TIME_RETAINED) if time is None else time,
    )


def _millis(time: timedelta) -> int:
    return time // timedelta(milliseconds=1)
