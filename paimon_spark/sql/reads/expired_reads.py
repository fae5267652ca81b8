"""Translation of missing-file errors of Spark's own scan to errors that name the expired snapshot.

Spark reports a missing file without the snapshot that the scan reads. So the driver remembers the files of native scans
as long as Spark keeps their plans, and searches them for the files that an error names.
"""

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

from paimon_core import Snapshot
from paimon_core.engine import FileStore, expiry
from paimon_core.errors import PaimonError
from paimon_spark.internals import translate_java_errors

_READ_FAILED = "FAILED_READ_FILE"
_FILE = re.compile(r"[^\s/]+\.(?:parquet|orc)")
_MAX_CAUSES = 10


@dataclass(eq=False)
class NativeRead:
    """The files of a snapshot that Spark's own scan reads."""

    store: FileStore
    snapshot: Snapshot
    files: Collection[str]
    """The paths of the files, as URIs."""


_NUMBERS = itertools.count()
_READS: WeakValueDictionary[int, NativeRead] = WeakValueDictionary()


def native_read(store: FileStore, snapshot: Snapshot, files: Collection[str]) -> NativeRead:
    """Return a handle: while the caller keeps it, errors of the read are translated.

    Args:
        store: the table.
        snapshot: the snapshot to read.
        files: the paths of the files, as URIs.
    """
    translate_java_errors(_translated)
    read = NativeRead(store, snapshot, files)
    _READS[next(_NUMBERS)] = read
    return read


def _translated(error: Any) -> PaimonError | None:
    """Return the engine's error for a Java exception about files of an expired snapshot; `None`: other exceptions."""
    reads = sorted(_READS.values(), key=lambda read: read.snapshot.id, reverse=True)
    text = next((text for text in _messages(error) if _READ_FAILED in text), None) if reads else None
    if text is None:
        return None
    reason = next(line for line in text.splitlines() if _READ_FAILED in line).strip()
    names = set(map(unquote, _FILE.findall(text)))
    for read in reads:
        if any(unquote(uri).rpartition("/")[2] in names for uri in read.files):
            expired = expiry(read.store, read.snapshot, reason)
            if expired is not None:
                return expired
    return None


def _messages(error: Any) -> Iterator[str]:
    """Yield the texts of a Java exception and of its causes."""
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        yield str(error.toString())
        error = error.getCause()
