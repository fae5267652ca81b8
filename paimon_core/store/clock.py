"""The clock that decides on the deletion of old files, tags, consumers and partitions."""

import logging
from contextlib import suppress

from paimon_core.errors import hide_secrets
from paimon_core.fileio.fileio import UNKNOWN_MODIFIED, join
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)
_TOLERATED = 60_000  # ms
_DIRECTORY = "consumer"  # it has few files, and the removal of orphan files finds a file that a crash leaves there


def earlier_clock(store: FileStore) -> int:
    """Return the time (epoch ms) by this machine's clock, or by the store's clock if that is over a minute behind.

    A machine whose clock is ahead would delete files that are still being written, and partitions that are not due.
    The store's clock is the modification time of a new file, which is deleted again. On a local disk both clocks are
    the same. Cost: three requests. If they fail, or if the store has no modification times, only this machine's clock
    counts.
    """
    now, directory = store.now(), join(store.root, _DIRECTORY)
    name = f".clock-{store.new_name()}.tmp"
    path = join(directory, name)
    found = [UNKNOWN_MODIFIED]
    with suppress(OSError):
        try:
            store.io.write(path, b"")
            found = [file.modified_ms for file in store.io.list(directory) if file.name == name]
        finally:
            store.io.delete(path)
    if found and 0 < found[0] < now - _TOLERATED:
        _log.warning(
            "the clock of this machine is %d s ahead of the clock of the store of %s: what is deleted by its age is "
            "compared with the store's clock. Set both by NTP",
            (now - found[0]) // 1000,
            hide_secrets(store.root),
        )
        return found[0]
    return now
