"""The lock of a table: a row in the catalog's database, as Java's JDBC catalog writes it.

A holder that dies leaves its row. Others delete the row once it is older than the time that the holder wrote into it.
So the lock protects only work that is shorter than this time, such as the publication of a snapshot.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

import sqlalchemy as sa

from paimon_core.catalog.jdbc.database import CatalogError, Database
from paimon_core.store.environment import NotLockedError

_log = logging.getLogger(__name__)
_FIRST_WAIT: Final = 0.05
_AGE: Final = {
    "sqlite": "strftime('%s', 'now') - strftime('%s', acquired_at)",
    "postgresql": "EXTRACT(EPOCH FROM AGE(NOW(), acquired_at))",
    "mysql": "TIMESTAMPDIFF(SECOND, acquired_at, NOW())",
}
"""The seconds since a lock was taken, by the clock of the database, as Java computes them."""


@lru_cache
def lock_table(length: int) -> sa.MetaData:
    """Return the table of locks. ``length``: the longest name of a lock, in characters."""
    tables = sa.MetaData()
    sa.Table(
        "paimon_distributed_locks",
        tables,
        sa.Column("lock_id", sa.String(length), primary_key=True),
        sa.Column("acquired_at", sa.TIMESTAMP, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")),
        sa.Column("expire_time_seconds", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    )
    return tables


@contextmanager
def held_lock(database: Database, name: str, timeout: float, longest_wait: float, length: int) -> Iterator[None]:
    """Hold a lock during the block.

    Args:
        database: the catalog's database.
        name: the name of the lock.
        timeout: seconds to wait for the lock at most; also the age at which others may take it from this process.
        longest_wait: seconds between two attempts at most.
        length: the longest name that the table of locks can hold.

    Raises NotLockedError if the lock is not free in time or the database fails before the block.
    """
    table = lock_table(length).tables["paimon_distributed_locks"]
    if len(name) > length:
        raise NotLockedError(f"the name of lock {name!r} is longer than 'lock-key-max-length' = {length}: raise it")
    _acquire(database, table, name, timeout, longest_wait)
    try:
        yield
    finally:
        try:
            with database.transaction() as connection:
                connection.execute(sa.delete(table).where(table.c.lock_id == name))
        except CatalogError as error:  # what was published exists, and the lock expires
            _log.warning("lock %s is not released, and expires after %.0f s: %s", name, timeout, error)


def _acquire(database: Database, table: sa.Table, name: str, timeout: float, longest_wait: float) -> None:
    expired = sa.text(f"{_AGE[database.address.dialect]} > expire_time_seconds")
    wait, deadline = _FIRST_WAIT, time.monotonic() + timeout
    while True:
        try:
            with database.transaction() as connection:
                connection.execute(sa.delete(table).where(expired, table.c.lock_id == name))
            if _inserted(database, table, name, int(timeout)):
                return
        except CatalogError as error:
            raise NotLockedError(f"lock {name!r} was not taken, so nothing was published: {error}") from error
        if time.monotonic() > deadline:
            raise NotLockedError(
                f"lock {name!r} was not free within {timeout:.0f} s, so nothing was published: another process holds "
                "it, or died with it; try again, or raise 'lock-acquire-timeout' of the catalog"
            )
        time.sleep(min(wait, longest_wait, max(0.0, deadline - time.monotonic()) + 0.01))
        wait *= 2


def _inserted(database: Database, table: sa.Table, name: str, seconds: int) -> bool:
    """Insert the row of a lock; return False if another process holds the lock."""
    try:
        with database.transaction() as connection:
            connection.execute(sa.insert(table), {"lock_id": name, "expire_time_seconds": seconds})
    except CatalogError as error:
        if error.is_conflict:
            return False
        raise
    return True
