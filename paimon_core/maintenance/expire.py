"""What has been kept long enough goes, after a commit or when somebody asks: consumers, snapshots, changelogs."""

import logging
from dataclasses import replace
from datetime import timedelta
from threading import Thread

from paimon_core.errors import hide_secrets
from paimon_core.maintenance.expire_changelogs import expire_changelogs
from paimon_core.maintenance.expire_snapshots import Expired, expire_snapshots
from paimon_core.options.lsm import WRITE_ONLY
from paimon_core.options.scan import CONSUMER_EXPIRATION_TIME
from paimon_core.options.snapshot import SNAPSHOT_EXPIRE_EXECUTION_MODE
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.retention import changelog_retention, outlived, snapshot_retention
from paimon_core.store.file_store import FileStore

__all__ = ["expire_after_commit", "expire_table"]

_log = logging.getLogger(__name__)


def expire_after_commit(store: FileStore, *, dedicated: bool = False) -> None:
    """Expire what the table's options say, after a commit; a few small reads where nothing has come due.

    At most ``snapshot.expire.limit`` snapshots go. Nothing is done to a ``write-only`` table but by a ``dedicated`` job
    of upkeep. Never fails: what goes wrong is logged, and the next commit tries again.
    """
    if store.options.value(WRITE_ONLY) and not dedicated:
        return
    if store.options.value(SNAPSHOT_EXPIRE_EXECUTION_MODE) == "async":
        Thread(target=_expire, args=(store,), name="paimon-expire").start()
    else:
        _expire(store)


def _expire(store: FileStore) -> None:
    try:
        now, options = store.now(), store.options
        unused = options.value(CONSUMER_EXPIRATION_TIME)
        if unused is not None:
            Consumers(store.io, store.branch_root).expire(now - unused // timedelta(milliseconds=1))
        expired = expire_snapshots(store, snapshot_retention(options, now))
        if expired.snapshots or outlived(options):
            expire_changelogs(store, changelog_retention(options, now))
    except Exception as error:
        _log.warning(
            "snapshots of %s were not expired, the next commit tries again: %s",
            hide_secrets(store.root),
            hide_secrets(str(error)),
        )


def expire_table(
    store: FileStore,
    older_than: int | None = None,
    retain_max: int | None = None,
    retain_min: int | None = None,
    *,
    dry_run: bool = False,
) -> Expired:
    """Expire snapshots older than a moment (epoch ms) or beyond a number, then changelogs, until all that is due went.

    What is not given the options say; a ``retain_max`` below their least number lowers it. In steps of
    ``snapshot.expire.limit``, which bound what is held in memory. With ``dry_run`` it is told what would go; of
    changelogs, of those only that are there by now.
    """
    now, options = store.now(), store.options
    given = snapshot_retention(options, now)
    most = given.most if retain_max is None else retain_max
    least = min(given.least, max(most, 1)) if retain_min is None else retain_min
    older = given.older_than if older_than is None else older_than
    retention = replace(given, least=least, most=most, older_than=older)
    total, earliest = Expired(), None
    while (step := expire_snapshots(store, retention, dry_run=dry_run, earliest=earliest)).snapshots:
        total, earliest = total + step, step.snapshots[-1] + 1
    longer = changelog_retention(options, now)
    while (step := expire_changelogs(store, longer, dry_run=dry_run)).changelogs:
        total += step
        if dry_run:
            break
    return total
