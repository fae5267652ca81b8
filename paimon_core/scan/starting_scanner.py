"""The start of a stream, which ``scan.mode`` and related options define (behaviour 9.1)."""

from paimon_core.errors import InvalidInputError, OutOfRangeError, UnsupportedError
from paimon_core.options.lsm import FULL_COMPACTION_DELTA_COMMITS
from paimon_core.options.scan import (
    CONSUMER_ID,
    CONSUMER_IGNORE_PROGRESS,
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_SCAN_MODE,
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FALLBACK_BRANCH,
    SCAN_FILE_CREATION_TIME_MILLIS,
    SCAN_MODE,
    SCAN_PRIMARY_BRANCH,
    SCAN_SNAPSHOT_ID,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
)
from paimon_core.scan.position import ALL, Position
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.store.change_range import earliest_change, find_change
from paimon_core.store.file_store import FileStore

_MODE_BY_OPTION = (
    ("from-timestamp", ("scan.timestamp", "scan.timestamp-millis")),
    ("from-snapshot", ("scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version")),
    ("from-file-creation-time", ("scan.file-creation-time-millis",)),
    ("from-creation-timestamp", ("scan.creation-time-millis",)),
    ("incremental", ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")),
)
BRANCH_OPTIONS = frozenset({SCAN_FALLBACK_BRANCH.key, SCAN_PRIMARY_BRANCH.key})
"""The options of batch reads that name a second branch to read."""
_START_OPTIONS = frozenset({SCAN_MODE.key, *(key for _, keys in _MODE_BY_OPTION for key in keys)})


def own_branch(store: FileStore) -> FileStore:
    """Return the table without the options that name a second branch: a stream reads only the table's own branch."""
    return _without(store, BRANCH_OPTIONS)


def without_start(store: FileStore) -> FileStore:
    """Return the table without the options that choose a start or name a second branch.

    With these options a batch read would read one snapshot, or rows of both branches.
    """
    return _without(store, _START_OPTIONS | BRANCH_OPTIONS)


def _without(store: FileStore, options: frozenset[str]) -> FileStore:
    keys = [key for key in options if key in store.options]
    return store.with_schema(store.schema.copy(dict.fromkeys(keys))) if keys else store


def scan_mode(store: FileStore) -> str:
    """Return the mode that ``scan.mode`` names or that other options imply, by default ``latest-full``."""
    mode = str(store.options.value(SCAN_MODE))
    if mode == "default":
        implied = (name for name, keys in _MODE_BY_OPTION if any(key in store.options for key in keys))
        return next(implied, "latest-full")
    return "latest-full" if mode == "full" else mode


def starting_position(store: FileStore) -> Position:
    """Return the start of a new stream, without the table's identity; undecided if the snapshot does not exist yet.

    A consumer with recorded progress continues from its progress. Raises InvalidInputError or UnsupportedError for
    modes and options that streams do not support, OutOfRangeError for a snapshot that does not exist yet.
    """
    consumer = store.options.value(CONSUMER_ID)
    if consumer is not None and not store.options.value(CONSUMER_IGNORE_PROGRESS):
        following = Consumers(store.io, store.branch_root).get(consumer)
        if following is not None:
            return position_before(store, following)
    mode = scan_mode(store)
    bounds = incremental_bounds(store)
    if bounds is not None:
        return position_before(store, bounds[0] + 1)
    latest = store.snapshots.latest()
    if mode == "latest":
        return Position(0, ALL) if latest is None else Position.end_of(latest)
    if mode == "from-snapshot":
        return _from_snapshot(store, latest)
    if mode == "from-timestamp":
        return _from_time(store, _start_millis(store), latest)
    since = created_since(store)
    if mode == "from-creation-timestamp" and latest is None:
        return Position(0, ALL)
    if mode == "from-creation-timestamp" and since is not None and store.snapshots.at_or_before(since) is not None:
        return _from_time(store, since, latest)
    if since is not None and store.schema.primary_keys:
        raise UnsupportedError(
            f"a stream of {store.root} cannot start with files by creation time: rows of a table with a primary key "
            "are merged from files of any age. Use 'scan.timestamp-millis' or 'scan.snapshot-id'"
        )
    return Position(0, -1, scan_snapshot=True) if latest is None else _before_rows(_scanned(store, mode, latest))


def created_since(store: FileStore) -> int | None:
    """Return the least creation time (epoch ms) of files in the first scan; `None`: files of any age."""
    options = store.options
    mode = scan_mode(store)
    if mode == "from-file-creation-time":
        return options.value(SCAN_FILE_CREATION_TIME_MILLIS)
    return options.value(SCAN_CREATION_TIME_MILLIS) if mode == "from-creation-timestamp" else None


def incremental_bounds(store: FileStore) -> tuple[int, int] | None:
    """Return the snapshots after which a stream in mode ``incremental`` starts and ends; `None` in other modes.

    The last snapshot need not exist yet. Raises InvalidInputError unless both ends are snapshots, and UnsupportedError
    for a mode of batch reads.
    """
    if scan_mode(store) != "incremental":
        return None
    source = store.options.value(INCREMENTAL_BETWEEN_SCAN_MODE)
    if source != INCREMENTAL_BETWEEN_SCAN_MODE.default:
        raise UnsupportedError(
            f"{INCREMENTAL_BETWEEN_SCAN_MODE.key!r} = {source!r} is for batch reads: remove it from a stream"
        )
    text = store.options.value(INCREMENTAL_BETWEEN)
    numbers = [part.strip() for part in (text or "").split(",")]
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() for n in numbers) or int(numbers[0]) > int(numbers[1]):
        raise InvalidInputError(
            f"{INCREMENTAL_BETWEEN.key!r} is {text!r}: a stream needs two snapshot ids in ascending order, such as "
            "'3,7'. Tags and times are for batch reads: use the ids of their snapshots"
        )
    return int(numbers[0]), int(numbers[1])


def _scanned(store: FileStore, mode: str, latest: Snapshot) -> Snapshot:
    """Return the snapshot whose rows the stream emits first. InvalidInputError for a mode of batch reads."""
    if mode == "from-snapshot-full":
        requested = store.options.value(SCAN_SNAPSHOT_ID) or 1
        if requested > latest.id:
            raise OutOfRangeError(_not_yet(store, requested, latest.id))
        earliest = store.snapshots.earliest()
        return store.snapshots.get(max(requested, latest.id if earliest is None else earliest.id))
    if mode == "compacted-full":
        return _compacted(store) or latest
    if mode in ("latest-full", "from-file-creation-time", "from-creation-timestamp"):
        return latest
    raise InvalidInputError(f"'scan.mode' = {mode!r} is for batch reads: choose another mode for a stream")


def _compacted(store: FileStore) -> Snapshot | None:
    """Return the newest snapshot of a compaction, or with ``full-compaction.delta-commits`` of a full compaction."""
    every = store.options.value(FULL_COMPACTION_DELTA_COMMITS)
    if every is None and store.traits.changelog_producer == "full-compaction":
        every = 1
    for snapshot_id in reversed(store.snapshots.ids()):
        snapshot = store.snapshots.find(snapshot_id)
        if snapshot is not None and snapshot.commit_kind == CommitKind.COMPACT:
            identifier = snapshot.commit_identifier
            if every is None or identifier == BATCH_COMMIT_IDENTIFIER or identifier % every == 0:
                return snapshot
    return None


def _from_snapshot(store: FileStore, latest: Snapshot | None) -> Position:
    """Return the position before the snapshot of ``scan.snapshot-id``, or before the oldest snapshot if it is newer."""
    requested = store.options.value(SCAN_SNAPSHOT_ID)
    if requested is None:
        raise UnsupportedError(
            "a stream in mode 'from-snapshot' needs 'scan.snapshot-id': tags, versions and watermarks are for batch "
            "reads"
        )
    last = 0 if latest is None else latest.id
    if requested > last + 1:
        raise OutOfRangeError(_not_yet(store, requested, last))
    return position_before(store, max(requested, earliest_change(store) or 1))


def _from_time(store: FileStore, millis: int, latest: Snapshot | None) -> Position:
    """Return the position before the first snapshot at or after `millis` (epoch ms)."""
    if latest is None:
        return Position(0, ALL)
    older = store.snapshots.at_or_before(millis - 1)
    if older is not None:
        return Position.end_of(older)
    past = (changelog for changelog in store.changelogs.all() if changelog.time_millis < millis)
    last = max((changelog.id for changelog in past), default=None)
    return position_before(store, (earliest_change(store) or 1) if last is None else last + 1)


def _start_millis(store: FileStore) -> int:
    """Return ``scan.timestamp-millis``, or ``scan.timestamp``, which is local time, in epoch milliseconds."""
    millis, text = store.options.value(SCAN_TIMESTAMP_MILLIS), store.options.value(SCAN_TIMESTAMP)
    return int(millis or 0) if millis is not None or text is None else epoch_millis(text)


def position_before(store: FileStore, snapshot_id: int) -> Position:
    """Return the position before the changes of this snapshot."""
    previous = find_change(store, snapshot_id - 1)
    return Position(snapshot_id - 1, ALL) if previous is None else Position.end_of(previous)


def _before_rows(snapshot: Snapshot) -> Position:
    return Position(snapshot.id, -1, scan_snapshot=True, fingerprint=snapshot.fingerprint)


def _not_yet(store: FileStore, requested: int, last: int) -> str:
    """Return the message for a start at a snapshot that does not exist yet."""
    return (
        f"a stream of {store.root} cannot start at snapshot {requested}: the newest snapshot is {last}. "
        f"Choose an id up to {last + 1}"
    )
