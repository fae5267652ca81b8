"""A cache of decoded metadata: a table is planned again and again, and most of its manifests do not change."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from paimon_core.memory import LruCache

T = TypeVar("T")
MAX_ENTRIES = 20_000
"""Maximum number of cached entries of about a kilobyte each, so some 20 MB. A larger manifest is not cached."""


class DecodedFiles(Generic[T]):
    """A cache of the most recently used manifests or manifest lists, by the content of their files. Thread-safe.

    A file that was damaged or replaced under the same name counts as another file.
    """

    def __init__(self, most: int = MAX_ENTRIES, kilobytes: Callable[[T], int] | None = None) -> None:
        """Create an empty cache.

        Args:
            most: the limit of entries, or of their kilobytes.
            kilobytes: returns the size of an entry, at least 1; `None`: all entries are small.
        """
        self._kilobytes = kilobytes
        self._entries = LruCache[tuple[bytes, bool], tuple[Sequence[T], int]](most, lambda sized: sized[1])

    def get(self, data: bytes, with_stats: bool, decode: Callable[[], list[T]]) -> list[T]:
        """Return the entries of a file.

        Args:
            data: the bytes of the file.
            with_stats: True if the entries have statistics.
            decode: a function that returns the entries if they are not cached.
        """
        key = hashlib.blake2b(data, digest_size=16).digest(), with_stats
        cached = self._entries.get(key)
        if cached is not None:
            return list(cached[0])
        entries = decode()
        size = len(entries) if self._kilobytes is None else sum(map(self._kilobytes, entries))
        self._entries.put(key, (tuple(entries), size))
        return entries
