"""The lock of a table in a Hive metastore, which Java's HiveCatalog takes as well.

The metastore gives up a lock whose holder is silent for its ``metastore.txn.timeout``, by default 5 minutes. So the
lock of a process that was killed is free after that time, and no work longer than that may be done under it.
"""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from paimon_core.catalog.hive.client import MetastoreClient, MetastoreError
from paimon_core.errors import PaimonError
from paimon_core.store.environment import NotLockedError

_FIRST_SLEEP: Final = 0.05
_log = logging.getLogger(__name__)


@contextmanager
def table_lock(client: MetastoreClient, database: str, table: str) -> Iterator[None]:
    """Hold the exclusive lock of a table.

    Looks after 0.1 s and then in pauses that double, as Java does. Raises NotLockedError if the lock is not free in
    time, and if the metastore does not answer.
    """
    try:
        lock_id = _acquire(client, database, table)
    except PaimonError as error:
        if isinstance(error, NotLockedError):
            raise
        raise NotLockedError(
            f"the lock of {database}.{table} cannot be taken, nothing was published: {error}"
        ) from error
    try:
        yield
    finally:
        _release(client, lock_id)


def _acquire(client: MetastoreClient, database: str, table: str) -> int:
    types, limits = client.types, client.settings.lock
    component = types.LockComponent(
        type=types.LockType.EXCLUSIVE, level=types.LockLevel.TABLE, dbname=database, tablename=table
    )
    component.operationType = types.DataOperationType.UNSET
    request = types.LockRequest(
        component=[component], user=client.settings.user, hostname=socket.gethostname(), agentInfo="paimon"
    )
    begun, pause = time.monotonic(), _FIRST_SLEEP
    answer: Any = client.call("lock", request, repeat=False)
    lock_id = int(answer.lockid)
    try:
        while answer.state == types.LockState.WAITING:
            waited = time.monotonic() - begun
            if waited >= limits.acquire_timeout:
                raise NotLockedError(
                    f"the lock of {database}.{table} was not free within {limits.acquire_timeout:g} s, so nothing was "
                    "published: another writer holds it, or has died and the metastore waits for its "
                    "metastore.txn.timeout; write again, or raise lock-acquire-timeout"
                )
            pause = min(pause * 2, limits.most_sleep)
            time.sleep(min(pause, limits.acquire_timeout - waited))
            answer = client.call("check_lock", types.CheckLockRequest(lock_id))
        if answer.state != types.LockState.ACQUIRED:
            raise NotLockedError(f"the metastore gave up the lock of {database}.{table}, nothing was published")
    except BaseException:
        _release(client, lock_id)
        raise
    return lock_id


def _release(client: MetastoreClient, lock_id: int) -> None:
    try:
        client.call("unlock", client.types.UnlockRequest(lock_id))
    except MetastoreError as error:  # what was published exists; the metastore gives the lock up by itself
        _log.warning("a lock was not released, and stays until the metastore gives it up: %s", error)
