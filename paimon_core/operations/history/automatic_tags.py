"""Create and expire tags after commits (behaviour 7.12)."""

import logging
from datetime import datetime

from paimon_core.errors import InvalidInputError, OutOfRangeError, hide_secrets
from paimon_core.operations.history.delete_tag import delete_tags
from paimon_core.operations.history.table_tags import TableTags
from paimon_core.options.snapshot import (
    TAG_AUTOMATIC_CREATION,
    TAG_BATCH_CUSTOMIZED_NAME,
    TAG_NUM_RETAINED_MAX,
    TAG_TIME_EXPIRE_ENABLED,
)
from paimon_core.snapshot.automatic_tags import AutomaticTags, batch_tag_name
from paimon_core.snapshot.branches import list_branches, tag_of_branch
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)
_NONE = "none"


def tag_after_commit(store: FileStore, newest: Snapshot) -> None:
    """Create due tags, then delete tags whose retention time has passed. Never fails: errors are logged.

    ``newest``: the newest snapshot. Cost: a listing of the tags, unless ``tag.time-expire-enabled`` is false, and the
    files of tags that this process has not read before, or of all tags if one has expired.
    """
    try:
        create_due_tags(store, newest)
        if store.options.value(TAG_TIME_EXPIRE_ENABLED) and _has_expired(store):
            TableTags(store).expire()
    except Exception as error:
        _log.warning(
            "tags of %s were not created or deleted, the next commit tries again: %s",
            hide_secrets(store.root),
            hide_secrets(str(error)),
        )


def create_due_tags(store: FileStore, newest: Snapshot | None = None) -> list[Tag]:
    """Create the tags that are due by ``tag.automatic-creation`` and return them; delete the oldest surplus tags.

    ``newest``: the newest snapshot; `None`: it is read, if the table has automatic tags. Cost: a listing of the tags if
    their names show that no tag is due, else reading their files.
    """
    mode = store.options.value(TAG_AUTOMATIC_CREATION)
    if mode == _NONE:
        return []
    newest = newest or store.snapshots.latest()
    if newest is None:
        return []
    if mode == "batch":
        return _tag_batch(store, newest)
    rule = AutomaticTags.of(store.options)
    assert rule is not None, mode
    time, names, most = rule.time_of(newest), store.tags.names(), store.options.value(TAG_NUM_RETAINED_MAX)
    surplus = most is not None and len(names) > most and sum(rule.begin(name) is not None for name in names) > most
    if not surplus and (time is None or rule.is_tagged(time, names)):
        return []
    tags = store.tags.list()
    created = _tag_periods(store, rule, newest, tags)
    _delete_oldest(store, rule.automatic(store.tags.list() if created else tags))
    return created


def trigger(store: FileStore) -> list[Tag]:
    """Create the tags that are due now. Raises InvalidInputError for a table without automatic tags."""
    if store.options.value(TAG_AUTOMATIC_CREATION) == _NONE:
        raise InvalidInputError(
            f"{store.root} has no automatic tags: set the option {TAG_AUTOMATIC_CREATION.key!r} to 'process-time', "
            "'watermark' or 'batch'"
        )
    return create_due_tags(store)


def _has_expired(store: FileStore) -> bool:
    now = datetime.fromtimestamp(store.now() / 1000)  # local, as the times of tags
    return any(tag.expires is not None and now > tag.expires for tag in store.tags.remembered())


def _tag_periods(store: FileStore, rule: AutomaticTags, newest: Snapshot, tags: list[Tag]) -> list[Tag]:
    """Create a tag for each period that has ended since the newest automatic tag in ``tags``, if it has a snapshot.

    Times do not decrease from one snapshot to the next, so a binary search finds the first due snapshot.
    """
    automatic, following = rule.automatic(tags), rule.following(tags)
    last, created = (automatic[-1].snapshot.id if automatic else 0), []
    time = rule.time_of(newest)
    while time is not None and newest.id > last and rule.is_due(time, following):
        ids = [number for number in store.snapshots.ids() if last < number <= newest.id]
        snapshot = _first_due(store, rule, ids, following)
        if snapshot is None:
            break
        found = rule.time_of(snapshot)
        assert found is not None
        begin = rule.tagged(found, following)
        try:
            created.append(TableTags(store).create_automatic(rule.name(begin), snapshot))
        except OutOfRangeError:  # it has just expired: tag the next one
            continue
        last, following = snapshot.id, begin + rule.period
    return created


def _first_due(store: FileStore, rule: AutomaticTags, ids: list[int], following: int | None) -> Snapshot | None:
    """Return the first of the snapshots that is due for a tag, ignoring snapshots that expire during the search."""
    low, high, best = 0, len(ids), None
    while low < high:
        middle = (low + high) // 2
        snapshot = store.snapshots.find(ids[middle])
        time = None if snapshot is None else rule.time_of(snapshot)
        if time is not None and rule.is_due(time, following):
            best, high = snapshot, middle
        else:
            low = middle + 1
    return best


def _tag_batch(store: FileStore, newest: Snapshot) -> list[Tag]:
    """Point the tag of today's batch writes, or the tag with the configured name, at the newest snapshot."""
    if newest.commit_identifier != BATCH_COMMIT_IDENTIFIER:
        return []
    name, tags = store.options.value(TAG_BATCH_CUSTOMIZED_NAME) or batch_tag_name(newest), TableTags(store)
    made = tags.create(name, newest.id) if store.tags.find(name) is None else tags.replace(name, newest.id)
    of_branches = {tag_of_branch(branch) for branch in list_branches(store.io, store.root)}
    _delete_oldest(store, [tag for tag in store.tags.list() if tag.name not in of_branches])
    return [made]


def _delete_oldest(store: FileStore, tags: list[Tag]) -> None:
    """Delete the oldest of the tags, so that ``tag.num-retained-max`` tags remain."""
    most = store.options.value(TAG_NUM_RETAINED_MAX)
    if most is not None and len(tags) > most:
        delete_tags(store, tags[: -most or None])
