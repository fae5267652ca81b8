"""Which snapshot a reader means: by id, tag, time, version text or watermark."""

from datetime import datetime, timezone

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.snapshot.snapshot import NO_WATERMARK, Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags

_WATERMARK_PREFIX = "watermark-"


def resolve(
    snapshots: Snapshots,
    tags: Tags,
    *,
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp_millis: int | None = None,
    version: str | int | None = None,
    watermark: int | None = None,
) -> Snapshot | None:
    """The snapshot meant by the one selector given; the latest where none is.

    - ``snapshot_id``: that one
    - ``tag``: the tagged one, expired or not
    - ``timestamp_millis``: the newest at or before (epoch ms)
    - ``watermark``: the oldest with at least this watermark
    - ``version``: a tag of that name, else ``watermark-<n>``, else digits are an id

    None: the table is empty, and no id or tag was asked for. InvalidInputError for two selectors;
    OutOfRangeError for an id, time or watermark out of the range it names; NotFoundError for a tag or version.
    """
    given = {
        "snapshot_id": snapshot_id,
        "tag": tag,
        "timestamp_millis": timestamp_millis,
        "version": version,
        "watermark": watermark,
    }
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InvalidInputError(f"only one of the following parameters may be set: {', '.join(names)}")
    if snapshot_id is not None:
        return snapshots.get(snapshot_id)
    if tag is not None:
        return tags.get(tag).snapshot
    if timestamp_millis is not None:
        return _at(snapshots, timestamp_millis)
    if watermark is not None:
        return _at_watermark(snapshots, watermark)
    return snapshots.latest() if version is None else _of_version(snapshots, tags, str(version).strip())


def _of_version(snapshots: Snapshots, tags: Tags, version: str) -> Snapshot | None:
    tagged = tags.find(version)
    if tagged is not None:
        return tagged.snapshot
    number = version.removeprefix(_WATERMARK_PREFIX)
    if number.isascii() and number.isdigit():
        return snapshots.get(int(number)) if number == version else _at_watermark(snapshots, int(number))
    raise NotFoundError(
        f"version {version!r} of {snapshots.root} does not exist: it is neither a tag ({tags.summary()}), "
        f"nor {_WATERMARK_PREFIX}<number>, nor a snapshot id"
    )


def _at(snapshots: Snapshots, millis: int) -> Snapshot | None:
    found = snapshots.at_or_before(millis)
    if found is not None:
        return found
    earliest = snapshots.earliest()
    if earliest is None:
        return None
    raise OutOfRangeError(
        f"there is currently no snapshot earlier than or equal to timestamp {_moment(millis)} in {snapshots.root}; "
        f"the earliest is snapshot {earliest.id} of {_moment(earliest.time_millis)}"
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
    seen = "no snapshot has a watermark" if highest is None else f"the highest is {highest}"
    raise OutOfRangeError(
        f"there is currently no snapshot with a watermark later than or equal to {watermark} "
        f"in {snapshots.root}; {seen}"
    )


def _moment(millis: int) -> str:
    try:
        text = datetime.fromtimestamp(millis / 1000, timezone.utc).isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(millis)
    return f"{millis} ({text})"
