"""Decoded manifests of this process: a table is planned again and again, and most of its manifests stay."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from paimon_core.manifest.entry import ManifestEntry

MAX_ENTRIES = 20_000
"""The most entries that are held, some 20 MB of a table with few columns. A manifest with more is not held."""


class DecodedManifests:
    """The entries of the manifests that were asked for last, by what the files hold, for several threads.

    A file that was damaged or replaced under the same name is another one.
    """

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._most, self._count = most, 0
        self._entries: OrderedDict[tuple[bytes, bool], Sequence[ManifestEntry]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, data: bytes, with_stats: bool, decode: Callable[[], list[ManifestEntry]]) -> list[ManifestEntry]:
        """Return the entries of a manifest.

        Args:
            data: the bytes of the file.
            with_stats: True if the entries have statistics.
            decode: returns the entries if they are not known.
        """
        key = hashlib.blake2b(data, digest_size=16).digest(), with_stats
        with self._lock:
            known = self._entries.get(key)
            if known is not None:
                self._entries.move_to_end(key)
        if known is not None:
            return list(known)
        entries = decode()
        if len(entries) <= self._most:
            self._add(key, tuple(entries))
        return entries

    def _add(self, key: tuple[bytes, bool], entries: Sequence[ManifestEntry]) -> None:
        with self._lock:
            if key not in self._entries:
                self._entries[key] = entries
                self._count += len(entries)
            while self._count > self._most:
                _, oldest = self._entries.popitem(last=False)
                self._count -= len(oldest)
