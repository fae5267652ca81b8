"""Create tags and expire partitions, consumers, snapshots and changelogs, after a commit or on request."""

import logging
from dataclasses import replace
from datetime import timedelta
from threading import Thread

from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.operations.history.automatic_tags import tag_after_commit
from paimon_core.operations.history.expire_changelogs import expire_changelogs
from paimon_core.operations.history.expire_snapshots import Expired, expire_snapshots
from paimon_core.operations.partitions.expire_partitions import expire_partitions_after_commit
from paimon_core.options.lsm import WRITE_ONLY
from paimon_core.options.scan import CONSUMER_EXPIRATION_TIME
from paimon_core.options.snapshot import SNAPSHOT_EXPIRE_EXECUTION_MODE
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.retention import changelog_retention, outlived, snapshot_retention
from paimon_core.store.clock import earlier_clock
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 1_000  # snapshots of one step, if steps delete few files
_FEW_FILES = 10_000  # files of a step whose entries take little memory


def expire_after_commit(store: FileStore, *, dedicated: bool = False) -> None:
    """Create tags and expire as the table's options require, after a commit. Cost: a few small reads if nothing is due.

    At most ``snapshot.expire.limit`` snapshots expire, and of thousands a thousandth at a time (`least_due`). In a
    ``write-only`` table nothing expires unless a ``dedicated`` maintenance job calls this function. Never fails: an
    error is logged, and the next commit tries again.
    """
    if store.options.value(WRITE_ONLY) and not dedicated:
        return
    if store.options.value(SNAPSHOT_EXPIRE_EXECUTION_MODE) == "async":
        Thread(target=_expire, args=(store, dedicated), name="paimon-expire").start()
    else:
        _expire(store, dedicated)


def _expire(store: FileStore, dedicated: bool) -> None:
    try:
        newest = store.snapshots.latest()
        if newest is None:
            return
        tag_after_commit(store, newest)
        expire_partitions_after_commit(store, newest, dedicated=dedicated)
        now, options = store.now(), store.options
        unused = options.value(CONSUMER_EXPIRATION_TIME)
        if unused is not None:
            _expire_consumers(store, unused // timedelta(milliseconds=1))
        expired = expire_snapshots(store, snapshot_retention(options, now), latest=newest.id, patient=True)
        if expired.snapshots or outlived(options):
            expire_changelogs(store, changelog_retention(options, now), latest=newest.id, patient=True)
    except Exception as error:
        _log.warning(
            "snapshots of %s were not expired, the next commit tries again: %s",
            hide_secrets(store.root),
            hide_secrets(str(error)),
        )


def _expire_consumers(store: FileStore, unused: int) -> None:
    """Delete the consumers that were not recorded for a time (ms), by the earlier of two clocks: `earlier_clock`."""
    consumers = Consumers(store.io, store.branch_root)
    limit = store.now() - unused
    if any(modified < limit for modified in consumers.modified().values()):
        consumers.expire(earlier_clock(store) - unused)


def expire_table(
    store: FileStore,
    older_than: int | None = None,
    retain_max: int | None = None,
    retain_min: int | None = None,
    *,
    max_deletes: int | None = None,
    dry_run: bool = False,
) -> Expired:
    """Expire all snapshots that are due, then all changelogs that are due; return their ids.

    Memory: bounded by the files of one step: ``snapshot.expire.limit`` snapshots, or more if steps delete few files.

    Args:
        store: the table to expire.
        older_than: epoch milliseconds; snapshots before this time are due. ``None``: use the options.
        retain_max: largest number of snapshots to keep; ``None``: use the options. It also lowers a larger minimum that
            the options set.
        retain_min: smallest number of snapshots to keep; ``None``: use the options.
        max_deletes: largest number of snapshots to expire, oldest first; ``None``: all that are due.
        dry_run: True to only return the ids that would expire; for changelogs, only ids that exist now.
    """
    now, options = store.now(), store.options
    given = snapshot_retention(options, now)
    most = given.most if retain_max is None else retain_max
    least = min(given.least, max(most, 1)) if retain_min is None else retain_min
    older = given.older_than if older_than is None else older_than
    retention = replace(given, least=least, most=most, older_than=older)
    total, earliest = Expired(), None
    if max_deletes is not None and max_deletes < 1:
        raise InvalidInputError(f"max_deletes must be 1 or more, not {max_deletes}")
    limit = given.limit
    while max_deletes is None or len(total.snapshots) < max_deletes:
        at_once = limit if max_deletes is None else min(limit, max_deletes - len(total.snapshots))
        step = expire_snapshots(store, replace(retention, limit=at_once), dry_run=dry_run, earliest=earliest)
        if not step.snapshots:
            break
        total, earliest = total + step, step.snapshots[-1] + 1
        # each step lists all snapshots, so the number of steps must not grow with their number
        limit = max(given.limit, min(2 * limit, _MOST_AT_ONCE)) if step.files < _FEW_FILES else given.limit
    longer = changelog_retention(options, now)
    while (step := expire_changelogs(store, longer, dry_run=dry_run)).changelogs:
        total += step
        if dry_run:
            break
    return total
