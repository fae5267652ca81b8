"""Expire snapshots and the files that only they need (behaviour 7.10).

First plan the files to delete. Then delete the snapshots, oldest first, and after them their files. Thus a late reader
finds its snapshot expired, never a snapshot without its files. A crash leaves files without a reference. Two concurrent
expiries delete the same files twice, or a part of the files each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paimon_core.errors import CorruptedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.iceberg.listed import forget_expired
from paimon_core.operations.history.snapshot_deletion import (
    DeletionPlan,
    adjacent_tags,
    changelog_files,
    data_lists_of_several,
    delete_files,
    deleted_files,
    indexes,
    metadata_files,
    referenced_names,
)
from paimon_core.options.scan import CONSUMER_CHANGELOG_ONLY
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.retention import Retention, are_due, first_retained, least_due, outlived, times_of
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class Expired:
    """The result of an expiry.

    Args:
        snapshots: the ids of the expired snapshots.
        changelogs: the ids of the expired changelogs that outlived their snapshots.
        files: the number of deleted files, besides snapshots and changelogs themselves.
        bytes: the bytes of these files, without files whose size the metadata does not store: statistics, and index
            files next to data files.
    """

    snapshots: tuple[int, ...] = ()
    changelogs: tuple[int, ...] = ()
    files: int = 0
    bytes: int = 0

    def __repr__(self) -> str:
        snapshots, changelogs = len(self.snapshots), len(self.changelogs)
        return f"Expired(snapshots: {snapshots}, changelogs: {changelogs}, files: {self.files}, bytes: {self.bytes})"

    def __add__(self, other: "Expired") -> "Expired":
        return Expired(
            self.snapshots + other.snapshots,
            self.changelogs + other.changelogs,
            self.files + other.files,
            self.bytes + other.bytes,
        )


def expire_snapshots(
    store: FileStore,
    retention: Retention,
    *,
    dry_run: bool = False,
    earliest: int | None = None,
    latest: int | None = None,
    patient: bool = False,
) -> Expired:
    """Expire the oldest snapshots that are due, up to the limit of one step; return their ids.

    All snapshots from the first one that a consumer has not read are kept, and so are files that tags, other branches
    or changelogs need.

    Args:
        store: the table to expire.
        retention: the rules for the snapshots to keep.
        dry_run: True to only return the snapshots that would expire.
        earliest: id of the first snapshot to expire, as if earlier ones had expired; ``None``: the oldest snapshot.
        latest: id of the newest snapshot; ``None``: it is read.
        patient: see `least_due`.

    Raises CorruptedError (nothing changed) if needed metadata cannot be read. Raises OSError of the storage: before
    the first snapshot is deleted, nothing has changed; after that, unreferenced files may remain.
    """
    latest = latest or store.snapshots.latest_id()
    if latest is None or latest - retention.least < 1:  # ids count from 1
        return Expired()
    ids, end = _due(store, retention, latest, earliest, patient=patient)
    expiring = list(_found(store, ids))
    after = store.snapshots.find(end) if expiring else None
    if after is None:  # or another expiry is deleting it and all snapshots before it
        return Expired()
    keeps_changes = outlived(store.options) or store.changelogs.earliest_id() is not None
    try:
        plan = _deletion_plan(store, expiring, after, keeps_changes=keeps_changes)
        tags, names = _needed(store, plan, expiring[0], after)
    except CorruptedError:
        if store.snapshots.exists(end):
            raise
        return Expired()
    if dry_run:
        paths, size = plan.paths(store, names)
        return Expired(tuple(s.id for s in expiring), files=len(paths), bytes=size)
    if keeps_changes:
        changelogs = store.changelogs
        changelogs.keep(expiring)
        store.sync(changelogs.path(snapshot.id) for snapshot in expiring)
    removed = _remove(store, expiring, after)
    store.sync(store.snapshots.path(snapshot.id) for snapshot in expiring)  # no snapshot reappears without its files
    forget_expired(store)
    if removed != expiring or not _is_after(store, after):
        return Expired(tuple(s.id for s in removed))
    added = [tag for tag in store.tags.list() if tag not in tags]  # also created from snapshots that still existed
    paths, size = plan.paths(store, names | _of_new_tags(store, plan, added))
    delete_files(store, paths)
    return Expired(tuple(s.id for s in expiring), files=len(paths), bytes=size)


def _remove(store: FileStore, expiring: Sequence[Snapshot], after: Snapshot) -> list[Snapshot]:
    """Delete the snapshots, oldest first, while a newer one exists; return the deleted snapshots.

    A concurrent rollback may make one of them the newest snapshot of the table. This snapshot stays, or is put back.
    """
    removed: list[Snapshot] = []
    order = [*expiring, after]
    for snapshot, following in pairwise(order):
        if not store.snapshots.exists(following.id):
            break
        store.io.delete(store.snapshots.path(snapshot.id))
        removed.append(snapshot)
    if removed and not _has_newer(store, removed[-1].id, order[len(removed)].id):
        target = store.snapshots.hinted()  # a rollback writes the hint first
        for newest in (snapshot for snapshot in removed if snapshot.id == target):
            with store.environment.locked():
                store.io.create_exclusive(store.snapshots.path(newest.id), newest.to_json())
            removed = removed[: removed.index(newest)]
    if removed:
        store.snapshots.write_hint("EARLIEST", removed[-1].id + 1)
    return removed


def _has_newer(store: FileStore, snapshot_id: int, likely: int) -> bool:
    """Return True if a newer snapshot than ``snapshot_id`` exists; ``likely``: one to look for first."""
    return store.snapshots.exists(likely) or max(store.snapshots.ids(), default=0) > snapshot_id


def _due(
    store: FileStore, retention: Retention, latest: int, earliest: int | None, *, patient: bool
) -> tuple[list[int], int]:
    """Return the ids of the snapshots to expire, and the id of the snapshot that follows them.

    A hint is enough to decide whether any snapshot is due. A listing then finds all due snapshots, because an older
    snapshot that remained would lose files that it needs. ``earliest``: see `expire_snapshots`.
    """
    begin, times = store.snapshots.earliest_id() if earliest is None else earliest, times_of(store.snapshots.find)
    if begin is None:
        return [], 0
    least = least_due(retention, begin, latest, patient=patient)
    if not are_due(retention, least, begin, latest, times):
        return [], 0
    unread = _unread(store)
    end = first_retained(retention, begin, latest, unread, times)
    if end < begin + least:
        return [], 0
    existing = [number for number in store.snapshots.ids() if earliest is None or number >= earliest]
    if existing and existing[0] != begin:
        end = first_retained(retention, existing[0], latest, unread, times)
    return [number for number in existing if number < end], next((number for number in existing if number >= end), end)


def _deletion_plan(store: FileStore, expiring: list[Snapshot], after: Snapshot, *, keeps_changes: bool) -> DeletionPlan:
    """Return the files to delete with these snapshots; ``after``: the snapshot that follows the last of them.

    With ``keeps_changes`` the changelog files are kept. In a table without a changelog producer the written data files
    are the changes, so these files are kept, together with the manifests that list them.
    """
    written = keeps_changes and store.traits.changelog_producer == "none"
    others, deltas = ({}, None) if written else data_lists_of_several(store, expiring)
    for snapshot in expiring:
        others |= indexes(store, snapshot)
        if not keeps_changes:
            others |= changelog_files(store, snapshot)
    following = [*expiring[1:], after]
    return DeletionPlan(deleted_files(store, following, spare_appended=written, deltas=deltas), others)


def _needed(store: FileStore, plan: DeletionPlan, first: Snapshot, after: Snapshot) -> tuple[list[Tag], set[str]]:
    """Return the tags, and the names of planned files that tags, other branches or the snapshot ``after`` need."""

    def needed(tags: list[Tag]) -> tuple[list[Tag], set[str]]:
        snapshots = [after, *adjacent_tags(tags, first.id, after.id)]
        return tags, referenced_names(store, plan, tags) | _named(store, snapshots)

    try:
        return needed(store.tags.remembered())
    except CorruptedError:  # a tag may be another one than this process remembers
        return needed(store.tags.list())


def _of_new_tags(store: FileStore, plan: DeletionPlan, added: list[Tag]) -> set[str]:
    return referenced_names(store, plan, added) | _named(store, [tag.snapshot for tag in added]) if added else set()


def _named(store: FileStore, snapshots: list[Snapshot]) -> set[str]:
    return {name for snapshot in snapshots for name in metadata_files(store, snapshot)}


def _is_after(store: FileStore, after: Snapshot) -> bool:
    """Return True if ``after`` still follows the expired snapshots, so that no rollback went back to one of them."""
    existing = store.snapshots.find(after.id)
    return existing == after or (existing is None and (store.snapshots.latest_id() or 0) > after.id)


def _unread(store: FileStore) -> int | None:
    if store.options.value(CONSUMER_CHANGELOG_ONLY):
        return None
    return Consumers(store.io, store.branch_root).min_next()


def _found(store: FileStore, ids: Sequence[int]) -> Iterator[Snapshot]:
    return (snapshot for snapshot in parallel_map(store.snapshots.find, ids) if snapshot is not None)
