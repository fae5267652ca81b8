"""Roll back: make an older snapshot the newest one again (behaviour 7.13)."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.publish import withdraw
from paimon_core.commit.publisher import ORPHAN_SECONDS
from paimon_core.errors import CommitConflictError, InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.iceberg.sync import sync_after_change
from paimon_core.operations.history.delete_tag import is_in_timeline
from paimon_core.operations.history.table_tags import TableTags
from paimon_core.scan.read_rules import check_types_since
from paimon_core.snapshot.snapshot import NO_WATERMARK, Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.snapshot.time_travel import TimeTravel, epoch_millis
from paimon_core.store.current_schema import check_same_table, publish_current_schema
from paimon_core.store.file_store import FileStore

_POLL_SECONDS = 0.05
_GUARD = timedelta(hours=1)  # retention time of the tag, in case a crash leaves it behind


def rollback_target(store: FileStore, version: int | str) -> Snapshot:
    """Return the snapshot with an id or a tag's name. A tag takes precedence over a snapshot id.

    Raises NotFoundError for a name that is not a tag, OutOfRangeError for an id that does not exist.
    """
    if isinstance(version, int):
        return store.snapshots.get(version)
    target = TimeTravel(version=version).resolve(store.snapshots, store.tags)
    if target is None:
        raise NotFoundError(f"{store.branch_root} has no snapshots to roll back to")
    return target


def newest_at(store: FileStore, millis: int) -> Snapshot:
    """Return the newest snapshot committed at or before ``millis`` (epoch ms).

    Raises OutOfRangeError if all snapshots are newer, NotFoundError for a table without snapshots.
    """
    target = TimeTravel(timestamp_millis=millis).resolve(store.snapshots, store.tags)
    if target is None:
        raise NotFoundError(f"{store.branch_root} has no snapshots to roll back to")
    return target


def newest_with_watermark(store: FileStore, watermark: int) -> Snapshot:
    """Return the newest snapshot with a watermark of at most ``watermark``. Raises NotFoundError without one."""
    for snapshot in reversed(list(store.snapshots.all())):
        if snapshot.watermark not in (None, NO_WATERMARK) and snapshot.watermark <= watermark:
            return snapshot
    raise NotFoundError(f"no snapshot of {store.branch_root} has a watermark of {watermark} or less")


def target_of(
    store: FileStore,
    version: int | str | None,
    timestamp: datetime | str | int | None = None,
    watermark: int | None = None,
) -> Snapshot:
    """Return the snapshot that the single argument other than `None` selects: see the functions above.

    Raises InvalidInputError if no argument or several are set, and the errors of these functions.
    """
    choices = [choice for choice in (version, timestamp, watermark) if choice is not None]
    if len(choices) != 1:
        raise InvalidInputError(f"pass exactly one of a snapshot or tag, a timestamp and a watermark, not {choices}")
    if timestamp is not None:
        return newest_at(store, epoch_millis(timestamp))
    if watermark is not None:
        return newest_with_watermark(store, watermark)
    assert version is not None  # exactly one is set
    return rollback_target(store, version)


def rollback(store: FileStore, target: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Delete all snapshots, changelogs and tags after ``target``; return the previous newest snapshot, and ``target``.

    The schema does not change, unless the table was replaced since, or a ``REPLACE TABLE`` was interrupted before its
    rows were committed; then the old schema is published again. Data files of the deleted snapshots stay until orphan
    files are removed. A tagged snapshot that has expired becomes a snapshot again. Commits that started from ``target``
    during the call stay. After a crash the table is at ``target`` or at a newer snapshot, and another rollback finishes
    the work.

    Raises InvalidInputError for a table without snapshots, and as `check_types_since`; OutOfRangeError if ``target``
    has expired and has no tag; CommitConflictError if another rollback removes it; NotFoundError if another table is
    there by now.
    """
    store.check_can_commit()
    snapshots = store.snapshots
    before = snapshots.latest()
    check_same_table(store.schemas, store.schema)
    if before is None:
        raise InvalidInputError(f"{store.branch_root} has no snapshots: there is nothing to roll back")
    check_types_since(store, target)
    if store.environment.decided_by_server and store.environment.roll_back(store, target, _expired_tag(store, target)):
        return before, target
    try:
        newest = _roll_back(store, target)
    except (CommitConflictError, OutOfRangeError):
        if ids := snapshots.ids():
            snapshots.point_to(ids[-1])  # not to the target, which another rollback has removed
        raise
    snapshots.point_to(newest.id)
    if snapshots.ids()[:1] == [target.id]:  # a tag's snapshot, restored by this or by an interrupted call
        snapshots.write_hint("EARLIEST", target.id)
    store.changelogs.remove_after(target.id)
    for tag in store.tags.list():
        if _is_after(tag, target) and not is_in_timeline(store, tag.snapshot):
            store.tags.delete(tag.name)
    publish_current_schema(store.schemas, store.environment)
    sync_after_change(store)
    return before, target


def _expired_tag(store: FileStore, target: Snapshot) -> str | None:
    """Return the name of a tag of a snapshot that has expired; `None`: it has not, or has no tag."""
    if store.snapshots.exists(target.id):
        return None
    return next((tag.name for tag in store.tags.list() if tag.snapshot.fingerprint == target.fingerprint), None)


def _roll_back(store: FileStore, target: Snapshot) -> Snapshot:
    """Delete the snapshots after the target; return the newest snapshot then. Raises the errors of `rollback`."""
    with _protected(store, target):
        _put_back(store, target, replaces=True)
        store.snapshots.write_hint("LATEST", target.id)
        _delete_snapshots(store, [number for number in store.snapshots.ids() if number > target.id])
        newest = _without_old_history(store, target)
        _put_back(store, target, replaces=False)
    return newest


@contextmanager
def _protected(store: FileStore, target: Snapshot) -> Iterator[None]:
    """Tag the target during the block, so that a concurrent expiry keeps its files.

    Raises OutOfRangeError if the target has expired and has no tag.
    """
    if any(tag.snapshot.fingerprint == target.fingerprint for tag in store.tags.list()):
        yield
        return
    tag = TableTags(store).create(f"rollback-{target.id}-{store.new_name()[:8]}", target.id, _GUARD)
    try:
        if tag.snapshot.fingerprint != target.fingerprint:
            raise OutOfRangeError(
                f"snapshot {target.id} of {store.branch_root} was rolled back by another call: check the snapshots"
            )
        yield
    finally:
        with best_effort("deleting the tag of a rollback"):
            store.tags.delete(tag.name)


def _put_back(store: FileStore, target: Snapshot, *, replaces: bool) -> None:
    """Make the target a snapshot again if it has expired and a tag keeps its files.

    ``replaces``: True to replace a snapshot of another history with the same id.

    Raises CommitConflictError if another rollback has removed the target, with its tag or with the snapshots before it.
    """
    if is_in_timeline(store, target):
        return
    started, path = time.monotonic(), store.snapshots.path(target.id)
    tagged = any(tag.snapshot.fingerprint == target.fingerprint for tag in store.tags.list())
    if tagged and _follows(store, target):
        with store.environment.locked():
            if replaces:
                store.io.write(path, target.to_json())
            elif not store.io.create_exclusive(path, target.to_json()) and not is_in_timeline(store, target):
                raise _removed(store, target)  # another commit has its id
        store.sync([path])
        if _follows(store, target):
            return
        withdraw(store, target, started)
    raise _removed(store, target)


def _removed(store: FileStore, target: Snapshot) -> CommitConflictError:
    return CommitConflictError(
        f"{store.branch_root} cannot be rolled back to snapshot {target.id}: another rollback has removed it"
    )


def _follows(store: FileStore, target: Snapshot) -> bool:
    """Return True if the target was built on the snapshot before it, or all snapshots before it have expired.

    Snapshots expire oldest first, so a rollback must have removed the one before it if older ones exist.
    """
    older = [number for number in store.snapshots.ids() if number < target.id]
    return not older or (older[-1] == target.id - 1 and target.was_built_on(store.snapshots.find(older[-1])))


def _delete_snapshots(store: FileStore, ids: Sequence[int]) -> None:
    """Delete snapshots, newest first, so that a commit whose base still exists is listed or began later."""
    for number in reversed(ids):
        store.io.delete(store.snapshots.path(number))
    store.sync(store.snapshots.path(number) for number in ids)


def _without_old_history(store: FileStore, target: Snapshot) -> Snapshot:
    """Wait until no snapshot built on a deleted one remains; return the newest snapshot.

    A committer that finds its base deleted deletes its own snapshot. The rollback deletes the snapshot only after a
    while, when the committer must be dead: if both deleted the file, the later delete could hit a new commit's file
    with the same name.
    """
    deadline = time.monotonic() + ORPHAN_SECONDS
    while True:
        newest, old = target, []
        for number in store.snapshots.ids():
            snapshot = store.snapshots.find(number) if number > target.id else None
            if snapshot is None:
                continue
            if number == newest.id + 1 and snapshot.was_built_on(newest):
                newest = snapshot
            else:
                old.append(snapshot)
        if not old:
            return newest
        dead = time.monotonic() > deadline
        _delete_snapshots(store, [one.id for one in old if dead or one.parent_delta_manifest_list is None])
        if not dead:
            time.sleep(_POLL_SECONDS)


def _is_after(tag: Tag, target: Snapshot) -> bool:
    """Return True if a rollback to ``target`` removes the snapshot of the tag."""
    return tag.snapshot.id > target.id or (
        tag.snapshot.id == target.id and tag.snapshot.fingerprint != target.fingerprint
    )
