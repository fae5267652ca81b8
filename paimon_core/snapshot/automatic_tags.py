"""Names and times of automatic tags, as pure functions (behaviour 7.12).

Time is divided into periods, and a tag is named after the period that has ended: the tag 2024-12-04 is the first
snapshot of 2024-12-05. Times here are local times in milliseconds since 1970-01-01T00:00, without a zone. Commit times
are in the zone of the process, watermarks in the zone ``sink.watermark-time-zone``.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from paimon_core.errors import InvalidInputError
from paimon_core.options.option import Options
from paimon_core.options.snapshot import (
    SINK_WATERMARK_TIME_ZONE,
    SNAPSHOT_WATERMARK_IDLE_TIMEOUT,
    TAG_AUTOMATIC_COMPLETION,
    TAG_AUTOMATIC_CREATION,
    TAG_CREATION_DELAY,
    TAG_CREATION_PERIOD,
    TAG_CREATION_PERIOD_DURATION,
    TAG_PERIOD_FORMATTER,
)
from paimon_core.snapshot.snapshot import NO_WATERMARK, Snapshot
from paimon_core.snapshot.tags import Tag

_MILLI = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1)
_PERIODS: Final = {"daily": timedelta(days=1), "hourly": timedelta(hours=1), "two-hours": timedelta(hours=2)}
_NAMES: Final = {
    ("daily", "with_dashes"): "%Y-%m-%d",
    ("daily", "without_dashes"): "%Y%m%d",
    ("daily", "without_dashes_and_spaces"): "%Y%m%d",
    ("hourly", "with_dashes"): "%Y-%m-%d %H",
    ("hourly", "without_dashes"): "%Y%m%d %H",
    ("hourly", "without_dashes_and_spaces"): "%Y%m%d%H",
}
_OF_DURATIONS: Final = "%Y%m%d%H%M"
_DIGITS: Final = {"%Y": r"\d{4}", "%m": r"\d{2}", "%d": r"\d{2}", "%H": r"\d{2}", "%M": r"\d{2}"}


@dataclass(frozen=True, slots=True)
class AutomaticTags:
    """The rule for the automatic tags of one table. ``zone``: the zone of watermarks; ``None``: commit times count."""

    period: int
    delay: int
    name_format: str
    zone: ZoneInfo | None
    by_watermark: bool
    completion: bool
    idle_timeout: int | None

    @classmethod
    def of(cls, options: Options) -> "AutomaticTags | None":
        """Return the rule of a table. ``None``: no automatic tags.

        Raises InvalidInputError for a delay that is not below the period, and for an unknown zone.
        """
        mode = options.value(TAG_AUTOMATIC_CREATION)
        if mode not in ("process-time", "watermark"):
            return None
        by_watermark, idle = mode == "watermark", options.value(SNAPSHOT_WATERMARK_IDLE_TIMEOUT)
        length, kind = options.value(TAG_CREATION_PERIOD_DURATION), options.value(TAG_CREATION_PERIOD)
        form = "with_dashes" if kind == "two-hours" else options.value(TAG_PERIOD_FORMATTER)
        name_format = _NAMES["hourly" if kind == "two-hours" else kind, form] if length is None else _OF_DURATIONS
        period, delay = (_PERIODS[kind] if length is None else length), options.value(TAG_CREATION_DELAY)
        if delay >= period:
            raise InvalidInputError(
                f"option {TAG_CREATION_DELAY.key!r} is {delay}: it must be less than the period of tags, {period}"
            )
        zone = _zone(options.value(SINK_WATERMARK_TIME_ZONE)) if by_watermark else None
        completion = options.value(TAG_AUTOMATIC_COMPLETION)
        return cls(
            period // _MILLI,
            delay // _MILLI,
            name_format,
            zone,
            by_watermark,
            completion,
            None if idle is None else idle // _MILLI,
        )

    def time_of(self, snapshot: Snapshot) -> int | None:
        """Return the local time of a snapshot; ``None``: it has no watermark."""
        if not self.by_watermark:
            return _local(snapshot.time_millis)
        if snapshot.watermark in (None, NO_WATERMARK):
            return None
        return _local(snapshot.watermark, self.zone)

    def name(self, time: int) -> str:
        """Return the name of the period that begins at a time."""
        return (_EPOCH + time * _MILLI).strftime(self.name_format)

    def begin(self, name: str) -> int | None:
        """Return the start of the period of an automatic tag. ``None``: not the name of an automatic tag."""
        if self.name_format == "%Y-%m-%d":
            name = name.split(" ")[0]  # an hourly tag, from before the period was changed
        pattern = re.sub("%.", lambda match: _DIGITS[match[0]], self.name_format)
        try:
            parsed = datetime.strptime(name, self.name_format) if re.fullmatch(pattern, name) else None
        except ValueError:
            return None
        return None if parsed is None else (parsed - _EPOCH) // _MILLI

    def automatic(self, tags: Iterable[Tag]) -> list[Tag]:
        """Return the tags with names of automatic tags, sorted by snapshot, then by name."""
        return sorted((t for t in tags if self.begin(t.name) is not None), key=lambda t: (t.snapshot.id, t.name))

    def following(self, tags: Iterable[Tag]) -> int | None:
        """Return the end of the newest automatic tag's period. ``None``: no automatic tag."""
        automatic = self.automatic(tags)
        begin = self.begin(automatic[-1].name) if automatic else None
        return None if begin is None else begin + self.period

    def is_due(self, time: int, following: int | None) -> bool:
        """Return True if a snapshot with this time gets a tag. ``following``: the result of `following`."""
        return following is None or time - self.delay >= following + self.period

    def is_tagged(self, time: int, names: Sequence[str]) -> bool:
        """Return True if no tag is due at a time, according to the sorted names of all tags.

        Names sort like their periods. The name of a later period, which a user has given, does not count.
        """
        begins = (self.begin(name) for name in reversed(names))
        newest = next((begin for begin in begins if begin is not None and begin <= time), None)
        return newest is not None and not self.is_due(time, newest + self.period)

    def tagged(self, time: int, following: int | None) -> int:
        """Return the start of the period of the tag that is due at this time."""
        if self.completion and following is not None:
            return following
        return time // self.period * self.period - self.period

    def wants_snapshot(self, now: int, latest: Snapshot | None, tags: Iterable[Tag]) -> bool:
        """Return True if a stream without changes must publish a snapshot, so that a tag can be created.

        By process time: the tag is due now (epoch milliseconds). By watermark: the watermark is older than
        ``snapshot.watermark-idle-timeout``.
        """
        if not self.by_watermark:
            return self.is_due(_local(now), self.following(tags))
        if self.idle_timeout is None or latest is None or latest.watermark in (None, NO_WATERMARK):
            return False
        return now - self.idle_timeout >= latest.watermark


def batch_tag_name(snapshot: Snapshot) -> str:
    """Return the name of the tag of a batch write, which contains the day of its commit."""
    return "batch-write-" + (_EPOCH + _local(snapshot.time_millis) * _MILLI).strftime("%Y-%m-%d")


def _local(epoch_millis: int, zone: ZoneInfo | None = None) -> int:
    """Return an instant as local time. ``zone``: `None`: the zone of the process."""
    instant = datetime(1970, 1, 1, tzinfo=timezone.utc) + epoch_millis * _MILLI
    return (instant.astimezone(zone).replace(tzinfo=None) - _EPOCH) // _MILLI


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidInputError(
            f"option {SINK_WATERMARK_TIME_ZONE.key!r} is {name!r}, which is not a time zone such as 'Europe/Berlin'"
        ) from error
