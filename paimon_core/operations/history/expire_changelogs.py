"""Expire changelogs that outlived their snapshots (behaviour 7.11)."""

from paimon_core.fileio.parallel import parallel_map
from paimon_core.operations.history.expire_snapshots import Expired
from paimon_core.operations.history.snapshot_deletion import (
    DeletionPlan,
    Paths,
    adjacent_tags,
    changelog_files,
    data_lists,
    delete_files,
    deleted_files,
    metadata_files,
    referenced_names,
)
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.retention import Retention, are_due, first_retained, least_due, outlived, times_of
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


def expire_changelogs(
    store: FileStore,
    retention: Retention,
    *,
    dry_run: bool = False,
    latest: int | None = None,
    patient: bool = False,
) -> Expired:
    """Expire the oldest changelogs that are due, up to the limit of one step; return their ids.

    The newest changelog is kept while the table's options keep changes longer than snapshots. Changelogs that a
    consumer has not read are kept. For the arguments, and the state after an error, see `expire_snapshots`.
    """
    changelogs = store.changelogs
    earliest, times = changelogs.earliest_id(), times_of(changelogs.find)
    latest = latest if earliest is None else latest or store.snapshots.latest_id()
    if earliest is None or latest is None:
        return Expired()
    least = least_due(retention, earliest, latest, patient=patient)
    if not are_due(retention, least, earliest, latest, times):
        return Expired()
    newest, first = changelogs.latest_id(), store.snapshots.earliest_id()
    if newest is None or first is None:
        return Expired()
    unread = Consumers(store.io, store.branch_root).min_next()
    limit = min(newest if outlived(store.options) else newest + 1, first, newest + 1 if unread is None else unread)
    end = first_retained(retention, earliest, latest, limit, times)
    oldest = store.snapshots.earliest() if end >= earliest + least else None
    if oldest is None:
        return Expired()
    existing = changelogs.ids()
    if existing and existing[0] != earliest:  # the hint was wrong
        end = first_retained(retention, existing[0], latest, limit, times)
    end = min(end, oldest.id)
    expiring = [found for found in parallel_map(changelogs.find, [n for n in existing if n < end]) if found is not None]
    if not expiring:
        return Expired()
    tags = store.tags.list()
    plan = _deletion_plan(store, expiring, oldest if end > newest else None)
    following = changelogs.find(end)
    names = referenced_names(store, plan, tags)
    for snapshot in (oldest, *adjacent_tags(tags, expiring[0].id, end)):
        names |= metadata_files(store, snapshot).keys()
    if following is not None:
        names |= metadata_files(store, following, strict=False).keys()
    paths, size = plan.paths(store, names)
    if not dry_run:
        changelogs.remove([changelog.id for changelog in expiring])
        store.sync(changelogs.path(changelog.id) for changelog in expiring)
        delete_files(store, paths)
    return Expired(changelogs=tuple(changelog.id for changelog in expiring), files=len(paths), bytes=size)


def _deletion_plan(store: FileStore, expiring: list[Snapshot], after: Snapshot | None) -> DeletionPlan:
    """Return the files to delete with these changelogs.

    If a changelog has no changelog files, the written data files are its changes. These files are deleted if a later
    snapshot deleted them. ``after``: the oldest snapshot if no changelog remains, whose deleted files then also count.
    """
    others: Paths = {}
    for changelog in expiring:
        others |= changelog_files(store, changelog) or data_lists(store, changelog)
    written = [changelog for changelog in expiring if changelog.changelog_manifest_list is None]
    if written and after is not None:
        written.append(after)
    return DeletionPlan(deleted_files(store, written, spare_appended=False), others)
