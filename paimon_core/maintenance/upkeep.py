"""What a table needs after a commit: consumers, snapshots and changelogs that have been kept long enough go."""

import logging
from datetime import timedelta
from threading import Thread

from paimon_core.maintenance.expire_changelogs import expire_changelogs
from paimon_core.maintenance.expire_snapshots import expire_snapshots
from paimon_core.options.lsm import WRITE_ONLY
from paimon_core.options.scan import CONSUMER_EXPIRATION_TIME
from paimon_core.options.snapshot import SNAPSHOT_EXPIRE_EXECUTION_MODE
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.retention import changelog_retention, outlived, snapshot_retention
from paimon_core.store.file_store import FileStore

__all__ = ["maintain"]

_log = logging.getLogger(__name__)


def maintain(store: FileStore, *, dedicated: bool = False) -> None:
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
        _log.warning("snapshots of %s were not expired, the next commit tries again: %s", store.root, error)
