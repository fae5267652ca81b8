"""The snapshot of a read, chosen by id, tag, time, version text or watermark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone, tzinfo
from typing import Any, TypedDict

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, nearest_name
from paimon_core.snapshot.snapshot import NO_WATERMARK, Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags

_WATERMARK_PREFIX = "watermark-"
_INTEGERS = {"snapshot_id", "timestamp_millis", "watermark"}


OPTIONS = {
    "scan.snapshot-id": "snapshot_id",
    "scan.tag-name": "tag",
    "scan.timestamp": "timestamp",
    "scan.timestamp-millis": "timestamp",
    "scan.version": "version",
    "scan.watermark": "watermark",
}
"""Options that choose a snapshot, and the keyword arguments with the same meaning."""


class TimeTravelArguments(TypedDict, total=False):
    """The keyword arguments that choose the snapshot of a read: at most one of them. `None` counts as absent."""

    snapshot_id: int | None
    """The id of the snapshot."""
    tag: str | None
    """The name of a tag."""
    timestamp: datetime | str | int | None
    """Epoch milliseconds, a datetime, or text such as "2026-01-31 12:00:00" in local time."""
    version: str | int | None
    """The name of a tag, ``watermark-<n>``, or else a snapshot id."""
    watermark: int | None
    """The oldest snapshot with at least this watermark, in epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """A selector of a snapshot; without values, the newest snapshot. Raises InvalidInputError for two values.

    - ``snapshot_id``: this snapshot
    - ``tag``: the tagged snapshot, expired or not
    - ``timestamp_millis``: the newest snapshot at or before this time (epoch ms)
    - ``watermark``: the oldest snapshot with at least this watermark
    - ``version``: a tag of this name, else ``watermark-<n>``, else a snapshot id in digits
    """

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    version: str | int | None = None
    watermark: int | None = None

    def __post_init__(self) -> None:
        selectors = [f.name for f in fields(self) if getattr(self, f.name) is not None]
        if len(selectors) > 1:
            raise InvalidInputError(f"only one of the following parameters may be set: {', '.join(selectors)}")

    @staticmethod
    def of(when: Mapping[str, object]) -> "TimeTravel":
        """Return the selector among keyword arguments; an argument `None` counts as absent.

        Raises InvalidInputError for an unknown argument, with the nearest name, for two arguments, and for a value of
        the wrong kind.
        """
        names = sorted(TimeTravelArguments.__annotations__)
        if unknown := sorted(when.keys() - names):
            near = nearest_name(unknown[0], names)
            hint = "" if near is None else f"; did you mean {near!r}?"
            raise InvalidInputError(f"unknown argument {unknown[0]!r}: time travel takes one of {names}{hint}")
        arguments = {name: value for name, value in when.items() if value is not None}
        if "timestamp" in arguments:
            arguments["timestamp_millis"] = epoch_millis(arguments.pop("timestamp"))
        values: Any = {name: _as_integer(name, v) if name in _INTEGERS else str(v) for name, v in arguments.items()}
        return TimeTravel(**values)

    @staticmethod
    def from_options(options: Mapping[str, str]) -> "TimeTravel":
        """Return the selector among table options; raises as `of` does."""
        keys = [key for key in OPTIONS if key in options]
        if len(keys) > 1:
            raise InvalidInputError(
                f"options {', '.join(map(repr, keys))} each choose a snapshot: set only one of them"
            )
        return TimeTravel.of({OPTIONS[key]: options[key] for key in keys})

    @property
    def argument(self) -> str | None:
        """The name of the argument that is set; `None`: the newest snapshot."""
        name = next((field.name for field in fields(self) if getattr(self, field.name) is not None), None)
        return "timestamp" if name == "timestamp_millis" else name

    def resolve(self, snapshots: Snapshots, tags: Tags) -> Snapshot | None:
        """Return the selected snapshot. `None`: the table is empty, and the selector is neither an id nor a tag.

        Raises OutOfRangeError for an id, time or watermark without a snapshot, NotFoundError for a missing tag or
        version.
        """
        if self.snapshot_id is not None:
            return snapshots.get(self.snapshot_id)
        if self.tag is not None:
            return tags.get(self.tag).snapshot
        if self.timestamp_millis is not None:
            return _at(snapshots, self.timestamp_millis)
        if self.watermark is not None:
            return _at_watermark(snapshots, self.watermark)
        return snapshots.latest() if self.version is None else _of_version(snapshots, tags, str(self.version).strip())


NEWEST = TimeTravel()


_UTC = re.compile("[zZ]$")  # datetime.fromisoformat accepts it since Python 3.11


def epoch_millis(moment: object, zone: tzinfo | None = None) -> int:
    """Return the epoch milliseconds of a number, a datetime, or a text of either.

    Args:
        moment: the number, datetime or text.
        zone: the time zone of a datetime or text without one; `None`: the local time zone of this process.

    Raises InvalidInputError for a moment of another kind or form.
    """
    if isinstance(moment, str) and not moment.strip().lstrip("-").isdigit():
        try:
            moment = datetime.fromisoformat(_UTC.sub("+00:00", moment.strip()))
        except ValueError as error:
            raise InvalidInputError(
                f"timestamp {moment!r} is neither epoch milliseconds nor a date and time such as '2026-01-31 12:00:00'"
            ) from error
    if isinstance(moment, datetime):
        moment = moment if zone is None or moment.tzinfo is not None else moment.replace(tzinfo=zone)
        return int(moment.astimezone(timezone.utc).timestamp() * 1000)
    return _as_integer("timestamp", moment)


def _as_integer(name: str, value: object) -> int:
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be a number, not {value!r}") from error


def _of_version(snapshots: Snapshots, tags: Tags, version: str) -> Snapshot | None:
    tagged = tags.find(version)
    if tagged is not None:
        return tagged.snapshot
    number = version.removeprefix(_WATERMARK_PREFIX)
    if number.isascii() and number.isdigit():
        return snapshots.get(int(number)) if number == version else _at_watermark(snapshots, int(number))
    raise NotFoundError(
        f"version {version!r} of {snapshots.root} does not exist: it is neither a tag ({tags.summary(version)}), "
        f"nor {_WATERMARK_PREFIX}<number>, nor a snapshot id"
    )


def _at(snapshots: Snapshots, millis: int) -> Snapshot | None:
    snapshot = snapshots.at_or_before(millis)
    if snapshot is not None:
        return snapshot
    earliest = snapshots.earliest()
    if earliest is None:
        return None
    raise OutOfRangeError(
        f"there is currently no snapshot earlier than or equal to timestamp {_shown(millis)} in {snapshots.root}; "
        f"the earliest is snapshot {earliest.id} of {_shown(earliest.time_millis)}"
    )


def _at_watermark(snapshots: Snapshots, watermark: int) -> Snapshot | None:
    highest = None
    for snapshot in snapshots.all():
        if snapshot.watermark is None or snapshot.watermark == NO_WATERMARK:
            continue
        if snapshot.watermark >= watermark:
            return snapshot
        highest = snapshot.watermark
    if snapshots.latest_id() is None:
        return None
    available = "no snapshot has a watermark" if highest is None else f"the highest is {highest}"
    raise OutOfRangeError(
        f"there is currently no snapshot with a watermark later than or equal to {watermark} "
        f"in {snapshots.root}; {available}"
    )


def _shown(millis: int) -> str:
    try:
        text = datetime.fromtimestamp(millis / 1000, timezone.utc).isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(millis)
    return f"{millis} ({text})"
